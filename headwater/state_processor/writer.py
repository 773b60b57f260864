"""Makes savepoints: from nothing, to give a new job its first state; or from another one, to repair or prune it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Self

import msgspec

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import SavepointInfo, Where, new_savepoint
from headwater.checkpoint.snapshot.file import write_snapshot
from headwater.common.errors import StateError, TypeMismatchError
from headwater.common.ids import Place
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from headwater.state.keys.frozen_keys import frozen
from headwater.state.keys.key_groups import MAX_PARALLELISM_LIMIT, partition_of_key_group
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.entries import TIMERS
from headwater.state.snapshot.section import (
    BROADCAST,
    EVENT_TIMERS,
    KEYED,
    NO_KEY_GROUP,
    OPERATOR,
    PROCESSING_TIMERS,
    Section,
)
from headwater.state.snapshot.stored_state import StoredKeyedState
from headwater.state_processor.frames import elements, entries, keyed_rows, timer_rows, window_rows
from headwater.state_processor.stored import StoredState
from headwater.state_processor.windows import StoredWindows
from headwater.time.watermark_keys import at_output

StateId = tuple[str, str, str]
"""(uid, kind of section, name)"""

_FOLDED: Final = frozenset({"reducing", "aggregating"})


class SavepointWriter:
    """Collects the content of a new savepoint, in memory. `write` puts it on disk.

    Never changes the savepoint that it began with.
    """

    def __init__(self, base: StoredState | None, manifest: Manifest) -> None:
        self._base = base
        self._manifest = manifest
        self._operators = dict(manifest.operators)
        self._new: dict[StateId, list[Section]] = {}
        """States that replace those of the base."""
        self._removed: set[StateId] = set()
        self._edited: dict[tuple[str, str], StoredKeyedState] = {}
        self._windows: dict[str, StoredWindows] = {}
        self._next_timer_ms: int | None = None

    @classmethod
    def new(cls, max_parallelism: int = 128, job_name: str = "bootstrap") -> SavepointWriter:
        """Begin with nothing. A job that starts from the savepoint must have the same `pipeline.max-parallelism`."""
        if not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise StateError(f"max_parallelism is {max_parallelism}; expected 1 to {MAX_PARALLELISM_LIMIT}")
        manifest = Manifest(
            job_id=uuid.uuid4().hex,
            job_name=job_name,
            epoch=0,
            incarnation=1,
            created_ms=0,
            now_ms=0,
            plan_fingerprint="",
            max_parallelism=max_parallelism,
        )
        return cls(None, manifest)

    @classmethod
    def from_existing(cls, path: Where) -> SavepointWriter:
        """Begin with the content of a savepoint or retained checkpoint: state, event time, positions of the sources."""
        base = StoredState(path)
        manifest = base.manifest
        if base.savepoint.output_committed:
            manifest = msgspec.structs.replace(manifest, committables={})
        return cls(base, manifest)

    # --- changes

    def with_keyed_state(
        self,
        uid: str,
        state: StateDescriptor | str,
        rows: Any,
        *,
        key: Callable[[Any], Any] | None = None,
        value: Callable[[Any], Any] | None = None,
    ) -> Self:
        """Give operator `uid` a keyed state. It replaces a state of the same name.

        `state` is the descriptor that the job uses; a name means a value state. `rows` are pairs (key, value) or
        triples (key, namespace, value), or a DataFrame with columns key, value and maybe namespace, which the driver
        collects: structs become tuples in keys and Rows in values. `key` and `value` convert keys and values of the
        rows. The value of a list state is a list, of a map state a dict. To a reducing or aggregating state, each row
        is added.
        """
        descriptor = ValueStateDescriptor(state) if isinstance(state, str) else state
        self._check_kind(uid, descriptor.name, KEYED, descriptor.kind)
        table = StoredKeyedState(uid, self._manifest.max_parallelism, range(self._manifest.max_parallelism))
        table.processing_time_ms = int(time.time() * 1000)
        put = _Putter(table, descriptor)
        for each_key, namespace, each in keyed_rows(rows):
            put(frozen(key(each_key) if key else each_key), namespace, value(each) if value else each)
        try:
            table.check_types()
        except TypeMismatchError as error:
            raise TypeMismatchError(f"with_keyed_state() for operator '{uid}': {error}") from None
        self._replace((uid, KEYED, descriptor.name), table.sections_of(descriptor.name))
        self._edited.pop((uid, descriptor.name), None)
        return self

    def with_timers(self, uid: str, timers: Any, *, event_time: bool = True) -> Self:
        """Give operator `uid` timers. They replace its timers in that time domain.

        `timers` are (timestamp in ms, key) or (timestamp in ms, key, namespace), or a DataFrame with columns
        timestamp_ms, key and maybe namespace. If it has a column time_domain, rows of the other domain are left out.
        """
        max_parallelism = self._manifest.max_parallelism
        table = StoredKeyedState(uid, max_parallelism, range(max_parallelism))
        queue = table.event_timers if event_time else table.processing_timers
        for timestamp_ms, key, namespace in timer_rows(timers, "event" if event_time else "processing"):
            queue.register(timestamp_ms, frozen(key), namespace)
        first = None if event_time else queue.peek()
        if first is not None:
            self._next_timer_ms = first if self._next_timer_ms is None else min(first, self._next_timer_ms)
        self._replace((uid, EVENT_TIMERS if event_time else PROCESSING_TIMERS, TIMERS), queue.full_sections())
        return self

    def with_operator_state(self, uid: str, name: str, rows: Any) -> Self:
        """Give operator `uid` a list state. The elements are dealt out to its partitions.

        The elements are `rows`, or the column value of a DataFrame; a column partition is ignored.
        """
        self._check_kind(uid, name, OPERATOR)
        sections: list[Section] = []
        for element in elements(rows):  # one section each: `write` decides which partition gets it
            backend = OperatorStateBackend(uid)
            backend.get_list_state(ListStateDescriptor(name)).add(element)
            sections += backend.full_sections()
        self._replace((uid, OPERATOR, name), sections)
        return self

    def with_broadcast_state(self, uid: str, name: str, rows: Any) -> Self:
        """Give operator `uid` a broadcast state, the same in all partitions. `rows` is a mapping, pairs, or a DataFrame
        with columns key and value."""
        self._check_kind(uid, name, BROADCAST)
        backend = OperatorStateBackend(uid)
        backend.get_broadcast_state(MapStateDescriptor(name)).put_all(entries(rows))
        self._replace((uid, BROADCAST, name), backend.full_sections())
        return self

    def change(self, uid: str, name: str, key: Any, value: Any, namespace: Any = None) -> Self:
        """Set the entry of `key` in the existing keyed state `name`, in the same form as `SavepointReader` shows it.

        None removes the entry. All other entries stay unchanged.
        """
        table = self._edited.get((uid, name))
        if table is None:
            table = self._edited[uid, name] = self._loaded(uid, name)
        table.put(name, frozen(key), namespace, value)
        return self

    def change_windows(self, uid: str, rows: Any, *, contents: Callable[[Any], Any] | None = None) -> Self:
        """Set the contents of windows of operator `uid`. Windows that are not in `rows` stay unchanged.

        `rows` have the form of `SavepointReader.windows`, (key, start in ms, end in ms, contents), or are a DataFrame
        with these columns. `contents` converts the contents of the rows. A window that does not exist is an error:
        only the operator decides which windows there are, and when they end.
        """
        base = self._stored_base(uid)
        base.check_uid(uid)
        windows = self._windows.get(uid) or self._windows.setdefault(uid, StoredWindows(base, uid))
        for key, start_ms, end_ms, each in window_rows(rows):
            found = windows.changed(key, start_ms, end_ms, contents(each) if contents else each)
            self.change(uid, found.name, key, found.value, found.namespace)
        return self

    def remove(self, uid: str, name: str | None = None) -> Self:
        """Remove a state of any kind; without `name`, all state and timers of an operator."""
        if uid not in self._operators:
            self._stored_base(uid).check_uid(uid)
        known = {info for info in self._known_states() if info[0] == uid and name in (None, info[2])}
        if name is not None and not known:
            self._stored_base(uid).check_state(uid, name, KEYED)
        for state in known:
            self._new.pop(state, None)
            self._edited.pop((uid, state[2]), None)
            self._removed.add(state)
        if name is None:
            self._operators.pop(uid, None)
        return self

    # --- writing

    def write(self, target: Where, *, durable: bool = True) -> SavepointInfo:
        """Write the savepoint to `target`, which must not exist. The writer can be used again."""
        for (uid, name), table in self._edited.items():
            self._replace((uid, KEYED, name), table.sections_of(name))
        placed = self._placed()
        with new_savepoint(target, durable=durable) as draft:
            records = [
                self._write_part(draft.layout, record, placed, durable=durable) for record in self._records(placed)
            ]
            if self._base is not None:
                self._base.savepoint.copy_source_files(draft.layout, durable=durable)
            draft.manifest = msgspec.structs.replace(
                self._manifest,
                created_ms=int(time.time() * 1000),
                operators=self._operators,
                partitions=records,
            )
        return draft.info

    def _write_part(
        self,
        layout: CheckpointLayout,
        record: PartitionRecord,
        placed: dict[Place, list[Section]],
        *,
        durable: bool,
    ) -> PartitionRecord:
        """Write one partition's file: what remains of its chain, and what is new."""
        place = record.place
        sections = chain(self._kept(record), placed.get(place, ()))
        first = next(sections, None)
        snapshots = []
        if first is not None:
            path = layout.new_snapshot(*place, self._manifest.epoch, "processed", "full")
            header = {
                "epoch": self._manifest.epoch,
                "kind": "full",
                "key_groups": (0, self._manifest.max_parallelism),
                "stage": place[0],
                "partition": place[1],
            }
            snapshots = [write_snapshot(path, header, chain((first,), sections), durable=durable)]
        due = [ms for ms in (record.next_processing_timer_ms, self._next_timer_ms) if ms is not None]
        return msgspec.structs.replace(record, snapshots=snapshots, next_processing_timer_ms=min(due, default=None))

    def _kept(self, record: PartitionRecord) -> Iterator[Section]:
        if self._base is None:
            return
        for section in self._base.sections(record):
            state = (section.uid, section.kind, section.name)
            if state not in self._new and state not in self._removed and section.uid in self._operators:
                yield section

    def _records(self, placed: Mapping[Place, list[Section]]) -> list[PartitionRecord]:
        """Return the partitions of the base, and one more for operators that none of them has."""
        records = [] if self._base is None else self._base.records()
        extra = self._extra_place()
        return [*records, PartitionRecord(*extra)] if extra in placed else records

    def _extra_place(self) -> Place:
        return Place(max((record.stage for record in self._manifest.partitions), default=0) + 1, 0)

    def _placed(self) -> dict[Place, list[Section]]:
        """Return {partition: new sections for it}. If the base has the operator, each partition gets its own part."""
        placed: dict[Place, list[Section]] = {}
        max_parallelism = self._manifest.max_parallelism
        for (uid, kind, name), sections in self._new.items():
            homes = self._homes(uid) or [self._extra_place()]
            if kind == OPERATOR:
                for index, home in enumerate(homes):
                    placed.setdefault(home, []).extend(_joined(uid, name, sections[index :: len(homes)]))
                continue
            for section in sections:
                if section.key_group == NO_KEY_GROUP:
                    owners = homes
                else:
                    owners = [homes[partition_of_key_group(section.key_group, max_parallelism, len(homes))]]
                for owner in owners:
                    placed.setdefault(owner, []).append(section)
        return placed

    def _homes(self, uid: str) -> list[Place]:
        records = [] if self._base is None else self._base.records()
        return [record.place for record in records if at_output(uid) in record.watermarks]

    # --- what is there

    def _replace(self, state: StateId, sections: Iterable[Section]) -> None:
        self._new[state] = list(sections)
        self._removed.discard(state)
        self._operators.setdefault(state[0], state[0])

    def _known_states(self) -> set[StateId]:
        base = [] if self._base is None else self._base.catalogue()
        found = {(info.uid, info.section_kind, info.name) for info in base} - self._removed
        return found | set(self._new)

    def _check_kind(self, uid: str, name: str, section_kind: str, kind: str | None = None) -> None:
        """Raise if the state that is replaced has another kind: the job would refuse it."""
        if not name:
            raise StateError(f"a state of operator '{uid}' needs a name")
        if self._base is None:
            return
        for info in self._base.catalogue():
            if (info.uid, info.name) != (uid, name) or (uid, info.section_kind, name) in self._removed:
                continue
            if info.section_kind != section_kind or (kind is not None and info.kind != kind):
                raise StateError(
                    f"state '{name}' of operator '{uid}' is of kind '{info.kind}' in {self._base.savepoint.path}, but "
                    f"is given as '{kind or section_kind}'; use the descriptor that the job uses, or remove() it first"
                )

    def _loaded(self, uid: str, name: str) -> StoredKeyedState:
        """Return the state `name` with the changes so far, to be changed further."""
        groups = range(self._manifest.max_parallelism)
        given = self._new.get((uid, KEYED, name))
        if given is not None:
            table = StoredKeyedState(uid, len(groups), groups)
            for section in given:
                table.load_section(section)
            return table
        base = self._stored_base(uid)
        base.check_state(uid, name, KEYED)
        if (uid, KEYED, name) in self._removed:
            raise StateError(f"state '{name}' of operator '{uid}' was removed; give it anew with with_keyed_state()")
        return base.keyed(uid, groups, {name})

    def _stored_base(self, uid: str) -> StoredState:
        if self._base is None:
            raise StateError(
                f"there is no such state of operator '{uid}': this savepoint begins with nothing, and was given state "
                f"of {', '.join(sorted(self._operators)) or 'no operator'} so far"
            )
        return self._base


