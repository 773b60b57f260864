"""What cannot travel is found before the job starts, and named."""

from __future__ import annotations

import re
import socket
import threading
from functools import partial

import cloudpickle
import pytest

from headwater.common.errors import SerializationError
from headwater.datastream import FilterFunction, MapFunction, StreamExecutionEnvironment
from headwater.graph.picklability import explain_unpicklable, is_picklable


class Enricher(MapFunction):
    def __init__(self, client: object) -> None:
        self.client = client

    def map(self, value):
        return value


class Outer:
    def __init__(self, inner: object) -> None:
        self.inner = inner


@pytest.fixture
def client():
    with socket.socket() as connection:
        yield connection


def refused(env: StreamExecutionEnvironment, text: str) -> None:
    with pytest.raises(SerializationError, match=re.escape(text)):
        env._plan("job")


def test_attribute_of_a_function_class_is_named(client):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).map(Enricher(client)).name("enrich").print()
    refused(
        env,
        "operator 'enrich' (map): attribute 'client' of Enricher is a socket, which cannot be pickled; "
        "create it in open()",
    )


def test_variable_of_a_lambda_is_named(client):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).filter(lambda value: client.fileno() > value).print()
    refused(env, "operator 'Filter' (filter): variable 'client' used by a lambda is a socket")


def test_key_selector_is_named_with_its_operator(client):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).key_by(lambda value: client).map(abs).name("m").print()
    refused(env, "key selector of operator 'm' (map): variable 'client'")


def test_a_sink_is_named(client):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).add_sink(lambda value: client.send(value)).name("s")
    refused(env, "operator 's' (sink): variable 'client'")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda bad: Outer(Outer(bad)), "attribute 'inner' of Outer is a lock"),
        (
            lambda bad: Outer([1, {"key": bad}]),
            "entry 'key' of a dict in item 1 of a list in attribute 'inner' of Outer is a lock",
        ),
        (lambda bad: Outer([Outer(bad)]), "attribute 'inner' of Outer is a lock"),
        (lambda bad: [0, bad], "item 1 of a list is a lock"),
        (lambda bad: partial(print, bad), "argument 0 of a functools.partial is a lock"),
        (lambda bad: partial(print, end=bad), "argument 'end' of a functools.partial is a lock"),
        (lambda bad: Enricher(bad).map, "attribute 'client' of Enricher is a lock"),
        (lambda bad: lambda default=bad: default, "default value 0 of a lambda is a lock"),
    ],
)
def test_the_innermost_culprit_is_named(make, text):
    assert text in explain_unpicklable(make(threading.Lock()))


def test_a_global_variable_of_the_program_is_named():
    program: dict[str, object] = {"lock": threading.Lock(), "__name__": "__main__"}
    exec("def locked(value):\n    with lock:\n        return value", program)
    assert "global variable 'lock' used by function 'locked' is a lock" in explain_unpicklable(program["locked"])


def test_cycles_end():
    loop: list[object] = [threading.Lock()]
    loop.append(loop)
    assert "item 0 of a list is a lock" in explain_unpicklable(loop)


def test_an_object_that_refuses_by_itself_is_explained_by_its_own_words():
    class Shy:
        def __reduce__(self):
            raise TypeError("not today")

    assert "cannot be pickled: not today" in explain_unpicklable(Shy())


def test_what_can_be_pickled_needs_no_explanation():
    assert is_picklable(lambda value: value + 1)
    assert explain_unpicklable(Enricher(None)) is None


def test_a_plan_survives_pickling():
    class Even(FilterFunction):
        def filter(self, value):
            return value % 2 == 0

    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([("a", 1)]).key_by(0).filter(Even()).print()
    plan = cloudpickle.loads(cloudpickle.dumps(env._plan("job")[0]))
    assert plan.stages[1].operators[0].inputs[0].key_selector(("a", 1)) == "a"
    assert plan.stages[1].operators[0].factory() is not plan.stages[1].operators[0].factory()
