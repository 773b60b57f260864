"""What every keyed state backend must do. A new backend is added to `BACKENDS` and has to pass all of this."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater.common.errors import SerializationError, StateError
from headwater.common.types import Row
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.keys.key_groups import key_group
from headwater.state.many_keys import Maps, update_all, values_of
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.snapshot.section import Section

MAX_PARALLELISM = 16

MakeBackend = Callable[[range], KeyedStateBackend]

_IN_MEMORY = Path("/dev/shm")
"""A disk that waits for nothing: RocksDB syncs a few files whenever a database is opened."""

ROCKSDB_OPTIONS = RocksDBOptions(8 << 20, _IN_MEMORY if _IN_MEMORY.is_dir() else None)

BACKENDS: dict[str, MakeBackend] = {
    "heap": lambda key_groups: make_keyed_backend("heap", "uid", MAX_PARALLELISM, key_groups),
    "rocksdb": lambda key_groups: make_keyed_backend("rocksdb", "uid", MAX_PARALLELISM, key_groups, ROCKSDB_OPTIONS),
    "rocksdb, timers too": lambda key_groups: make_keyed_backend(
        "rocksdb", "uid", MAX_PARALLELISM, key_groups, replace(ROCKSDB_OPTIONS, timers_in_memory=2)
    ),
}


@pytest.fixture(params=BACKENDS)
def make_backend(request: pytest.FixtureRequest) -> Iterator[MakeBackend]:
    made: list[KeyedStateBackend] = []

    def make(key_groups: range) -> KeyedStateBackend:
        made.append(BACKENDS[request.param](key_groups))
        return made[-1]

    yield make
    for backend in made:
        close(backend)


def close(backend: KeyedStateBackend) -> None:
    if isinstance(backend, RocksDBKeyedStateBackend):
        backend.close()


@pytest.fixture
def backend(make_backend: MakeBackend) -> KeyedStateBackend:
    made = make_backend(range(MAX_PARALLELISM))
    made.current_key = "k"
    return made


def restore(make: MakeBackend, sections: Iterable[Section], key_groups: range = range(MAX_PARALLELISM)) -> Any:
    backend = make(key_groups)
    for section in sections:
        if section.key_group in key_groups:
            backend.load_section(pickle.loads(pickle.dumps(section)))
    return backend


class Average:
    """An aggregate whose accumulator is changed in place, as users like to write them."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return [left[0] + right[0], left[1] + right[1]]


@dataclass
class Profile:
    visits: int
    pages: list[str]


VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
MAP = MapStateDescriptor("map")
REDUCING = ReducingStateDescriptor("reducing", lambda left, right: left + right)
AGGREGATING = AggregatingStateDescriptor("aggregating", Average())


# -- values ------------------------------------------------------------------------------------------------------------


def test_a_value_belongs_to_its_key(backend: KeyedStateBackend) -> None:
    state = backend.get_state(VALUE)
    assert state.value() is None
    state.update(1)
    backend.current_key = "other"
    assert state.value() is None
    state.update(2)
    backend.current_key = "k"
    assert state.value() == 1
    state.update(None)
    assert state.value() is None
    assert backend.keys("value") == ["other"]


def test_equal_keys_are_one_key(backend: KeyedStateBackend) -> None:
    state = backend.get_state(VALUE)
    backend.current_key = 1
    state.update("one")
    backend.current_key = 1.0
    assert state.value() == "one"


@pytest.mark.parametrize("key", [None, "", 0, (), ("a", None), b"x", frozenset([1])], ids=repr)
def test_any_hashable_is_a_key(make_backend: MakeBackend, key: Any) -> None:
    backend = make_backend(range(MAX_PARALLELISM))
    backend.current_key = key
    backend.get_state(VALUE).update("x")
    assert restore(make_backend, backend.full_sections()).committed_value("value", key) == "x"


def test_without_a_key_there_is_no_state(make_backend: MakeBackend) -> None:
    backend = make_backend(range(MAX_PARALLELISM))
    for use in (
        lambda: backend.get_state(VALUE).value(),
        lambda: backend.get_state(LIST).add(1),
        lambda: backend.get_state(MAP).put(1, 1),
        lambda: backend.get_namespaced_state(ListStateDescriptor("n")).clear(),
    ):
        with pytest.raises(StateError, match="no current key"):
            use()


