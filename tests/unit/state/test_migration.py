"""State of an older version or declared type, restored into a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater.common.errors import StateError, StateMigrationError
from headwater.common.time import Duration
from headwater.common.typeinfo import Types
from headwater.common.types import Row, RowKind
from headwater.state.backends import HEAP, ROCKSDB, make_keyed_backend
from headwater.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.evolution.changed_classes import StoredRecord
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import Section
from headwater.state.ttl.config import StateTtlConfig
from tests.unit.state.changing_module import ChangingModule, changing_module

Sections = list[Section]


@pytest.fixture
def module() -> Iterator[ChangingModule]:
    with changing_module() as found:
        yield found


_kind = HEAP


@pytest.fixture(params=[HEAP, ROCKSDB], autouse=True)
def _each_backend(request: pytest.FixtureRequest) -> Iterator[None]:
    global _kind
    _kind = request.param
    yield
    _kind = HEAP


def backend(*chains: Sections) -> KeyedStateBackend:
    made = make_keyed_backend(_kind, "op", 16, range(16))
    for sections in chains:
        for section in sections:
            made.load_section(section)
    return made


def epoch(made: KeyedStateBackend, change: Callable[[], None] = lambda: None) -> Sections:
    """One epoch and its complete checkpoint: what it wrote."""
    made.begin_epoch()
    change()
    sections = made.delta_sections()
    made.commit_epoch(cut=True)
    made.checkpoint_completed()
    return sections


def value_sections(descriptor: StateDescriptor, values: dict[Any, Any]) -> Sections:
    made = backend()
    state = made.get_state(descriptor)

    def fill() -> None:
        for key, value in values.items():
            made.current_key = key
            if isinstance(descriptor, ListStateDescriptor | MapStateDescriptor):
                state.update(value) if isinstance(value, list) else state.put_all(value)  # type: ignore[attr-defined]
            else:
                state.update(value) if hasattr(state, "update") else state.add(value)  # type: ignore[attr-defined]

    return epoch(made, fill)


def contents(made: KeyedStateBackend, name: str = "s") -> dict[Any, Any]:
    return {key: made.committed_value(name, key) for key in made.keys(name)}


def test_values_of_an_older_version_go_through_every_step() -> None:
    old = value_sections(ValueStateDescriptor("s"), {"a": 1, "b": 2})
    steps: list[int] = []
    made = backend(old)
    made.get_state(
        ValueStateDescriptor("s")
        .migrate_with(lambda value: steps.append(2) or value * 1000, to_version=2)
        .migrate_with(lambda value: {"ms": value}, to_version=3)
    )
    assert contents(made) == {"a": {"ms": 1000}, "b": {"ms": 2000}}
    assert steps == [2, 2]


def test_it_runs_once_per_restore_of_an_old_version() -> None:
    calls: list[Any] = []

    def descriptor() -> StateDescriptor:
        return ValueStateDescriptor("s").migrate_with(lambda value: calls.append(value) or value + 1, to_version=2)

    old = value_sections(ValueStateDescriptor("s"), {"a": 1})
    made = backend(old)
    made.get_state(descriptor())
    made.get_state(descriptor())
    delta = epoch(made)
    again = backend(old, delta)
    again.get_state(descriptor())
    assert contents(again) == {"a": 2} and calls == [1]


def test_the_first_delta_after_a_migration_replaces_all_that_is_older_in_the_chain() -> None:
    names = ["s", "list", "map"]
    old = (
        value_sections(ValueStateDescriptor("s"), {1: 1, 2: 2, 3: 3})
        + value_sections(ListStateDescriptor("list"), {1: [1, 2], 2: [3]})
        + value_sections(MapStateDescriptor("map"), {1: {"x": 1, "y": 2}, 2: {"z": 3}})
    )
    classes: list[type[StateDescriptor]] = [ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor]

    def asked(made: KeyedStateBackend) -> list[Any]:
        descriptors = (cls(name) for cls, name in zip(classes, names, strict=True))
        return [made.get_state(each.migrate_with(lambda v: v * 10, to_version=2)) for each in descriptors]

    made = backend(old)
    value, elements, entries = asked(made)

    def change() -> None:
        made.current_key = 2
        value.clear()
        elements.clear()
        entries.clear()
        made.current_key = 1
        elements.add(70)
        entries.remove("x")

    failed = epoch_that_fails(made, change)
    assert failed  # what a checkpoint that failed had is in the next one too
    delta = epoch(made)
    expected: list[dict[Any, Any]] = [{1: 10, 3: 30}, {1: [10, 20, 70]}, {1: {"y": 20}}]
    assert [contents(made, name) for name in names] == expected
    restored = backend(old, delta)
    asked(restored)
    assert [contents(restored, name) for name in names] == expected
    assert epoch(made) == [], "only the first delta is whole"


def epoch_that_fails(made: KeyedStateBackend, change: Callable[[], None]) -> Sections:
    made.begin_epoch()
    change()
    sections = made.delta_sections()
    made.commit_epoch(cut=True)
    made.checkpoint_failed()
    return sections


def test_going_back_to_the_checkpoint_keeps_the_migration() -> None:
    made = backend(value_sections(ValueStateDescriptor("s"), {"a": 1}))
    state = made.get_state(ValueStateDescriptor("s").migrate_with(lambda value: value + 1, to_version=2))
    made.begin_epoch()
    made.current_key = "a"
    state.update(99)
    made.delta_sections()
    made.commit_epoch(cut=True)
    if not made.rewind():
        pytest.skip("this backend goes back by loading the checkpoint anew")
    assert contents(made) == {"a": 2}
    assert len(epoch(made)) == 1, "no complete checkpoint has the migrated values yet"


def test_each_kind_of_state_is_migrated_part_by_part() -> None:
    made = backend(
        value_sections(ListStateDescriptor("list"), {"a": [1, 2]}),
        value_sections(MapStateDescriptor("map"), {"a": {"x": 1, "y": 2}}),
        value_sections(ReducingStateDescriptor("sum", lambda a, b: a + b), {"a": 1}),
    )
    made.get_state(ListStateDescriptor("list").migrate_with(str, to_version=2))
    made.get_state(MapStateDescriptor("map").migrate_with(str, to_version=2))
    made.get_state(ReducingStateDescriptor("sum", lambda a, b: a + b).migrate_with(str, to_version=2))
    assert contents(made, "list") == {"a": ["1", "2"]}
    assert contents(made, "map") == {"a": {"x": "1", "y": "2"}}
    assert contents(made, "sum") == {"a": "1"}


def test_expiry_dates_stay() -> None:
    def descriptor() -> StateDescriptor:
        made = ValueStateDescriptor("s")
        made.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_seconds(10)).build())
        return made

    made = backend(value_sections(descriptor(), {"a": 1}))
    state: Any = made.get_state(descriptor().migrate_with(lambda value: value + 1, to_version=2))
    made.current_key = "a"
    assert state.value() == 2
    made.processing_time_ms = 10_001
    assert state.value() is None


def test_operator_and_broadcast_state_are_migrated_too() -> None:
    old = OperatorStateBackend("op")
    old.begin_epoch()
    old.get_list_state(ListStateDescriptor("list")).update([1, 2])
    old.get_broadcast_state(MapStateDescriptor("rules")).put("x", 1)
    sections = old.delta_sections()

    def asked(chain: Sections) -> OperatorStateBackend:
        made = OperatorStateBackend("op")
        for section in chain:
            made.load_section(section)
        made.get_list_state(ListStateDescriptor("list").migrate_with(lambda v: v * 2, to_version=2))
        made.get_broadcast_state(MapStateDescriptor("rules").migrate_with(lambda v: v * 3, to_version=2))
        return made

    made = asked(sections)
    assert made.committed_list("list") == [2, 4] and made.committed_broadcast("rules") == {"x": 3}
    made.begin_epoch()
    again = asked(sections + made.delta_sections())
    assert again.committed_list("list") == [2, 4] and again.committed_broadcast("rules") == {"x": 3}


def test_a_changed_class_comes_as_a_record_with_its_old_fields(module: ChangingModule) -> None:
    module.define("@dataclass\nclass Payment:\n  amount: str\n@dataclass\nclass Owner:\n  name: str")
    old = value_sections(ValueStateDescriptor("s"), {"a": module.make("(Payment('12'), Owner('ann'))")})
    module.define("@dataclass\nclass Payment:\n  amount: int\n@dataclass\nclass Owner:\n  name: str\n  age: int = 0")

    with pytest.raises(StateMigrationError) as refused:
        backend(old).get_state(ValueStateDescriptor("s"))
    assert str(refused.value) == (
        "state 's' of operator 'op' cannot be restored: field 'amount' of changing.Payment was 'str' and is 'int'. "
        "Change it back, give new fields a default, or say how to make new values from old ones with "
        "descriptor.migrate_with(function, to_version=2)"
    )

    def to_integers(value: Any) -> Any:
        payment, owner = value
        assert isinstance(payment, StoredRecord)
        return module.make("Payment")(int(payment.amount)), owner

    made = backend(old)
    made.get_state(ValueStateDescriptor("s").migrate_with(to_integers, to_version=2))
    assert contents(made) == {"a": module.make("(Payment(12), Owner('ann', 0))")}


@pytest.mark.parametrize(
    ("stored", "asked", "message"),
    [
        (1, [3], "is of version 1, and there is no migration to 2"),
        (
            3,
            [2],
            "its values are of version 3, this program knows version 2. Run the program that stored it, or a later",
        ),
        (2, [], "its values are of version 2, this program knows version 1"),
    ],
)
def test_versions_without_a_way(stored: int, asked: list[int], message: str) -> None:
    def descriptor(versions: list[int]) -> StateDescriptor:
        made = ValueStateDescriptor("s")
        for version in versions:
            made.migrate_with(lambda value: value, to_version=version)
        return made

    old = value_sections(descriptor(list(range(2, stored + 1))), {"a": 1})
    with pytest.raises(StateMigrationError, match=message):
        backend(old).get_state(descriptor(asked))


def test_a_function_that_fails_is_named_with_the_value() -> None:
    old = value_sections(ValueStateDescriptor("s"), {"a": "x"})
    expected = "migration of state 's' of operator 'op' to version 2 failed with ValueError.*the value is 'x'"
    with pytest.raises(StateMigrationError, match=expected):
        backend(old).get_state(ValueStateDescriptor("s").migrate_with(int, to_version=2))
    with pytest.raises(StateMigrationError, match="returned None; expected a value of today"):
        backend(old).get_state(ValueStateDescriptor("s").migrate_with(lambda _: None, to_version=2))


@pytest.mark.parametrize("version", [1, 0, True, "2"])
def test_bad_versions_are_refused(version: Any) -> None:
    with pytest.raises(StateError, match="expected 2 or more"):
        ValueStateDescriptor("s").migrate_with(int, to_version=version)
    with pytest.raises(StateError, match="already has a migration to version 2"):
        ValueStateDescriptor("s").migrate_with(int, to_version=2).migrate_with(int, to_version=2)


@pytest.mark.parametrize("key", ["Key(1)", "('shop', Key(1))"])
def test_a_key_must_stay_what_it_is(module: ChangingModule, key: str) -> None:
    module.define("class Key(NamedTuple):\n  id: int")
    old = value_sections(ValueStateDescriptor("s"), {module.make(key): 1})
    timers = backend()
    timers.begin_epoch()
    timers.event_timers.register(5, module.make(key), None)
    timer_sections = timers.delta_sections()
    module.define("class Key(NamedTuple):\n  id: int\n  region: str = ''")
    for sections in (old, timer_sections):
        with pytest.raises(StateMigrationError, match=r"changing.Key, which has changed.*A key must stay as it is"):
            backend(sections)


def test_the_contents_of_windows_are_refused_if_they_cannot_be_read(module: ChangingModule) -> None:
    module.define("@dataclass\nclass P:\n  a: int")
    made = backend()
    panes = made.get_folded_panes("window-panes")
    sections = epoch(made, lambda: panes.reduce(["k"], [0], [module.make("P(1)")], lambda a, b: a))
    module.define("@dataclass\nclass P:\n  a: int\n  b: int = 2")
    assert backend(sections).get_folded_panes("window-panes")
    module.define("@dataclass\nclass P:\n  a: str")
    with pytest.raises(StateMigrationError, match="'window-panes' of operator 'op' cannot be restored: field 'a'"):
        backend(sections).get_folded_panes("window-panes")


def test_state_that_nobody_asks_for_is_kept_as_it_was(module: ChangingModule) -> None:
    module.define("@dataclass\nclass P:\n  a: int")
    old = value_sections(ValueStateDescriptor("s").migrate_with(lambda v: v, to_version=2), {"k": module.make("P(1)")})
    module.define("@dataclass\nclass P:\n  a: str")
    kept = list(backend(old).full_sections())
    module.define("@dataclass\nclass P:\n  a: int")
    made = backend(kept)
    made.get_state(ValueStateDescriptor("s").migrate_with(lambda v: v, to_version=2))
    assert contents(made) == {"k": module.make("P(1)")}


# --- declared types

OLD_ROW = Types.ROW_NAMED(["name", "age", "city"], [Types.STRING(), Types.INT(), Types.STRING()])
NEW_ROW = Types.ROW_NAMED(["age", "name", "email"], [Types.DOUBLE(), Types.STRING(), Types.STRING()])


def test_named_rows_are_matched_by_name() -> None:
    row = Row(name="ann", age=30, city="Rome")
    row.set_row_kind(RowKind.DELETE)
    old = value_sections(ValueStateDescriptor("s", OLD_ROW), {1: row, 2: Row("bob", 40, "Oslo")})
    made = backend(old)
    made.get_state(ValueStateDescriptor("s", NEW_ROW))
    found = contents(made)
    assert found[1] == Row.of_kind(RowKind.DELETE, age=30.0, name="ann", email=None)
    assert found[1].get_field_names() == ["age", "name", "email"]
    assert found[2] == Row(40.0, "bob", None)  # without names of its own it has those that were declared
    again = backend(old, epoch(made))
    again.get_state(ValueStateDescriptor("s", NEW_ROW))
    assert contents(again) == found


def test_declared_numbers_are_widened_in_every_kind() -> None:
    made = backend(
        value_sections(ValueStateDescriptor("value", Types.LONG()), {"a": 1}),
        value_sections(ListStateDescriptor("list", Types.INT()), {"a": [1]}),
        value_sections(MapStateDescriptor("map", Types.STRING(), Types.LIST(Types.INT())), {"a": {"x": [1]}}),
    )
    made.get_state(ValueStateDescriptor("value", Types.DOUBLE()))
    made.get_state(ListStateDescriptor("list", Types.DOUBLE()))
    made.get_state(MapStateDescriptor("map", Types.STRING(), Types.LIST(Types.DOUBLE())))
    found = [contents(made, name)["a"] for name in ("value", "list", "map")]
    assert repr(found) == "[1.0, [1.0], {'x': [1.0]}]"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Types.INT(), Types.LONG()),
        (None, Types.LONG()),
        (Types.LONG(), None),
        (Types.PICKLED_BYTE_ARRAY(), Types.LONG()),
        (Types.FLOAT(), Types.DOUBLE()),
    ],
    ids=repr,
)
def test_declared_types_that_need_no_conversion(old: Any, new: Any) -> None:
    made = backend(value_sections(ValueStateDescriptor("s", old), {"a": 1}))
    made.get_state(ValueStateDescriptor("s", new))
    assert epoch(made) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (Types.STRING(), Types.LONG(), "the value was declared as STRING and is LONG now"),
        (Types.LONG(), Types.INT(), "declared as LONG and is INT now"),
        (Types.TUPLE([Types.INT()]), Types.TUPLE([Types.STRING()]), "the value, part 0 was declared as INT"),
        (Types.ROW([Types.INT()]), Types.ROW([Types.INT(), Types.INT()]), "fields without names cannot be matched"),
        (OLD_ROW, Types.ROW_NAMED(["age"], [Types.STRING()]), "field 'age', was declared as INT and is STRING"),
        (Types.MAP(Types.INT(), Types.INT()), Types.MAP(Types.DOUBLE(), Types.INT()), "the keys of its map"),
        (OLD_ROW, Types.STRING(), "ROW<name STRING, age INT, city STRING> and is STRING"),
    ],
)
def test_declared_types_without_a_way(old: Any, new: Any, message: str) -> None:
    sections = value_sections(ValueStateDescriptor("s", old), {"a": "anything"})
    with pytest.raises(StateMigrationError, match=f"state 's' of operator 'op' cannot be restored: .*{message}"):
        backend(sections).get_state(ValueStateDescriptor("s", new))
    migrated = backend(sections)
    migrated.get_state(ValueStateDescriptor("s", new).migrate_with(str.upper, to_version=2))
    assert contents(migrated) == {"a": "ANYTHING"}


def test_a_row_that_is_not_what_was_declared_is_named() -> None:
    sections = value_sections(ValueStateDescriptor("s", OLD_ROW), {"a": Row(other=1, age=2, city=3)})
    with pytest.raises(
        StateMigrationError, match=r"expected a Row with the fields \['name', 'age', 'city'\], found Row"
    ):
        backend(sections).get_state(ValueStateDescriptor("s", NEW_ROW))


def test_a_key_whose_class_only_got_slots_is_the_same_key(module: ChangingModule) -> None:
    source = "@dataclass(frozen=True{})\nclass Key:\n  id: int"
    module.define(source.format(""))
    old = value_sections(ValueStateDescriptor("s"), {module.make("Key(1)"): "x"})
    module.define(source.format(", slots=True"))
    assert backend(old).keys("s") == [module.make("Key(1)")]
