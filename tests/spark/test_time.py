"""Event time and processing time: timers, watermark strategies, idleness, bad timestamps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from headwater.common import Duration, WatermarkStrategy
from headwater.common.errors import TimestampError
from headwater.common.output_tag import BAD_TIMESTAMPS
from headwater.common.watermark_strategy import WatermarkGenerator
from headwater.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TimeDomain
from headwater.testing import EOF, PAUSE, ScriptSource
from tests.spark.harness import JobRunner, epochs_of, progress

NONE_YET = -(2**63)
BY_SECOND_FIELD = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: pair[1])


class Alarm(KeyedProcessFunction):
    """Sets timers and deletes every third; tells when they fire."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        service = ctx.timer_service()
        service.register_event_time_timer(value[1] + 15)
        service.register_event_time_timer(value[1] + 15)  # the same timer: fires once
        if value[1] % 30 == 0:
            service.delete_event_time_timer(value[1] + 15)
        yield "record", ctx.get_current_key(), ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        assert ctx.timestamp() == timestamp <= ctx.timer_service().current_watermark()
        yield "timer", ctx.get_current_key(), timestamp


def test_event_time_timers_fire_once_in_order_and_to_the_last(run_job: JobRunner) -> None:
    events = [(f"k{number % 3}", number * 10) for number in range(60)]

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection(events).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        return stream.key_by(lambda event: event[0]).process(Alarm())

    found = run_job(build, 2, **epochs_of(10))
    expected = Counter(("record", key, time_ms) for key, time_ms in events)
    expected.update(("timer", key, time_ms + 15) for key, time_ms in events if time_ms % 30)
    assert Counter(found) == expected
    for key in ("k0", "k1", "k2"):
        fired = [at for kind, of, at in found if kind == "timer" and of == key]
        assert fired == sorted(fired)


def test_a_processing_time_timer_fires_without_further_records(run_job: JobRunner) -> None:
    class Later(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            if value == "first":
                service = ctx.timer_service()
                service.register_processing_time_timer(service.current_processing_time() + 200)
            yield value

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            assert ctx.time_domain() is TimeDomain.PROCESSING_TIME
            assert ctx.timer_service().current_processing_time() >= timestamp
            yield "fired"

    def build(env: StreamExecutionEnvironment) -> Any:
        # Never ends: the timer must come while the source is silent.
        source = ScriptSource(["first", "second"], bounded=False)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
        return stream.key_by(lambda word: "all").process(Later())

    env = run_job.environment(2, **{"headwater.epoch.duration": 100})
    with build(env).execute_and_collect() as results:
        assert [next(results) for _ in range(3)] == ["first", "second", "fired"]
        progress(results.get_job_client())


class Punctuated(WatermarkGenerator):
    """A record that says 'mark' is a watermark."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == "mark":
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Lagging(WatermarkGenerator):
    """Periodic, with something to remember from epoch to epoch."""

    def __init__(self) -> None:
        self.highest = NONE_YET + 20

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(self.highest - 20)


class SeenWatermark(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value[1], ctx.timer_service().current_watermark()


def watermarks_seen(run_job: JobRunner, strategy: WatermarkStrategy, events: list[Any], epoch: int) -> list[Any]:
    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection(events).assign_timestamps_and_watermarks(strategy)
        return stream.key_by(lambda event: 0).process(SeenWatermark())

    return run_job(build, 1, **epochs_of(epoch))


def test_a_punctuated_generator(run_job: JobRunner) -> None:
    strategy = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(lambda event, _: event[1])
    events = [("a", 1), ("mark", 5), ("a", 7), ("mark", 9), ("a", 11)]
    found = watermarks_seen(run_job, strategy, events, 1)
    assert found == [(1, NONE_YET), (5, NONE_YET), (7, 5), (9, 5), (11, 9)]


def test_a_periodic_generator_remembers_across_epochs(run_job: JobRunner) -> None:
    strategy = WatermarkStrategy.for_generator(Lagging).with_timestamp_assigner(lambda event, _: event[1])
    events = [("a", 100), ("a", 30), ("a", 40), ("a", 200), ("a", 50)]
    found = watermarks_seen(run_job, strategy, events, 1)
    assert found == [(100, NONE_YET), (30, 80), (40, 80), (200, 80), (50, 180)]


def test_bounded_out_of_orderness_and_no_watermarks(run_job: JobRunner) -> None:
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    by_second = lambda event, _: event[1]  # noqa: E731
    events = [("a", 100), ("a", 95), ("a", 120)]
    found = watermarks_seen(run_job, bounded.with_timestamp_assigner(by_second), events, 1)
    assert found == [(100, NONE_YET), (95, 89), (120, 89)]
    none = WatermarkStrategy.no_watermarks().with_timestamp_assigner(by_second)
    assert watermarks_seen(run_job, none, events, 1) == [(100, NONE_YET), (95, NONE_YET), (120, NONE_YET)]


def test_an_idle_source_does_not_hold_the_others_back(run_job: JobRunner) -> None:
    class Fired(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            yield timestamp

    def build(env: StreamExecutionEnvironment, idle_ms: int) -> Any:
        strategy = BY_SECOND_FIELD.with_idleness(Duration.of_millis(idle_ms))
        silent = env.from_source(ScriptSource([("a", 5)], bounded=False), strategy, "silent")
        busy = env.from_source(ScriptSource([("a", 1_000), PAUSE, ("a", 2_000)], bounded=False), strategy, "busy")
        return silent.union(busy).key_by(lambda event: event[0]).process(Fired())

    env = run_job.environment(1, **{"headwater.epoch.duration": 50})
    with build(env, 300).execute_and_collect() as results:
        # Without idleness the silent source would hold event time at 4 for ever.
        assert next(results) == 5
        assert next(results) == 1_000
        progress(results.get_job_client())


@pytest.mark.parametrize(
    ("bad", "says"),
    [(None, "None"), ("soon", "'soon'"), (-1, "-1"), (10**17, str(10**17))],
)
def test_a_bad_timestamp_fails_the_job_and_names_record_and_source(run_job: JobRunner, bad: Any, says: str) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        source = ScriptSource([("a", 1), ("b", bad), ("c", 3), EOF])
        return env.from_source(source, BY_SECOND_FIELD, "the clickstream").map(lambda pair: pair)

    with pytest.raises(TimestampError) as raised:
        run_job(build)
    text = str(raised.value)
    assert says in text and "('b'," in text and "the clickstream" in text


def test_bad_timestamps_to_the_side_output_leave_the_watermark_alone(run_job: JobRunner) -> None:
    events = [("a", 10), ("b", 10**17), ("c", None), ("d", 20), ("e", -5), ("f", 30)]

    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection(events).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        good = stream.key_by(lambda event: 0).process(SeenWatermark())
        bad = stream.get_side_output(BAD_TIMESTAMPS).map(lambda event: ("bad", event[0]))
        return good.union(bad)

    found = run_job(build, 1, **epochs_of(1), **{"headwater.bad-timestamps": "side-output"})
    expected = [(10, NONE_YET), (20, 9), (30, 19), ("bad", "b"), ("bad", "c"), ("bad", "e")]
    assert Counter(found) == Counter(expected)
