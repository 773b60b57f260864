"""One query over past and present, asked at every step of every epoch, through crashes: each window once, and right.

The oracle knows what the answer is as of every epoch: an epoch reads a fixed number of records.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration, Duration, Time, WatermarkStrategy
from headwater.common.errors import LocalDiskError
from headwater.common.query_error import QueryError, QueryProblem
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.archive import SqliteArchive
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS
from headwater.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows, TumblingProcessingTimeWindows
from headwater.queryable_state.reader import StateReader
from headwater.queryable_state.series import Series, read_series, time_ms
from headwater.runtime.epoch import fault
from headwater.runtime.job import series_archives
from headwater.testing import STEPS
from headwater.testing.in_process import InProcess, JobCrashed, in_process
from tests.unit.datastream.test_queryable_series import EVENTS, EventTime, Mean
from tests.waiting import wait_until

PER_EPOCH = 12
KEYS = sorted({key for key, _, _ in EVENTS})


class InThisProcess:
    """The driver of a job in this process: what a control socket reaches elsewhere."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def locate(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.locate_state()
        return found

    def ask_slot(self, stage: int, partition: int, request: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self._client.ask_slot(stage, partition, request)
        return found

    def read_archive(self, *arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._client.read_archive(*arguments)
        return found


def ask(client: Any, key: Any, from_ms: int = BEGINNING_MS, to_ms: int = END_MS, name: str = "mean") -> Series:
    driver = InThisProcess(client)
    return read_series(StateReader(driver, 0.0), name, key, from_ms, to_ms)


class Oracle:
    """Asks about some keys at every step, and compares the answers with what the records up to that epoch give."""

    def __init__(self, here: InProcess, size_ms: int, slide_ms: int) -> None:
        self._here, self._size, self._slide = here, size_ms, slide_ms
        self.answers = self.with_both = self.behind = 0
        self.steps: set[str] = set()

    def reached(self, step: str, epoch: int) -> None:
        client: Any = self._here.jobs[-1].client
        if client.state_directory is None:
            return
        for key in (KEYS[epoch % len(KEYS)], KEYS[(epoch + 3) % len(KEYS)], "nobody"):
            try:
                found = ask(client, key)
            except QueryError as error:
                assert error.problem is QueryProblem.RESTORING, error
                continue
            assert [(window.start_ms, window.end_ms, window.value) for window in found.windows] == self.expected(
                key, found.epoch
            ), f"{key} at step {step} of epoch {epoch}, as of epoch {found.epoch}"
            self.answers += 1
            self.steps.add(step)
            self.behind += found.epoch < epoch
            self.with_both += {True, False} == {window.closed for window in found.windows}

    def expected(self, key: str, epoch: int) -> list[tuple[int, int, float]]:
        values: dict[int, list[int]] = {}
        for name, timestamp, impressions in EVENTS[: (epoch + 1) * PER_EPOCH]:
            if name == key:
                last = timestamp - timestamp % self._slide
                for start in range(last, timestamp - self._size, -self._slide):
                    values.setdefault(start, []).append(impressions)
        return [(start, start + self._size, sum(found) / len(found)) for start, found in sorted(values.items())]


@contextmanager
def asked_at_every_step(here: InProcess, size_ms: int, slide_ms: int) -> Iterator[Oracle]:
    oracle, before = Oracle(here, size_ms, slide_ms), fault.hook
    assert before is not None

    def hook(step: str, epoch: int) -> None:
        oracle.reached(step, epoch)
        before(step, epoch)

    fault.hook = hook
    try:
        yield oracle
    finally:
        fault.hook = before


def run(archive: SqliteArchive, assigner: Any, backend: str = "hashmap", lateness_ms: int = 0, **more: str) -> None:
    settings = Configuration.from_dict({"state.backend.type": backend, **more})
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    stream = env.from_collection(EVENTS).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(EventTime()))
    windows = stream.key_by(lambda event: event[0]).window(assigner).allowed_lateness(lateness_ms)
    windows.as_queryable_series("mean", Mean(), archive)
    env.execute("series")


TUMBLING = (TumblingEventTimeWindows.of(Time.milliseconds(400)), 400, 400)
SHORT = (TumblingEventTimeWindows.of(Time.milliseconds(100)), 100, 100)
SLIDING = (SlidingEventTimeWindows.of(Time.milliseconds(600), Time.milliseconds(200)), 600, 200)


@pytest.mark.parametrize(
    ("windows", "backend", "lateness_ms", "checkpoint_epochs"),
    [
        pytest.param(TUMBLING, "hashmap", 0, 1, id="tumbling"),
        pytest.param(TUMBLING, "hashmap", 0, 3, id="tumbling, checkpoints apart"),
        pytest.param(SHORT, "hashmap", 0, 12, id="windows that open and close between two checkpoints"),
        pytest.param(TUMBLING, "hashmap", 700, 1, id="late"),
        pytest.param(SLIDING, "hashmap", 0, 2, id="sliding"),
        pytest.param(TUMBLING, "rocksdb", 0, 2, id="rocksdb"),
    ],
)
def test_each_window_is_there_once_at_every_step(
    tmp_path: Path, windows: Any, backend: str, lateness_ms: int, checkpoint_epochs: int
) -> None:
    assigner, size_ms, slide_ms = windows
    with (
        in_process(epoch_records=PER_EPOCH, checkpoint_epochs=checkpoint_epochs) as here,
        asked_at_every_step(here, size_ms, slide_ms) as oracle,
    ):
        run(SqliteArchive(tmp_path / "archive.db"), assigner, backend, lateness_ms)
    assert oracle.answers > 100 and oracle.behind > 20, "answers were of the checkpoint before the one under way"
    assert oracle.with_both > 10, "answers came from both sides of the seam"
    assert {"processed", "manifest-written", "sink-committed"} <= oracle.steps


@pytest.mark.parametrize("step", STEPS)
def test_and_through_crashes(tmp_path: Path, step: str) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")
    with (
        in_process(epoch_records=PER_EPOCH, checkpoint_epochs=2) as here,
        asked_at_every_step(here, *TUMBLING[1:]) as oracle,
    ):
        here.kill_slot("mean", 0, epoch=4)
        for epoch in (7, 13):
            here.crash_job(epoch=epoch, at=step)
            with pytest.raises(JobCrashed):
                run(archive, TUMBLING[0])
        here.kill_slot("mean", 1, epoch=17)
        run(archive, TUMBLING[0])
    assert oracle.answers > 100 and oracle.with_both > 20


def test_what_an_abandoned_run_has_archived_is_not_shown_before_its_time(tmp_path: Path) -> None:
    """A job starts from an old savepoint. The archive has all windows of the run that went on from there."""
    archive, savepoints = SqliteArchive(tmp_path / "archive.db"), tmp_path / "savepoints"
    with in_process(tmp_path / "first", epoch_records=PER_EPOCH) as here:
        here.call(lambda client: client.trigger_savepoint(str(savepoints)), epoch=12)
        run(archive, TUMBLING[0])
    (savepoint,) = savepoints.iterdir()
    oracle = Oracle(None, *TUMBLING[1:])  # type: ignore[arg-type]
    whole = len(EVENTS) // PER_EPOCH
    read: list[int] = []  # how many times PER_EPOCH records the answers were of

    def compare(client: Any) -> None:
        found = [(window.start_ms, window.end_ms, window.value) for window in ask(client, KEYS[1]).windows]
        read.append(next(epoch for epoch in range(whole) if oracle.expected(KEYS[1], epoch) == found))

    with in_process(tmp_path / "second", epoch_records=PER_EPOCH) as here:
        for epoch in range(16, 24):
            here.call(compare, epoch=epoch)
        run(archive, TUMBLING[0], **{"execution.state-recovery.path": str(savepoint)})
    assert read == sorted(read) and len(set(read)) > 3 and read[0] < 16, "it has begun there, and gone on"


class Paused:
    """A job that waits in its thread, at the beginning of some epochs, while a test asks it."""

    def __init__(self, here: InProcess, thread: threading.Thread, *epochs: int) -> None:
        self._here, self._thread = here, thread
        self._arrived: set[int] = set()
        self._go_on = {epoch: threading.Event() for epoch in epochs}
        for epoch in epochs:
            here.call(partial(self._wait, epoch), epoch=epoch)
        thread.start()
        self._wait_for(epochs[0])

    @property
    def client(self) -> Any:
        return self._here.jobs[-1].client

    def go_on(self) -> None:
        """Go on to the next epoch in which it waits."""
        at = max(self._arrived)
        self._go_on[at].set()
        self._wait_for(min(epoch for epoch in self._go_on if epoch > at))

    def end(self) -> None:
        for event in self._go_on.values():
            event.set()
        self._thread.join()

    def _wait_for(self, epoch: int) -> None:
        wait_until(lambda: epoch in self._arrived or not self._thread.is_alive(), f"epoch {epoch}", 60)
        assert self._thread.is_alive()

    def _wait(self, epoch: int, client: Any) -> None:
        self._arrived.add(epoch)
        assert self._go_on[epoch].wait(100)


@pytest.fixture
def paused(tmp_path: Path) -> Iterator[Paused]:
    """A job that has read 20 epochs of its events, and waits; then once more, three checkpoints later."""
    with in_process(epoch_records=PER_EPOCH) as here:
        thread = threading.Thread(target=run, args=(SqliteArchive(tmp_path / "archive.db"), TUMBLING[0]))
        pause = Paused(here, thread, 12, 20)
        try:
            yield pause
        finally:
            pause.end()


def test_the_job_may_go_on_between_the_two_reads(paused: Paused) -> None:
    """Whichever side is read first: windows close meanwhile, and leave the state for the archive."""

    class Moving(InThisProcess):
        moved = 0

        def ask_slot(self, *arguments: Any) -> dict[str, Any]:
            return self._then_go_on(super().ask_slot(*arguments))

        def read_archive(self, *arguments: Any) -> dict[str, Any]:
            return self._then_go_on(super().read_archive(*arguments))

        def _then_go_on(self, answer: dict[str, Any]) -> dict[str, Any]:
            self.moved += 1
            if self.moved == 1:
                paused.go_on()
            return answer

    driver = Moving(paused.client)
    found = read_series(StateReader(driver, 0.0), "mean", KEYS[0], BEGINNING_MS, END_MS)
    later = ask(paused.client, KEYS[0])
    assert driver.moved == 2 and found.epoch == 11 and later.epoch == 19
    expected = Oracle(None, *TUMBLING[1:]).expected  # type: ignore[arg-type]
    for answer in (found, later):
        windows = [(window.start_ms, window.end_ms, window.value) for window in answer.windows]
        assert windows == expected(KEYS[0], answer.epoch)
    closed = [sum(window.closed for window in answer.windows) for answer in (found, later)]
    assert 0 < closed[0] < closed[1], "some closed in between"


def test_a_range_takes_the_windows_that_share_a_moment_with_it(paused: Paused) -> None:
    client = paused.client
    whole = ask(client, KEYS[0]).windows
    assert {window.closed for window in whole} == {True, False}
    for from_ms, to_ms in ((0, 400), (399, 400), (400, 1600), (1000, 1001), (1500, END_MS), (800, 800), (900, 100)):
        expected = [window for window in whole if window.start_ms < to_ms and window.end_ms > from_ms]
        assert ask(client, KEYS[0], from_ms, to_ms).windows == expected


def test_errors_say_what_there_is(paused: Paused) -> None:
    client = paused.client
    with pytest.raises(QueryError, match=r"no series 'meen'; did you mean 'mean'\?") as unknown:
        ask(client, "a", name="meen")
    assert unknown.value.problem is QueryProblem.UNKNOWN_STATE
    with pytest.raises(QueryError, match="a key of a series is JSON") as bad:
        ask(client, b"a")
    assert bad.value.problem is QueryProblem.BAD_KEY
    assert ask(client, "nobody").windows == []


def test_too_many_windows_are_refused(paused: Paused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_archives, "MOST_WINDOWS", 2)
    with pytest.raises(QueryError, match="more than 2 windows in that range; ask for a shorter one"):
        ask(paused.client, KEYS[0])


def test_an_archive_that_cannot_be_read_is_an_error(paused: Paused, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(archive: SqliteArchive) -> Any:
        raise LocalDiskError(f"archive {archive.path} cannot be read")

    client = paused.client
    with monkeypatch.context() as patch, pytest.raises(QueryError, match=r"series 'mean': archive .* cannot") as failed:
        patch.setattr(SqliteArchive, "open", unreadable)
        ask(client, KEYS[0])
    assert failed.value.problem is QueryProblem.FAILED
    assert ask(client, KEYS[0]).windows, "the next reader finds it"


def test_an_answer_waits_for_the_output_of_its_checkpoint(paused: Paused, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot of a job without a checkpoint directory may be ahead of the sinks."""
    client = paused.client
    monkeypatch.setattr(series_archives, "VISIBLE_SECONDS", 0.02)
    with pytest.raises(QueryError, match="the output of epoch 12 is not in the archive yet") as late:
        InThisProcess(client).read_archive("mean", '"a"', 0, 1, 12)
    assert late.value.problem is QueryProblem.NOT_YET
    InThisProcess(client).read_archive("mean", '"a"', 0, 1, 11)


def test_processing_time_windows(tmp_path: Path) -> None:
    """Their clock is the epochs' processing time."""
    found: list[Series] = []
    with in_process(epoch_records=10) as here:
        here.call(lambda client: found.append(ask(client, 0)), epoch=9)

        def job() -> None:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(1)
            windows = env.from_sequence(1, 200).key_by(lambda n: 0)
            windows.window(TumblingProcessingTimeWindows.of(Time.hours(1))).as_queryable_series(
                "mean", lambda one, other: one + other, SqliteArchive(tmp_path / "archive.db")
            )
            env.execute("processing time")

        job()
    ((window,),) = [series.windows for series in found]
    assert not window.closed and window.value == sum(range(1, 91)) and window.end_ms - window.start_ms == 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", 17),
        ("-5", -5),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        (str(10**30), END_MS),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert time_ms(text, "from") == expected


@pytest.mark.parametrize("text", ["", "yesterday", "1e5", "2026-13-01", "9" * 5000])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(QueryError, match=r"from is .*; expected milliseconds since 1970, or a time such as"):
        time_ms(text, "from")