# -- lists and maps ----------------------------------------------------------------------------------------------------


def test_list_state(backend: KeyedStateBackend) -> None:
    state = backend.get_state(LIST)
    assert state.get() == [] == list(state)
    state.add(1)
    state.add_all([2, 3])
    assert state.get() == [1, 2, 3] == list(state)
    state.get().append("not stored")
    assert state.get() == [1, 2, 3]
    given = [7, 8]
    state.update(given)
    given.append(9)
    assert state.get() == [7, 8]
    state.update([])
    assert backend.number_of_entries() == 0


def test_map_state(backend: KeyedStateBackend) -> None:
    state = backend.get_state(MAP)
    assert state.is_empty() and state.get("a") is None and "a" not in state
    state.put("a", 1)
    state["b"] = 2
    state.put_all({"c": 3})
    state.put_all([("c", 3)])  # pairs: what PyFlink takes
    assert state["a"] == 1 and "b" in state and state.contains("c")
    assert dict(state.items()) == {"a": 1, "b": 2, "c": 3}
    assert sorted(state.keys()) == ["a", "b", "c"] == sorted(state)
    assert sorted(state.values()) == [1, 2, 3]
    for key in state.keys():  # noqa: SIM118 - the API
        state.remove(key)
    state.remove("never there")
    assert state.is_empty() and backend.number_of_entries() == 0
    state.put("a", None)
    assert "a" in state and state.get("a") is None
    del state["a"]
    state.put("x", 1)
    state.clear()
    assert list(state.items()) == []


def test_reducing_and_aggregating_state(backend: KeyedStateBackend) -> None:
    reducing, aggregating = backend.get_state(REDUCING), backend.get_state(AGGREGATING)
    assert reducing.get() is None and aggregating.get() is None
    for value in (1, 2, 6):
        reducing.add(value)
        aggregating.add(value)
    assert reducing.get() == 9 and aggregating.get() == 3.0
    reducing.clear()
    aggregating.clear()
    assert reducing.get() is None and aggregating.get() is None


def test_a_reduce_function_object_will_do(backend: KeyedStateBackend) -> None:
    class Longest:
        def reduce(self, left: str, right: str) -> str:
            return max(left, right, key=len)

    state = backend.get_state(ReducingStateDescriptor("longest", Longest()))
    for text in ("a", "abc", "ab"):
        state.add(text)
    assert state.get() == "abc"


# -- names -------------------------------------------------------------------------------------------------------------


def test_one_name_is_one_object(backend: KeyedStateBackend) -> None:
    assert backend.get_state(ValueStateDescriptor("value")) is backend.get_state(VALUE)
    assert backend.state_names() == ["value"]


def test_one_name_has_one_shape(backend: KeyedStateBackend) -> None:
    backend.get_state(VALUE)
    with pytest.raises(StateError, match=r"'value' of operator 'uid' is value state .* asked for as list state"):
        backend.get_state(ListStateDescriptor("value"))
    with pytest.raises(StateError, match="namespaced"):
        backend.get_namespaced_state(VALUE)


def test_a_restored_state_has_the_shape_it_was_stored_with(
    backend: KeyedStateBackend, make_backend: MakeBackend
) -> None:
    backend.get_state(VALUE).update(1)
    other = restore(make_backend, backend.full_sections())
    with pytest.raises(StateError, match="asked for as map state"):
        other.get_state(MapStateDescriptor("value"))


def test_an_unknown_name_is_named(backend: KeyedStateBackend) -> None:
    backend.get_state(VALUE)
    with pytest.raises(StateError, match="no state 'valeu'; it has: value"):
        backend.committed_value("valeu", "k")


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_an_epoch_must_end_before_the_next_begins(backend: KeyedStateBackend) -> None:
    backend.begin_epoch()
    with pytest.raises(StateError, match="before the last one"):
        backend.begin_epoch()
    backend.rollback_epoch()
    backend.begin_epoch()


MUTABLE_VALUES: list[tuple[Any, Callable[[Any], None]]] = [
    ([1], lambda value: value.append(2)),
    ({"a": [1]}, lambda value: value["a"].append(2)),
    ({1}, lambda value: value.add(2)),
    (([1],), lambda value: value[0].append(2)),
    (Profile(1, ["x"]), lambda value: value.pages.append("y")),
    (Row(a=1), lambda value: value.__setitem__("a", 2)),
]


