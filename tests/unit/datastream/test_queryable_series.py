"""`as_queryable_series`: what it adds to a job, what it archives whatever crashes, and what it refuses."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.common.errors import CheckpointError, JobFailedError, PlanError, TypeMismatchError
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.archive import ClosedWindow, SqliteArchive
from headwater.datastream.functions import AggregateFunction
from headwater.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from headwater.testing import STEPS
from headwater.testing.in_process import JobCrashed, in_process

EVENTS = [(f"tweet-{i % 7}", i * 37 % 900 + i * 10, i % 5 + 1) for i in range(300)]
"""(key, timestamp in ms, impressions); the timestamps are out of order by less than a second."""


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Mean(AggregateFunction):
    """Its accumulator is not its result."""

    def create_accumulator(self) -> tuple[int, int]:
        return (0, 0)

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return (accumulator[0] + value[2], accumulator[1] + 1)

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])


def windowed(env: StreamExecutionEnvironment, assigner: Any, lateness_ms: int = 0) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    stream = env.from_collection(EVENTS).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(EventTime()))
    return stream.key_by(lambda event: event[0]).window(assigner).allowed_lateness(lateness_ms)


def run(archive: SqliteArchive, assigner: Any, lateness_ms: int = 0) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    windowed(env, assigner, lateness_ms).as_queryable_series("mean", Mean(), archive)
    env.execute("series")


def expected(size_ms: int, slide_ms: int) -> Counter[tuple[str, int, int, float]]:
    values = defaultdict(list)
    for key, timestamp, impressions in EVENTS:
        last = timestamp - timestamp % slide_ms
        for start in range(last, timestamp - size_ms, -slide_ms):
            values[key, start, start + size_ms].append(impressions)
    return Counter((*window, sum(found) / len(found)) for window, found in values.items())


def archived(archive: SqliteArchive) -> Counter[tuple[str, int, int, Any]]:
    connection = archive.connect()
    rows = connection.execute("SELECT key, start_ms, end_ms, value FROM headwater_windows").fetchall()
    connection.close()
    return Counter((json.loads(key), start, end, json.loads(value)) for key, start, end, value in rows)


@pytest.mark.parametrize(
    ("assigner", "size_ms", "slide_ms"),
    [
        (TumblingEventTimeWindows.of(Time.milliseconds(500)), 500, 500),
        (SlidingEventTimeWindows.of(Time.milliseconds(600), Time.milliseconds(200)), 600, 200),
    ],
)
def test_every_window_is_archived_once(tmp_path: Path, assigner: Any, size_ms: int, slide_ms: int) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")
    with in_process(epoch_records=20):
        run(archive, assigner)
    assert archived(archive) == expected(size_ms, slide_ms)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("checkpoint_epochs", [1, 3])
def test_whatever_step_the_job_dies_at(tmp_path: Path, step: str, checkpoint_epochs: int) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")
    with in_process(epoch_records=20, checkpoint_epochs=checkpoint_epochs) as here:
        for epoch in (5, 8):
            here.crash_job(epoch=epoch, at=step)
            with pytest.raises(JobCrashed):
                run(archive, TumblingEventTimeWindows.of(Time.milliseconds(500)))
        here.kill_slot("mean", 1, epoch=11)
        run(archive, TumblingEventTimeWindows.of(Time.milliseconds(500)))
    assert archived(archive) == expected(500, 500)


def test_a_late_record_replaces_the_result(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")

    def late() -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
        events = [("a", 100, 1), ("a", 700, 5), ("a", 200, 3), ("a", 3000, 9)]
        stream = env.from_collection(events).assign_timestamps_and_watermarks(strategy)
        hours = stream.key_by(lambda event: event[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(500)))
        hours.allowed_lateness(1000).as_queryable_series("mean", Mean(), archive)
        env.execute("late")

    with in_process(epoch_records=1):
        late()
    assert archived(archive)[("a", 0, 500, 2.0)] == 1 and archived(archive).total() == 3


def test_a_commit_that_fails_is_tried_again(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")
    with in_process(epoch_records=20) as here:
        here.fail_commit("mean-archive", times=2)
        run(archive, TumblingEventTimeWindows.of(Time.milliseconds(500)))
    assert archived(archive) == expected(500, 500)


def test_a_damaged_archive_stops_the_job_before_it_starts(tmp_path: Path) -> None:
    (tmp_path / "archive.db").write_bytes(b"no database" * 1000)
    with in_process(), pytest.raises((CheckpointError, JobFailedError), match="damaged or no SQLite file"):
        run(SqliteArchive(tmp_path / "archive.db"), TumblingEventTimeWindows.of(Time.milliseconds(500)))


def test_closed_windows_can_be_used_further(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        windows = windowed(env, TumblingEventTimeWindows.of(Time.milliseconds(500)))
        stream = windows.as_queryable_series("last", lambda a, b: b, archive)
        found = stream.map(lambda window: (window.key, window.start_ms)).execute_and_collect(limit=1000)
    assert Counter(found) == Counter((key, start) for key, start, _, _ in expected(500, 500))
    connection = archive.connect()
    assert connection.execute("SELECT count(*) FROM headwater_windows").fetchone() == (len(found),)
    connection.close()


class TestRefused:
    def env(self) -> StreamExecutionEnvironment:
        return StreamExecutionEnvironment.get_execution_environment()

    def test_windows_that_merge_or_fire_early(self, tmp_path: Path) -> None:
        archive = SqliteArchive(tmp_path / "archive.db")
        with pytest.raises(PlanError, match="expected tumbling or sliding windows"):
            windowed(self.env(), EventTimeSessionWindows.with_gap(Time.seconds(1))).as_queryable_series(
                "mean", Mean(), archive
            )
        tumbling = windowed(self.env(), TumblingEventTimeWindows.of(Time.seconds(1))).trigger(CountTrigger.of(3))
        with pytest.raises(PlanError, match="with CountTrigger: expected tumbling"):
            tumbling.as_queryable_series("mean", Mean(), archive)

    def test_what_is_no_archive_no_name_and_no_function(self, tmp_path: Path) -> None:
        archive = SqliteArchive(tmp_path / "archive.db")
        windows = windowed(self.env(), TumblingProcessingTimeWindows.of(Time.seconds(1)))
        with pytest.raises(TypeMismatchError, match=r"expects an archive such as SqliteArchive\(path\), found 'a.db'"):
            windows.as_queryable_series("mean", Mean(), "a.db")
        with pytest.raises(CheckpointError, match=r"series '\.\./x' cannot be part of a file name"):
            windows.as_queryable_series("../x", Mean(), archive)
        with pytest.raises(TypeMismatchError, match=r"expects an AggregateFunction, found .*did you forget to call it"):
            windows.as_queryable_series("mean", Mean, archive)
        with pytest.raises(TypeMismatchError, match="as_queryable_series"):
            windows.as_queryable_series("mean", 5, archive)

    def test_two_series_of_one_name(self, tmp_path: Path) -> None:
        env, archive = self.env(), SqliteArchive(tmp_path / "archive.db")
        for _ in range(2):
            windowed(env, TumblingEventTimeWindows.of(Time.seconds(1))).as_queryable_series("mean", Mean(), archive)
        with in_process(), pytest.raises(PlanError, match="mean"):
            env.execute("twice")


def test_a_window_is_a_plain_tuple() -> None:
    assert ClosedWindow("a", 0, 5, 1.5) == ("a", 0, 5, 1.5)