class _Putter:
    """Puts rows into one state with the state's own methods, as the job would."""

    def __init__(self, table: StoredKeyedState, descriptor: StateDescriptor) -> None:
        self._table = table
        self._descriptor = descriptor
        self._seen: set[Any] = set()
        self._state: Any = None
        self._namespaced: bool | None = None

    def __call__(self, key: Any, namespace: Any, value: Any) -> None:
        table, kind = self._table, self._descriptor.kind
        if self._state is None:
            self._namespaced = namespace is not None
            get = table.get_namespaced_state if self._namespaced else table.get_state
            self._state = get(self._descriptor)
        if (namespace is not None) is not self._namespaced:
            raise StateError(f"{self._where(key)}: some rows have a namespace and some have none")
        if kind not in _FOLDED:
            if (key, namespace) in self._seen:
                raise StateError(f"{self._where(key)}: the key comes twice; a {kind} state has one entry per key")
            self._seen.add((key, namespace))
        table.current_key, table.current_namespace = key, namespace
        if value is None:
            return
        try:
            if kind in _FOLDED:
                self._state.add(value)
            elif kind == "list":
                self._state.update(list(value))
            elif kind == "map":
                self._state.put_all(dict(value))
            else:
                self._state.update(value)
        except (TypeError, ValueError) as error:
            raise StateError(f"{self._where(key)}: {value!r} does not fit a {kind} state ({error})") from error

    def _where(self, key: Any) -> str:
        return f"state '{self._descriptor.name}' of operator '{self._table.uid}', key {key!r}"


def _joined(uid: str, name: str, sections: Iterable[Section]) -> Iterator[Section]:
    """Join sections of single elements into the list state of one partition."""
    backend = OperatorStateBackend(uid)
    state = backend.get_list_state(ListStateDescriptor(name))
    for section in sections:
        element = OperatorStateBackend(uid)
        element.load_section(section)
        state.add_all(element.committed_list(name))
    return backend.full_sections()