@pytest.mark.parametrize(("stored", "change"), MUTABLE_VALUES, ids=lambda value: repr(value)[:20])
def test_only_storing_changes_state(make_backend: MakeBackend, stored: Any, change: Callable[[Any], None]) -> None:
    """Neither what was given to state, nor what was read from it, is the state: changing them changes nothing."""
    backend = make_backend(range(MAX_PARALLELISM))
    backend.current_key = "k"
    value, elements, entries = backend.get_state(VALUE), backend.get_state(LIST), backend.get_state(MAP)
    chosen: Any = backend.get_state(ReducingStateDescriptor("chosen", lambda one, other: other))
    given = [copy.deepcopy(stored) for _ in range(8)]
    value.update(given[0])
    elements.add(given[1])
    elements.add_all([given[2]])
    entries.put("m", given[3])
    entries.put_all({"n": given[4]})
    chosen.add(given[5])
    chosen.add(given[6])
    backend.current_key = "other"
    elements.update([given[7], given[7]])
    backend.current_key = "k"

    def seen() -> list[Any]:
        backend.current_key = "other"
        found = elements.get()
        backend.current_key = "k"
        found += [
            value.value(),
            chosen.get(),
            *elements.get(),
            *elements,
            *entries.values(),
            *dict(entries.items()).values(),
        ]
        return [*found, entries.get("m"), entries["n"]]

    def committed() -> list[Any]:
        maps, lists = backend.committed_value("map", "k"), backend.committed_value("list", "k")
        return [backend.committed_value("value", "k"), backend.committed_value("chosen", "k"), *lists, *maps.values()]

    for one in given:
        change(one)
    for one in seen():
        change(one)
    assert seen() == [stored] * len(seen())
    chain = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    for one in seen() + given:
        change(one)
    assert committed() == [stored] * 6
    assert seen() == [stored] * len(seen())
    assert backend.delta_sections() == []  # reading is no change
    backend.rollback_epoch()
    assert seen() == [stored] * len(seen())
    other = restore(make_backend, chain)
    other.current_key = "k"
    for state in (other.get_state(LIST).get()[0], other.get_state(MAP).get("m"), other.get_state(VALUE).value()):
        change(state)
    assert other.get_state(VALUE).value() == other.get_state(LIST).get()[0] == other.get_state(MAP).get("m") == stored


def test_what_a_function_folds_in_place_is_rolled_back(make_backend: MakeBackend) -> None:
    backend = make_backend(range(MAX_PARALLELISM))
    backend.current_key = "k"

    def extended(one: list[int], other: list[int]) -> list[int]:
        one.extend(other)
        return one

    state: Any = backend.get_state(ReducingStateDescriptor("all", extended))
    added = [1]
    state.add(added)
    added.append(9)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    state.add([2])
    state.get().append(9)
    assert state.get() == [1, 2] and backend.committed_value("all", "k") == [1]
    backend.rollback_epoch()
    assert state.get() == [1]
    state.add([3])
    assert len(backend.delta_sections()) == 1
    backend.commit_epoch(cut=True)
    assert backend.committed_value("all", "k") == [1, 3]


def test_reading_what_cannot_change_is_no_change(backend: KeyedStateBackend) -> None:
    value, elements, entries = backend.get_state(VALUE), backend.get_state(LIST), backend.get_state(MAP)
    value.update((1, "a"))
    elements.add(1)
    entries.put("a", (1, 2))
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    value.value(), elements.get(), entries.items(), entries.get("a")
    assert backend.delta_sections() == []


def test_a_delta_has_only_what_changed(backend: KeyedStateBackend) -> None:
    elements, entries, value = backend.get_state(LIST), backend.get_state(MAP), backend.get_state(VALUE)
    elements.update(list(range(10_000)))
    entries.put_all({index: index for index in range(10_000)})
    for key in range(1_000):
        backend.current_key = key
        value.update(key)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.current_key = "k"
    elements.add(1)
    entries.put(5, 6)
    entries.remove(7)
    value.update(1)
    assert sum(len(section.payload) for section in backend.delta_sections()) < 500


