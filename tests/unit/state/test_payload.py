"""Bytes of sections, and errors that name the culprit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwater.common.errors import SerializationError, StateError
from headwater.state.snapshot import payload


@dataclass
class Enricher:
    name: str = "geo"
    client: Any = field(default_factory=threading.Lock)


def test_round_trip() -> None:
    entries = ([1, "a", ("b", 2)], [None, [1, {"x": {1}}], b"c"], [])
    data = payload.encode(("value", False, False), entries, "uid", "state")
    assert payload.decode(data, "uid", "state") == (("value", False, False), entries)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Enricher(), "attribute 'client' of Enricher is a lock"),
        ({"a": 1, "b": [0, threading.Lock()]}, r"\['b'\]\[1\] is a lock"),
        (threading.Lock(), "the value is a lock"),
        ((i for i in ()), "the value is a generator"),
    ],
    ids=["attribute", "nested", "itself", "generator"],
)
def test_what_cannot_be_pickled_is_named(value: Any, expected: str) -> None:
    with pytest.raises(SerializationError, match=f"state 'cache' of operator 'enrich'.*{expected}"):
        payload.encode(("value",), (["k1", "k2"], ["fine", value], []), "enrich", "cache")


_WRITER = """
import sys
from dataclasses import dataclass
from headwater.state.snapshot import payload

def make():
    @dataclass
    class Local:
        x: int
    return Local

sys.stdout.buffer.write(payload.encode(("value",), ([1], [make()(5)], []), "u", "s"))
"""


def test_classes_that_no_module_has_are_stored_by_value() -> None:
    written = subprocess.run(
        [sys.executable, "-c", _WRITER],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    ).stdout
    _, (_, values, _) = payload.decode(written, "u", "s")
    assert values[0].x == 5


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(SerializationError, match="state 's' of operator 'u' cannot be read"):
        payload.decode(b"nonsense", "u", "s")


@pytest.mark.parametrize("content", [(2, (), ()), (), [], "x"], ids=repr)
def test_another_format_is_refused(content: Any) -> None:
    with pytest.raises(StateError, match="written by another version"):
        payload.decode(pickle.dumps(content), "u", "s")


@dataclass
class Point:
    x: int
    y: int = 0


def test_builtin_values_are_stored_as_they_always_were() -> None:
    content = (["k"], [{"a": [1, 2.5, ("x", None)]}], [])
    assert payload.encode(("value",), content, "u", "s") == pickle.dumps((1, ("value",), content), 5)


def test_payloads_with_and_without_schemas_can_both_be_read() -> None:
    entries = (["k"], [Point(1, 2)], [])
    old = pickle.dumps((1, ("value",), entries), 5)
    new = payload.encode(("value",), entries, "u", "s")
    assert new.startswith(old) and len(new) > len(old)
    assert payload.decode(old, "u", "s") == payload.decode(new, "u", "s") == (("value",), entries)
    assert pickle.loads(new) == (1, ("value",), entries), "as a reader that knows no schemas would"
    (schema,) = payload.stored_schemas(new)
    assert (schema.qualname, schema.fields) == ("Point", (("x", "int"), ("y", "int")))


_MAIN = """
import pickle, sys
from dataclasses import dataclass, field
import cloudpickle
from headwater.state.evolution.schema import schema_of

@dataclass{form}
class Thing:
    a: int
    tags: list[str] = field(default_factory=list)

sys.stdout.buffer.write(pickle.dumps((tuple(schema_of(Thing)), cloudpickle.dumps(Thing))))
"""


@pytest.mark.parametrize("form", ["", "(slots=True)", "(frozen=True)", "(frozen=True, slots=True)"])
def test_a_class_of_the_script_has_the_same_schema_in_a_slot(form: str) -> None:
    """There it arrives by value: what tells fields, defaults and slots apart must survive that."""
    from headwater.state.evolution import changed_classes as evolution
    from headwater.state.evolution.schema import schema_of

    written = subprocess.run(
        [sys.executable, "-c", _MAIN.replace("{form}", form)],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    ).stdout
    schema, by_value = pickle.loads(written)
    thing = pickle.loads(by_value)
    found = schema_of(thing)
    assert found is not None and found.fields == schema[3]
    assert found.kind == schema[2].replace("dataclass with slots", "dataclass") or "frozen" in found.kind
    assert list(evolution._defaults(thing)) == ["tags"]
