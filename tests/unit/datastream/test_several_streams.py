"""connect, broadcast, joins and asynchronous requests: what they add to the plan, and what they refuse."""

from __future__ import annotations

from datetime import timedelta
from textwrap import dedent
from typing import Any

import pytest

from headwater.common import Time, Types
from headwater.common.errors import ConfigurationError, PlanError, TypeMismatchError
from headwater.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    BroadcastStream,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    ConnectedStreams,
    CoProcessFunction,
    FlatJoinFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
    OutputTag,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.graph.describe import to_text
from headwater.graph.plan import OperatorSpec
from headwater.operators.async_io.wait import AsyncWaitOperator
from headwater.operators.join.interval_join import IntervalJoinOperator
from headwater.testing import OneInputOperatorHarness, TwoInputOperatorHarness

RULES = MapStateDescriptor("rules")
Env = StreamExecutionEnvironment


@pytest.fixture
def env() -> Env:
    return Env.get_execution_environment().set_parallelism(2)


def shape(env: Env) -> str:
    return to_text(env._plan("job")[0])


def operator(env: Env, name: str) -> OperatorSpec:
    return next(op for stage in env._plan("job")[0].stages for op in stage.operators if op.name == name)


class CoMap(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


class CoFlatMap(CoFlatMapFunction):
    def flat_map1(self, value):
        yield 1, value

    def flat_map2(self, value):
        yield 2, value


class CoProcess(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value

    def process_element2(self, value, ctx):
        yield 2, value


class KeyedCoProcess(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, ctx.get_current_key()

    def process_element2(self, value, ctx):
        yield 2, ctx.get_current_key()


class WithTimer(KeyedCoProcess):
    def on_timer(self, timestamp, ctx):
        yield timestamp


class Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, sorted(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, True)


class KeyedRules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), sorted(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, True)


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


class Lookup(AsyncFunction):
    async def async_invoke(self, value):
        return [value * 10]


# --- connect


def test_two_sources_meet_in_a_stage_of_their_own(env):
    env.from_collection([1]).connect(env.from_collection([2])).map(CoMap()).name("both").print()
    assert shape(env) == dedent(
        """
        stage 0 x1
          0 Collection x1
          1 Collection x1
        stage 1 x2 slots
          2 both x2 slot <- 0 rebalance, 1 rebalance
          3 Print to Std. Out x2 <- 2 chained
        """
    ).strip().replace("Collection", operator_name_of_collection(env))


def operator_name_of_collection(env: Env) -> str:
    return env._plan("job")[0].sources[0].name


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda both: both.map(CoMap()), "Co-Map"),
        (lambda both: both.flat_map(CoFlatMap()), "Co-Flat Map"),
        (lambda both: both.process(CoProcess()), "Co-Process"),
    ],
)
def test_connected_streams_run_what_they_are_given(env, build, name):
    build(env.from_collection([1]).connect(env.from_collection([2]))).print()
    spec = operator(env, name)
    assert (spec.keyed, spec.needs_slot) == (False, True)
    assert [(item.upstream, item.input_index) for item in spec.inputs] == [(0, 0), (1, 1)]
    harness = TwoInputOperatorHarness(spec.factory())
    harness.process_element1("a")
    harness.process_element2("b")
    assert harness.get_output() == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("build", "name", "expected"),
    [
        (lambda both: both.map(CoMap()), "Co-Map", [(1, ("k", 7)), (2, (7, "k"))]),
        (lambda both: both.flat_map(CoFlatMap()), "Co-Flat Map", [(1, ("k", 7)), (2, (7, "k"))]),
        (lambda both: both.process(CoProcess()), "Keyed Co-Process", [(1, ("k", 7)), (2, (7, "k"))]),
        (lambda both: both.process(KeyedCoProcess()), "Keyed Co-Process", [(1, "k"), (2, "k")]),
    ],
)
@pytest.mark.parametrize("keyed_first", [True, False])
def test_keyed_connected_streams(env, build, name, expected, keyed_first):
    one, two = env.from_collection([("k", 7)]), env.from_collection([(7, "k")])
    both = one.key_by(0).connect(two.key_by(1)) if keyed_first else one.connect(two).key_by(0, 1)
    build(both).print()
    spec = operator(env, name)
    assert (spec.keyed, spec.needs_slot) == (True, True)
    assert [item.exchange.value for item in spec.inputs] == ["hash", "hash"]
    harness = TwoInputOperatorHarness(spec.factory(), tuple(item.key_selector for item in spec.inputs))
    harness.process_element1(("k", 7))
    harness.process_element2((7, "k"))
    assert harness.get_output() == expected