def test_what_came_and_went_within_an_epoch_leaves_no_delta(backend: KeyedStateBackend) -> None:
    for state, fill in [
        (backend.get_state(VALUE), lambda state: state.update(1)),
        (backend.get_state(LIST), lambda state: state.add(1)),
        (backend.get_state(MAP), lambda state: state.put(1, 1)),
    ]:
        fill(state)
        state.clear()
    assert backend.delta_sections() == []


def test_a_map_that_was_changed_then_cleared_comes_back_whole(backend: KeyedStateBackend) -> None:
    state = backend.get_state(MAP)
    state.put_all({"a": 1, "b": 2, "c": 3})
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    state.put("a", 10)
    state.remove("b")
    state.clear()
    state.put("d", 4)
    assert backend.committed_value("map", "k") == {"a": 1, "b": 2, "c": 3}
    backend.rollback_epoch()
    assert dict(state.items()) == {"a": 1, "b": 2, "c": 3}


def test_a_replayed_epoch_gives_the_same_delta(backend: KeyedStateBackend) -> None:
    def epoch(start: int) -> list[Section]:
        backend.begin_epoch()
        for index in range(10):
            backend.current_key = index % 3
            backend.get_state(REDUCING).add(index)
            backend.get_state(LIST).add(index)
            backend.get_state(MAP).put(index % 2, index)
            backend.event_timers.register(start + index % 4, index % 3)
        list(backend.event_timers.pop_due(start + 1))
        return backend.delta_sections()

    epoch(0)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    first = epoch(2)
    backend.rollback_epoch()
    assert epoch(2) == first
    assert {section.kind for section in first} == {"keyed", "event_timers"}


def test_removals_are_in_the_delta(backend: KeyedStateBackend, make_backend: MakeBackend) -> None:
    states: dict[str, Any] = {
        descriptor.name: backend.get_state(descriptor) for descriptor in (VALUE, LIST, MAP, REDUCING, AGGREGATING)
    }
    entries = states["map"]
    for key in ("removed", "stays"):
        backend.current_key = key
        states["value"].update(1)
        entries.put_all({"a": 1, "b": 2})
        for name in ("list", "reducing", "aggregating"):
            states[name].add(1)
    for timer in (1, 2):
        backend.event_timers.register(timer, "k")
        backend.processing_timers.register(timer, "k")
    chain = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.current_key = "removed"
    for state in states.values():
        state.clear()
    backend.current_key = "stays"
    entries.remove("a")
    backend.event_timers.delete(1, "k")
    assert list(backend.processing_timers.pop_due(1)) == [(1, "k", None)]
    chain += backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    for sections in (chain, list(backend.full_sections())):
        other = restore(make_backend, sections)
        assert {name: other.keys(name) for name in states} == {name: ["stays"] for name in states}
        assert other.committed_value("map", "stays") == {"b": 2}
        assert other.event_timers.timers() == other.processing_timers.timers() == [(2, "k", None)]


def test_timers_of_both_kinds_are_rolled_back(backend: KeyedStateBackend) -> None:
    queues = (backend.event_timers, backend.processing_timers)
    for queue in queues:
        queue.register(1, "a")
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    for queue in queues:
        list(queue.pop_due(1))
        queue.register(2, "b")
    backend.rollback_epoch()
    assert [queue.timers() for queue in queues] == [[(1, "a", None)]] * 2
    assert backend.delta_sections() == []


def test_queries_from_another_thread_see_only_committed_values(backend: KeyedStateBackend) -> None:
    """The value is always twice the epoch; while an epoch is under way it is odd."""
    value, elements, entries = backend.get_state(VALUE), backend.get_state(LIST), backend.get_state(MAP)
    value.update(0)
    elements.update([0])
    entries.put("a", 0)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    seen: list[int] = []
    stop = threading.Event()

    def query() -> None:
        while not stop.is_set():
            seen.append(backend.committed_value("value", "k"))
            seen.extend(backend.committed_value("list", "k"))
            seen.extend(backend.committed_value("map", "k").values())

    thread = threading.Thread(target=query)
    thread.start()
    try:
        for epoch in range(1, 1_500):
            backend.begin_epoch()
            value.update(2 * epoch - 1)
            elements.add(2 * epoch - 1)
            entries.put("a", 2 * epoch - 1)
            entries.put("b", 2 * epoch - 1)
            if epoch % 3 == 0:
                backend.rollback_epoch()
                continue
            value.update(2 * epoch)
            elements.update([2 * epoch])
            entries.clear()
            entries.put("a", 2 * epoch)
            backend.commit_epoch(cut=True)
            backend.checkpoint_completed()
    finally:
        stop.set()
        thread.join()
    assert seen and all(number % 2 == 0 for number in seen)


