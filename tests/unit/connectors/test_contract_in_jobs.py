"""What a job does for its sources and sinks beyond moving records: notices, timestamps, gauges, rejects, files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration, WatermarkStrategy
from headwater.common.connector import (
    Committer,
    CommitterContext,
    Sink,
    SinkWriter,
    Source,
    Split,
    SplitReader,
    TimedBatch,
    WriterContext,
)
from headwater.common.errors import ExternalSystemError, RejectedRecordError
from headwater.common.output_tag import OutputTag
from headwater.common.rejected import REJECTED_TAG_ID, Rejected
from headwater.datastream import StreamExecutionEnvironment
from headwater.metrics.prometheus import exposition
from headwater.testing import CollectingSink, JobCrashed, in_process

NO_EVENT_TIME = WatermarkStrategy.no_watermarks()


class Numbers(Source):
    """Splits of numbers. Those in `bad` are rejected; each number is its own timestamp, times 1000."""

    def __init__(self, *sizes: int, bad: Sequence[int] = (), problems: int = 0) -> None:
        self.sizes = sizes
        self.bad = frozenset(bad)
        self.problems = problems
        self.committed: list[dict[str, Any]] = []
        self.closed = 0

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        found = [Split(f"s{number}", size) for number, size in enumerate(self.sizes)]
        return [split for split in found if split.split_id not in known]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return NumbersReader(self, split, position or 0)

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        if self.problems:
            self.problems -= 1
            raise ConnectionError("not now")
        self.committed.append(dict(positions))

    def close(self) -> None:
        self.closed += 1


class NumbersReader(SplitReader):
    def __init__(self, source: Numbers, split: Split, position: int) -> None:
        self._source, self._split, self._position = source, split, position
        self._rejected: list[Rejected] = []

    def read_batch(self, max_records: int) -> list[Any] | None:
        first, stop = self._position, min(self._position + max_records, self._split.payload)
        if first == stop:
            return None
        self._position = stop
        good = [number for number in range(first, stop) if number not in self._source.bad]
        self._rejected += [
            Rejected(str(n).encode(), "it is bad", f"{self._split.split_id}@{n}", self._split.split_id, n)
            for n in range(first, stop)
            if n in self._source.bad
        ]
        return TimedBatch(good, [number * 1000 for number in good])

    def position(self) -> int:
        return self._position

    def gauges(self) -> dict[str, float]:
        left = self._split.payload - self._position
        return {"pendingRecords": left, "endOffset": self._split.payload, "currentFetchEventTimeLag": left * 10}

    def rejected(self) -> list[Rejected]:
        rejected, self._rejected = self._rejected, []
        return rejected


def job(source: Source, sink: Sink, strategy: WatermarkStrategy = NO_EVENT_TIME) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    stream = env.from_source(source, strategy, "numbers")
    stream.sink_to(sink)
    return env


class TestNotices:
    def test_a_source_learns_what_each_checkpoint_holds_and_where_splits_ended(self) -> None:
        source = Numbers(4, 10)
        with in_process(epoch_records=4):
            job(source, CollectingSink()).execute("notices")
        assert source.committed[0] == {"s0": 2, "s1": 2}
        final: dict[str, int] = {}
        for positions in source.committed:
            for split, position in positions.items():
                assert position >= final.get(split, 0), "positions go back"
                final[split] = position
        assert final == {"s0": 4, "s1": 10}
        assert source.closed == 1

    def test_it_is_told_only_of_durable_checkpoints(self) -> None:
        source = Numbers(20)
        with in_process(epoch_records=2) as here:
            here.crash_job(epoch=3, at="acked")
            with pytest.raises(JobCrashed):
                job(source, CollectingSink()).execute("told")
            assert source.committed == [{"s0": 2}, {"s0": 4}, {"s0": 6}]
            again = Numbers(20)
            job(again, CollectingSink()).execute("told")
        assert again.committed[0] == {"s0": 8}

    def test_what_it_raises_is_logged_and_the_job_goes_on(self, caplog: pytest.LogCaptureFixture) -> None:
        source, sink = Numbers(6, problems=1), CollectingSink()
        with in_process(epoch_records=2):
            job(source, sink).execute("raises")
        assert sink.results() == list(range(6))
        assert "'numbers' was told of a checkpoint, and raised: not now" in caplog.text
        assert source.committed[-1] == {"s0": 6}


def test_timestamps_come_with_the_batch() -> None:
    sink = CollectingSink()
    with in_process(epoch_records=3):
        job(Numbers(5), sink, WatermarkStrategy.for_monotonous_timestamps()).execute("stamps")
    assert sink.results_with_timestamps() == [(n, n * 1000) for n in range(5)]


class TestRejectedRecords:
    def test_they_go_out_with_the_epoch_exactly_once(self) -> None:
        source, good, bad = Numbers(12, bad=[0, 4, 5, 6, 7, 11]), CollectingSink(), CollectingSink()
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(source, NO_EVENT_TIME, "numbers")
        stream.get_side_output(OutputTag(REJECTED_TAG_ID)).sink_to(bad)
        stream.sink_to(good)
        with in_process(epoch_records=4) as here:
            here.fail_attempt(epoch=1)
            result = env.execute("rejects")
        assert good.results() == [1, 2, 3, 8, 9, 10]
        assert [(each.where, each.raw) for each in bad.results()] == [
            (f"s0@{n}", str(n).encode()) for n in (0, 4, 5, 6, 7, 11)
        ]
        assert result.get_accumulator_result("numRecordsInErrors") == 6

    def test_without_a_place_for_them_the_job_fails_and_says_where_it_was(self) -> None:
        with in_process(), pytest.raises(RejectedRecordError, match=r"'numbers' .* at s0@3: it is bad; .*dead_letters"):
            job(Numbers(9, bad=[3]), CollectingSink()).execute("rejects")


def test_gauges_are_shown_per_split_and_add_up_per_subtask() -> None:
    seen: list[dict[str, Any]] = []
    with in_process(epoch_records=4) as here:
        here.call(lambda client: seen.append(client.metrics()), epoch=1)
        job(Numbers(10, 20, 30), CollectingSink()).execute("gauges")
    (vertex,) = (each for each in seen[0]["vertices"].values() if each["splits"])
    assert [(each["split"], each["endOffset"]) for each in vertex["splits"]] == [("s0", 10), ("s1", 20), ("s2", 30)]
    pending = {each["split"]: each["pendingRecords"] for each in vertex["splits"]}
    assert sum(pending.values()) == 60 - 4 == vertex["aggregate"]["pendingRecords"]
    assert vertex["aggregate"]["currentFetchEventTimeLag"] == max(pending.values()) * 10
    text = exposition([("1", "gauges", seen[0])])
    assert 'split_pendingRecords{job_id="1"' in text and 'split="s1"' in text
    assert "flink_taskmanager_job_task_pendingRecords{" in text


class SpoolSink(Sink):
    """Its output waits in checkpoint storage. Commits append to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.contexts: list[CommitterContext] = []
        self.leftovers: list[Any] = []

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return SpoolWriter(context)

    def create_committer(self) -> Committer:
        return SpoolCommitter(self)