def test_timers_need_ticks(env):
    numbers = env.from_collection([1]).key_by(abs)
    numbers.connect(numbers).process(KeyedCoProcess()).print()
    assert not env._plan("job")[0].needs_ticks
    numbers.connect(numbers).process(WithTimer()).print()
    assert env._plan("job")[0].needs_ticks


def test_a_declared_output_type_is_checked(env):
    numbers = env.from_collection([1])
    stream = numbers.connect(numbers).map(CoMap(), output_type=Types.STRING())
    stream.print()
    assert stream.get_type() == Types.STRING()
    assert "Type-Check" in shape(env)


# --- broadcast


def test_a_broadcast_stream_is_read_first(env):
    rules = env.from_collection(["r"]).broadcast(RULES)
    assert isinstance(rules, BroadcastStream)
    env.from_collection([1]).connect(rules).process(Rules()).print()
    spec = operator(env, "Co-Process-Broadcast")
    assert [(item.exchange.value, item.input_index) for item in spec.inputs] == [("broadcast", 0), ("rebalance", 1)]
    assert (spec.keyed, spec.needs_slot) == (False, True)
    harness = TwoInputOperatorHarness(spec.factory())
    harness.process_element2("r")
    harness.process_element1(1)
    assert harness.get_output() == [(1, ["r"])]


def test_a_broadcast_stream_and_a_keyed_one(env):
    rules = env.from_collection(["r"]).broadcast(RULES, MapStateDescriptor("more"))
    connected = env.from_collection([-1]).key_by(abs).connect(rules)
    assert isinstance(connected, BroadcastConnectedStream)
    connected.process(KeyedRules(), output_type=Types.PICKLED_BYTE_ARRAY()).print()
    spec = operator(env, "Keyed-Co-Process-Broadcast")
    assert [item.exchange.value for item in spec.inputs] == ["broadcast", "hash"]
    harness = TwoInputOperatorHarness(spec.factory(), (abs, None))
    harness.process_element2("r")
    harness.process_element1(-1)
    assert harness.get_output() == [(1, ["r"])]


# --- joins


def joined(env: Env, change: Any = lambda join: join) -> TwoInputOperatorHarness:
    one, two = env.from_collection([("k", 7)]).key_by(0), env.from_collection([(7, "k")]).key_by(1)
    change(one.interval_join(two).between(Time.seconds(-1), timedelta(seconds=2))).process(Pair()).print()
    spec = operator(env, "Interval Join")
    assert (spec.keyed, spec.needs_slot) == (True, True)
    made = spec.factory()
    assert isinstance(made, IntervalJoinOperator)
    return TwoInputOperatorHarness(made, tuple(item.key_selector for item in spec.inputs))


