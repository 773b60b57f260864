"""Finds state in the snapshots of a savepoint, by uid and name. Only this module reads files."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from headwater.checkpoint.manifest import PartitionRecord
from headwater.checkpoint.savepoint.savepoint import Savepoint, Where, open_savepoint
from headwater.checkpoint.snapshot.native_reader import StoredDatabase, snapshot_sections
from headwater.common.errors import StateError
from headwater.common.ids import Place
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot import payload
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import BROADCAST, EVENT_TIMERS, KEYED, OPERATOR, PROCESSING_TIMERS, Section
from headwater.state.snapshot.stored_state import StoredKeyedState

_WORDS = {
    EVENT_TIMERS: "event-time timers",
    PROCESSING_TIMERS: "processing-time timers",
    OPERATOR: "operator list",
    BROADCAST: "broadcast",
}


@dataclass(frozen=True)
class StateInfo:
    """One state of one operator in a savepoint."""

    uid: str
    operator: str
    """The operator's name."""
    name: str
    kind: str
    """'value', 'list', 'map', 'reducing', 'aggregating'; 'folded panes', 'element panes' (of windows); 'operator list',
    'broadcast'; 'event-time timers', 'processing-time timers'."""
    section_kind: str
    ttl: bool
    namespaced: bool
    """The state has a value per key and window, not per key."""
    bytes: int
    """Size in the snapshots, before compression. Larger than the state if a chain changes an entry several times."""


class StoredState:
    """The state in one savepoint."""

    def __init__(self, where: Where | Savepoint) -> None:
        self.savepoint = where if isinstance(where, Savepoint) else open_savepoint(where)
        self.manifest = self.savepoint.manifest

    @property
    def max_parallelism(self) -> int:
        return self.manifest.max_parallelism

    def records(self) -> list[PartitionRecord]:
        """Return all partition records, in the order of stages and partitions."""
        return sorted(self.manifest.partitions, key=lambda record: record.place)

    def sections(
        self, record: PartitionRecord, groups: range | None = None, *, unkeyed: bool = True, uid: str | None = None
    ) -> Iterator[Section]:
        """Yield the sections of one partition's chain, in the order of loading; of operator `uid`, or of all operators
        in the manifest."""
        wanted = self.manifest.operators.keys() if uid is None else {uid}

        def unwanted(database: StoredDatabase) -> bool:
            return database.uid not in wanted

        layout = self.savepoint.layout
        for ref in record.snapshots:
            for section in snapshot_sections(layout, ref, groups, include_unkeyed=unkeyed, take=unwanted):
                if section.uid in wanted:
                    yield section

    def keyed(self, uid: str, groups: range, names: Collection[str], *, timers: bool = False) -> StoredKeyedState:
        """Return the states `names` of some key groups, and with `timers` the timers."""
        state = StoredKeyedState(uid, self.max_parallelism, groups)
        for record in self.records():
            for section in self.sections(record, groups, unkeyed=False, uid=uid):
                if section.name in names if section.kind == KEYED else timers:
                    state.load_section(section)
        return state

    def unkeyed(self, uid: str) -> Iterator[tuple[Place, OperatorStateBackend]]:
        """Yield the operator and broadcast state of each partition that has any."""
        for record in self.records():
            backend: OperatorStateBackend | None = None
            for section in self.sections(record, range(0), uid=uid):
                backend = backend or OperatorStateBackend(uid)
                backend.load_section(section)
            if backend is not None:
                yield record.place, backend

    def catalogue(self) -> list[StateInfo]:
        """All states, by uid and name."""
        sizes: dict[tuple[str, str, str], int] = {}
        layouts: dict[tuple[str, str, str], StateLayout] = {}
        for record in self.records():
            for section in self.sections(record):
                state = (section.uid, section.kind, section.name)
                sizes[state] = sizes.get(state, 0) + len(section.payload)
                if section.kind == KEYED and state not in layouts:
                    layouts[state] = payload.decode(section.payload, section.uid, section.name).layout
        found: list[StateInfo] = []
        for (uid, section_kind, name), size in sorted(sizes.items()):
            layout = layouts.get((uid, section_kind, name))
            kind, ttl, namespaced = (_WORDS[section_kind], False, False) if layout is None else layout.shape
            found.append(StateInfo(uid, self.manifest.operators[uid], name, kind, section_kind, ttl, namespaced, size))
        return found

    def check_uid(self, uid: str) -> None:
        """Raise if the savepoint has no state of operator `uid`."""
        operators = self.manifest.operators
        if uid not in operators:
            what = f"savepoint {self.savepoint.path} has no state of an operator '{uid}'"
            raise StateError(f"{what}; {_known('operators', uid, operators)}")

    def check_state(self, uid: str, name: str, section_kind: str) -> StateInfo:
        """Return the state `name` of operator `uid`. Raises if there is none of that kind."""
        self.check_uid(uid)
        states = [info for info in self.catalogue() if info.uid == uid]
        for info in states:
            if info.name == name and info.section_kind == section_kind:
                return info
        same_name = [info.kind for info in states if info.name == name]
        if same_name:
            raise StateError(f"state '{name}' of operator '{uid}' is of kind '{same_name[0]}': read it as that")
        what = f"operator '{uid}' in savepoint {self.savepoint.path} has no state '{name}'"
        names = [info.name for info in states if info.section_kind in (KEYED, OPERATOR, BROADCAST)]
        raise StateError(f"{what}; {_known('states', name, names)}")


def _known(what: str, wrong: str, names: Collection[str]) -> str:
    if not names:
        return f"it has no {what} at all"
    close = difflib.get_close_matches(wrong, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return f"{hint}it has the {what} {', '.join(sorted(names))}"
