"""Each golden job gives one and the same output: straight, with a slot killed, with the whole driver killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from tests.golden.jobs import JOBS, GoldenJob
from tests.spark.harness import JobRunner, epochs_of, progress, wait_for_epoch

ROOT = Path(__file__).resolve().parents[2]
LEAST_EPOCHS = 6
KILL_AFTER = 2
"""The fault comes when this epoch is complete: work was done, and most is still to do."""

each_job = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())


def difference(found: Counter[Any], expected: Counter[Any]) -> str:
    """Both ways, because a multiset can have too much and too little at once."""
    lost, twice = expected - found, found - expected
    return f"{lost.total()} lost, e.g. {list(lost)[:3]}; {twice.total()} too many, e.g. {list(twice)[:3]}"


def assert_same(found: Counter[Any], expected: Counter[Any]) -> None:
    assert expected.total() > 0
    assert found == expected, difference(found, expected)


@each_job
def test_straight(job: GoldenJob, run_job: JobRunner) -> None:
    with job.build(run_job.environment(1, **epochs_of(job.epoch_records))).execute_and_collect() as results:
        found = Counter(results)
        shown = progress(results.get_job_client())
    assert_same(found, job.expected())
    assert shown["epoch"] + 1 >= LEAST_EPOCHS, "the input is too small for its epochs"
    assert shown["restarts"] == 0 and shown["restored_slots"] == 0


@each_job
def test_with_a_slot_killed_in_the_middle(job: GoldenJob, run_job: JobRunner) -> None:
    with job.build(run_job.environment(2, **epochs_of(job.epoch_records))).execute_and_collect() as results:
        client = results.get_job_client()
        before = wait_for_epoch(client, KILL_AFTER)
        victim = before["slots"][0]["pid"]
        os.kill(victim, signal.SIGKILL)
        found = Counter(results)
        after = progress(client)
    assert 0 < before["epoch"] < after["epoch"] - 1, "the slot was not killed in the middle of the run"
    assert after["restored_slots"] >= 1, "nobody missed the slot: the fault did not fire"
    assert victim not in {slot["pid"] for slot in after["slots"]}
    assert_same(found, job.expected())


def end_of_driver(process: subprocess.Popen[bytes]) -> None:
    """Only the driver dies; Spark's JVM and the slots must notice."""
    process.kill()


def end_of_process_group(process: subprocess.Popen[bytes]) -> None:
    """The driver and the JVM die at once."""
    os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("name", "kill"),
    [
        ("fraud_alert", end_of_driver),
        ("two_stages", end_of_process_group),
        ("buffer_join", end_of_driver),
        ("batches", end_of_process_group),
    ],
)
def test_with_the_driver_killed_in_the_middle(
    name: str, kill: Callable[[subprocess.Popen[bytes]], None], tmp_path: Path
) -> None:
    job = JOBS[name]
    checkpoints, output = tmp_path / "checkpoints", tmp_path / "output"
    first = start_driver(name, checkpoints, output)
    try:
        latest = wait_for_manifest(first, checkpoints, KILL_AFTER)
        kill(first)
    finally:
        first.kill()
        first.wait()
    assert not latest.finished
    killed_at = newest_manifest(checkpoints)
    assert killed_at is not None and not killed_at.finished, "the job was over before it was killed"
    so_far = visible_lines(output)
    assert so_far.total() < job.expected().total()

    second = start_driver(name, checkpoints, output)
    try:
        second.wait(timeout=150)
    finally:
        second.kill()
    assert second.returncode == 0, errors_of(checkpoints)
    end = newest_manifest(checkpoints)
    assert end is not None and end.finished
    assert end.incarnation == 2 and 0 < killed_at.epoch < end.epoch - 1
    found = visible_lines(output)
    assert not so_far - found, "what was visible before the crash is gone"
    assert_same(found, Counter({repr(record): count for record, count in job.expected().items()}))
    assert not [path for path in output.rglob(".*") if path.is_file()], "pending files were left"


def start_driver(name: str, checkpoints: Path, output: Path) -> subprocess.Popen[bytes]:
    # Errors go to a file, not a pipe: the JVM and the slots have it open too, and may live a moment longer.
    with open(checkpoints.with_suffix(".errors"), "a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.golden.driver", name, str(checkpoints), str(output)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def errors_of(checkpoints: Path) -> str:
    return checkpoints.with_suffix(".errors").read_text()


def newest_manifest(checkpoints: Path) -> Manifest | None:
    return ManifestStore(CheckpointLayout(checkpoints)).latest() if checkpoints.exists() else None


def wait_for_manifest(process: subprocess.Popen[bytes], checkpoints: Path, epoch: int) -> Manifest:
    """Wait, as an onlooker, until the job's manifest of `epoch` is there."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the driver ended too early: {errors_of(checkpoints)}"
        if sorted(checkpoints.glob("manifests/*.manifest")):
            try:
                latest = newest_manifest(checkpoints)
            except OSError:
                continue  # it was collected while we looked
            if latest is not None and latest.epoch >= epoch:
                return latest
        time.sleep(0.01)
    raise AssertionError(f"epoch {epoch} was not complete in time")


def visible_lines(output: Path) -> Counter[str]:
    """What a reader of the directory sees: files whose names do not begin with a dot."""
    files = [path for path in output.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return Counter(line for path in files for line in path.read_text().splitlines())