def test_a_value_that_cannot_be_stored_is_named(backend: KeyedStateBackend) -> None:
    backend.get_state(VALUE).update({"client": threading.Lock()})
    with pytest.raises(SerializationError, match=r"state 'value' of operator 'uid'.*\['client'\] is a lock"):
        backend.delta_sections()


# -- namespaces, keys, key groups --------------------------------------------------------------------------------------


def test_namespaced_state(backend: KeyedStateBackend, make_backend: MakeBackend) -> None:
    state: Any = backend.get_namespaced_state(ReducingStateDescriptor("sums", lambda left, right: left + right))
    for key, window, number in [("a", (0, 10), 1), ("a", (10, 20), 2), ("b", (0, 10), 3), ("a", (0, 10), 4)]:
        backend.current_key, backend.current_namespace = key, window
        state.add(number)
    assert state.get() == 5
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    other = restore(make_backend, backend.full_sections())
    assert other.committed_value("sums", "a", (0, 10)) == 5
    assert other.committed_value("sums", "a", (10, 20)) == 2
    assert sorted(other.keys("sums")) == ["a", "b"]
    assert {section.key_group for section in backend.full_sections()} == {key_group(key, 16) for key in "ab"}


def test_clear_current_key(backend: KeyedStateBackend) -> None:
    value, entries = backend.get_state(VALUE), backend.get_state(MAP)
    windows: Any = backend.get_namespaced_state(ListStateDescriptor("windows"))
    for key in ("k", "other"):
        backend.current_key = key
        value.update(1)
        entries.put(1, 1)
        for window in (1, 2):
            backend.current_namespace = window
            windows.add(1)
    backend.current_key = "k"
    backend.clear_current_key()
    assert backend.number_of_entries() == 4
    assert backend.keys("windows") == backend.keys("value") == backend.keys("map") == ["other"]
    assert (backend.current_key, backend.current_namespace) == ("k", 2)
    backend.rollback_epoch()


def test_sections_can_be_dealt_out_to_other_partitions(backend: KeyedStateBackend, make_backend: MakeBackend) -> None:
    state = backend.get_state(VALUE)
    for key in range(200):
        backend.current_key = key
        state.update(key * 2)
        backend.event_timers.register(key, key)
    sections = list(backend.full_sections())
    parts = [restore(make_backend, sections, range(start, start + 4)) for start in range(0, 16, 4)]
    assert sum(part.number_of_entries() for part in parts) == 200
    assert sum(len(part.event_timers) for part in parts) == 200
    for part in parts:
        for key in part.keys("value"):
            assert key_group(key, MAX_PARALLELISM) in part.key_groups
            assert part.committed_value("value", key) == key * 2


def test_a_section_that_is_not_ours_is_refused(backend: KeyedStateBackend, make_backend: MakeBackend) -> None:
    backend.get_state(VALUE).update(1)
    (section,) = backend.full_sections()
    group = section.key_group
    with pytest.raises(StateError, match=f"key group {group}"):
        make_backend(range(group + 1, group + 2)).load_section(section)
    with pytest.raises(StateError, match="operator 'else'"):
        backend.load_section(Section("else", section.kind, section.name, group, section.payload))
    with pytest.raises(StateError, match="kind 'operator'"):
        backend.load_section(Section("uid", "operator", section.name, group, section.payload))


def test_a_hole_in_the_chain_is_noticed(backend: KeyedStateBackend, make_backend: MakeBackend) -> None:
    state = backend.get_state(LIST)
    state.add_all([1, 2])
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    state.add(3)
    with pytest.raises(StateError, match="an earlier snapshot of the chain is missing"):
        restore(make_backend, backend.delta_sections())


# -- against a model ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", 1, ("t", None)])  # few, so that epochs meet again on the same entries
SCALARS = st.one_of(st.integers(-3, 3), st.text(max_size=2), st.tuples(st.integers(0, 2), st.text(max_size=1)))
VALUES = st.one_of(SCALARS, st.lists(st.integers(0, 2), max_size=2), st.dictionaries(st.text(max_size=1), SCALARS))
MAP_KEYS = st.sampled_from(["x", (1, 2)])