class SpoolWriter(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context, self._values = context, [] if context.files is not None else None
        assert context.operator_uid and context.job_id

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        assert self._values is not None
        self._values += values

    def prepare_commit(self) -> list[Any]:
        assert self._context.files is not None
        name = f"{self._context.attempt_id}-{self._context.partition}"
        with self._context.files.write(name) as file:
            pickle.dump(self._values, file)
        return [(self._context.epoch, name)]


class SpoolCommitter(Committer):
    def __init__(self, sink: SpoolSink) -> None:
        self._sink = sink

    def open(self, context: CommitterContext) -> None:
        self._context = context
        self._sink.contexts.append(context)

    def commit(self, committables: list[Any]) -> None:
        files = self._context.files
        assert files is not None
        for epoch, name in committables:
            done = self._sink.path.read_text().splitlines() if self._sink.path.exists() else []
            if any(line.startswith(f"{epoch}/{name}/") for line in done):
                continue
            with files.open(name) as file, self._sink.path.open("a") as out:
                out.writelines(f"{epoch}/{name}/{value}\n" for value in pickle.load(file))
            files.delete(name)

    def find_leftovers(self, job_id: str) -> list[Any]:
        assert self._context.files is not None
        return self._context.files.names()

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        assert self._context.files is not None
        self._sink.leftovers += leftovers
        for name in leftovers:
            self._context.files.delete(name)


class TestOutputFiles:
    @pytest.fixture
    def sink(self, tmp_path: Path) -> Iterator[SpoolSink]:
        yield SpoolSink(tmp_path / "out")

    def written(self, sink: SpoolSink) -> list[int]:
        return sorted(int(line.rpartition("/")[2]) for line in sink.path.read_text().splitlines())

    @pytest.mark.parametrize("at", ["acked", "manifest-written", "sink-committed"])
    def test_output_waits_in_checkpoint_storage_across_a_kill(self, sink: SpoolSink, at: str) -> None:
        with in_process(epoch_records=4) as here:
            here.crash_job(epoch=1, at=at)
            with pytest.raises(JobCrashed):
                job(Numbers(10, 10), sink).execute("spool")
            job(Numbers(10, 10), sink).execute("spool")
        assert self.written(sink) == sorted([*range(10), *range(10)])
        first, second = sink.contexts
        assert (first.resumed_epoch, second.resumed_epoch) == (-1, 0 if at == "acked" else 1)
        assert first.job_id == second.job_id and first.operator_uid == second.operator_uid
        assert bool(sink.leftovers) == (at == "acked")

    def test_a_keyed_sink_in_a_slot_has_them_too(self, sink: SpoolSink) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(Numbers(20), NO_EVENT_TIME, "numbers")
        stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).sink_to(sink)
        with in_process(epoch_records=7):
            env.execute("keyed")
        assert len(self.written(sink)) == 20


