"""Lists the states in a savepoint without the program: kind, layout, classes, entries, bytes."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoint.savepoint.compatibility import StoredFacts, StoredStateFacts
from headwater.checkpoint.savepoint.savepoint import Savepoint
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.snapshot.native_reader import snapshot_sections
from headwater.common.errors import CheckpointError, HeadwaterError
from headwater.state.evolution.migration import key_classes
from headwater.state.evolution.schema import ClassSchema
from headwater.state.restricted import StandIns
from headwater.state.snapshot import payload
from headwater.state.snapshot.entries import TIMERS, Counted
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import BROADCAST, EVENT_TIMERS, OPERATOR, PROCESSING_TIMERS, Section

_NAMES = {EVENT_TIMERS: "event-time timers", PROCESSING_TIMERS: "processing-time timers"}
_KINDS = {OPERATOR: "operator list", BROADCAST: "broadcast"}


def catalogue(savepoint: Savepoint, *, trust: bool = False) -> StoredFacts:
    """What is in the savepoint. Reads all of it once; holds the keys of one operator partition at a time.

    Without `trust` no class that it names is loaded, so that nobody's code runs. A state that cannot be read so has a
    `problem`.
    """
    manifest = savepoint.manifest
    stand_ins = None if trust else StandIns()
    found: dict[tuple[str, str, str], _Gathered] = {}
    for record in manifest.partitions:
        for gathered in found.values():
            gathered.next_partition()
        for ref in record.snapshots:
            for section in _sections(savepoint, ref, stand_ins):
                if section.uid in manifest.operators:
                    state = (section.uid, section.kind, section.name)
                    found.setdefault(state, _Gathered(section)).add(section, stand_ins)
    states = tuple(gathered.facts() for _, gathered in sorted(found.items()))
    pending = {} if savepoint.output_committed else manifest.committables
    return StoredFacts(
        max_parallelism=manifest.max_parallelism,
        operators=dict(manifest.operators),
        sources=frozenset(manifest.sources),
        states=states,
        uncommitted=frozenset(manifest.sinks_with_output(pending)),
        not_loaded=frozenset() if stand_ins is None else frozenset(stand_ins.unknown),
    )


def _sections(savepoint: Savepoint, ref: SnapshotRef, stand_ins: StandIns | None) -> Iterator[Section]:
    try:
        yield from snapshot_sections(savepoint.layout, ref, stand_ins=stand_ins)
    except HeadwaterError:
        raise
    except Exception as error:
        if stand_ins is None:
            raise
        raise CheckpointError(
            f"snapshot {savepoint.snapshot_path(ref)} cannot be read without the classes that it names "
            f"({type(error).__name__}: {error}); if you trust whoever wrote it: --trust"
        ) from error


class _Gathered:
    """Collects the facts about one state, section by section."""

    def __init__(self, first: Section) -> None:
        self._uid, self._section_kind, self._name = first.uid, first.kind, first.name
        self._layout: StateLayout | None = None
        self._schemas: dict[ClassSchema, None] = {}
        self._key_classes: set[tuple[str, str]] = set()
        self._live: Counted = {}  # of the current partition
        self._entries = 0
        self._bytes = 0
        self._problem = ""

    def add(self, section: Section, stand_ins: StandIns | None) -> None:
        """Take a section into account; those of a chain come in its order."""
        self._bytes += len(section.payload)
        if stand_ins is None:
            self._take(section, payload.decode(section.payload, section.uid, section.name))
            return
        try:
            self._take(section, payload.decode_restricted(section.payload, stand_ins, section.uid, section.name))
        except Exception as error:  # whatever somebody put there
            self._problem = f"{error}; if you trust whoever wrote it: --trust"

    def _take(self, section: Section, decoded: payload.Decoded) -> None:
        schemas = payload.stored_schemas(section.payload)
        self._schemas.update(dict.fromkeys(schemas))
        if section.kind not in _NAMES:
            self._layout = decoded.layout
        if section.kind in _KINDS:  # one list or map, of no key: count what is in it
            decoded.entries.count_elements(self._live)
            return
        decoded.entries.count_keys(self._live)
        if schemas:
            self._key_classes |= key_classes(decoded.entries.all_keys())

    @property
    def _kind(self) -> str:
        return "" if self._layout is None else self._layout.kind

    def next_partition(self) -> None:
        """Add the current partition's entries to the total, before the next partition's sections come."""
        number = sum(map(len, self._live.values()))
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
            problem=self._problem,
        )
