"""The job graph: which operators make a vertex, what it is called, and that its id lasts."""

from __future__ import annotations

import pytest

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.runtime.job.vertices import Vertex, plan_json, vertex_id, vertices_of


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def numbers(env: StreamExecutionEnvironment, name: str = "Numbers") -> DataStream:
    return env.from_source(NumberSequenceSource(1, 10), WatermarkStrategy.no_watermarks(), name)


def vertices(env: StreamExecutionEnvironment) -> dict[str, Vertex]:
    return {vertex.name: vertex for vertex in vertices_of(env._plan("job")[0])}


def arrows(env: StreamExecutionEnvironment) -> dict[str, list[tuple[str, str]]]:
    """{vertex: [(vertex upstream, ship strategy)]}, by name."""
    found = vertices(env)
    names = {vertex.id: name for name, vertex in found.items()}
    assert len(names) == len(found)
    return {
        name: [(names[each.vertex], each.ship_strategy) for each in vertex.inputs] for name, vertex in found.items()
    }


class Sum(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def test_operators_without_a_shuffle_between_them_are_one_vertex(env):
    numbers(env).map(abs).name("Absolute").key_by(lambda x: x % 3).process(Sum()).name("Sum").print().name("Print")
    assert arrows(env) == {
        "Source: Numbers -> Absolute": [],
        "Sum -> Sink: Print": [("Source: Numbers -> Absolute", "HASH")],
    }
    by_key = vertices(env)["Sum -> Sink: Print"]
    assert (by_key.stage, by_key.parallelism, by_key.max_parallelism) == (1, 2, 128)
    assert [operator.name for operator in by_key.operators] == ["Sum", "Sink: Print"]


def test_a_fork_within_a_chain_is_in_brackets(env):
    mapped = numbers(env).map(abs).name("Absolute")
    mapped.filter(bool).name("Not zero").print().name("A")
    mapped.print().name("B")
    assert list(vertices(env)) == ["Source: Numbers -> Absolute -> (Not zero -> Sink: A, Sink: B)"]


def test_an_operator_with_two_inputs_begins_a_vertex_even_where_no_shuffle_is_needed(env):
    numbers(env, "A").union(numbers(env, "B").map(abs).name("Absolute")).map(abs).name("Both").print().name("P")
    assert arrows(env) == {
        "Source: A": [],
        "Source: B -> Absolute": [],
        "Both -> Sink: P": [("Source: A", "FORWARD"), ("Source: B -> Absolute", "FORWARD")],
    }
    assert {vertex.stage for vertex in vertices(env).values()} == {0}


def test_exchanges_have_flinks_names(env):
    stream = numbers(env).rebalance().map(abs).name("a").broadcast().map(abs).name("b")
    stream.rescale().map(abs).name("c").global_().print().name("d")
    assert [each[0][1] for each in list(arrows(env).values())[1:]] == ["REBALANCE", "BROADCAST", "RESCALE", "GLOBAL"]


def test_checks_of_declared_types_are_not_seen(env):
    tag = OutputTag("odd", Types.LONG())
    typed = numbers(env).map(abs, Types.LONG()).name("Absolute").process(_Split(tag)).name("Split")
    typed.get_side_output(tag).print().name("Odd")
    typed.map(abs, Types.LONG()).name("Again").print().name("Even")
    assert list(vertices(env)) == ["Source: Numbers -> Absolute -> Split -> (Sink: Odd, Again -> Sink: Even)"]


class _Split(ProcessFunction):
    def __init__(self, tag):
        self._tag = tag

    def process_element(self, value, ctx):
        yield value


def test_ids_stay_when_other_parts_of_the_job_change():
    def ids(parallelism: int, *, more: bool) -> dict[str, str]:
        env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(parallelism)
        stream = numbers(env).uid("numbers").key_by(abs).process(Sum()).uid("sum").name("Sum")
        if more:
            numbers(env, "Other").print()
        stream.print().name("P")
        return {vertex.operators[0].name: vertex.id for vertex in vertices(env).values()}

    before, after = ids(1, more=False), ids(3, more=True)
    assert before.items() <= after.items()
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in after.values())


def test_a_uid_hash_is_the_id(env):
    given = "0123456789ABCDEF0123456789abcdef"
    numbers(env).set_uid_hash(given).print()
    assert next(iter(vertices(env).values())).id == given.lower()
    assert vertex_id("sum") != vertex_id("Sum")


def test_the_plan_has_the_shape_of_flinks_rest(env):
    numbers(env).map(abs).name("Absolute").key_by(abs).process(Sum()).name("Sum").print().name("P")
    plan = plan_json(env._plan("job")[0], "f" * 32)
    first, second = plan["nodes"]
    assert (plan["jid"], plan["name"], plan["type"]) == ("f" * 32, "job", "STREAMING")
    assert "inputs" not in first
    assert second["inputs"] == [
        {"num": 0, "id": first["id"], "ship_strategy": "HASH", "exchange": "pipelined_bounded"},
    ]
    assert second["description"] == "Sum<br/>+- Sink: P"
