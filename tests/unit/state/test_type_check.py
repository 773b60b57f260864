"""Types that descriptors declare, checked against what an epoch wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import TypeMismatchError
from headwater.common.time import Time
from headwater.common.typeinfo import Types
from headwater.common.types import Row
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.ttl.config import StateTtlConfig
from headwater.state.type_check import StateTypeCheck

_IN_MEMORY = Path("/dev/shm")
OPTIONS = RocksDBOptions(8 << 20, _IN_MEMORY if _IN_MEMORY.is_dir() else None)
PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def make(kind: str) -> Any:
    return make_keyed_backend(kind, "uid", 8, range(8), OPTIONS if kind == "rocksdb" else None)


@pytest.fixture(params=["heap", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> Iterator[KeyedStateBackend]:
    made = make(request.param)
    made.current_key = "k"
    made.begin_epoch()
    yield made
    if request.param == "rocksdb":
        made.close()


class Average:
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, a: Any, b: Any) -> Any:
        return (a[0] + b[0], a[1] + b[1])


def next_epoch(backend: KeyedStateBackend) -> None:
    backend.check_types()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.begin_epoch()


MISFITS: list[tuple[StateDescriptor, Callable[[Any], None], str]] = [
    (ValueStateDescriptor("s", Types.LONG()), lambda s: s.update("one"), "expected LONG, found str 'one'"),
    (
        ValueStateDescriptor("s", PAIR),
        lambda s: s.update((1, 2)),
        "field 1: expected STRING, found int 2, in value (1, 2)",
    ),
    (
        ValueStateDescriptor("s", PERSON),
        lambda s: s.update(Row(name="ann", age=2**40)),
        "field 1 ('age'): expected INT (-2147483648 to 2147483647), found int 1099511627776",
    ),
    (ListStateDescriptor("s", Types.LONG()), lambda s: s.add_all([1, "b"]), "an element: expected LONG, found str 'b'"),
    (
        ListStateDescriptor("s", PAIR),
        lambda s: s.update([(1, "a"), (2, None)]),
        "an element: field 1: expected STRING, found None",
    ),
    (
        MapStateDescriptor("s", Types.STRING(), Types.LONG()),
        lambda s: s.put("m", 1.5),
        "the value of map key 'm': expected LONG, found float 1.5",
    ),
    (
        MapStateDescriptor("s", Types.STRING(), Types.LONG()),
        lambda s: s.put(7, 1),
        "map key 7: expected STRING, found int 7",
    ),
    (
        ReducingStateDescriptor("s", lambda a, b: a + b, Types.LONG()),
        lambda s: s.add(0.5),
        "expected LONG, found float 0.5",
    ),
    (
        AggregatingStateDescriptor("s", Average(), Types.TUPLE([Types.LONG(), Types.LONG()])),
        lambda s: s.add(0.5),
        "field 0: expected LONG, found float 0.5, in value (0.5, 1)",
    ),
]


@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(("descriptor", "write", "text"), MISFITS)
def test_an_error_names_state_key_field_expected_and_found(
    backend: KeyedStateBackend, descriptor: StateDescriptor, write: Callable[[Any], None], text: str, ttl: bool
) -> None:
    made = type(descriptor).__new__(type(descriptor))
    made.__dict__.update(descriptor.__dict__)
    if ttl:
        made.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    write(backend.get_state(made))
    with pytest.raises(TypeMismatchError) as caught:
        backend.check_types()
    assert str(caught.value).startswith(f"state 's' of key 'k' does not fit its declared type {made.type_info!r}: ")
    assert text in str(caught.value)
    assert "Types.PICKLED_BYTE_ARRAY()" in str(caught.value)


def test_what_fits_stays_as_it_was_stored(backend: KeyedStateBackend) -> None:
    number = backend.get_state(ValueStateDescriptor("number", Types.DOUBLE()))
    pair = backend.get_state(ValueStateDescriptor("pair", PAIR))
    person = backend.get_state(ValueStateDescriptor("person", PERSON))
    parts = backend.get_state(ListStateDescriptor("parts", Types.STRING()))
    counts = backend.get_state(MapStateDescriptor("counts", Types.STRING(), Types.LONG()))
    number.update(1)  # an int will do for a DOUBLE, as in a record
    pair.update([1, "a"])
    person.update({"name": "ann", "age": None})
    parts.add_all(["a", None])
    counts.put("none", None)
    next_epoch(backend)
    assert type(number.value()) is int
    assert pair.value() == [1, "a"]
    assert person.value() == {"name": "ann", "age": None}
    assert parts.get() == ["a", None]
    assert dict(counts.items()) == {"none": None}


@pytest.mark.parametrize(
    "descriptor",
    [
        ValueStateDescriptor("s"),
        ValueStateDescriptor("s", Types.PICKLED_BYTE_ARRAY()),
        ListStateDescriptor("s", Types.PICKLED_BYTE_ARRAY()),
        MapStateDescriptor("s"),
        MapStateDescriptor("s", Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY()),
        ReducingStateDescriptor("s", max),
        AggregatingStateDescriptor("s", Average()),
    ],
)
def test_a_type_that_says_nothing_costs_nothing(descriptor: StateDescriptor) -> None:
    assert StateTypeCheck.of(descriptor, keyed=True) is None


def test_a_map_may_declare_its_keys_only(backend: KeyedStateBackend) -> None:
    state = backend.get_state(MapStateDescriptor("s", Types.STRING(), Types.PICKLED_BYTE_ARRAY()))
    state.put("a", object)
    backend.check_types()
    state.put(1, object)
    with pytest.raises(TypeMismatchError, match="map key 1: expected STRING"):
        backend.check_types()


def test_a_map_with_one_type_takes_anything_for_the_other() -> None:
    keys, values = MapStateDescriptor("s", Types.STRING()), MapStateDescriptor("s", value_type_info=Types.LONG())
    assert keys.type_info == Types.MAP(Types.STRING(), Types.PICKLED_BYTE_ARRAY())
    assert values.type_info == Types.MAP(Types.PICKLED_BYTE_ARRAY(), Types.LONG())


def test_a_changed_value_is_checked(backend: KeyedStateBackend) -> None:
    state = backend.get_state(ValueStateDescriptor("s", Types.LIST(Types.LONG())))
    elements = backend.get_state(ListStateDescriptor("l", Types.LIST(Types.LONG())))
    entries = backend.get_state(MapStateDescriptor("m", Types.STRING(), Types.LIST(Types.LONG())))
    state.update([1])
    elements.add([1])
    entries.put("a", [1])
    next_epoch(backend)
    for mutate in (
        lambda: state.update([*state.value(), "two"]),
        lambda: elements.update([[*elements.get()[0], "two"]]),
        lambda: entries.put("a", [*entries.get("a"), "two"]),
    ):
        mutate()
        with pytest.raises(TypeMismatchError, match=r"element 1: expected LONG, found str 'two', in value"):
            backend.check_types()
        backend.rollback_epoch()
        backend.begin_epoch()
        backend.check_types()


def test_a_namespaced_state_names_key_and_namespace(backend: KeyedStateBackend) -> None:
    state: Any = backend.get_namespaced_state(ValueStateDescriptor("s", Types.LONG()))
    backend.current_namespace = 5
    state.update("x")
    with pytest.raises(TypeMismatchError, match=r"of key \('k', 5\)"):
        backend.check_types()


def test_more_keys_than_are_looked_at_at_once(backend: KeyedStateBackend) -> None:
    state = backend.get_state(ValueStateDescriptor("s", Types.LONG()))
    elements = backend.get_state(ListStateDescriptor("l", Types.LONG()))
    for key in range(10_000):
        backend.current_key = key
        state.update(key)
        elements.add(key)
    backend.check_types()
    backend.current_key = 9_999
    elements.add("last")
    with pytest.raises(TypeMismatchError, match="state 'l' of key 9999"):
        backend.check_types()
    state.update("last")
    with pytest.raises(TypeMismatchError, match="state 's' of key 9999"):
        backend.check_types()


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["put", "append", "remove", "clear", "epoch", "read"]),
        st.integers(0, 2),
        st.sampled_from([1, 2, "bad"]),
    ),
    max_size=30,
)


@pytest.mark.parametrize("kind", ["heap", "rocksdb"])
@settings(max_examples=40, deadline=None)
@given(WRITES)
def test_a_misfit_is_found_if_and_only_if_the_epoch_left_one(kind: str, writes: list[tuple[str, int, Any]]) -> None:
    backend = make(kind)
    value: Any = backend.get_state(ValueStateDescriptor("v", Types.LONG()))
    elements: Any = backend.get_state(ListStateDescriptor("l", Types.LONG()))
    entries: Any = backend.get_state(MapStateDescriptor("m", Types.LONG(), Types.LONG()))
    model: dict[tuple[Any, ...], Any] = {}
    backend.begin_epoch()
    for what, key, written in writes:
        backend.current_key = key
        if what == "put":
            value.update(written)
            entries.put(1, written)
            model[key, "v"] = model[key, "m"] = [written]
        elif what == "append":
            elements.add(written)
            model.setdefault((key, "l"), []).append(written)
        elif what == "remove":
            value.update(None)
            entries.remove(1)
            model.pop((key, "v"), None)
            model.pop((key, "m"), None)
        elif what == "clear":
            elements.clear()
            entries.clear()
            model.pop((key, "l"), None)
            model.pop((key, "m"), None)
        elif what == "read":
            value.value(), elements.get(), entries.items()
        elif any("bad" in stored for stored in model.values()):
            break
        else:
            next_epoch(backend)
    if any("bad" in stored for stored in model.values()):
        with pytest.raises(TypeMismatchError, match="'bad'"):
            backend.check_types()
    else:
        backend.check_types()
    if kind == "rocksdb":
        backend.close()


def test_operator_state_is_checked_too() -> None:
    backend = OperatorStateBackend("uid")
    offsets = backend.get_list_state(ListStateDescriptor("offsets", Types.LONG()))
    rules = backend.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
    backend.begin_epoch()
    offsets.add(1)
    rules.put("a", 1)
    backend.check_types()
    backend.commit_epoch(cut=True)
    backend.begin_epoch()
    rules.put("b", "two")
    expected = r"state 'rules' does not fit its declared type .*: the value of map key 'b': expected LONG"
    with pytest.raises(TypeMismatchError, match=expected):
        backend.check_types()


def test_what_open_stored_is_checked_at_the_end_of_the_first_epoch() -> None:
    backend = OperatorStateBackend("uid")
    backend.get_list_state(ListStateDescriptor("offsets", Types.LONG())).add("x")
    backend.begin_epoch()
    with pytest.raises(TypeMismatchError, match="state 'offsets' does not fit"):
        backend.check_types()
