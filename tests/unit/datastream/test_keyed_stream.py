"""Keyed streams: which operators they add, by which key, and whether those need a slot."""

from __future__ import annotations

import math

import pytest

from headwater.common import Row, Types
from headwater.common.errors import TypeMismatchError
from headwater.datastream import (
    KeyedProcessFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from headwater.graph.plan import Exchange, JobPlan, OperatorSpec
from headwater.operators.aggregate import KeyedAggregateOperator
from headwater.operators.filter import FilterOperator, KeyedFilterOperator
from headwater.operators.flat_map import FlatMapOperator, KeyedFlatMapOperator
from headwater.operators.map import KeyedMapOperator, MapOperator
from headwater.operators.process import KeyedProcessOperator
from headwater.operators.reduce import KeyedReduceOperator
from tests.unit.datastream.plain_functions import First, Identity, Keep, Twice


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Pass(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class WithTimer(Pass):
    def on_timer(self, timestamp, ctx):
        yield timestamp


class LooksLikeOne:
    def open(self, runtime_context):
        pass

    def close(self):
        pass

    def process_element(self, value, ctx):
        yield value


def plan_of(env: StreamExecutionEnvironment) -> JobPlan:
    return env._plan("job")[0]


def keyed_operator(env: StreamExecutionEnvironment) -> OperatorSpec:
    return plan_of(env).stages[1].operators[0]


@pytest.mark.parametrize(
    ("build", "name", "operator", "slot"),
    [
        (lambda s: s.map(Identity()), "Map", KeyedMapOperator, True),
        (lambda s: s.map(lambda v: v), "Map", MapOperator, False),
        (lambda s: s.flat_map(Twice()), "FlatMap", KeyedFlatMapOperator, True),
        (lambda s: s.flat_map(lambda v: [v]), "FlatMap", FlatMapOperator, False),
        (lambda s: s.filter(Keep()), "Filter", KeyedFilterOperator, True),
        (lambda s: s.filter(lambda v: True), "Filter", FilterOperator, False),
        (lambda s: s.process(Pass()), "KEYED PROCESS", KeyedProcessOperator, True),
        (lambda s: s.process(lambda value, ctx: [value]), "KEYED PROCESS", KeyedProcessOperator, True),
        (lambda s: s.process(LooksLikeOne()), "KEYED PROCESS", KeyedProcessOperator, True),
        (lambda s: s.reduce(Larger()), "Reduce", KeyedReduceOperator, True),
        (lambda s: s.reduce(max), "Reduce", KeyedReduceOperator, True),
        (lambda s: s.sum(1), "Reduce", KeyedAggregateOperator, True),
        (lambda s: s.min(1), "Reduce", KeyedAggregateOperator, True),
        (lambda s: s.max(1), "Reduce", KeyedAggregateOperator, True),
        (lambda s: s.min_by(1), "Reduce", KeyedAggregateOperator, True),
        (lambda s: s.max_by(), "Reduce", KeyedAggregateOperator, True),
    ],
)
def test_operators(env, build, name, operator, slot):
    build(env.from_collection([("a", 1)]).key_by(First())).print()
    spec = keyed_operator(env)
    (edge,) = spec.inputs
    assert spec.name == name
    assert isinstance(spec.factory(), operator)
    assert spec.keyed is spec.needs_slot is slot
    assert edge.exchange is Exchange.HASH and not edge.chained
    assert edge.key_selector(("a", 1)) == "a"


@pytest.mark.parametrize(
    ("selector", "record", "key"),
    [
        (lambda v: v[1], ("a", 1), 1),
        (First(), ("a", 1), "a"),
        (1, ("a", 1), 1),
        (-1, ("a", 1), 1),
        ("name", Row(name="x", age=2), "x"),
        ("name", {"name": "x"}, "x"),
        (str, 5, "5"),
    ],
)
def test_ways_to_name_a_key(env, selector, record, key):
    env.from_collection([record]).key_by(selector).reduce(lambda one, other: one).print()
    assert keyed_operator(env).inputs[0].key_selector(record) == key


def test_the_last_key_by_counts(env):
    env.from_collection([("a", 1)]).key_by(0).key_by(1).sum(0).print()
    plan = plan_of(env)
    assert len(plan.stages) == 2
    assert plan.stages[1].operators[0].inputs[0].key_selector(("a", 1)) == 1


def test_declared_key_types_are_checked_but_do_not_change_the_key(env):
    env.from_collection([("a", 1)]).key_by(1, key_type=Types.DOUBLE()).sum(1).print()
    key_of = keyed_operator(env).inputs[0].key_selector
    assert type(key_of(("a", 1))) is int
    with pytest.raises(TypeMismatchError, match=r"key 'b' of record \('a', 'b'\): .*DOUBLE"):
        key_of(("a", "b"))


def test_a_key_type_that_says_nothing_costs_nothing(env):
    def key(value):
        return value[0]

    env.from_collection([("a", 1)]).key_by(key, key_type=Types.PICKLED_BYTE_ARRAY()).sum(1).print()
    assert keyed_operator(env).inputs[0].key_selector is key


@pytest.mark.parametrize(("function", "ticks"), [(Pass(), False), (WithTimer(), True), (LooksLikeOne(), False)])
def test_only_functions_with_on_timer_need_time_to_pass(env, function, ticks):
    env.from_collection([math.pi]).key_by(lambda v: v).process(function).print()
    assert plan_of(env).needs_ticks is ticks


def test_a_plain_function_sees_value_and_context(env):
    def emit(value, ctx):
        yield (value, ctx)

    env.from_collection([1]).key_by(lambda v: v).process(emit).print()
    operator = keyed_operator(env).factory()
    assert list(operator.function.process_element(1, "context")) == [(1, "context")]


def test_sinks_and_unions_of_keyed_streams_stay_partitioned(env):
    keyed = env.from_collection([("a", 1)]).key_by(0)
    keyed.print()
    keyed.union(env.from_collection([("b", 1)])).map(str).print()
    plan = plan_of(env)
    assert [edge.exchange for op in plan.stages[1].operators for edge in op.inputs if not edge.chained] == [
        Exchange.HASH,
        Exchange.HASH,
        Exchange.REBALANCE,
    ]
