"""Savepoints, rescaling, forks and backends, on Spark: state goes on where it was, whatever the shape of the job."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.savepoint.history import retained_checkpoints
from headwater.common import JobClient, JobStatus, WatermarkStrategy
from headwater.common.errors import CheckpointError, ConfigurationError, HeadwaterError
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import CollectingSink
from tests.spark.harness import JobRunner, epochs_of, progress, wait_for_epoch

KEYS = 50
COUNT = 6_000
PATH = "execution.state-recovery.path"


class ByIndex(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


class CountAndWake(KeyedProcessFunction):
    """Counts per key, and says at the end of event time how many there were: so timers must survive too."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            ctx.timer_service().register_event_time_timer(COUNT * 10)
        yield value[0], count

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), -(self.count.value() or 0)


def build(env: StreamExecutionEnvironment, sink: CollectingSink, count: int = COUNT) -> None:
    source = DataGeneratorSource(lambda index: (index % KEYS, index), count)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByIndex())
    stream = env.from_source(source, watermarks, "numbers").uid("numbers")
    stream.key_by(lambda pair: pair[0]).process(CountAndWake()).uid("count").sink_to(sink).uid("out")


def expected(count: int = COUNT) -> Counter[Any]:
    per_key = count // KEYS
    counts = Counter((key, n) for key in range(KEYS) for n in range(1, per_key + 1))
    return counts + Counter((key, -per_key) for key in range(KEYS))


def start(run_job: JobRunner, sink: CollectingSink, parallelism: int, **conf: Any) -> JobClient:
    env = run_job.environment(parallelism, **epochs_of(300), **conf)
    build(env, sink)
    return env.execute_async("savepoints")


@pytest.fixture
def sink(tmp_path: Path) -> CollectingSink:
    return CollectingSink(str(tmp_path / "out"))


def test_stop_rescale_move_the_savepoint_and_go_on(run_job: JobRunner, sink: CollectingSink, tmp_path: Path) -> None:
    client = start(run_job, sink, 2)
    wait_for_epoch(client, 3)
    path = Path(client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60))
    client.get_job_execution_result().result(60)
    assert client.get_job_status().result() is JobStatus.FINISHED
    so_far = len(sink.results())
    assert 0 < so_far < COUNT
    moved = tmp_path / "elsewhere"
    shutil.move(path, moved)
    for parallelism in (3, 1):
        client = start(run_job, sink, parallelism, **{PATH: str(moved)})
        wait_for_epoch(client, progress(client)["epoch"] + 2)
        moved = Path(client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60))
        client.get_job_execution_result().result(60)
        assert so_far < (so_far := len(sink.results())) < COUNT
    client = start(run_job, sink, 2, **{PATH: str(moved), "execution.state-recovery.claim-mode": "CLAIM"})
    client.get_job_execution_result().result(100)
    progress(client)
    assert Counter(sink.results()) == expected()
    assert not moved.exists(), "a claimed savepoint is the job's to delete"


def test_rescale_while_running(run_job: JobRunner, sink: CollectingSink) -> None:
    client = start(run_job, sink, 2)
    for parallelism in (3, 2, 1):
        wait_for_epoch(client, progress(client)["epoch"] + 2)
        assert client.rescale(parallelism).result(60) > 0
        after = wait_for_epoch(client, progress(client)["epoch"] + 1)
        assert {slot["partition"] for slot in after["slots"]} == set(range(parallelism))
    client.get_job_execution_result().result(100)
    assert Counter(sink.results()) == expected()
    with pytest.raises(HeadwaterError, match="this one has ended"):
        client.rescale(2)


def test_draining_fires_what_is_open(run_job: JobRunner, sink: CollectingSink, tmp_path: Path) -> None:
    client = start(run_job, sink, 2)
    wait_for_epoch(client, 3)
    path = client.stop_with_savepoint(True, str(tmp_path)).result(60)
    client.get_job_execution_result().result(60)
    results = sink.results()
    assert sorted(key for key, count in results if count < 0) == list(range(KEYS)), "every key's timer fired"
    assert -sum(count for _, count in results if count < 0) == sum(1 for _, count in results if count > 0)
    assert Path(path, "SAVEPOINT").exists()


def test_a_fork_goes_on_by_itself(run_job: JobRunner, sink: CollectingSink, tmp_path: Path) -> None:
    directory = run_job.checkpoint_dir()
    env = run_job.environment(2, directory, **epochs_of(300))
    build(env, sink)
    client = env.execute_async("first")
    wait_for_epoch(client, 3)
    client.trigger_savepoint(str(tmp_path / "savepoints")).result(60)
    client.cancel().result(60)
    kept = retained_checkpoints(directory)
    assert len(kept) >= 2
    fork_sink = CollectingSink(str(tmp_path / "fork"))
    older = f"{directory}@{kept[0].epoch}"
    fork = start(run_job, fork_sink, 3, **{PATH: older})
    fork.get_job_execution_result().result(100)
    progress(fork)
    env = run_job.environment(2, directory, **epochs_of(300))
    build(env, sink)
    env.execute("first")
    assert Counter(sink.results()) == expected()
    forked = Counter(fork_sink.results())
    assert forked <= expected() and forked.total() < expected().total()
    assert forked[0, -(COUNT // KEYS)] == 1, "the fork knows what was counted before it"


def test_another_backend_takes_over(run_job: JobRunner, sink: CollectingSink, tmp_path: Path) -> None:
    savepoint: str | None = None
    for backend in ("rocksdb", "hashmap", "rocksdb"):
        conf = {"state.backend.type": backend} | ({PATH: savepoint} if savepoint else {})
        client = start(run_job, sink, 2, **conf)
        wait_for_epoch(client, progress(client)["epoch"] + 3)
        savepoint = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60)
        client.get_job_execution_result().result(60)
    client = start(run_job, sink, 1, **{PATH: savepoint})
    client.get_job_execution_result().result(100)
    progress(client)
    assert Counter(sink.results()) == expected()


def test_what_cannot_be_is_refused(run_job: JobRunner, sink: CollectingSink, tmp_path: Path) -> None:
    client = start(run_job, sink, 1)
    wait_for_epoch(client, 1)
    with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.savepoint-dir"):
        client.trigger_savepoint()
    with pytest.raises(ConfigurationError, match="from 1 to the max parallelism, 128"):
        client.rescale(129)
    path = client.stop_with_savepoint(False, str(tmp_path)).result(60)
    client.get_job_execution_result().result(60)
    with pytest.raises(CheckpointError, match="max parallelism 128, this job asks for 64"):
        start(run_job, sink, 1, **{PATH: path, "pipeline.max-parallelism": 64})
    env = run_job.environment(1, **{PATH: path})
    env.from_collection([1]).key_by(lambda n: n).reduce(max).uid("other").sink_to(sink)
    with pytest.raises(CheckpointError, match=r"uid 'count'.*which this job lacks"):
        env.execute()
    with pytest.raises(CheckpointError, match="nothing-here"):
        start(run_job, sink, 1, **{PATH: str(tmp_path / "nothing-here")})
