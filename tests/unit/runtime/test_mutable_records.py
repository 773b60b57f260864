"""What a function emits or stores is what it was at that moment, and no result depends on where a batch ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common import Time, WatermarkStrategy
from headwater.datastream import (
    AggregateFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.number_seq import NumberSequenceSource, RangeReader
from headwater.datastream.state import MapStateDescriptor, ValueStateDescriptor
from headwater.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from headwater.runtime.epoch.messages import Attempt, Base, EpochHeader
from headwater.runtime.job.source_progress import SplitSourceProgress
from headwater.runtime.stage import source_task
from headwater.runtime.stage.readers import Readers
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.source_task import run_source_task
from headwater.runtime.stage.wiring import RunnerIdentity
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.mutable_programs import (
    ACTIONS,
    SIDE,
    STEPS,
    Chains,
    ChangingMap,
    Model,
    Outcome,
    Program,
    Record,
    build_program,
    change,
    joined,
    outputs_of,
    run,
    touch,
)

SIZES = ((1, 3), (2, 10_000), (7, 3), (2048, 3), (2048, 10_000))
"""(most records in a batch, records in an epoch)"""

RECORDS = st.lists(
    st.tuples(st.just(0), st.builds(Record, st.integers(0, 2), st.integers(0, 5))), min_size=1, max_size=24
)
SOME_ACTIONS = st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=8)
TIMER_ACTIONS = st.lists(st.sampled_from(ACTIONS).filter(lambda action: action != "set-timer"), max_size=8)
CHAIN = st.lists(st.sampled_from(sorted(STEPS)), max_size=2)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@settings(max_examples=25, deadline=None)
@given(SOME_ACTIONS, TIMER_ACTIONS, st.tuples(CHAIN, CHAIN, CHAIN), RECORDS)
def test_programs_agree_with_a_model_that_copies_everything(
    backend: str, actions: list[str], timer_actions: list[str], chains: Chains, records: Any
) -> None:
    expected = Model(Program(actions, timer_actions), chains).run(records)
    build = build_program(Program(actions, timer_actions), chains)
    plan = plan_of(build, **{"state.backend.type": backend})
    for batch, epoch in SIZES:
        assert run(plan, records, batch=batch, epoch=epoch) == expected, (batch, epoch)


# -- operators that fold, window, join and connect: every batch and epoch size gives what single records give ----------


class Reusing(ReduceFunction):
    """Returns one and the same object for all keys."""

    def __init__(self) -> None:
        self.reused = Record(-1, 0)

    def reduce(self, value1: Record, value2: Record) -> Record:
        self.reused.number = value1.number + value2.number
        self.reused.marks = value1.marks + value2.marks
        return self.reused


class InPlace(ReduceFunction):
    def reduce(self, value1: Record, value2: Record) -> Record:
        return joined(value1, value2)


class Collecting(AggregateFunction):
    """One accumulator, made once, for all keys and windows; what it returns is the accumulator."""

    def __init__(self) -> None:
        self.empty: list[Record] = []

    def create_accumulator(self) -> list[Record]:
        return self.empty

    def add(self, value: Record, accumulator: list[Record]) -> list[Record]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Record]) -> list[Record]:
        return accumulator

    def merge(self, acc_a: list[Record], acc_b: list[Record]) -> list[Record]:
        acc_a.extend(acc_b)
        return acc_a


class ChangingWindow(ProcessWindowFunction):
    def open(self, runtime_context: Any) -> None:
        self.reused = Record(-3, 0)

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        for element in elements:
            touch(element)
            yield element
            touch(element)
            change(self.reused, 1)
            yield self.reused


class Both(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))

    def process_element1(self, value: Record, ctx: Any) -> Iterator[Any]:
        self.value.update(value)
        change(value, 1)
        yield value
        change(value, 2)

    def process_element2(self, value: Record, ctx: Any) -> Iterator[Any]:
        yield self.value.value()
        yield SIDE, value
        change(value, 3)
        yield value


class Ruled(KeyedBroadcastProcessFunction):
    def process_broadcast_element(self, value: Record, ctx: Any) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value.key, value)
        change(value, 1)
        change(rules.get(value.key), 2)
        yield value
        change(value, 3)

    def process_element(self, value: Record, ctx: Any) -> Iterator[Any]:
        rule = ctx.get_broadcast_state(RULES).get(value.key)
        yield rule
        if rule is not None:
            change(rule, 4)
        yield value
        change(value, 5)


RULES = MapStateDescriptor("rules")
Keyed = Any


def _windowed(make: Callable[[Keyed], DataStream]) -> Callable[[StreamExecutionEnvironment], DataStream]:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = env.from_collection([Record(0, 0)]).key_by(lambda record: record.key)
        results = make(keyed)
        return results.map(ChangingMap()).rebalance().union(results.rebalance()).map(str)

    return build


def _connected(make: Callable[[Any, Any], DataStream]) -> Callable[[StreamExecutionEnvironment], DataStream]:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        one, other = env.from_collection([Record(0, 0)]), env.from_collection([Record(0, 0)])
        results = make(one, other)
        return results.map(ChangingMap()).rebalance().union(results.rebalance()).map(str)

    return build


def key_of(record: Record) -> int:
    return record.key


TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(40))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20))
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(15))

ONE_INPUT: dict[str, Callable[[Keyed], DataStream]] = {
    "reduce": lambda keyed: keyed.reduce(InPlace()),
    "reduce, reusing": lambda keyed: keyed.reduce(Reusing()),
    **{
        f"{name} {kind}": (lambda keyed, make=make, windows=windows: make(keyed.window(windows)))
        for kind, windows in {"tumbling": TUMBLING, "sliding": SLIDING, "session": SESSIONS}.items()
        for name, make in {
            "reduce": lambda windowed: windowed.reduce(InPlace()),
            "reusing reduce": lambda windowed: windowed.reduce(Reusing()),
            "aggregate": lambda windowed: windowed.aggregate(Collecting()),
            "aggregate and process": lambda windowed: windowed.aggregate(Collecting(), ChangingWindow()),
            "process": lambda windowed: windowed.process(ChangingWindow()),
        }.items()
    },
    "count window": lambda keyed: keyed.count_window(3).process(ChangingWindow()),
}
TWO_INPUTS: dict[str, Callable[[Any, Any], DataStream]] = {
    "co-process": lambda one, other: one.connect(other).key_by(key_of, key_of).process(Both()),
    "broadcast": lambda one, other: one.key_by(key_of).connect(other.broadcast(RULES)).process(Ruled()),
}


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("name", [*ONE_INPUT, *TWO_INPUTS])
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_no_result_depends_on_where_a_batch_or_an_epoch_ends(name: str, backend: str, data: Any) -> None:
    two = name in TWO_INPUTS
    build = _connected(TWO_INPUTS[name]) if two else _windowed(ONE_INPUT[name])
    record = st.builds(Record, st.integers(0, 2), st.integers(0, 5), st.lists(st.integers(0, 1), max_size=1))
    inputs = data.draw(st.lists(st.tuples(st.integers(0, int(two)), record), min_size=6, max_size=24))
    expected = run(plan_of(build), inputs, batch=1, epoch=1)
    plan = plan_of(build, **{"state.backend.type": backend})
    for batch, epoch in SIZES:
        found = run(plan, inputs, batch=batch, epoch=epoch)
        assert sorted_outputs(found) == sorted_outputs(expected), (batch, epoch)
        assert found.state == expected.state, (batch, epoch)


def sorted_outputs(outcome: Outcome) -> dict[int, list[str]]:
    """Keys of a window fire in no defined order."""
    return {edge: sorted(records) for edge, records in outcome.outputs.items()}


def test_a_source_may_keep_what_it_hands_out() -> None:
    shared = [1]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return changed_and_as_it_is(env.from_collection([shared, shared]))

    for outputs in read_twice(build):  # an epoch that is replayed reads the same records again
        assert outputs == {0: ["[1, 2]"] * 2, 1: ["[1]"] * 2}


def reusing() -> Iterator[list[int]]:
    buffer: list[int] = []
    for number in range(3):
        buffer.append(number)
        yield buffer


class Reused:
    def __init__(self) -> None:
        self.buffer: list[int] = []

    def map(self, index: int) -> list[int]:
        self.buffer[:] = range(index + 1)
        return self.buffer


SOURCES: dict[str, Callable[[StreamExecutionEnvironment], DataStream]] = {
    "add_source": lambda env: env.add_source(reusing),
    "generator": lambda env: env.from_source(
        DataGeneratorSource(Reused(), 3), WatermarkStrategy.no_watermarks(), "generated"
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_function_that_makes_records_may_reuse_one_object(name: str, batch: int) -> None:
    for outputs in read_twice(lambda env: changed_and_as_it_is(SOURCES[name](env)), batch):
        assert outputs == {
            0: ["[0, 2]", "[0, 1, 2]", "[0, 1, 2, 2]"],
            1: ["[0]", "[0, 1]", "[0, 1, 2]"],
        }


@pytest.mark.parametrize("gives_away", [True, False])
def test_records_that_a_reader_gives_away_are_not_copied(gives_away: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[Any] = []
    monkeypatch.setattr(source_task, "all_captured", lambda records: copied.extend(records) or records)
    monkeypatch.setattr(RangeReader, "gives_away", gives_away)
    source = NumberSequenceSource(0, 2)
    read_twice(lambda env: env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(str))
    assert copied == ([] if gives_away else [0, 1, 2] * 2)


Build = Callable[[StreamExecutionEnvironment], DataStream]


def changed_and_as_it_is(lists: DataStream) -> DataStream:
    return lists.map(lambda value: value.append(2) or value).rebalance().union(lists.rebalance()).map(str)


def read_twice(build: Build, batch: int = 100) -> list[dict[int, list[str]]]:
    """What the source's stage puts out, per edge: in an epoch, and when the epoch is replayed."""
    plan = plan_of(build)
    base = Base(-1, "start", -1, "start")
    header = EpochHeader(Attempt(1, 0, 0, "run"), base, 0, checkpointing=False, final=False, batch_records=batch)
    progress = SplitSourceProgress(plan.sources[0], None)
    progress.discover(1)
    outputs = []
    for _ in range(2):
        frames: list[bytes] = []
        runner = StageRunner(plan, 0, RunnerIdentity("job", 0), lambda target, frame, kept=frames: kept.append(frame))
        runner.open()
        for task in progress.plan(0, 100, 1, final=False):
            list(run_source_task(runner, task, plan.sources[0], header, Readers()))
        outputs.append(outputs_of(frames))
    return outputs