def changed_in_place(value: Any) -> None:
    """Change a value that was given to state, or read from it: no state may notice."""
    if isinstance(value, list):
        value.append("changed")
    elif isinstance(value, dict):
        value["changed"] = True


class BackendMachine(RuleBasedStateMachine):
    """A backend against {state name: {key: value}}, with epochs that commit, roll back, crash and restore."""

    make: MakeBackend

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, dict[Any, Any]] = {
            name: {} for name in ("value", "list", "map", "reducing", "aggregating", "windows")
        }
        self.timers: set[tuple[int, Any]] = set()
        self.committed = copy.deepcopy((self.model, self.timers))
        self.chain: list[Section] = []
        self.open(type(self).make(range(MAX_PARALLELISM)))

    def open(self, backend: Any) -> None:
        self.backend = backend
        self.value = backend.get_state(VALUE)
        self.list = backend.get_state(LIST)
        self.map = backend.get_state(MAP)
        self.reducing = backend.get_state(REDUCING)
        self.aggregating = backend.get_state(AGGREGATING)
        self.windows = backend.get_namespaced_state(ListStateDescriptor("windows"))
        backend.begin_epoch()

    @rule(key=KEYS, value=st.none() | VALUES)
    def update_value(self, key: Any, value: Any) -> None:
        self.backend.current_key = key
        given = copy.deepcopy(value)
        self.value.update(given)
        changed_in_place(given)
        if value is None:
            self.model["value"].pop(key, None)
        else:
            self.model["value"][key] = value

    @rule(key=KEYS)
    def change_value_in_place(self, key: Any) -> None:
        self.backend.current_key = key
        value = self.value.value()
        assert value == self.model["value"].get(key)
        changed_in_place(value)

    @rule(key=KEYS, value=VALUES)
    def add_to_list(self, key: Any, value: Any) -> None:
        self.backend.current_key = key
        given = copy.deepcopy(value)
        self.list.add(given)
        changed_in_place(given)
        self.model["list"].setdefault(key, []).append(value)

    @rule(key=KEYS, values=st.lists(VALUES, max_size=3))
    def update_list(self, key: Any, values: list[Any]) -> None:
        self.backend.current_key = key
        self.list.update(copy.deepcopy(values))
        self.model["list"].pop(key, None)
        if values:
            self.model["list"][key] = list(values)

    @rule(key=KEYS)
    def change_list_elements_in_place(self, key: Any) -> None:
        self.backend.current_key = key
        elements = self.list.get()
        assert elements == self.model["list"].get(key, [])
        for element in elements:
            changed_in_place(element)

    @rule(key=KEYS, map_key=MAP_KEYS, value=VALUES)
    def put(self, key: Any, map_key: Any, value: Any) -> None:
        self.backend.current_key = key
        given = copy.deepcopy(value)
        self.map.put(map_key, given)
        changed_in_place(given)
        self.model["map"].setdefault(key, {})[map_key] = value

    @rule(key=KEYS, map_key=MAP_KEYS)
    def remove(self, key: Any, map_key: Any) -> None:
        self.backend.current_key = key
        self.map.remove(map_key)
        entries = self.model["map"].get(key, {})
        entries.pop(map_key, None)
        if not entries:
            self.model["map"].pop(key, None)

    @rule(key=KEYS, map_key=MAP_KEYS, through_items=st.booleans())
    def change_map_value_in_place(self, key: Any, map_key: Any, through_items: bool) -> None:
        self.backend.current_key = key
        value = dict(self.map.items()).get(map_key) if through_items else self.map.get(map_key)
        changed_in_place(value)

    @rule(key=KEYS, number=st.integers(0, 5))
    def fold(self, key: Any, number: int) -> None:
        self.backend.current_key = key
        self.reducing.add(number)
        self.aggregating.add(number)
        self.model["reducing"][key] = self.model["reducing"].get(key, 0) + number
        total = self.model["aggregating"].setdefault(key, [0, 0])
        total[0] += number
        total[1] += 1

    @rule(key=KEYS, window=st.integers(0, 1), number=st.integers(0, 5))
    def add_to_window(self, key: Any, window: int, number: int) -> None:
        self.backend.current_key, self.backend.current_namespace = key, window
        self.windows.add(number)
        self.model["windows"].setdefault((key, window), []).append(number)

    @rule(key=KEYS, name=st.sampled_from(["value", "list", "map", "reducing", "aggregating"]))
    def clear(self, key: Any, name: str) -> None:
        self.backend.current_key = key
        getattr(self, name).clear()
        self.model[name].pop(key, None)

    @rule(key=KEYS)
    def clear_map(self, key: Any) -> None:
        self.clear(key, "map")

    @rule(key=KEYS)
    def clear_current_key(self, key: Any) -> None:
        self.backend.current_key = key
        self.backend.clear_current_key()
        for name, table in self.model.items():
            for known in [known for known in table if (known[0] if name == "windows" else known) == key]:
                del table[known]

    @rule(key=KEYS, timestamp=st.integers(0, 5), delete=st.booleans())
    def timer(self, key: Any, timestamp: int, delete: bool) -> None:
        if delete:
            self.backend.event_timers.delete(timestamp, key)
            self.timers.discard((timestamp, key))
        else:
            self.backend.event_timers.register(timestamp, key)
            self.timers.add((timestamp, key))

    @rule()
    def commit(self) -> None:
        self.chain += self.backend.delta_sections()
        self.backend.commit_epoch(cut=True)
        self.backend.checkpoint_completed()
        self.committed = copy.deepcopy((self.model, self.timers))
        self.backend.begin_epoch()

    @rule()
    def rollback(self) -> None:
        self.backend.rollback_epoch()
        self.model, self.timers = copy.deepcopy(self.committed)
        self.backend.begin_epoch()

    @rule(full=st.booleans())
    def crash_and_restore(self, full: bool) -> None:
        self.rollback()
        if full:
            self.chain = list(self.backend.full_sections())
        close(self.backend)
        self.open(restore(type(self).make, self.chain))
        self.model, self.timers = copy.deepcopy(self.committed)

    @precondition(lambda self: self.chain)
    @rule()
    def failed_attempt_took_a_delta(self) -> None:
        self.backend.delta_sections()
        self.rollback()

    @invariant()
    def committed_is_committed(self) -> None:
        for name, table in self.committed[0].items():
            for key, value in table.items():
                if name == "windows":
                    assert self.backend.committed_value(name, *key) == value
                else:
                    expected = Average().get_result(value) if name == "aggregating" else value
                    assert self.backend.committed_value(name, key) == expected

    @invariant()
    def live_is_live(self) -> None:
        assert self.backend.number_of_entries() == sum(map(len, self.model.values()))
        for name in ("value", "list", "map", "reducing", "aggregating"):
            assert set(self.backend.keys(name)) == set(self.model[name])
        for key, number in self.model["reducing"].items():
            self.backend.current_key = key
            assert self.reducing.get() == number
        for key, entries in self.model["map"].items():
            self.backend.current_key = key
            assert set(self.map.keys()) == set(entries)
        assert {timer[:2] for timer in self.backend.event_timers.timers()} == self.timers

    def teardown(self) -> None:
        self.crash_and_restore(full=False)
        self.everything_is_as_committed()
        self.crash_and_restore(full=True)
        self.everything_is_as_committed()
        close(self.backend)

    def everything_is_as_committed(self) -> None:
        self.committed_is_committed()
        self.live_is_live()


