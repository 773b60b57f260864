"""Starting, watching, cancelling, resuming; who owns a checkpoint directory."""

from __future__ import annotations

import os
import socket
from collections import Counter
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.common import JobStatus, WatermarkStrategy
from headwater.common.errors import CheckpointError, JobInUseError
from headwater.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.testing import CollectingSink
from tests.spark.harness import JobRunner, epochs_of, progress, wait_for_epoch
from tests.waiting import wait_until

COUNT = 2_000


def counting_job(env: StreamExecutionEnvironment, sink: CollectingSink, count: int | None) -> None:
    source = DataGeneratorSource(lambda index: (index % 10, 1), count)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).sink_to(sink)


def test_execute_async_status_and_result(run_job: JobRunner, tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path / "out"))
    env = run_job.environment(2, **epochs_of(500))
    counting_job(env, sink, COUNT)
    client = env.execute_async("count")
    assert client.get_job_status().result() in (JobStatus.CREATED, JobStatus.RUNNING)
    result = client.get_job_execution_result().result(100)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert result.get_job_id() == client.get_job_id()
    assert result.get_net_runtime() > 0
    shown = progress(client)
    assert shown["records_in"] == COUNT and shown["state_entries"] == 10
    assert {(slot["stage"], slot["partition"]) for slot in shown["slots"]} == {(1, 0), (1, 1)}
    assert Counter(sink.results()) == Counter((key, n) for key in range(10) for n in range(1, COUNT // 10 + 1))


def test_a_cancelled_job_resumes_on_its_directory_and_loses_nothing(run_job: JobRunner, tmp_path: Path) -> None:
    checkpoints = run_job.checkpoint_dir()
    sink = CollectingSink(str(tmp_path / "out"))
    env = run_job.environment(2, checkpoints, **epochs_of(100))
    counting_job(env, sink, 10_000_000)
    client = env.execute_async()
    wait_for_epoch(client, 2)
    client.cancel().result(60)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(CancelledError):
        client.get_job_execution_result().result(1)
    latest = ManifestStore(CheckpointLayout(checkpoints)).latest()
    assert latest is not None and not latest.finished
    read = latest.counters["records_in"]
    assert 300 <= read == len(sink.results())

    # The same job, now with an end: the generator's splits are in the checkpoint, so this is a resume.
    env = run_job.environment(2, checkpoints, **epochs_of(100))
    counting_job(env, sink, read + 500)
    env.execute()
    assert ManifestStore(CheckpointLayout(checkpoints)).latest().incarnation == 2  # type: ignore[union-attr]
    total = Counter(index % 10 for index in range(read + 500))
    assert Counter(sink.results()) == Counter((key, n) for key, count in total.items() for n in range(1, count + 1))


@pytest.mark.parametrize("retention", list(ExternalizedCheckpointRetention))
def test_what_a_cancelled_job_leaves(
    run_job: JobRunner, tmp_path: Path, retention: ExternalizedCheckpointRetention
) -> None:
    checkpoints = run_job.checkpoint_dir()
    env = run_job.environment(1, checkpoints, **epochs_of(100))
    env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
    counting_job(env, CollectingSink(str(tmp_path / "out")), None)
    client = env.execute_async()
    wait_for_epoch(client, 1)
    client.cancel().result(60)
    kept = ManifestStore(CheckpointLayout(checkpoints)).epochs()
    files = list((checkpoints / "snapshots").iterdir())
    assert bool(kept) == bool(files) == (retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)


def test_a_finished_job_is_not_run_again(run_job: JobRunner, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoints = run_job.checkpoint_dir()
    for _ in range(2):
        sink = CollectingSink(str(tmp_path / "out"))
        env = run_job.environment(2, checkpoints, **epochs_of(100))
        counting_job(env, sink, 200)
        env.execute("once")
        assert len(sink.results()) == 200
    assert "finished in an earlier run" in caplog.text and "'once'" in caplog.text


def test_a_directory_in_use_is_refused_with_pid_and_host(run_job: JobRunner, tmp_path: Path) -> None:
    checkpoints = run_job.checkpoint_dir()
    enough = tmp_path / "enough"

    def patient() -> Any:
        yield 1
        wait_until(enough.exists, "the test")

    env = run_job.environment(1, checkpoints)
    env.add_source(patient).sink_to(CollectingSink(str(tmp_path / "out")))
    client = env.execute_async("the first")
    try:
        second = run_job.environment(1, checkpoints)
        second.from_collection([1]).print()
        with pytest.raises(JobInUseError) as raised:
            second.execute("the second")
        text = str(raised.value)
        assert f"pid {os.getpid()}" in text and socket.gethostname() in text and "the first" in text
    finally:
        enough.touch()
    client.get_job_execution_result().result(60)


def test_a_directory_of_another_job_is_refused(run_job: JobRunner) -> None:
    checkpoints = run_job.checkpoint_dir()

    def counted(env: StreamExecutionEnvironment, uid: str) -> Any:
        return env.from_collection([("a", 1)]).key_by(lambda pair: pair[0]).sum(1).uid(uid)

    run_job(lambda env: counted(env, "count"), 1, checkpoints)
    with pytest.raises(CheckpointError, match=r"state for uid 'count'.*lacks"):
        run_job(lambda env: counted(env, "another"), 1, checkpoints)


def test_closing_the_results_of_an_endless_job_stops_it(run_job: JobRunner) -> None:
    env = run_job.environment(2, **epochs_of(100))
    source = DataGeneratorSource(lambda index: index)
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "endless").execute_and_collect() as results:
        first = [next(results) for _ in range(50)]
        client = results.get_job_client()
    assert len(set(first)) == 50
    assert client.get_job_status().result() is JobStatus.CANCELED

    env = run_job.environment(1, **epochs_of(100))
    limited = env.from_source(source, WatermarkStrategy.no_watermarks(), "endless").execute_and_collect(limit=7)
    assert limited == list(range(7))


def test_checkpoints_of_a_job_without_a_directory_go_when_it_is_done(
    run_job: JobRunner, private_state_directory: Path
) -> None:
    env = run_job.environment(1)
    env._configuration.remove_config("execution.checkpointing.dir")
    with env.from_collection([("a", 1)]).key_by(lambda pair: pair[0]).sum(1).execute_and_collect() as results:
        assert list(results) == [("a", 1)]
        results.get_job_client().get_job_execution_result().result(30)
    assert [path for path in private_state_directory.rglob("*.manifest")] == []
