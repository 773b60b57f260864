"""What a stage measures in an epoch: records, bytes, time, timers, keys. Counts are exact, times only plausible."""

from __future__ import annotations

import time
from typing import Any

from headwater.common import Duration, Time, WatermarkStrategy
from headwater.datastream import DataStream, MapFunction, StreamExecutionEnvironment
from headwater.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from headwater.runtime.epoch.chunk import encode_records
from headwater.runtime.epoch.figures import Figures, Traffic
from headwater.runtime.stage.busy_time import BusyTime
from headwater.runtime.stage.edge_ids import edge_id
from headwater.runtime.stage.key_sample import KeySample
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.test_stage_runner import NOW_MS, counting, head_of, runner_of


class Slow(MapFunction):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def map(self, value: Any) -> Any:
        deadline = time.perf_counter() + self._seconds
        while time.perf_counter() < deadline:
            pass
        return value


def test_records_and_bytes_on_the_way_in_and_out() -> None:
    plan = plan_of(counting)
    head = head_of(plan)
    runner, emitted = runner_of(plan, 1)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    payload = encode_records([1, 2, 3], [10, 20, 30])
    runner.chunk(edge_id(head, 0), payload)
    runner.advance(head, 120)
    figures = runner.finish_epoch(NOW_MS).figures
    assert figures.received == {edge_id(head, 0): Traffic(3, len(payload))}
    assert figures.records_out == {"count": 5}  # one per record, and two timers
    ((edge, sent),) = figures.sent.items()
    assert edge == edge_id(head_of(plan, 2), 0) and sent.records == 5
    assert 0 < sent.bytes < sum(map(len, emitted.frames))
    assert figures.state_entries == {"count": 2}


def test_an_epoch_without_records_reports_next_to_nothing() -> None:
    runner, _ = runner_of(plan_of(counting), 1)
    for epoch in range(2):
        runner.begin_epoch(epoch, "attempt", NOW_MS, {})
        figures = runner.finish_epoch(NOW_MS).figures
    assert (figures.records_out, figures.sent, figures.received, figures.event_timers) == ({}, {}, {}, {})


def test_the_next_timer_in_event_time() -> None:
    plan = plan_of(counting)
    head = head_of(plan)
    runner, _ = runner_of(plan, 1)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    runner.batch(edge_id(head, 0), [1], [10])
    assert runner.finish_epoch(NOW_MS).figures.event_timers == {"count": 100}
    runner.begin_epoch(1, "attempt", NOW_MS, {})
    runner.advance(head, 100)
    assert runner.finish_epoch(NOW_MS).figures.event_timers == {}


def next_end(assigner: Any, timestamps: list[int], watermark: int, lateness_ms: int = 0) -> int | None:
    def windowed(env: StreamExecutionEnvironment) -> DataStream:
        windows = env.from_collection([(1, 1)]).key_by(lambda value: value[0]).window(assigner)
        if lateness_ms:
            windows = windows.allowed_lateness(lateness_ms)
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("window")

    plan = plan_of(windowed)
    runner, _ = runner_of(plan, 1)
    head = head_of(plan)
    runner.begin_epoch(0, "attempt", NOW_MS, {})
    runner.batch(edge_id(head, 0), [(1, 1)] * len(timestamps), list(timestamps))
    runner.advance(head, watermark)
    return runner.finish_epoch(NOW_MS).figures.event_timers.get("window")


def test_the_next_window_to_end() -> None:
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(100))
    assert next_end(tumbling, [10, 250], watermark=50) == 99
    assert next_end(tumbling, [10, 250], watermark=150) == 299
    assert next_end(tumbling, [10], watermark=150) is None
    # A window that has fired stays for late records, but nobody waits for its end.
    assert next_end(tumbling, [10, 250], watermark=150, lateness_ms=1_000) == 299
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50))
    assert next_end(sliding, [60], watermark=70) == 99
    assert next_end(sliding, [60], watermark=120) == 149
    assert next_end(sliding, [60], watermark=200) is None


def test_each_vertex_of_a_stage_has_its_own_time() -> None:
    def two(env: StreamExecutionEnvironment) -> DataStream:
        slow = env.from_collection([1]).uid("slow").map(Slow(0.03))
        return slow.union(env.from_collection([1]).uid("fast")).map(Slow(0.01)).uid("both")

    plan = plan_of(two)
    runner, _ = runner_of(plan, 0)
    for source in plan.sources:
        runner.begin_epoch(0, "attempt", NOW_MS, {}, source_id=source.id, channel="split")
        runner.busy.enter(source.uid)
        runner.source_output(source.id).emit([1], None)
        busy = runner.finish_epoch(NOW_MS).figures.busy_ms
        assert busy["both"] >= 10
        assert (busy["slow"] >= 30) is (source.uid == "slow")
        assert busy.get("fast", 0.0) < 10


def test_waiting_for_input_and_for_those_who_take_the_output_is_not_work() -> None:
    busy, figures = BusyTime(), Figures()
    busy.enter("a")
    busy.blocked(5.0)
    busy.enter(None)
    busy.enter("b")
    busy.leave_uncounted()
    busy.end(figures)
    assert figures.blocked_ms == 5_000 and -5_000 <= figures.busy_ms["a"] < -4_000
    assert "b" not in figures.busy_ms
    assert figures.cpu_ms >= 0


def test_silent_splits_of_a_strategy_with_idleness_are_idle() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(1))

    def idle(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection([1]).assign_timestamps_and_watermarks(strategy).uid("times").rebalance().map(str)

    plan = plan_of(idle)
    runner, _ = runner_of(plan, 0)
    seen = []
    for now_ms in (NOW_MS, NOW_MS + 500, NOW_MS + 1_500):
        runner.begin_epoch(0, "attempt", now_ms, {}, source_id=plan.sources[0].id, channel="split")
        seen.append(runner.finish_epoch(now_ms).figures.idle)
    assert seen == [(), (), ("times",)]


def sampled(keys: list[Any], chunk: int) -> Any:
    sample = KeySample(lambda key: key, 128)
    for start in range(0, len(keys), chunk):
        sample.look_at(keys[start : start + chunk])
    return sample.take()


def test_a_key_with_a_third_of_the_records_is_found_whatever_the_size_of_chunks() -> None:
    keys = [0 if n % 3 == 0 else n for n in range(200_000)]
    for chunk in (7, 1_000, 4_096):
        found = sampled(keys, chunk)
        assert found.keys[0].key == "0"
        assert 0.25 < found.keys[0].hits / found.samples < 0.42
        assert all(other.hits / found.samples < 0.05 for other in found.keys[1:])


def test_a_sample_is_small() -> None:
    looked_at = []
    sample = KeySample(looked_at.append, 128)
    for _ in range(100):
        sample.look_at(list(range(4_096)))
    assert 4_096 * 100 / 75 < len(looked_at) < 4_096 * 100 / 60


def test_keys_that_cannot_be_hashed_and_selectors_that_raise_do_no_harm() -> None:
    assert sampled([[1]] * 50_000, 100).keys[0].key == "'[1]'"
    sample = KeySample(lambda value: value["missing"], 128)
    for _ in range(100):
        sample.look_at([{}] * 100)
    assert sample.take() is None


def test_what_has_not_changed_is_not_reported_again() -> None:
    sample = KeySample(lambda key: key, 128)
    sample.look_at(list(range(30_000)))
    assert sample.take() is not None
    assert sample.take() is None