def test_an_interval_join_reads_both_keyed_streams(env):
    harness = joined(env)
    harness.process_element1(("k", "left"), 5000)
    for time in (3999, 4000, 7000, 7001):
        harness.process_element2((time, "k"), time)
    harness.end_input()
    assert harness.get_output() == [(("k", "left"), (4000, "k")), (("k", "left"), (7000, "k"))]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda join: join.lower_bound_exclusive(), [("L", 2000)]),
        (lambda join: join.upper_bound_exclusive(), [("L", -1000)]),
        (lambda join: join.left_outer(), [("L", -1000), ("L", 2000), ("alone", None)]),
        (lambda join: join.right_outer(), [("L", -1000), ("L", 2000), (None, 9000)]),
        (lambda join: join.full_outer(), [("L", -1000), ("L", 2000), ("alone", None), (None, 9000)]),
    ],
)
def test_bounds_and_outer_joins(env, change, expected):
    harness = joined(env, change)
    harness.process_elements1([("k", "L"), ("k", "alone")], [0, 50_000])
    harness.process_elements2([(time, "k") for time in (-1000, 2000, 9000)], [-1000, 2000, 9000])
    harness.end_input()
    found = [(left and left[1], right and right[0]) for left, right in harness.get_output()]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_late_records_of_an_interval_join(env):
    late = OutputTag("late")
    harness = joined(env, lambda join: join.side_output_left_late_data(late).side_output_right_late_data(late))
    harness.process_watermark(100)
    harness.process_element1(("k", 1), 0)
    harness.process_element2((2, "k"), 0)
    assert harness.get_side_output(late) == [("k", 1), (2, "k")]


class Joined(JoinFunction):
    def open(self, runtime_context):
        self.sign = "+"

    def join(self, first, second):
        return f"{first[1]}{self.sign}{second[0]}"


class Twice(FlatJoinFunction):
    def join(self, first, second):
        yield first[1]
        yield second[0]


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield [value for _, value in first], [value for value, _ in second]


WINDOW = TumblingEventTimeWindows.of(Time.seconds(1))


@pytest.mark.parametrize(
    ("method", "function", "expected"),
    [
        ("join", Joined(), ["a+x", "a+y", "b+x", "b+y"]),
        ("join", lambda first, second: (first[1], second[0]), [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]),
        ("join", Twice(), ["a", "x", "a", "y", "b", "x", "b", "y"]),
        ("co_group", Groups(), [(["a", "b"], ["x", "y"]), (["c"], []), ([], ["z"])]),
        ("co_group", lambda first, second: [len(first) + len(second)], [4, 1, 1]),
    ],
)
@pytest.mark.parametrize("keyed", [False, True])
def test_window_joins(env, method, function, expected, keyed):
    one, two = env.from_collection([("k", "a")]), env.from_collection([("x", "k")])
    if keyed:  # makes no difference: where() and equal_to() say by what
        one, two = one.key_by(1), two.key_by(0)
    getattr(one, method)(two).where(0).equal_to(1).window(WINDOW).apply(function).print()
    plan = env._plan("job")[0]
    tags = {op.id: op.factory() for op in plan.stages[0].operators}
    assert len(tags) == 2
    window = plan.stages[1].operators[0]
    assert window.name == {"join": "Window Join", "co_group": "Window CoGroup"}[method]
    harness = OneInputOperatorHarness(window.factory(), window.inputs[0].key_selector)
    for side, records in enumerate(([("k", "a"), ("k", "b"), ("other", "c")], [("x", "k"), ("y", "k")])):
        harness.process_elements([(side, record) for record in records], [100] * len(records))
    harness.process_element((1, ("z", "k")), 1500)
    harness.end_input()
    assert harness.get_output() == expected
    assert harness.get_output_with_timestamps()[0][1] == 999


def test_a_window_join_takes_what_windows_take(env):
    late = OutputTag("late")
    one, two = env.from_collection([("k", "a")]), env.from_collection([("x", "k")])
    with_window = one.join(two).where(0, Types.STRING()).equal_to(1).window(WINDOW)
    with_window.allowed_lateness(500).side_output_late_data(late).apply(Joined()).print()
    window = env._plan("job")[0].stages[1].operators[0]
    harness = OneInputOperatorHarness(window.factory(), window.inputs[0].key_selector)
    harness.process_elements([(0, ("k", "a")), (1, ("x", "k"))], [0, 0])
    harness.process_watermark(1200)
    harness.process_element((1, ("late", "k")), 10)
    harness.process_watermark(2000)
    harness.process_element((1, ("too late", "k")), 10)
    assert harness.get_output() == ["a+x", "a+x", "a+late"]
    assert harness.get_side_output(late) == [(1, ("too late", "k"))]


