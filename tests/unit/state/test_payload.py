"""Bytes of sections, and errors that name the culprit."""

from __future__ import annotations

import pickle
import pickletools
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from headwater.common.errors import SerializationError, StateError
from headwater.state.restricted import StandIns
from headwater.state.snapshot import payload
from headwater.state.snapshot.entries import TIMERS, MapEntries, ValueEntries
from headwater.state.snapshot.layout import StateLayout

LAYOUT = StateLayout("value", ttl=False, namespaced=False)


@dataclass
class Enricher:
    name: str = "geo"
    client: Any = field(default_factory=threading.Lock)


def test_round_trip() -> None:
    entries = ValueEntries([1, "a", ("b", 2)], [None, [1, {"x": {1}}], b"c"])
    data = payload.encode(LAYOUT, entries, "uid", "state")
    assert payload.decode(data, "uid", "state") == (LAYOUT, entries, ())


KEYS = {1: ["a", ("b", 2), 3], 2: [("a", 0), (("b", 2), 60_000)], 3: [(5, "a", None), (-6, ("b", 2), "w")]}


@pytest.mark.parametrize(
    ("kind", "width", "content"),
    [
        ("value", 1, [(1, 2), "x", None]),
        ("value", 2, [(1, 2), (3, 4)]),
        ("folded panes", 2, [1, 2]),
        (TIMERS, 3, [1 << 15, 2 << 15]),
    ],
)
@pytest.mark.parametrize("times", [1, 20], ids=["few", "many"])
def test_keys_of_several_parts_are_stored_as_columns(kind: str, width: int, content: list[Any], times: int) -> None:
    layout = StateLayout(kind, ttl=False, namespaced=width == 2)
    keys, deleted = KEYS[width] * times, KEYS[width][:1] * times
    entries = ValueEntries(keys, content * times, deleted)
    data = payload.encode(layout, entries, "u", "s")
    assert payload.decode(data, "u", "s") == (layout, entries, ())
    if width > 1:
        assert pickle.loads(data)[2][0] == tuple(map(list, zip(*keys, strict=True)))
    nothing = ValueEntries([], [], deleted)
    assert payload.decode(payload.encode(layout, nothing, "u", "s"), "u", "s").entries == nothing


def test_rows_that_share_nothing_are_written_without_a_memo() -> None:
    layout = StateLayout("map", ttl=False, namespaced=False)
    plain = MapEntries.of_maps(list(range(20)), [{(n, f"x{n}"): (1, 0)} for n in range(20)])
    data = payload.encode(layout, plain, "u", "s", unshared=True)
    assert "MEMOIZE" not in {operation.name for operation, _, _ in pickletools.genops(data)}
    assert payload.decode(data, "u", "s") == (layout, plain, ())
    objects = MapEntries.of_maps(list(range(20)), [{(n, Decimal(n)): (1, 0)} for n in range(20)])
    data = payload.encode(layout, objects, "u", "s", unshared=True)
    assert data.count(b"Decimal") == 1
    assert payload.decode(data, "u", "s") == (layout, objects, ())


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
        payload.encode(LAYOUT, ValueEntries(["k1", "k2"], ["fine", value]), "enrich", "cache")


def test_what_cannot_be_pickled_in_a_changed_map_is_named() -> None:
    entries = MapEntries(["k"], [{"fine": 1, "bad": threading.Lock()}], [["gone"]])
    with pytest.raises(SerializationError, match=r"state 'cache' of operator 'enrich'.*\['bad'\] is a lock"):
        payload.encode(StateLayout("map", False, False), entries, "enrich", "cache")


_WRITER = """
import sys
from dataclasses import dataclass
from headwater.state.snapshot import payload
from headwater.state.snapshot.entries import ValueEntries
from headwater.state.snapshot.layout import StateLayout

def make():
    @dataclass
    class Local:
        x: int
    return Local

sys.stdout.buffer.write(payload.encode(StateLayout("value", False, False), ValueEntries([1], [make()(5)]), "u", "s"))
"""


def test_classes_that_no_module_has_are_stored_by_value() -> None:
    written = subprocess.run(
        [sys.executable, "-c", _WRITER],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    ).stdout
    entries = payload.decode(written, "u", "s").entries
    assert isinstance(entries, ValueEntries) and entries.values[0].x == 5


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(SerializationError, match="state 's' of operator 'u' cannot be read"):
        payload.decode(b"nonsense", "u", "s")


@pytest.mark.parametrize("content", [(1, ("value", False, False), ([], [], [])), (), [], "x"], ids=repr)
def test_another_format_is_refused(content: Any) -> None:
    with pytest.raises(StateError, match=r"expected 3; it was written by another version.*run the job with that one"):
        payload.decode(pickle.dumps(content), "u", "s")


@pytest.mark.parametrize(
    ("layout", "columns", "expected"),
    [
        (("tree", False, False), ([], [], []), "unknown kind 'tree'"),
        (("value", False, False), ([], []), "2 columns, expected the 3 of ValueEntries"),
        (("value", False, False), ([], [], {}), "3 columns, expected the 3 of ValueEntries"),
        ((), ([], [], []), r"it has the layout \(\); expected kind, ttl"),
        (("value", False, False, "x"), ([], [], []), "it has the layout .*; expected kind, ttl"),
        ((5, False, False), ([], [], []), "it has the layout .*; expected kind, ttl"),
        (5, (), "it has the layout 5; expected kind, ttl"),
        (("value", False, False), None, "cannot be read"),
    ],
)
def test_entries_that_are_none_are_refused(layout: Any, columns: Any, expected: str) -> None:
    content = pickle.dumps((payload.FORMAT, layout, columns))
    for decode in (payload.decode, lambda data, *names: payload.decode_restricted(data, StandIns(), *names)):
        with pytest.raises(StateError, match=f"state 's' of operator 'u' .*{expected}"):
            decode(content, "u", "s")


@dataclass
class Point:
    x: int
    y: int = 0


def test_builtin_values_are_stored_as_they_always_were() -> None:
    content = (["k"], [{"a": [1, 2.5, ("x", None)]}], [])
    data = payload.encode(LAYOUT, ValueEntries(*content), "u", "s")
    assert data == pickle.dumps((payload.FORMAT, tuple(LAYOUT), content), 5)


def test_payloads_with_and_without_schemas_can_both_be_read() -> None:
    entries = ValueEntries(["k"], [Point(1, 2)])
    content = (payload.FORMAT, tuple(LAYOUT), entries.columns())
    without = pickle.dumps(content, 5)
    data = payload.encode(LAYOUT, entries, "u", "s")
    assert data.startswith(without) and len(data) > len(without)
    assert payload.decode(without, "u", "s") == payload.decode(data, "u", "s") == (LAYOUT, entries, ())
    assert pickle.loads(data) == content, "as a reader that knows no schemas would"
    (schema,) = payload.stored_schemas(data)
    assert (schema.qualname, schema.fields) == ("Point", (("x", "int"), ("y", "int")))


_MAIN = """
import pickle, sys
from dataclasses import dataclass, field
from decimal import Decimal
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
