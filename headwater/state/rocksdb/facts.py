"""What the database in a native checkpoint says about itself, and the timers that were on the heap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.common.errors import StateError
from headwater.state.evolution.changed_classes import ClassChange
from headwater.state.evolution.schema import ClassSchema
from headwater.state.rocksdb.database import Database
from headwater.state.rocksdb.timers import TimerFacts
from headwater.state.rocksdb.values import changes_of
from headwater.state.snapshot.section import Section

_TIMERS = "timers/"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a native checkpoint contains: operator, key groups, states, classes, timers."""

    uid: str
    max_parallelism: int
    key_groups: tuple[int, int]
    """(start, stop)"""
    states: dict[str, tuple[int, tuple[Any, ...]]]
    """{name: (id, layout)}"""
    classes: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    """{state name: schemas of the classes of its keys and values, if there are any}"""
    has_stored_records: bool = False
    """There are `StoredRecord`s, which are converted when the program asks for the state."""
    timers: dict[str, TimerFacts] = field(default_factory=dict)
    """{kind: facts about the timers of that kind}, only of kinds whose timers are in the database"""

    def fits(self, key_groups: range, max_parallelism: int) -> bool:
        """Return True if a backend with these key groups, and today's classes, can use the database unchanged."""
        return (
            self.key_groups == (key_groups.start, key_groups.stop)
            and self.max_parallelism == max_parallelism
            and not self.has_stored_records
            and not self.class_changes()
        )

    def class_changes(self) -> tuple[ClassChange, ...]:
        return changes_of(self.schemas())

    def schemas(self) -> Iterator[ClassSchema]:
        """What the classes of keys, values and timers were."""
        of_timers = (classes for _, _, classes in self.timers.values())
        return (ClassSchema(*each) for classes in (*self.classes.values(), *of_timers) for each in classes)

    @classmethod
    def of(cls, database: Database) -> Facts:
        facts = database.facts()
        if not facts:
            raise StateError(f"{database.path} is a RocksDB database, but not a native checkpoint of headwater")
        return cls(**{name: facts[name] for name in cls.__slots__ if name in facts})

    def to_dict(self) -> dict[str, Any]:
        # Versions that do not know timers in the database would lose them: format 2 makes them refuse.
        return {**asdict(self), **({"format": 2} if self.timers else {})}


def store_timers(database: Database, sections: Iterable[Section]) -> None:
    """Store the timers that live on the heap in the database. Writes only what has changed since the last call."""
    now = {f"{_TIMERS}{section.kind}/{section.name}/{section.key_group}": section.payload for section in sections}
    for name in database.meta_names(_TIMERS):
        if name not in now:
            database.set_meta(name, None)
    for name, payload in now.items():
        database.set_meta(name, payload)


def timer_sections(database: Database, uid: str, key_groups: range | None = None) -> Iterator[Section]:
    """Yield the sections that `store_timers` stored, as sections of operator `uid`."""
    for name in database.meta_names(_TIMERS):
        kind, timers, group = name.removeprefix(_TIMERS).split("/")
        if key_groups is None or int(group) in key_groups:
            payload = database.meta(name)
            assert payload is not None
            yield Section(uid, kind, timers, int(group), payload)
