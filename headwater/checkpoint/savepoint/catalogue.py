"""Reads what states there are in a savepoint, without the program: kind, form, classes, entries, bytes."""

from __future__ import annotations

from typing import Any

from headwater.checkpoint.savepoint.compatibility import TIMERS, StoredFacts, StoredStateFacts
from headwater.checkpoint.savepoint.savepoint import Savepoint
from headwater.checkpoint.snapshot.native_reader import snapshot_sections
from headwater.state.evolution.migration import key_classes, keys_of
from headwater.state.evolution.schema import ClassSchema
from headwater.state.snapshot import payload
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import BROADCAST, EVENT_TIMERS, KEYED, OPERATOR, PROCESSING_TIMERS, Section

_NAMES = {EVENT_TIMERS: "event-time timers", PROCESSING_TIMERS: "processing-time timers"}
_KINDS = {OPERATOR: "operator list", BROADCAST: "broadcast"}
_SHAPES = {OPERATOR: ("list", False, False), BROADCAST: ("map", False, False)}


def catalogue(savepoint: Savepoint) -> StoredFacts:
    """What is in the savepoint. Reads all of it once; holds the keys of one operator partition at a time."""
    manifest = savepoint.manifest
    found: dict[tuple[str, str, str], _Gathered] = {}
    for record in manifest.partitions:
        for gathered in found.values():
            gathered.next_partition()
        for ref in record.snapshots:
            for section in snapshot_sections(savepoint.layout, ref):
                if section.uid in manifest.operators:
                    state = (section.uid, section.kind, section.name)
                    found.setdefault(state, _Gathered(section)).add(section)
    states = tuple(gathered.facts() for _, gathered in sorted(found.items()))
    pending = {} if savepoint.output_committed else manifest.committables
    return StoredFacts(
        max_parallelism=manifest.max_parallelism,
        operators=dict(manifest.operators),
        sources=frozenset(manifest.sources),
        states=states,
        uncommitted=frozenset(uid for uid, items in pending.items() if items),
    )


class _Gathered:
    """What is known so far about one state."""

    def __init__(self, first: Section) -> None:
        self._uid, self._section_kind, self._name = first.uid, first.kind, first.name
        self._layout: StateLayout | None = None
        self._schemas: dict[ClassSchema, None] = {}
        self._key_classes: set[tuple[str, str]] = set()
        self._live: dict[Any, int] = {}  # {key: entries of it}, of the partition under way
        self._entries = 0
        self._bytes = 0

    def add(self, section: Section) -> None:
        """Take a section into account; those of a chain come in its order."""
        decoded = payload.decode_evolved(section.payload, section.uid, section.name)
        self._bytes += len(section.payload)
        schemas = payload.stored_schemas(section.payload)
        self._schemas.update(dict.fromkeys(schemas))
        if section.kind in _NAMES:
            self._add_timers(decoded.entries)
        else:
            layout = decoded.layout
            if section.kind in _SHAPES:
                layout = (*_SHAPES[section.kind], *layout[1:])
            self._layout = StateLayout(*layout)
            self._add_entries(decoded.entries, self._layout.kind)
        if schemas:
            keys = decoded.entries[1] if section.kind in _NAMES else keys_of(self._kind, decoded.entries)
            self._key_classes.update(key_classes(keys) if section.kind == KEYED or section.kind in _NAMES else ())

    @property
    def _kind(self) -> str:
        return "" if self._layout is None else self._layout.kind

    def next_partition(self) -> None:
        """What was counted is final."""
        number = sum(self._live.values())
        # Every partition has the same broadcast state.
        self._entries = max(self._entries, number) if self._section_kind == BROADCAST else self._entries + number
        self._live = {}

    def facts(self) -> StoredStateFacts:
        self.next_partition()
        timers = self._section_kind in _NAMES
        return StoredStateFacts(
            uid=self._uid,
            name=_NAMES.get(self._section_kind, self._name),
            kind=TIMERS if timers else _KINDS.get(self._section_kind, self._kind),
            layout=self._layout,
            schemas=tuple(self._schemas),
            key_classes=frozenset(self._key_classes),
            entries=self._entries,
            bytes=self._bytes,
        )

    def _add_timers(self, entries: tuple[Any, ...]) -> None:
        for *timer, order in zip(*entries, strict=True):
            if order < 0:
                self._live.pop(tuple(timer), None)
            else:
                self._live[tuple(timer)] = 1

    def _add_entries(self, entries: tuple[Any, ...], kind: str) -> None:
        live = self._live
        if kind == "list":
            keys, bases, added, deleted = entries
            per_key = self._section_kind == OPERATOR  # a person counts the elements of the one list there
            for key, base, elements in zip(keys, bases, added, strict=True):
                live[key] = base + len(elements) if per_key else 1
        elif kind == "map" and self._section_kind == BROADCAST:
            _count_map(live, entries)
            return
        elif kind in ("folded panes", "element panes"):
            live.update(dict.fromkeys(zip(entries[0], entries[1], strict=True), 1))
            deleted = zip(entries[-2], entries[-1], strict=True)
        else:
            live.update(dict.fromkeys(entries[0], 1))
            if kind == "map":
                live.update(dict.fromkeys(entries[2], 1))
            deleted = entries[-1]
        for key in deleted:
            live.pop(key, None)


def _count_map(live: dict[Any, int], entries: tuple[Any, ...]) -> None:
    """The keys of the one map that a broadcast state is."""
    _, maps, _, changed_keys, _, removed_keys, deleted = entries
    if maps or deleted:
        live.clear()
    for each in (*maps, *changed_keys):
        live.update(dict.fromkeys(each, 1))
    for each in removed_keys:
        for key in each:
            live.pop(key, None)