@pytest.mark.parametrize("name", BACKENDS)
def test_backend_agrees_with_a_dict(name: str) -> None:
    machine = type("Machine", (BackendMachine,), {"make": staticmethod(BACKENDS[name])})
    case = machine.TestCase
    case.settings = settings(max_examples=120 if name == "heap" else 40, stateful_step_count=50, deadline=None)
    case().runTest()


class Incomparable:
    """As arrays of NumPy and frames of pandas: to compare one, even with None, gives no truth."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_values_need_not_be_comparable(make_backend: MakeBackend, backend: KeyedStateBackend) -> None:
    descriptors = ValueStateDescriptor("v"), ListStateDescriptor("l"), MapStateDescriptor("m")
    value, elements, entries = map(backend.get_state, descriptors)
    value.update(Incomparable())
    elements.add(Incomparable())
    entries.put("a", Incomparable())
    delta = backend.delta_sections()
    backend.commit_epoch(cut=True)
    for sections in (delta, list(backend.full_sections())):
        restored = restore(make_backend, sections)
        restored.current_key = "k"
        assert isinstance(restored.get_state(descriptors[0]).value(), Incomparable)
        assert [type(element) for element in restored.get_state(descriptors[1]).get()] == [Incomparable]
        assert isinstance(restored.get_state(descriptors[2]).get("a"), Incomparable)
    entries.remove("a")
    elements.clear()
    value.clear()
    assert restore(make_backend, [*delta, *backend.delta_sections()]).number_of_entries() == 0


def test_many_keys_at_a_time(backend: KeyedStateBackend, make_backend: MakeBackend) -> None:
    state = backend.get_state(ValueStateDescriptor("v"))
    backend.begin_epoch()
    update_all(backend, state, [1, 2, 3], [None] * 3, [("a", 1), ("b", 2), None])
    assert values_of(backend, state, [3, 2, 1]) == [None, ("b", 2), ("a", 1)]
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    first = list(backend.full_sections())
    backend.begin_epoch()
    backend.current_key = 1
    state.update(("once", 0))
    keys = [1, 2, 3, 4]
    update_all(backend, state, keys, values_of(backend, state, keys), [("a", 9), None, ("c", 3), None])
    assert backend.committed_value("v", 1) == ("a", 1) and backend.committed_value("v", 3) is None
    backend.rollback_epoch()
    assert values_of(backend, state, keys) == [("a", 1), ("b", 2), None, None]
    backend.begin_epoch()
    update_all(backend, state, keys, values_of(backend, state, keys), [("a", 9), None, ("c", 3), None])
    restored = restore(make_backend, [*first, *backend.delta_sections()])
    backend.commit_epoch(cut=True)
    assert values_of(restored, restored.get_state(ValueStateDescriptor("v")), keys) == [("a", 9), None, ("c", 3), None]
    assert backend.number_of_entries() == 2


@pytest.mark.parametrize("namespaced", [False, True])
def test_maps_of_many_keys_at_a_time(backend: KeyedStateBackend, make_backend: MakeBackend, namespaced: bool) -> None:
    def maps(of: KeyedStateBackend) -> Maps:
        descriptor = MapStateDescriptor("m")
        return Maps(of, of.get_namespaced_state(descriptor) if namespaced else of.get_state(descriptor), namespaced)

    keys: list[Any] = [("a", 1), ("b", 1), ("c", 1), ("d", 1)] if namespaced else ["a", "b", "c", "d"]
    a, b, c, d = keys
    state = maps(backend)

    def held(of: Maps) -> list[dict[Any, Any]]:
        return [dict(of.all_of(key)) for key in keys]

    backend.begin_epoch()
    state.update([a, a, b, c], [(1, "x"), (2, None), (1, "x"), (9,)], [(1, 0), (2, 0), (3, 0), None])
    first = [{(1, "x"): (1, 0), (2, None): (2, 0)}, {(1, "x"): (3, 0)}, {}, {}]
    assert held(state) == first
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    sections = list(backend.full_sections())

    def change() -> None:
        # A new entry, a changed one, one that came and went, a map that ends and comes back, one that ends, a new one.
        state.update(
            [a, a, a, a, b, b, c], [(3,), (1, "x"), (4,), (4,), (1, "x"), (5,), (9,)], [7, 8, 9, None, None, 5, 1]
        )
        state.update([c, d, a], [(9,), (0,), (2, None)], [None, 2, None])

    after = [{(1, "x"): 8, (3,): 7}, {(5,): 5}, {}, {(0,): 2}]
    for attempt in range(2):
        backend.begin_epoch()
        change()
        assert held(state) == after
        found = state.some_of(a, [(3,), (2, None), (6,)])
        assert [found.get(each) for each in [(3,), (2, None), (6,)]] == [7, None, None]
        committed = backend.committed_value("m", "a", 1) if namespaced else backend.committed_value("m", "a")
        assert committed == first[0]
        if not attempt:
            backend.rollback_epoch()
            assert held(state) == first
    restored = restore(make_backend, [*sections, *backend.delta_sections()])
    backend.commit_epoch(cut=True)
    assert held(maps(restored)) == after
    backend.begin_epoch()
    state.clear([a, c, d])
    assert held(state) == [{}, after[1], {}, {}]
    backend.rollback_epoch()
    assert held(state) == after