# --- asynchronous requests


@pytest.mark.parametrize("method", ["ordered_wait", "unordered_wait"])
@pytest.mark.parametrize("retry", [False, True])
def test_asynchronous_requests(env, method, retry):
    numbers = env.from_collection([1])
    if retry:
        strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, None)
        wait = getattr(AsyncDataStream, f"{method}_with_retry")
        stream = wait(numbers, Lookup(), Time.seconds(5), strategy, 3, Types.INT())
    else:
        stream = getattr(AsyncDataStream, method)(numbers, Lookup(), Time.seconds(5), 3, Types.INT())
    stream.print()
    made = operator(env, "async wait operator").factory()
    assert isinstance(made, AsyncWaitOperator)
    assert (made._settings.timeout_ms, made._settings.capacity) == (5000, 3)
    assert made._settings.ordered == (method == "ordered_wait")
    with OneInputOperatorHarness(made) as harness:
        harness.process_elements([1, 2])
        assert sorted(harness.get_output()) == [10, 20]


# --- refusals


class NotAsync(AsyncFunction):
    def async_invoke(self, value):
        return [value]


class Strange(AsyncRetryStrategy):
    def can_retry(self, current_attempts):
        return False

    def get_backoff_time_millis(self, current_attempts):
        return 1

    def get_retry_predicate(self):
        return None


def with_ttl() -> MapStateDescriptor:
    descriptor = MapStateDescriptor("short-lived")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(1000).build())
    return descriptor


def generator_join(first, second):
    yield first


