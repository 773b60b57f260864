"""Native checkpoints of classes that have changed since: RocksDB's files have plain pickles, which must not be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import StateMigrationError
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.native import read_native_sections
from headwater.state.rocksdb.options import RocksDBOptions
from tests.unit.state.changing_module import ChangingModule, changing_module

POINT = """
class Point(NamedTuple):
    x: int
    y: int
"""
REORDERED = """
class Point(NamedTuple):
    y: int
    x: int
"""
PLAIN = """
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
"""
VALUE = ValueStateDescriptor("value")


@pytest.fixture
def module() -> Iterator[ChangingModule]:
    with changing_module() as found:
        yield found


class Databases:
    def __init__(self, directory: Path) -> None:
        self.options = RocksDBOptions(16 << 20, directory)
        self.made: list[RocksDBKeyedStateBackend] = []

    def new(self) -> RocksDBKeyedStateBackend:
        self.made.append(RocksDBKeyedStateBackend("op", 16, range(16), self.options))
        return self.made[-1]

    def checkpoint(self, fill: Callable[[RocksDBKeyedStateBackend], None]) -> Path:
        """A native checkpoint of what `fill` stored."""
        backend = self.new()
        backend.current_key, backend.current_namespace = "k", 0
        fill(backend)
        backend.commit_epoch()
        return backend.new_native_checkpoint()

    def loaded(self, checkpoint: Path, *, as_it_is: bool) -> Any:
        backend = self.new()
        assert backend.load_native(checkpoint) is as_it_is
        backend.current_key, backend.current_namespace = "k", 0
        return backend


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Databases]:
    made = Databases(tmp_path)
    yield made
    for backend in made.made:
        backend.close()


def test_a_reordered_named_tuple_keeps_its_values_by_name(module: ChangingModule, databases: Databases) -> None:
    module.define(POINT)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(x=1, y=2)")))
    module.define(REORDERED)
    value = databases.loaded(checkpoint, as_it_is=False).get_state(VALUE).value()
    assert value == module.make("Point(x=1, y=2)") and (value.x, value.y) == (1, 2)


def test_in_every_shape_of_state(module: ChangingModule, databases: Databases) -> None:
    module.define(POINT)

    def fill(backend: Any) -> None:
        points = [module.make(f"Point(x={number}, y=-{number})") for number in range(1000)]  # more than a head holds
        backend.get_state(ListStateDescriptor("list")).update(points)
        backend.get_state(MapStateDescriptor("map")).put_all({number: [point] for number, point in enumerate(points)})
        backend.get_namespaced_state(ValueStateDescriptor("windows")).update({"p": points[1]})
        backend.get_folded_panes("fold").reduce(["k"], [0], [points[2]], lambda old, new: new)
        backend.get_element_panes("elements").append(["k"] * 1000, [0] * 1000, points)

    checkpoint = databases.checkpoint(fill)
    module.define(REORDERED)
    backend = databases.loaded(checkpoint, as_it_is=False)
    expected = [(number, -number) for number in range(1000)]

    def by_name(points: Any) -> list[tuple[int, int]]:
        return [(point.x, point.y) for point in points]

    assert by_name(backend.get_state(ListStateDescriptor("list")).get()) == expected
    entries = dict(backend.get_state(MapStateDescriptor("map")).items())
    assert by_name(entries[number][0] for number in range(1000)) == expected
    windows = backend.get_namespaced_state(ValueStateDescriptor("windows"))
    assert by_name(windows.value().values()) == [(1, -1)]
    assert by_name(backend.get_folded_panes("fold").peek(0).values()) == [(2, -2)]
    assert by_name(backend.get_element_panes("elements").peek(0)["k"]) == expected


def test_classes_that_did_not_change_cost_nothing(module: ChangingModule, databases: Databases) -> None:
    module.define(POINT)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(1, 2)")))
    assert databases.loaded(checkpoint, as_it_is=True).get_state(VALUE).value() == module.make("Point(1, 2)")


def test_what_was_stored_long_ago_is_not_forgotten(module: ChangingModule, databases: Databases) -> None:
    """The database goes on in a process that never touches the old value."""
    module.define(POINT)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(x=1, y=2)")))
    second = databases.loaded(checkpoint, as_it_is=True)
    second.current_key = "other"
    second.get_state(VALUE).update(7)
    second.commit_epoch()
    checkpoint = second.new_native_checkpoint()
    module.define(REORDERED)
    value = databases.loaded(checkpoint, as_it_is=False).get_state(VALUE).value()
    assert (value.x, value.y) == (1, 2)


def test_after_two_changes_the_form_that_counts_is_the_last_one(module: ChangingModule, databases: Databases) -> None:
    module.define(POINT)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(x=1, y=2)")))
    module.define(REORDERED)
    checkpoint = databases.loaded(checkpoint, as_it_is=False).new_native_checkpoint()
    assert databases.loaded(checkpoint, as_it_is=True).get_state(VALUE).value().x == 1
    module.define(POINT)
    assert databases.loaded(checkpoint, as_it_is=False).get_state(VALUE).value().x == 1


@pytest.mark.parametrize("before", [POINT, PLAIN], ids=["NamedTuple", "plain class"])
def test_a_class_that_is_gone_needs_a_migration(module: ChangingModule, databases: Databases, before: str) -> None:
    module.define(before)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(x=1, y=2)")))
    module.define("")
    with pytest.raises(StateMigrationError, match="Point is gone"):
        databases.loaded(checkpoint, as_it_is=False).get_state(VALUE)
    descriptor = ValueStateDescriptor("value")
    descriptor.migrate_with(lambda old: (old.x, old.y), to_version=2)
    migrated = databases.loaded(checkpoint, as_it_is=False)
    assert migrated.get_state(descriptor).value() == (1, 2)
    checkpoint = migrated.new_native_checkpoint()
    assert databases.loaded(checkpoint, as_it_is=True).get_state(descriptor).value() == (1, 2)


def test_a_migration_may_keep_the_name_of_the_class(module: ChangingModule, databases: Databases) -> None:
    """The files then had two forms of one class, of which only the new one is left."""
    module.define(POINT)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(x=1, y=2)")))
    module.define("class Point(NamedTuple):\n    z: int\n    y: int\n    x: int")
    descriptor = ValueStateDescriptor("value")
    descriptor.migrate_with(lambda old: module.make(f"Point(z=3, y={old.y}, x={old.x})"), to_version=2)
    migrated = databases.loaded(checkpoint, as_it_is=False)
    assert tuple(migrated.get_state(descriptor).value()) == (3, 2, 1)
    checkpoint = migrated.new_native_checkpoint()
    assert tuple(databases.loaded(checkpoint, as_it_is=True).get_state(descriptor).value()) == (3, 2, 1)


def test_state_that_nobody_asked_for_keeps_its_old_form(module: ChangingModule, databases: Databases) -> None:
    module.define(POINT)
    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update(module.make("Point(x=1, y=2)")))
    module.define("class Point(NamedTuple):\n    z: int")
    checkpoint = databases.loaded(checkpoint, as_it_is=False).new_native_checkpoint()
    with pytest.raises(StateMigrationError, match=r"field 'z' of changing\.Point is new and has no default"):
        databases.loaded(checkpoint, as_it_is=False).get_state(VALUE)
    module.define(REORDERED)
    assert databases.loaded(checkpoint, as_it_is=False).get_state(VALUE).value() == module.make("Point(x=1, y=2)")


@pytest.mark.parametrize("kind", ["value", "list", "map", "map key", "panes"])
def test_keys_whose_class_has_changed_are_refused(module: ChangingModule, databases: Databases, kind: str) -> None:
    module.define("@dataclass(frozen=True)\nclass Key:\n    a: int\n    b: int")

    def fill(backend: RocksDBKeyedStateBackend) -> None:
        key = backend.current_key = module.make("Key(1, 2)")
        if kind == "value":
            backend.get_state(VALUE).update(1)
        elif kind == "list":
            backend.get_state(ListStateDescriptor("value")).update(list(range(3000)))
        elif kind == "map":
            backend.get_state(MapStateDescriptor("value")).put("inner", 1)
        elif kind == "map key":
            backend.current_key = "k"
            backend.get_state(MapStateDescriptor("value")).put(key, 1)
        else:
            backend.get_element_panes("value").append([key] * 3000, [0] * 3000, list(range(3000)))

    checkpoint = databases.checkpoint(fill)
    module.define("@dataclass(frozen=True)\nclass Key:\n    b: int\n    a: int")
    sections = list(read_native_sections(checkpoint, "op"))  # tools can look at it
    assert [section.name for section in sections] == ["value"]
    if kind == "map key":
        state = databases.loaded(checkpoint, as_it_is=False).get_state(MapStateDescriptor("value"))
        assert state.get(module.make("Key(a=1, b=2)")) == 1
        return
    with pytest.raises(StateMigrationError, match=r"its keys are objects of changing\.Key, which has changed"):
        databases.new().load_native(checkpoint)


def test_classes_of_functions_are_stored_with_their_values(databases: Databases) -> None:
    class Local:
        x = 5

    checkpoint = databases.checkpoint(lambda backend: backend.get_state(VALUE).update((Local(), lambda: 3)))
    local, function = databases.loaded(checkpoint, as_it_is=True).get_state(VALUE).value()
    assert local.x == 5 and function() == 3
