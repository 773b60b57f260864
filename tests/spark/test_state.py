"""Keyed state of every kind, TTL, operator state, reduce and its relatives."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from headwater.common import Time, Types, WatermarkStrategy
from headwater.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from headwater.datastream.functions import FunctionInitializationContext
from headwater.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from tests.spark.harness import JobRunner, epochs_of

PAIRS = [(f"k{number % 7}", number) for number in range(140)]


class Average(AggregateFunction):
    def create_accumulator(self) -> Any:
        return [0, 0]

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator[0] += 1  # in place: the backend must have copied it for the undo log
        accumulator[1] += value
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[1] / accumulator[0]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class Everything(KeyedProcessFunction):
    """One state of each kind, all used for every record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last"))
        self.parity = runtime_context.get_map_state(MapStateDescriptor("parity"))
        self.highest = runtime_context.get_reducing_state(ReducingStateDescriptor("highest", max))
        self.average = runtime_context.get_aggregating_state(AggregatingStateDescriptor("average", Average()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key, number = value
        assert ctx.get_current_key() == key
        self.count.update((self.count.value() or 0) + 1)
        self.last.add(number)
        if len(list(self.last.get())) > 3:
            self.last.update(list(self.last.get())[-3:])
        self.parity[number % 2] = (self.parity[number % 2] or 0) + 1
        self.highest.add(number)
        self.average.add(number)
        yield (
            key,
            self.count.value(),
            tuple(self.last.get()),
            tuple(sorted(self.parity.items())),
            self.highest.get(),
            self.average.get(),
        )


def everything() -> Counter[Any]:
    """What `Everything` must give, in plain Python."""
    seen: dict[str, list[int]] = {}
    result: Counter[Any] = Counter()
    for key, number in PAIRS:
        numbers = seen.setdefault(key, [])
        numbers.append(number)
        parity = Counter(n % 2 for n in numbers)
        result[
            key,
            len(numbers),
            tuple(numbers[-3:]),
            tuple(sorted(parity.items())),
            max(numbers),
            sum(numbers) / len(numbers),
        ] += 1
    return result


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_kind_of_state_over_several_epochs(run_job: JobRunner, parallelism: int) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(PAIRS).key_by(lambda pair: pair[0]).process(Everything())

    assert Counter(run_job(build, parallelism, **epochs_of(30))) == everything()


def test_keyed_map_and_filter_functions_reach_the_state_of_their_key(run_job: JobRunner) -> None:
    class Numbered(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def map(self, value: Any) -> Any:
            number = self.count.value() or 0
            self.count.update(number + 1)
            return value[0], number

    class FirstTwo(FilterFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def filter(self, value: Any) -> bool:
            self.count.update((self.count.value() or 0) + 1)
            return self.count.value() <= 2  # type: ignore[operator, no-any-return]

    def build(env: StreamExecutionEnvironment) -> Any:
        keyed = env.from_collection(PAIRS).key_by(lambda pair: pair[0])
        return keyed.map(Numbered()).union(keyed.filter(FirstTwo()))

    expected = Counter((f"k{key}", number) for key in range(7) for number in range(20))
    expected.update(PAIRS[:14])
    assert Counter(run_job(build, 2, **epochs_of(50))) == expected


def running(combine: Any) -> list[Any]:
    values: dict[str, Any] = {}
    result = []
    for pair in PAIRS:
        values[pair[0]] = combine(values[pair[0]], pair) if pair[0] in values else pair
        result.append(values[pair[0]])
    return result


class Latest(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2


AGGREGATES: dict[str, tuple[Any, Any]] = {
    "sum": (lambda keyed: keyed.sum(1), lambda a, b: (a[0], a[1] + b[1])),
    "min": (lambda keyed: keyed.min(1), lambda a, b: (a[0], min(a[1], b[1]))),
    "max": (lambda keyed: keyed.max(1), lambda a, b: (a[0], max(a[1], b[1]))),
    "min_by": (lambda keyed: keyed.min_by(1), lambda a, b: b if b[1] < a[1] else a),
    "max_by": (lambda keyed: keyed.max_by(1), lambda a, b: b if b[1] > a[1] else a),
    "reduce": (lambda keyed: keyed.reduce(Latest()), lambda a, b: b),
}


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_aggregations(run_job: JobRunner, mode: RuntimeExecutionMode) -> None:
    """All of them in one job; STREAMING gives every value on the way, BATCH the last of each key."""

    def build(env: StreamExecutionEnvironment) -> Any:
        env.set_runtime_mode(mode)
        pairs = env.from_collection(PAIRS)
        streams = [
            apply(pairs.key_by(lambda pair: pair[0])).map(lambda pair, name=name: (name, *pair))
            for name, (apply, _) in AGGREGATES.items()
        ]
        return streams[0].union(*streams[1:])

    expected: Counter[Any] = Counter()
    for name, (_, combine) in AGGREGATES.items():
        values = running(combine)
        if mode is RuntimeExecutionMode.BATCH:
            values = list({pair[0]: pair for pair in values}.values())
        expected.update((name, *pair) for pair in values)
    assert Counter(run_job(build, 2, **epochs_of(60))) == expected


def test_processing_time_ttl_forgets_between_epochs(run_job: JobRunner) -> None:
    class Seen(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            seen = ValueStateDescriptor("seen")
            seen.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(1)).build())
            self.short = runtime_context.get_state(seen)
            kept = ValueStateDescriptor("kept")
            kept.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build())
            self.long = runtime_context.get_state(kept)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield self.short.value(), self.long.value()
            self.short.update(value)
            self.long.update(value)

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 2]).key_by(lambda n: "all").process(Seen())

    # One record per epoch: each epoch has a processing time of its own, at least 1 ms later.
    assert run_job(build, 1, **epochs_of(1)) == [(None, None), (None, 1)]


def test_event_time_ttl_follows_the_watermark_not_the_clock(run_job: JobRunner) -> None:
    class Seen(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            seen = ValueStateDescriptor("seen")
            seen.enable_time_to_live(StateTtlConfig.new_builder(Time.minutes(10)).use_event_time().build())
            self.seen = runtime_context.get_state(seen)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield value, self.seen.value()
            self.seen.update(value)

    minutes = [0, 1, 5, 14, 60, 61]

    def build(env: StreamExecutionEnvironment) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda m, _: m * 60_000)
        events = env.from_collection(minutes).assign_timestamps_and_watermarks(strategy)
        return events.key_by(lambda m: "all").process(Seen())

    started = time.monotonic()
    found = run_job(build, 1, **epochs_of(1))
    assert time.monotonic() - started < 600
    # What minute 14 wrote was dated by the watermark before it (minute 5); at minute 60 the watermark is at 14: it has
    # not expired. What minute 60 wrote expires at 24; at minute 61 the watermark is at 60.
    assert found == [(0, None), (1, 0), (5, 1), (14, 5), (60, 14), (61, None)]


def test_operator_list_state_is_kept_per_partition(run_job: JobRunner) -> None:
    class Remember(ProcessFunction, CheckpointedFunction):
        def initialize_state(self, context: FunctionInitializationContext) -> None:
            self.seen = context.get_operator_list_state(ListStateDescriptor("seen"))

        def open(self, runtime_context: RuntimeContext) -> None:
            self.partition = runtime_context.get_index_of_this_subtask()

        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            self.seen.add(value)
            yield self.partition, tuple(self.seen.get())

    def build(env: StreamExecutionEnvironment) -> Any:
        by_parity = env.from_collection(range(12)).partition_custom(lambda key, n: key % n, lambda number: number)
        return by_parity.process(Remember())

    found = run_job(build, 2, **epochs_of(5))
    evens, odds = list(range(0, 12, 2)), list(range(1, 12, 2))
    expected = [(0, tuple(evens[:n])) for n in range(1, 7)] + [(1, tuple(odds[:n])) for n in range(1, 7)]
    assert Counter(found) == Counter(expected)
