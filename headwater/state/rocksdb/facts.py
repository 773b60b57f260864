"""What a database says about itself in a native checkpoint: whose state it is, and the timers."""

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
    """Whose state a native checkpoint is."""

    uid: str
    max_parallelism: int
    key_groups: tuple[int, int]
    """(the first, the one after the last)"""
    states: dict[str, tuple[int, tuple[Any, ...]]]
    """{name: (id, layout)}"""
    classes: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    """{name of a state: what the classes of its keys and values were, as far as there are any}"""
    has_stored_records: bool = False
    """Whether there are values of an older form, which the program must ask for before they can be used."""
    timers: dict[str, TimerFacts] = field(default_factory=dict)
    """{kind: what to know about the timers of that kind}, as far as they are entries of the database"""

    def fits(self, key_groups: range, max_parallelism: int) -> bool:
        """Whether a backend with these key groups, and the classes of today, can use the database as it is."""
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
        # Who does not know of such timers would lose them, so it must refuse.
        return {**asdict(self), **({"format": 2} if self.timers else {})}


def store_timers(database: Database, sections: Iterable[Section]) -> None:
    """Put timers that live on the heap into the database. Only what differs from the last time is written."""
    now = {f"{_TIMERS}{section.kind}/{section.name}/{section.key_group}": section.payload for section in sections}
    for name in database.meta_names(_TIMERS):
        if name not in now:
            database.set_meta(name, None)
    for name, payload in now.items():
        database.set_meta(name, payload)


def timer_sections(database: Database, uid: str, key_groups: range | None = None) -> Iterator[Section]:
    """What `store_timers` put there, of the operator that is called `uid` now."""
    for name in database.meta_names(_TIMERS):
        kind, timers, group = name.removeprefix(_TIMERS).split("/")
        if key_groups is None or int(group) in key_groups:
            payload = database.meta(name)
            assert payload is not None
            yield Section(uid, kind, timers, int(group), payload)
