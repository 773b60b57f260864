"""Small jobs whose output and final state depend on their input alone: not on where epochs end, nor on parallelism.

Every key comes from one split, so the order of its records is given; what is gathered from several keys is emitted by
event-time timers only; what a processing-time timer emits does not say when.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.common import Configuration, Time, WatermarkStrategy
from headwater.common.connector import Source, Split, SplitReader
from headwater.common.ids import MAX_WATERMARK
from headwater.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.datastream.window import SlidingEventTimeWindows
from headwater.graph.plan import JobPlan
from tests.chaos.simulator.sink import SimulatedSink
from tests.unit.runtime.in_process_engine import FakeDataFrame

MAX_PARALLELISM = 12
WAIT_MS = 60
SLICE_MS = 80

STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[1])

Record = tuple[str, int, int]
"""(key, time_ms, number); the number counts the records of the key."""


class ScriptedSplits(Source):
    """Splits that are lists, in the source itself."""

    def __init__(self, splits: dict[str, list[Any]]) -> None:
        self.splits = splits

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [Split(name, None) for name in self.splits if name not in known]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _ListReader(self.splits[split.split_id], position or 0)


class _ListReader(SplitReader):
    def __init__(self, records: list[Any], position: int) -> None:
        self._records = records
        self._position = position

    def read_batch(self, max_records: int) -> list[Any] | None:
        batch = self._records[self._position : self._position + max_records]
        self._position += len(batch)
        return batch or None

    def position(self) -> int:
        return self._position


def records(seed: int, splits: int, keys: int, count: int) -> dict[str, list[Record]]:
    """Splits of so many records each, in order of time, with keys of their own."""
    drawn = random.Random(seed)
    found: dict[str, list[Record]] = {}
    for split in range(splits):
        time_ms, numbers = 0, [0] * keys
        found[f"split-{seed}-{split}"] = rows = []
        for _ in range(count):
            key = drawn.randrange(keys)
            time_ms += drawn.randint(0, 20)
            rows.append((f"{seed}-{split}-{key}", time_ms, numbers[key]))
            numbers[key] += 1
    return found


def stream(env: StreamExecutionEnvironment, splits: dict[str, list[Record]], name: str) -> DataStream:
    return env.from_source(ScriptedSplits(splits), STRATEGY, name).uid(name)


# --- the jobs


class CountAndWait(KeyedProcessFunction):
    """Emits the count of each key; every third record comes again when processing time has passed, or at the end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))

    def process_element(self, value: Record, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        timers = ctx.timer_service()
        if count == 1:
            timers.register_event_time_timer(MAX_WATERMARK)
        if count % 3 == 0:
            due_ms = timers.current_processing_time() + WAIT_MS
            self.waiting.add((due_ms, value[2]))
            timers.register_processing_time_timer(due_ms)
        yield value[0], "count", count, value[2]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        waiting = list(self.waiting.get())
        for due_ms, number in waiting:
            if due_ms <= timestamp:
                ctx.timer_service().delete_processing_time_timer(due_ms)
                yield f"{ctx.get_current_key()} waited", number
        self.waiting.update([item for item in waiting if item[0] > timestamp])


def counts(env: StreamExecutionEnvironment, *, grown: bool = False) -> DataStream:
    """Keyed count, timers of both kinds. Grows by a DataFrame."""
    events = stream(env, records(1, 3, 3, 22), "events")
    if grown:
        (rows,) = records(8, 1, 3, 22).values()
        events = events.union(env.from_dataframe(FakeDataFrame(rows), STRATEGY, "late").uid("late"))
    return events.key_by(lambda item: item[0]).process(CountAndWait()).uid("count")


class SumAndTotal(ProcessWindowFunction):
    def process(self, key: Any, context: ProcessWindowFunction.Context, elements: Any) -> Any:
        numbers = [item[2] for item in elements]
        total = context.global_state().get_state(ValueStateDescriptor("total"))
        total.update((total.value() or 0) + sum(numbers))
        yield key, context.window().start, tuple(numbers), total.value()

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        pass


def windows(env: StreamExecutionEnvironment) -> DataStream:
    """Overlapping windows with state across them."""
    keyed = stream(env, records(2, 2, 3, 28), "events").key_by(lambda item: item[0])
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50))
    return keyed.window(assigner).process(SumAndTotal()).uid("windows")


