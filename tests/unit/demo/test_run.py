"""Watching and killing, with a job client that only pretends, and real processes as its slots."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from headwater.common.errors import HeadwaterError
from headwater.demo.run import DemoSettings, committed_lines, watch
from headwater.demo.view import LineView, LiveView, View, make_view, sparkline, time_of
from headwater.runtime.slot.starter import local_host


def progress(epoch: int, records_in: int, pids: list[int], host: str = local_host()) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "records_in": records_in,
        "records_per_second": 1000.0,
        "watermark": 1_767_225_600_000,
        "state_entries": 40_000,
        "epoch_ms": 950.0,
        "restarts": 0,
        "slots": [{"stage": 1, "partition": at, "host": host, "pid": pid} for at, pid in enumerate(pids)],
    }


class ScriptedResult:
    def __init__(self, steps_left: Callable[[], int]) -> None:
        self._steps_left = steps_left

    def done(self) -> bool:
        return self._steps_left() <= 1

    def result(self) -> None:
        return None


class ScriptedJob:
    """Shows one scripted step of progress after another; ends with the last."""

    def __init__(self, *steps: dict[str, Any]) -> None:
        self._steps = list(steps)

    def progress(self) -> dict[str, Any]:
        return self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]

    def get_job_status(self) -> str:
        return "RUNNING"

    def get_job_execution_result(self) -> ScriptedResult:
        return ScriptedResult(lambda: len(self._steps))

    def cancel(self) -> None:
        return None


@pytest.fixture
def slot() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.demo.run._POLL_S", 0.0)


def lines_of(action: Callable[[View], None], total: int = 100) -> str:
    text = io.StringIO()
    with LineView(Console(file=text, width=200), total) as view:
        action(view)
    return text.getvalue()


def test_kills_one_slot_half_way_and_sees_the_recovery(slot: subprocess.Popen[bytes], tmp_path: Path) -> None:
    job = ScriptedJob(
        progress(1, 40, [slot.pid]),
        progress(2, 50, [slot.pid]),  # half: the slot is killed now
        progress(2, 50, [slot.pid]),  # still the old epoch
        progress(3, 60, [99_999_999]),
        progress(4, 100, [99_999_999]),
    )
    seen = []
    text = lines_of(lambda view: seen.append(watch(job, DemoSettings(count=100), tmp_path, view)))
    assert slot.wait(10) == -9
    killing = seen[0].killing
    assert killing is not None
    assert (killing.pid, killing.epoch, killing.new_pid) == (slot.pid, 2, 99_999_999)
    assert f"kill -9 {slot.pid}: the slot of stage 1, partition 0" in text
    assert "slot 99999999 restored its state and epoch 3 is committed" in text


def test_leaves_slots_of_other_hosts_alone(slot: subprocess.Popen[bytes], tmp_path: Path) -> None:
    far = "another-host.invalid"
    job = ScriptedJob(progress(1, 60, [slot.pid], far), progress(2, 90, [slot.pid], far), progress(3, 100, []))
    with pytest.raises(HeadwaterError, match="before a slot was killed"):
        lines_of(lambda view: watch(job, DemoSettings(count=100), tmp_path, view) and None)
    assert slot.poll() is None


def test_an_undisturbed_run_kills_nothing(slot: subprocess.Popen[bytes], tmp_path: Path) -> None:
    job = ScriptedJob(progress(1, 60, [slot.pid]), progress(2, 90, [slot.pid]), progress(3, 100, [slot.pid]))
    lines_of(lambda view: watch(job, DemoSettings(count=100, kill=False), tmp_path, view) and None)
    assert slot.poll() is None


def test_only_visible_files_count(tmp_path: Path) -> None:
    bucket = tmp_path / "2026-01-01"
    bucket.mkdir()
    (bucket / "part-0").write_text("a\nb\n")
    (bucket / ".part-1.inprogress").write_text("pending\n")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part-2").write_text("pending\n")
    assert sorted(committed_lines(tmp_path)) == ["a", "b"]
    assert list(committed_lines(tmp_path / "not there yet")) == []


def test_a_pipe_gets_lines_and_a_terminal_a_panel() -> None:
    assert isinstance(make_view(Console(file=io.StringIO()), 1), LineView)
    assert isinstance(make_view(Console(file=io.StringIO(), force_terminal=True), 1), LiveView)


def test_a_line_says_everything() -> None:
    text = lines_of(lambda view: view.show(3.0, progress(7, 50, [1]), alerts=12))
    assert text == (
        "  3.0 s  payments 50 of 100, records/s 1,000, watermark 2026-01-01 00:00:00, state 40,000 entries,"
        " epoch 7 (950 ms), restarts 0, alerts 12\n"
    )


def test_before_the_first_epoch_there_are_no_numbers() -> None:
    assert lines_of(lambda view: view.show(1.0, progress(-1, 0, []), alerts=0)) == (
        "  1.0 s  Spark starts, and the first epoch runs …\n"
    )


def test_the_panel_shows_facts_and_events() -> None:
    text = io.StringIO()
    with LiveView(Console(file=text, force_terminal=True, width=100), 100) as view:
        view.say(3.0, "kill -9 17")
        view.show(3.0, progress(7, 50, [1]), alerts=12)
    assert "kill -9 17" in text.getvalue()
    assert "2026-01-01 00:00:00" in text.getvalue()


def test_the_ends_of_event_time_have_names() -> None:
    assert time_of(-(2**63)) == time_of(None) == "none yet"
    assert time_of(2**63 - 1) == "end of input"


def test_sparkline() -> None:
    assert sparkline([]) == sparkline([0.0]) == ""
    assert sparkline([1.0, 2.0, 4.0]) == "▂▄█"
