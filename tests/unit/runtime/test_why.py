"""Why is there no output? Each test makes such a job, in process, and checks that the right cause is named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater.common import Configuration, Duration, Time, WatermarkStrategy
from headwater.common.connector import Source, Split, SplitReader
from headwater.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.testing import CollectingSink
from headwater.testing.clock import ManualClock
from headwater.testing.in_process import InProcess, in_process

BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


class Feed(Source):
    """Splits with these records; then they are silent, or go on for ever."""

    bounded = False

    def __init__(self, splits: dict[str, list[Any]], endless: str | None = None) -> None:
        self.splits = splits
        self.endless = endless
        self.discovery_interval_ms = 1_000

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [Split(name, None) for name in self.splits if name not in known]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _FeedReader(self.splits[split.split_id], position or 0, split.split_id == self.endless)


class _FeedReader(SplitReader):
    def __init__(self, records: list[Any], position: int, endless: bool) -> None:
        self._records, self._position, self._endless = records, position, endless

    def read_batch(self, max_records: int) -> list[Any] | None:
        if self._endless:
            self._position += 1
            return [self._position * 1_000] if self._position % 2 else []
        found = self._records[self._position : self._position + max_records]
        self._position += len(found)
        return found

    def position(self) -> Any:
        return self._position


@pytest.fixture
def here() -> Iterator[InProcess]:
    with in_process(clock=ManualClock(0), epoch_records=10) as block:
        yield block


def why(
    here: InProcess,
    build: Callable[[DataStream], DataStream],
    source: Source,
    *,
    strategy: WatermarkStrategy = BY_VALUE,
    wanted: str,
    says: str = "",
) -> dict[str, Any]:
    """Run the job until it names `wanted` first, and `says` that; return the cause. Else fail with what it named."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    build(env.from_source(source, strategy, "feed")).sink_to(CollectingSink()).name("out")
    client: Any = env.execute_async("silent")
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            found = client.why()
            if found[0]["cause"] == wanted and says in found[0]["text"]:
                return found[0]
            here.clock.advance(500)
            time.sleep(0.005)
        raise AssertionError(found)
    finally:
        client.cancel().result()


def windows(stream: DataStream) -> DataStream:
    by_key = stream.key_by(lambda value: value % 2)
    return by_key.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).reduce(max).name("Max")


def same(stream: DataStream) -> DataStream:
    return stream.map(lambda value: value).name("Same")


def test_a_healthy_job_has_nothing_wrong(here: InProcess) -> None:
    why(here, same, Feed({"a": []}, endless="a"), wanted="nothing-wrong", says="a sink got its last record")


def test_a_source_that_never_gave_a_record_is_idle(here: InProcess) -> None:
    found = why(here, same, Feed({"a": []}), wanted="source-idle")
    assert found["operator"] == "feed" and "not one record" in found["text"]


def test_a_source_that_fell_silent_is_idle_since_then(here: InProcess) -> None:
    why(here, same, Feed({"a": [1, 2, 3]}), wanted="source-idle", says="no record since")


def test_a_source_without_splits(here: InProcess) -> None:
    assert why(here, same, Feed({}), wanted="no-splits")["operator"] == "feed"


def test_a_filter_that_passes_nothing(here: InProcess) -> None:
    found = why(
        here,
        lambda stream: stream.filter(lambda value: value < 0).name("Negative"),
        Feed({"a": []}, endless="a"),
        wanted="filter-passes-nothing",
    )
    assert found["operator"] == "Negative"


def test_a_function_that_emits_nothing(here: InProcess) -> None:
    found = why(
        here,
        lambda stream: stream.flat_map(lambda value: []).name("Nothing"),
        Feed({"a": []}, endless="a"),
        wanted="emits-nothing",
    )
    assert found["operator"] == "Nothing"


def test_a_silent_split_holds_the_watermark_and_is_named(here: InProcess) -> None:
    found = why(here, windows, Feed({"loud": [], "still": [50]}, endless="loud"), wanted="watermark-stuck")
    assert "split still of Source: feed is silent since" in found["text"] and "reaches 99" in found["text"]
    assert found["operator"] == "Max" and found["subtask"] == 0
    assert "with_idleness" in found["cure"]


def test_with_idleness_the_others_go_on(here: InProcess) -> None:
    idle = BY_VALUE.with_idleness(Duration.of_millis(500))
    why(here, windows, Feed({"loud": [], "still": [50]}, endless="loud"), strategy=idle, wanted="nothing-wrong")


def test_a_window_whose_end_no_record_reaches(here: InProcess) -> None:
    why(here, windows, Feed({"a": [10, 20]}), wanted="source-idle", says="reaches 99 (the end of")


def test_a_window_that_is_not_over_yet(here: InProcess) -> None:
    def long_windows(stream: DataStream) -> DataStream:
        by_key = stream.key_by(lambda value: 0)
        return by_key.window(TumblingEventTimeWindows.of(Time.days(10_000))).reduce(max).name("Long")

    found = why(here, long_windows, Feed({"a": []}, endless="a"), wanted="window-not-over")
    assert found["operator"] == "Long" and "of event time to go" in found["text"]


def test_windows_without_watermarks(here: InProcess) -> None:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value)
    found = why(here, windows, Feed({"a": []}, endless="a"), strategy=strategy, wanted="no-watermarks")
    assert "'feed' emits no watermarks" in found["text"]


def test_everything_is_late(here: InProcess) -> None:
    def after_the_future(stream: DataStream) -> DataStream:
        # The first epoch moves event time far ahead, but no window gets its records: all others are late.
        return windows(stream.filter(lambda value: value < 10**8).name("Past"))

    here.clock.set(2 * 10**9)
    records = [*[10**9] * 10, *range(1, 200)]
    found = why(here, after_the_future, Feed({"a": records}), wanted="all-late")
    assert found["operator"] == "Max" and "dropped" in found["text"]


def test_a_window_of_processing_time_in_the_future(here: InProcess) -> None:
    class Alarm(KeyedProcessFunction):
        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_processing_time_timer(10**15)

    found = why(
        here,
        lambda stream: stream.key_by(lambda value: 0).process(Alarm()).name("Alarm"),
        Feed({"a": []}, endless="a"),
        wanted="timer-in-the-future",
    )
    assert str(10**15) in found["text"] and found["operator"] == "Alarm"


class Stubborn(CollectingSink):
    """Its commits fail until the test has seen enough."""

    enough = threading.Event()

    def create_committer(self) -> Any:
        committer = super().create_committer()
        commit = committer.commit

        def fail(committables: list[Any]) -> None:
            if not Stubborn.enough.wait(0.02):
                raise OSError("the disk is away")
            commit(committables)

        committer.commit = fail  # type: ignore[method-assign]
        return committer


def test_a_sink_that_cannot_commit(here: InProcess) -> None:
    Stubborn.enough.clear()
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(
            {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "1000000"}
        )
    )
    env.set_parallelism(1).from_source(Feed({"a": []}, endless="a"), BY_VALUE, "feed").sink_to(Stubborn()).name("out")
    client: Any = env.execute_async("stubborn")
    try:
        deadline = time.monotonic() + 30
        while (found := client.why())[0]["cause"] != "sink-commit-failing":
            assert time.monotonic() < deadline, found
            time.sleep(0.005)
        assert "the disk is away" in found[0]["text"]
        Stubborn.enough.set()
        while (found := client.why())[0]["cause"] != "nothing-wrong":
            assert time.monotonic() < deadline, found
            here.clock.advance(500)
            time.sleep(0.005)
    finally:
        Stubborn.enough.set()
        client.cancel().result()