class PerSlice(KeyedProcessFunction):
    """Counts the records of a key in a slice of time, which are one key here; the slice's end emits."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_reducing_state(ReducingStateDescriptor("total", lambda a, b: a + b))
        self.emitted = runtime_context.get_map_state(MapStateDescriptor("emitted"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.total.add(1)
        ctx.timer_service().register_event_time_timer((value[1] // SLICE_MS + 1) * SLICE_MS - 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        count = self.total.get()
        self.emitted.put(timestamp, count)
        self.total.clear()
        yield timestamp, ctx.get_current_key()[0], count


class OverAll(KeyedProcessFunction):
    """Adds up the slices of all keys."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.parts = runtime_context.get_map_state(MapStateDescriptor("parts"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.parts.put(value[1], value[2])
        ctx.timer_service().register_event_time_timer(value[0] + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), tuple(sorted(self.parts.items()))


def two_stages(env: StreamExecutionEnvironment) -> DataStream:
    """Two shuffles, the second fed by timers of the first."""
    events = stream(env, records(3, 2, 4, 28), "events")
    slices = events.key_by(lambda item: (item[0], item[1] // SLICE_MS)).process(PerSlice()).uid("slices")
    return slices.key_by(lambda item: item[0]).process(OverAll()).uid("over-all")


class Numbered(KeyedProcessFunction):
    """A gap, a repetition or a swap in the numbers of a key shows in its output."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: Record, ctx: KeyedProcessFunction.Context) -> Any:
        last = self.last.value()
        expected = 0 if last is None else last + 1
        self.last.update(value[2])
        yield value[0], value[2], "as expected" if value[2] == expected else f"after {last}"


def union(env: StreamExecutionEnvironment, *, grown: bool = False) -> DataStream:
    """Two sources, and keys whose records must come in order. Grows by a third."""
    first, second = stream(env, records(4, 2, 2, 18), "first"), stream(env, records(5, 1, 3, 30), "second")
    if grown:
        second = second.union(stream(env, records(9, 2, 2, 18), "late"))
    return first.union(second).key_by(lambda item: item[0]).process(Numbered()).uid("numbered")


RULES = MapStateDescriptor("rules")


class Judge(KeyedBroadcastProcessFunction):
    """Each record is judged, when its time has come, by the rules that held then."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))
        self.judged = runtime_context.get_state(ValueStateDescriptor("judged"))

    def process_broadcast_element(self, value: Record, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], [*(rules.get(value[0]) or []), (value[1], value[2])])

    def process_element(self, value: Record, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        self.waiting.put(value[2], value[1])
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        held = sorted(
            (rule, max(version for time_ms, version in versions if time_ms <= timestamp))
            for rule, versions in ctx.get_broadcast_state(RULES).items()
            if versions[0][0] <= timestamp
        )
        due = sorted(number for number, time_ms in self.waiting.items() if time_ms <= timestamp)
        for number in due:
            self.waiting.remove(number)
            self.judged.update((self.judged.value() or 0) + 1)
            yield ctx.get_current_key(), number, tuple(held)


def broadcast(env: StreamExecutionEnvironment) -> DataStream:
    """A stream of rules that every partition has, beside keyed state."""
    rules = stream(env, records(6, 1, 2, 12), "rules").broadcast(RULES)
    keyed = stream(env, records(7, 2, 2, 20), "events").key_by(lambda item: item[0])
    return keyed.connect(rules).process(Judge()).uid("judge")


GROWING = (counts, union)
"""Jobs that can get another source when they are restored: their output does not depend on when that was."""
JOBS: dict[str, Callable[..., DataStream]] = {job.__name__: job for job in (*GROWING, windows, two_stages, broadcast)}


@dataclass(frozen=True)
class Shape:
    """A job as it is run: everything that a seed chooses about it, but the faults."""

    job: str
    parallelism: int
    interval_epochs: int
    backend: str = "hashmap"

    @property
    def can_grow(self) -> bool:
        return JOBS[self.job] in GROWING

    def plan(self, parallelism: int, *, grown: bool = False) -> JobPlan:
        settings = {"pipeline.max-parallelism": MAX_PARALLELISM, "state.backend.type": self.backend}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(parallelism)
        job = JOBS[self.job]
        (job(env, grown=True) if grown else job(env)).sink_to(SimulatedSink()).uid("sink")
        plan, _ = env._plan(self.job)
        return plan
