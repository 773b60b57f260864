"""Converts stored values into those that the program asks for: versions, declared types, changed classes.

A backend loads sections before it knows the program's descriptors. So it keeps obstacles until the program asks for the
state. Then the values are converted, or refused, before any record is processed and before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from headwater.common.errors import InvalidKeyError, StateMigrationError, short_repr
from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.changed_classes import ClassChange, StoredRecord
from headwater.state.evolution.declared_types import NoConversionError, TypeForm, type_conversion
from headwater.state.keys.key_groups import key_group
from headwater.state.snapshot.entries import Entries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import Section

Convert = Callable[[Any], Any]


def value_conversion(
    uid: str, descriptor: StateDescriptor, stored: StateLayout, changes: Iterable[ClassChange]
) -> Convert | None:
    """Return the conversion of each stored value, list element or map value; None if they need none.

    `changes` are the changed classes found when the state was loaded. Raises `StateMigrationError` if there is no way.
    """
    what = f"state '{descriptor.name}' of operator '{uid}'"
    obstacles = migration_obstacles(descriptor, stored, changes)
    if obstacles:
        raise StateMigrationError(f"{what} cannot be restored: {' '.join(obstacles)} {_advice(descriptor, stored)}")
    if stored.version < descriptor.version:
        migrations = descriptor.get_migrations()
        steps = [(version, migrations[version]) for version in range(stored.version + 1, descriptor.version + 1)]
        return _through(steps, what)
    convert = type_conversion(*_value_types(stored, StateLayout.of(descriptor).type))
    return None if convert is None else _guarded(convert, f"the conversion of {what} to its declared type")


def migration_obstacles(descriptor: StateDescriptor, stored: StateLayout, changes: Iterable[ClassChange]) -> list[str]:
    """Return why values of layout `stored` cannot become today's values, in whole sentences; empty if they can."""
    if stored.version > descriptor.version:
        return [f"its values are of version {stored.version}, this program knows version {descriptor.version}."]
    if stored.version < descriptor.version:
        steps = range(stored.version + 1, descriptor.version + 1)
        missing = [str(version) for version in steps if version not in descriptor.get_migrations()]
        return (
            [f"it is of version {stored.version}, and there is no migration to {', '.join(missing)}."]
            if missing
            else []
        )
    found = [obstacle for change in changes for obstacle in change.obstacles]
    try:
        type_conversion(*_value_types(stored, StateLayout.of(descriptor).type))
    except NoConversionError as error:
        found.append(f"{error}.")
    return found


def refuse_changed_keys(uid: str, name: str, entries: Entries, changes: Iterable[ClassChange]) -> None:
    """Raise `StateMigrationError` if the class of a key has changed: the key could hash differently and be lost."""
    changed = {(change.stored.module, change.stored.qualname): change for change in changes if change.shows}
    if not changed:
        return
    for identity in key_classes(entries.all_keys()) & changed.keys():
        raise StateMigrationError(
            f"state '{name}' of operator '{uid}' cannot be restored: its keys are objects of "
            f"{changed[identity].stored.name}, which has changed since they were stored. A key must stay as it is: "
            "change the class back, or make the key of plain values (a tuple, a string)"
        )


def refuse_moved_keys(section: Section, layout: StateLayout, entries: Entries, max_parallelism: int) -> None:
    """Keys must be where they are looked for. One key of each class is looked at: others of it share its fate.

    Their hash may have changed with what their class compares, or because an older headwater hashed objects of that
    class in another way.
    """
    uid, name, group = section.uid, section.name, section.key_group
    keys = list(map(itemgetter(0), entries.keys)) if layout.namespaced else entries.keys
    for key in dict(zip(map(type, keys), keys, strict=True)).values():
        try:
            now = key_group(key, max_parallelism)
        except InvalidKeyError as error:
            raise StateMigrationError(f"state '{name}' of operator '{uid}' cannot be restored: {error}") from None
        if now != group:
            raise StateMigrationError(
                f"state '{name}' of operator '{uid}' cannot be restored: its key {short_repr(key)} was stored in key "
                f"group {group} and belongs to {now} now, so its state would not be found. The hash of a "
                f"{type(key).__qualname__} is another since then: make the key of plain values (a tuple, a string)"
            )


def key_classes(keys: Iterable[Any]) -> set[tuple[str, str]]:
    """Return the stored (module, qualname) of the classes of `keys`, and of the parts of tuples."""
    classes: set[type] = set()
    for key in keys:
        classes |= _classes_in(key)
    schemas = [(cls, getattr(cls, "__stored_schema__", None)) for cls in classes]
    return {(cls.__module__, cls.__qualname__) if schema is None else schema[:2] for cls, schema in schemas}


def refuse_obstacles(uid: str, name: str, changes: Iterable[ClassChange]) -> None:
    """Raise `StateMigrationError` if there is an obstacle. For state without a descriptor: it has no migrations."""
    obstacles = [obstacle for change in changes for obstacle in change.obstacles]
    if obstacles:
        raise StateMigrationError(
            f"state '{name}' of operator '{uid}' cannot be restored: {' '.join(obstacles)} Change it back, or give the "
            "operator another uid and start without this state"
        )


def _advice(descriptor: StateDescriptor, stored: StateLayout) -> str:
    if stored.version > descriptor.version:
        return "Run the program that stored it, or a later one"
    if stored.version < descriptor.version:
        return f"Add descriptor.migrate_with(function, to_version=...) for each step after version {stored.version}"
    return (
        "Change it back, give new fields a default, or say how to make new values from old ones with "
        f"descriptor.migrate_with(function, to_version={stored.version + 1})"
    )


def _value_types(stored: StateLayout, today: TypeForm) -> tuple[TypeForm, TypeForm, str]:
    """Return (type before, type today, words for it) of what is converted: a value, an element, or a map value."""
    before = stored.type
    if before is None or today is None:
        return None, None, ""
    if stored.kind == "list":
        return before[1], today[1], "an element"
    if stored.kind == "map":
        if type_conversion(before[1], today[1], "a map key") is not None:
            raise NoConversionError("a map key was declared as an integer and is a float now")
        return before[2], today[2], "a map value"
    return before, today, "the value"


def _through(steps: list[tuple[int, Convert]], what: str) -> Convert:
    guarded = [_guarded(function, f"the migration of {what} to version {version}") for version, function in steps]

    def convert(value: Any) -> Any:
        for function in guarded:
            value = function(value)
        if value is None or isinstance(value, StoredRecord):
            raise StateMigrationError(f"the migration of {what} returned {value!r}; expected a value of today")
        return value

    return convert


def _guarded(function: Convert, what: str) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return function(value)
        except Exception as error:
            raise StateMigrationError(
                f"{what} failed with {type(error).__name__}: {error}; the value is {short_repr(value, 200)}"
            ) from error

    return convert


def _classes_in(key: Any) -> set[type]:
    """Return the class of a key, and those of its parts if it is a tuple."""
    if isinstance(key, tuple):
        return {type(key)}.union(*map(_classes_in, key))
    return {type(key)}