class Unreachable(Numbers):
    """Its server answers at the third try."""

    tries = 0

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        type(self).tries += 1
        if self.tries < 3:
            raise ExternalSystemError("server 10.0.0.1:9 does not answer")
        return super().open_reader(split, position)


def test_a_system_that_does_not_answer_is_asked_again_as_the_restart_policy_says() -> None:
    Unreachable.tries = 0
    sink = CollectingSink()
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "5"})
    )
    env.from_source(Unreachable(4), NO_EVENT_TIME, "numbers").sink_to(sink)
    with in_process():
        env.execute("again")
    assert sink.results() == [0, 1, 2, 3]


class UnequalSplits(Numbers):
    """The second split has only one record per epoch. `ahead`: by how much the first one is ahead in checkpoints."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.ahead: list[int] = []

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return (SlowReader if split.split_id == "s1" else NumbersReader)(self, split, position or 0)

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        if len(positions) == 2:
            self.ahead.append(positions["s0"] - positions["s1"])


class SlowReader(NumbersReader):
    _pause = False

    def read_batch(self, max_records: int) -> list[Any] | None:
        self._pause = not self._pause
        return super().read_batch(1) if self._pause else []


class TestAlignment:
    """Each epoch gives each split up to four records."""

    def run(self, strategy: WatermarkStrategy) -> UnequalSplits:
        source, sink = UnequalSplits(40, 40), CollectingSink()
        with in_process(epoch_records=8):
            job(source, sink, strategy).execute("aligned")
        assert sorted(sink.results()) == sorted([*range(40), *range(40)])
        return source

    def test_a_split_that_is_far_ahead_waits_for_the_slowest(self) -> None:
        source = self.run(WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("g", 5_000))
        assert 5 <= max(source.ahead) <= 5 + 8  # at most one epoch's budget beyond the drift

    def test_without_it_nothing_waits(self) -> None:
        assert max(self.run(WatermarkStrategy.for_monotonous_timestamps()).ahead) > 20