RETRY = AsyncRetryStrategy.fixed_delay(1, 1, None, None)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.connect(7), r"connect\(\) expects a stream, found 7"),
        (lambda s: s.connect(s).map(MapFunction), "CoMapFunction, found the class MapFunction; did you forget to call"),
        (lambda s: s.connect(s).map(lambda v: v), r"map\(\) expects a CoMapFunction, found <function"),
        (lambda s: s.connect(s).flat_map(CoMap()), "expects a CoFlatMapFunction, found a CoMapFunction"),
        (lambda s: s.connect(s).process(KeyedCoProcess()), r"the streams are not keyed; call key_by\(...\) on both"),
        (lambda s: s.key_by(abs).connect(s).process(KeyedCoProcess()), "the second stream is not keyed"),
        (lambda s: s.connect(s.key_by(abs)).process(KeyedCoProcess()), "the first stream is not keyed"),
        (lambda s: s.connect(s).map(CoMap(), output_type=int), "must be a TypeInformation"),
        (lambda s: s.broadcast("rules"), "expects MapStateDescriptors, found 'rules'"),
        (lambda s: s.broadcast(ValueStateDescriptor("v")), "expects MapStateDescriptors"),
        (lambda s: s.connect(s.broadcast(RULES)).process(CoProcess()), "BroadcastProcessFunction or a Keyed"),
        (lambda s: s.connect(s.broadcast(RULES)).process(KeyedRules()), "but the stream is not keyed"),
        (lambda s: s.key_by(abs).connect(s.broadcast(RULES)).process(Rules()), "but the stream is keyed"),
        (lambda s: s.key_by(abs).interval_join(s), "expects a keyed stream"),
        (lambda s: s.key_by(abs).interval_join(7), "expects a stream, found 7"),
        (
            lambda s: s.key_by(abs).interval_join(s.key_by(abs)).between(0, 1).process(CoMap()),
            "expects a function or a ProcessJoinFunction, found a CoMapFunction",
        ),
        (
            lambda s: s.key_by(abs).interval_join(s.key_by(abs)).between(0, 1).side_output_left_late_data("late"),
            "expects an OutputTag",
        ),
        (lambda s: s.join(s).where(abs).equal_to(abs).window(5), "expects a WindowAssigner, found 5"),
        (lambda s: s.join(s).where(object()), r"where\(\) expects a function"),
        (lambda s: s.join(s).where(abs).equal_to(None), r"equal_to\(\) expects a function"),
        (lambda s: s.join(s).where(abs).equal_to(abs).window(WINDOW).apply(7), "expects a function or a JoinFunction"),
        (
            lambda s: s.join(s).where(abs).equal_to(abs).window(WINDOW).apply(generator_join),
            "wants one result; use a FlatJoinFunction",
        ),
        (lambda s: s.co_group(s).where(abs).equal_to(abs).window(WINDOW).apply(Joined()), "CoGroupFunction, found a J"),
        (lambda s: AsyncDataStream.ordered_wait(7, Lookup(), 1), "expects a stream, found 7"),
        (lambda s: AsyncDataStream.ordered_wait(s, NotAsync(), 1), "NotAsync.async_invoke must be declared as 'async"),
        (lambda s: AsyncDataStream.ordered_wait(s, Lookup, 1), "found the class Lookup; did you forget to call it"),
        (lambda s: AsyncDataStream.ordered_wait(s, Lookup(), 1, 0), "capacity of an async wait.*at least 1, found 0"),
        (lambda s: AsyncDataStream.ordered_wait_with_retry(s, Lookup(), 1, None), "expected an AsyncRetryStrategy"),
    ],
)
def test_wrong_arguments(env, build, message):
    with pytest.raises(TypeMismatchError, match=message):
        build(env.from_collection([1]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.connect(Env().from_collection([1])), "streams of two environments"),
        (
            lambda s: s.key_by(abs, Types.INT()).connect(s.key_by(str, Types.STRING())),
            "first stream are declared as .*, those of the second as .*bring both to one type",
        ),
        (
            lambda s: s.key_by(abs, Types.INT()).interval_join(s.key_by(str, Types.STRING())),
            "records meet if their keys are equal",
        ),
        (lambda s: s.key_by(abs).broadcast(RULES), "would tear its keys apart"),
        (lambda s: s.broadcast(RULES, MapStateDescriptor("rules")), "two states are named 'rules'"),
        (lambda s: s.broadcast(with_ttl()), "'short-lived' has a TTL"),
        (lambda s: s.connect(Env().from_collection([1]).broadcast(RULES)), "streams of two environments"),
        (lambda s: s.key_by(abs).interval_join(s.key_by(abs)).between(5, -5), "is above the upper bound"),
        (
            lambda s: s.key_by(abs).interval_join(s.key_by(abs)).between(5, 5).lower_bound_exclusive(),
            "the lower bound, 6 ms, is above the upper bound, 5 ms",
        ),
        (lambda s: AsyncDataStream.ordered_wait_with_retry(s, Lookup(), 0, RETRY), "need a timeout above zero"),
        (lambda s: AsyncDataStream.ordered_wait_with_retry(s, Lookup(), 1, Strange()), "Strange.get_retry_predicate"),
    ],
)
def test_graphs_that_make_no_sense(env, build, message):
    with pytest.raises(PlanError, match=message):
        build(env.from_collection([1]))


def test_bad_durations(env):
    numbers = env.from_collection([1])
    with pytest.raises(ConfigurationError, match=r"between\(\): lower_bound: expected a Duration"):
        numbers.key_by(abs).interval_join(numbers.key_by(abs)).between("5s", 5)
    with pytest.raises(ConfigurationError, match="timeout: expected at least 0 ms, found -1 ms"):
        AsyncDataStream.unordered_wait(numbers, Lookup(), -1)


def test_connect_gives_connected_streams(env):
    assert isinstance(env.from_collection([1]).connect(env.from_collection([2])), ConnectedStreams)
