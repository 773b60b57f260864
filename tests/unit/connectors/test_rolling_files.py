"""Part files that go on over several checkpoints: when they become visible, and what crashes do to them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from headwater.common import Configuration, Encoder, WatermarkStrategy
from headwater.common.connector import CheckpointMoment, CommitterContext, WriterContext
from headwater.common.errors import CheckpointError, JobFailedError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import (
    BucketAssigner,
    BulkWriters,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from headwater.datastream.connectors.part_files import FileCommittable, GrowingPart, GrownPart, roll
from headwater.testing import PAUSE, STEPS, JobCrashed, ScriptSource, in_process
from tests.waiting import wait_until

LINES = Encoder.simple_string_encoder()
FLAT = BucketAssigner.base_path_bucket_assigner()


def policy(size: int = 100, rollover: int = 1000, inactivity: int = 300) -> RollingPolicy:
    return RollingPolicy.default_rolling_policy(size, rollover, inactivity)


def piece(name: str, length: int, at_ms: int, directory: str = "/out", epoch: int = 0) -> FileCommittable:
    return FileCommittable(directory, f".{name}.job.inprogress", name, length, epoch, 0, at_ms, "job")


def decide(prepared: list[Any], held: list[Any], now_ms: int, **more: Any) -> tuple[list[Any], list[Any], int | None]:
    options = {"appends": True, "job_id": "job", "final": False, "policy": policy(), **more}
    moment = CheckpointMoment(1, now_ms, options.pop("final"))
    found = roll(prepared, held, moment, options.pop("policy"), **options)
    return found.due, found.held, found.again_ms


class TestDecision:
    def test_the_first_piece_becomes_the_part_that_others_are_added_to(self) -> None:
        due, held, again_ms = decide([piece("a", 10, 5)], [], 5)
        assert (due, held, again_ms) == ([], [GrowingPart(piece("a", 10, 5), 5, 5)], 305)
        due, held, again_ms = decide([piece("b", 7, 200)], held, 200)
        grown = replace(piece("a", 10, 5), length=17)
        assert due == [GrownPart(grown, 10, (piece("b", 7, 200),))]
        assert (held, again_ms) == ([GrowingPart(grown, 5, 200)], 500)

    def test_it_is_complete_by_size_age_or_inactivity_and_at_the_end(self) -> None:
        part = GrowingPart(piece("a", 90, 0), 0, 0)
        whole = decide([piece("b", 10, 1)], [part], 1)
        assert [type(step) for step in whole[0]] == [GrownPart, FileCommittable] and whole[1:] == ([], None)
        assert decide([], [part], 299)[1] == [part]
        assert decide([], [part], 300) == ([part.base], [], None)
        busy = replace(part, changed_ms=900)
        assert decide([], [busy], 999)[1] == [busy]
        assert decide([], [busy], 1000) == ([busy.base], [], None)
        assert decide([], [part], 1, final=True) == ([part.base], [], None)

    def test_a_large_piece_is_a_file_by_itself(self) -> None:
        part = GrowingPart(piece("a", 9, 0), 0, 0)
        assert decide([piece("b", 100, 1)], [part], 1)[:2] == ([piece("b", 100, 1)], [part])

    def test_at_the_end_only_small_pieces_are_joined(self) -> None:
        large, small = piece("b", 20, 1), piece("c", 5, 1)
        part = GrowingPart(piece("a", 9, 0), 0, 0)
        due, held, _ = decide([large, small], [part], 1, final=True)
        assert due[0] == large and due[1].pieces == (small,) and due[2].length == 14 and held == []

    def test_each_bucket_has_its_own(self) -> None:
        pieces = [piece("a", 9, 0, "/out/x"), piece("b", 9, 0, "/out/y")]
        assert [part.base for part in decide(pieces, [], 0)[1]] == pieces

    def test_parts_of_another_job_or_policy_end_at_once(self) -> None:
        part = GrowingPart(piece("a", 9, 0), 0, 0)
        assert decide([], [part], 1, job_id="other") == ([part.base], [], None)
        assert decide([], [part], 1, policy=RollingPolicy.on_checkpoint_rolling_policy()) == ([part.base], [], None)

    def test_where_files_cannot_grow_pieces_wait_and_are_joined_when_there_are_many(self) -> None:
        held: list[Any] = []
        steps: list[Any] = []
        for number in range(70):
            due, held, _ = decide(
                [piece(f"p{number}", 1, number, epoch=number)], held, number, appends=False, policy=policy(1000)
            )
            steps += due
        (joined,) = steps
        assert (joined.at, len(joined.pieces), joined.target.length) == (0, 65, 65)
        assert held[0].length == 70 and len(held[0].pieces) == 5
        due, held, _ = decide([], held, 70, appends=False, final=True)
        assert due[0].pieces[0] == joined.target and due[1].length == 70 and held == []


def write(sink: FileSink, epoch: int, values: list[Any], now_ms: int = 0) -> list[Any]:
    writer = sink.create_writer(WriterContext("job", "files", 0, 1, f"{epoch}-0", epoch, now_ms=now_ms))
    writer.write_batch(values, None)
    return writer.prepare_commit()


def committer_of(sink: FileSink) -> Any:
    committer = sink.create_committer()
    committer.open(CommitterContext("job", "files", "files"))
    return committer


def rolling_sink(directory: Path, **times: int) -> FileSink:
    builder = FileSink.for_row_format(str(directory), LINES).with_bucket_assigner(FLAT)
    return builder.with_rolling_policy(policy(**times)).build()


def visible(directory: Path) -> list[list[str]]:
    return [
        path.read_text().splitlines()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    ]


class TestSteps:
    """The steps of a commit, repeated after a crash at any of them."""

    def prepared(self, directory: Path) -> tuple[FileSink, list[Any]]:
        sink = rolling_sink(directory, size=10_000)
        committer = committer_of(sink)
        first = committer.select(write(sink, 0, ["a"]), [], CheckpointMoment(0, 0))
        committer.commit(first.due)
        pieces = write(sink, 1, ["b"]) + write(sink, 1, ["c"])
        second = committer.select(pieces, first.held, CheckpointMoment(1, 1, True))
        return sink, second.due

    def crashing(self, sink: FileSink, due: list[Any], calls: int) -> bool:
        """Commit, and crash before the step number `calls`. Return False if there are fewer."""
        committer: Any = committer_of(sink)
        left = [calls]

        class Crash(BaseException):
            pass

        def watched(method: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                if left[0] == 0:
                    raise Crash
                left[0] -= 1
                return method(*arguments)

            return call

        for name in ("touch", "grow", "rename", "delete", "sync"):
            setattr(committer.store, name, watched(getattr(committer.store, name)))
        try:
            committer.commit(due)
        except Crash:
            return True
        finally:
            for name in ("touch", "grow", "rename", "delete", "sync"):
                delattr(committer.store, name)
        return False

    def test_a_crash_before_any_step(self, tmp_path: Path) -> None:
        calls = 0
        while True:
            sink, due = self.prepared(tmp_path / str(calls))
            crashed = self.crashing(sink, due, calls)
            committer_of(sink).commit(due)
            committer_of(sink).commit(due)
            assert visible(tmp_path / str(calls)) == [["a", "b", "c"]]
            if not crashed:
                assert calls == 6
                return
            calls += 1

    def test_a_file_that_was_taken_after_any_step_does_not_come_again(self, tmp_path: Path) -> None:
        sink, due = self.prepared(tmp_path)
        committer_of(sink).commit(due)
        for path in tmp_path.glob("part*"):
            path.unlink()
        committer_of(sink).commit(due)
        assert visible(tmp_path) == []

    def test_a_piece_that_is_gone_is_an_error(self, tmp_path: Path) -> None:
        sink, due = self.prepared(tmp_path)
        Path(due[0].pieces[1].pending_path).unlink()
        for _ in range(2):
            with pytest.raises(CheckpointError, match="gone, so it cannot become part of"):
                committer_of(sink).commit(due)

    def test_a_part_that_is_gone_or_shorter_or_longer_is_an_error(self, tmp_path: Path) -> None:
        for number, damage in enumerate(("", "x", "abcdefghijk\n")):
            sink, due = self.prepared(tmp_path / str(number))
            part = Path(due[0].target.pending_path)
            part.write_text(damage)
            with pytest.raises(CheckpointError, match="changed from outside"):
                committer_of(sink).commit(due)
            part.unlink()
            with pytest.raises(CheckpointError, match="changed from outside"):
                committer_of(sink).commit(due)

    def test_a_driver_that_wakes_up_late_changes_nothing(self, tmp_path: Path) -> None:
        """It has everything open, and writes the bytes again that the next driver wrote."""
        sink = rolling_sink(tmp_path, size=10_000)
        committer = committer_of(sink)
        first = committer.select(write(sink, 0, ["a"]), [], CheckpointMoment(0, 0))
        second = committer.select(write(sink, 1, ["b"]), first.held, CheckpointMoment(1, 1))
        (grown,) = second.due
        kept = Path(grown.pieces[0].pending_path).read_bytes()
        committer.commit(second.due)
        third = committer.select(write(sink, 2, ["c"]), second.held, CheckpointMoment(2, 2))
        committer.commit(third.due)
        part = Path(grown.target.pending_path)
        with part.open("r+b") as late:
            late.seek(grown.at)
            late.write(kept)
        with pytest.raises(CheckpointError, match="changed from outside"):
            Path(grown.pieces[0].pending_path).write_bytes(kept)
            committer_of(sink).commit(second.due)
        committer.commit(committer.select([], third.held, CheckpointMoment(3, 3, True)).due)
        assert visible(tmp_path) == [["a", "b", "c"]]


def records(count: int, sink: FileSink, rate: float = 10, start: Path | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    if start is not None:
        env.configure(Configuration.from_dict({"execution.state-recovery.path": str(start)}))
    source = DataGeneratorSource(str, count=count, rate_per_second=rate)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda text: text).reduce(lambda one, other: one + other).sink_to(sink)
    env.execute("rolling")


class TestJobs:
    def test_few_files_instead_of_one_per_checkpoint(self, tmp_path: Path) -> None:
        sink = rolling_sink(tmp_path / "out", size=1_000_000, rollover=20_000, inactivity=20_000)
        with in_process(epoch_records=10):
            records(1000, sink)  # 100 s, more than 50 epochs
        files = visible(tmp_path / "out")
        assert Counter(line for file in files for line in file) == Counter(map(str, range(1000)))
        assert 4 <= len(files) <= 7
        assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []

    def test_output_becomes_visible_while_the_job_is_silent(self, tmp_path: Path) -> None:
        seen: list[Any] = []
        sink = rolling_sink(tmp_path / "out", size=1_000_000, rollover=60_000, inactivity=2_000)
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            env.from_source(ScriptSource(["a", "b", PAUSE]), WatermarkStrategy.no_watermarks(), "script").sink_to(sink)
            job = env.execute_async("silent")
            wait_until(lambda: bool(visible(tmp_path / "out")), "the part becomes visible")
            seen += visible(tmp_path / "out")
            job.cancel()
        assert seen == [["a", "b"]]

    @pytest.mark.parametrize("step", STEPS)
    def test_crashes_of_the_whole_job(self, tmp_path: Path, step: str) -> None:
        sink = rolling_sink(tmp_path / "out", size=200, rollover=5_000, inactivity=5_000)
        with in_process(epoch_records=10) as here:
            for epoch in (3, 4, 9):
                here.crash_job(epoch=epoch, at=step)
            for _ in range(3):
                with pytest.raises(JobCrashed):
                    records(300, sink)
            records(300, sink)
        files = visible(tmp_path / "out")
        assert Counter(line for file in files for line in file) == Counter(map(str, range(300)))
        assert all(sum(len(line) + 1 for line in file) <= 300 for file in files)

    def test_failed_commits_and_a_rescale(self, tmp_path: Path) -> None:
        sink = rolling_sink(tmp_path / "out", size=10_000, rollover=8_000, inactivity=8_000)
        with in_process(epoch_records=10) as here:
            here.fail_commit(times=2)
            here.call(lambda job: job.rescale(3), epoch=6)
            records(300, sink)
        files = visible(tmp_path / "out")
        assert Counter(line for file in files for line in file) == Counter(map(str, range(300)))
        assert len(files) < 10

    def test_a_savepoint_leaves_nothing_hidden(self, tmp_path: Path) -> None:
        seen: list[Any] = []
        sink = rolling_sink(tmp_path / "out", size=10_000, rollover=80_000, inactivity=80_000)

        def savepoint(job: Any) -> None:
            job.trigger_savepoint(str(tmp_path / "savepoint"))

        with in_process(epoch_records=10) as here:
            here.call(savepoint, epoch=6)
            here.call(lambda job: seen.extend(visible(tmp_path / "out")), epoch=9)
            records(300, sink)
        assert len(seen) == 1 and len(seen[0]) >= 60
        assert Counter(line for file in visible(tmp_path / "out") for line in file) == Counter(map(str, range(300)))

    @pytest.mark.parametrize("at", ["manifest-written", "sink-committed"])
    def test_another_job_that_starts_from_its_checkpoint(self, tmp_path: Path, at: str) -> None:
        """What the first job held becomes visible, and its directory is not touched again."""
        sink = rolling_sink(tmp_path / "out", size=10_000, rollover=80_000, inactivity=80_000)
        with in_process(tmp_path / "first", epoch_records=10) as here:
            here.crash_job(epoch=6, at=at)
            with pytest.raises(JobCrashed):
                records(300, sink)
        (checkpoint,) = (tmp_path / "first" / "manifests").glob("*6.manifest")
        with in_process(tmp_path / "second", epoch_records=10):
            records(300, sink, start=checkpoint)
        files = visible(tmp_path / "out")
        assert Counter(line for file in files for line in file) == Counter(map(str, range(300)))
        assert len(files) == 2

    def test_another_job_that_starts_from_an_old_checkpoint_while_the_first_goes_on(self, tmp_path: Path) -> None:
        """It shows what the first job had held at that time, and not what came after."""
        sink = rolling_sink(tmp_path / "out", size=10_000, rollover=80_000, inactivity=80_000)
        with in_process(tmp_path / "first", epoch_records=10) as here:
            here.call(lambda job: shutil.copytree(tmp_path / "first", tmp_path / "old"), epoch=6, at="begin")
            here.crash_job(epoch=12, at="sink-committed")
            with pytest.raises(JobCrashed):
                records(300, sink)
        (checkpoint,) = (tmp_path / "old" / "manifests").glob("*5.manifest")
        with in_process(tmp_path / "second", epoch_records=10):
            records(300, sink, start=checkpoint)
        lines = [line for file in visible(tmp_path / "out") for line in file]
        assert Counter(lines) == Counter(map(str, range(300)))

    def test_a_hidden_file_that_was_deleted_stops_the_job(self, tmp_path: Path) -> None:
        sink = rolling_sink(tmp_path / "out", size=10_000, rollover=80_000, inactivity=80_000)

        def damage(job: Any) -> None:
            for path in (tmp_path / "out").glob(".part*"):
                path.unlink()

        with in_process(epoch_records=10) as here:
            here.call(damage, epoch=6, at="begin")
            with pytest.raises((CheckpointError, JobFailedError), match=r"changed from outside|gone|made visible"):
                records(300, sink)

    def test_buckets_by_processing_time_are_those_of_the_first_try(self, tmp_path: Path) -> None:
        assigner = BucketAssigner.date_time_bucket_assigner("HH-mm-ss", "UTC")
        builder = FileSink.for_row_format(str(tmp_path / "out"), LINES).with_bucket_assigner(assigner)
        with in_process(epoch_records=10) as here:
            here.fail_attempt(epoch=2, times=2)
            records(100, builder.with_rolling_policy(policy()).build())
        assert Counter(line for file in visible(tmp_path / "out") for line in file) == Counter(map(str, range(100)))


class TestCompactionOverCheckpoints:
    @pytest.mark.parametrize("step", [None, *STEPS])
    def test_parquet_files_of_several_checkpoints_become_one(self, tmp_path: Path, step: str | None) -> None:
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(5).build()
        builder = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.parquet()).with_bucket_assigner(FLAT)
        sink = builder.enable_compact(strategy, FileCompactor.columnar_file_compactor()).build()

        def run() -> None:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(2)
            source = DataGeneratorSource(lambda i: {"i": i, "text": str(i)}, count=200)
            numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
            numbers.key_by(lambda row: row["i"]).reduce(lambda one, other: other).sink_to(sink)
            env.execute("compacted")

        with in_process(epoch_records=10) as here:
            if step is not None:
                for epoch in (5, 7):
                    here.crash_job(epoch=epoch, at=step)
                for _ in range(2):
                    with pytest.raises(JobCrashed):
                        run()
            run()
        files = [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")]
        rows = [row for path in files for row in pyarrow.parquet.read_table(path).to_pylist()]
        assert Counter(row["i"] for row in rows) == Counter(range(200))
        assert len(files) <= 7

    def test_files_with_different_columns(self, tmp_path: Path) -> None:
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()
        builder = FileSink.for_bulk_format(str(tmp_path), BulkWriters.parquet()).with_bucket_assigner(FLAT)
        sink = builder.enable_compact(strategy, FileCompactor.columnar_file_compactor()).build()
        committer_of(sink).commit(write(sink, 0, [{"a": 1}]) + write(sink, 0, [{"a": 2, "b": "x"}]))
        (path,) = tmp_path.glob("compacted*")
        rows = json.loads(json.dumps(pyarrow.parquet.read_table(path).to_pylist()))
        assert sorted(rows, key=lambda row: row["a"]) == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
