"""Decides which new partition takes which old state when parallelism, stages or operators have changed. Pure.

A manifest says what the old partitions persisted. The new plan says which operators there are, in which stages, with
how many partitions. Operators are matched by uid, whatever their stage. For each new partition the result is a list of
`RestorePart`s, one per old partition that it takes something from:

- keyed state and timers: the key groups that both the old and the new partition own;
- broadcast state: all of it, from one old partition;
- list state: dealt out from all old partitions (`state.snapshot.redistribution`); unchanged at the same parallelism;
- event time: the old partition's at the same parallelism, otherwise the minimum over the old partitions.

If nothing has changed, partition i reads the chain of partition i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.storage.base import StorageSpec
from headwater.common.errors import CheckpointError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK, Place
from headwater.state.keys.key_groups import key_group_range
from headwater.time.watermark_keys import at_input, at_output, is_output, uid_of, with_uid


@dataclass(frozen=True)
class OperatorShape:
    """What a plan says about one operator behind the first shuffle."""

    uid: str
    stage: int
    parallelism: int
    stateful: bool
    """Its state is in snapshots. Of other operators only the event time is restored."""


@dataclass(frozen=True)
class RestorePart:
    """What one new partition takes from one old partition. Uids are those in the snapshots."""

    directory: str | StorageSpec
    """The checkpoint or savepoint directory that has the snapshots."""
    stage: int
    partition: int
    snapshots: tuple[SnapshotRef, ...]
    """The old partition's chain, oldest first. Read all of it, in this order."""
    keyed: Mapping[str, range] = field(default_factory=dict)
    """{uid: key groups whose keyed state and timers to take}"""
    broadcast: frozenset[str] = frozenset()
    """Uids whose broadcast state to take."""
    lists: frozenset[str] = frozenset()
    """Uids whose list state to take unchanged."""
    dealt: frozenset[str] = frozenset()
    """Uids whose list state to deal out over the new partitions."""

    @property
    def place(self) -> Place:
        return Place(self.stage, self.partition)


@dataclass(frozen=True)
class PartitionRestore:
    """The state that one new partition begins with. Plain data, sent to its slot."""

    stage: int
    partition: int
    parts: tuple[RestorePart, ...] = ()
    """In the order of the old partitions: dealing out list state depends on it."""
    parallelisms: Mapping[str, int] = field(default_factory=dict)
    """{uid in the snapshots: number of partitions to deal its list state out to}"""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """{uid in the snapshots: uid now}, only where they differ."""
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """{watermark key: event time}, with uids as they are now."""
    next_processing_timer_ms: int | None = None


def plan_restore(
    manifest: Manifest,
    operators: Iterable[OperatorShape],
    directory: str | StorageSpec,
    renamed: Mapping[str, str] | None = None,
) -> dict[Place, PartitionRestore]:
    """Return {(stage, partition): the state to begin with} for every partition of the new plan.

    `manifest` must have the uids of now (see `rename_uids`); `renamed` is {uid in its snapshots: uid now}.
    """
    old = _OldShape(manifest, renamed or {})
    by_place: dict[Place, list[OperatorShape]] = {}
    for operator in sorted(operators, key=lambda shape: (shape.stage, shape.uid)):
        if operator.parallelism > manifest.max_parallelism:
            raise CheckpointError(
                f"operator '{operator.uid}' is to have {operator.parallelism} partitions, but its state has "
                f"{manifest.max_parallelism} key groups, which is fixed; expected a parallelism of at most that"
            )
        for partition in range(operator.parallelism):
            by_place.setdefault(Place(operator.stage, partition), []).append(operator)
    return {place: _restore_of(place, shapes, old, directory) for place, shapes in sorted(by_place.items())}


def rename_uids(manifest: Manifest, mapping: Mapping[str, str]) -> Manifest:
    """Return `manifest` with the uids of operators, sources and sinks renamed by `mapping` ({old: new}).

    The snapshots keep the uids that they were written with.
    """
    if not mapping:
        return manifest

    def place(key: str) -> str:
        return with_uid(key, now(uid_of(key)))

    def counter(key: str) -> str:
        uid, dot, what = key.rpartition(".")
        return f"{mapping.get(uid, uid)}{dot}{what}"

    def now(uid: str) -> str:
        return mapping.get(uid, uid)

    replace = msgspec.structs.replace
    sources = {}
    for uid, source in manifest.sources.items():
        splits = {
            split_id: replace(split, details={place(key): value for key, value in split.details.items()})
            for split_id, split in source.splits.items()
        }
        details = {place(key): value for key, value in source.details.items()}
        sources[now(uid)] = replace(source, splits=splits, details=details)
    return replace(
        manifest,
        operators={now(uid): name for uid, name in manifest.operators.items()},
        partitions=[
            replace(record, watermarks={place(key): value for key, value in record.watermarks.items()})
            for record in manifest.partitions
        ],
        sources=sources,
        committables={now(uid): items for uid, items in manifest.committables.items()},
        held={now(uid): items for uid, items in manifest.held.items()},
        counters={counter(key): value for key, value in manifest.counters.items()},
    )


class _OldShape:
    """The shape of the old job: which old partitions had the state of which operator."""

    def __init__(self, manifest: Manifest, renamed: Mapping[str, str]) -> None:
        self.max_parallelism = manifest.max_parallelism
        self.records: dict[Place, PartitionRecord] = {
            record.place: record for record in sorted(manifest.partitions, key=lambda record: record.place)
        }
        self.renamed = renamed
        self._old_uids = {new: old for old, new in renamed.items()}
        self._stateful = manifest.operators
        self._event_time_is_over = manifest.finished
        self._homes: dict[str, list[Place]] = {}
        for place, record in self.records.items():
            for key in record.watermarks:
                if is_output(key):
                    self._homes.setdefault(uid_of(key), []).append(place)
        for uid in self._stateful:
            # No partition has a watermark of the operator: any partition may have its state.
            self._homes.setdefault(uid, [place for place, record in self.records.items() if record.snapshots])

    def homes(self, uid: str) -> list[Place]:
        """Return the old partitions that had operator `uid`, in order."""
        return self._homes.get(uid, [])

    def uid_in_snapshots(self, uid: str) -> str:
        return self._old_uids.get(uid, uid)

    def has_state(self, uid: str) -> bool:
        return uid in self._stateful

    def knows(self, uid: str) -> bool:
        """Return True if the manifest says which partitions had the operator (they have its watermarks)."""
        homes = self.homes(uid)
        return bool(homes) and at_output(uid) in self.records[homes[0]].watermarks

    def key_groups(self, uid: str, place: Place) -> range:
        """Return the key groups of `uid` that an old partition may have."""
        if not self.knows(uid):
            return range(self.max_parallelism)
        return key_group_range(place[1], self.max_parallelism, len(self.homes(uid)))

    def same_partition(self, shape: OperatorShape, partition: int) -> Place | None:
        """Return the old partition that the new one continues; None if the operator's parallelism has changed."""
        homes = self.homes(shape.uid)
        return homes[partition] if self.knows(shape.uid) and len(homes) == shape.parallelism else None

    def watermarks(self, shape: OperatorShape, partition: int) -> dict[str, int]:
        same = self.same_partition(shape, partition)
        homes = self.homes(shape.uid) if same is None else [same]
        found: dict[str, int] = {}
        for key in (at_input(shape.uid), at_output(shape.uid)):
            stored = [self.records[home].watermarks.get(key) for home in homes]
            known = [watermark for watermark in stored if watermark is not None]
            if known:
                watermark = min(known)
                # A finished job ended at MAX_WATERMARK. Reset it, or all new input is late.
                if self._event_time_is_over and watermark == MAX_WATERMARK:
                    watermark = MIN_WATERMARK
                found[key] = watermark
        return found


class _PartBuilder:
    """Collects the fields of one `RestorePart`."""

    def __init__(self) -> None:
        self.keyed: dict[str, range] = {}
        self.broadcast: set[str] = set()
        self.lists: set[str] = set()
        self.dealt: set[str] = set()


def _restore_of(
    place: Place, shapes: list[OperatorShape], old: _OldShape, directory: str | StorageSpec
) -> PartitionRestore:
    partition = place[1]
    builders: dict[Place, _PartBuilder] = {}
    watermarks: dict[str, int] = {}
    parallelisms: dict[str, int] = {}
    renamed: dict[str, str] = {}
    for shape in shapes:
        watermarks |= old.watermarks(shape, partition)
        if not shape.stateful or not old.has_state(shape.uid):
            continue
        uid = old.uid_in_snapshots(shape.uid)
        if uid != shape.uid:
            renamed[uid] = shape.uid
        if _take(shape, partition, uid, old, builders):
            parallelisms[uid] = shape.parallelism
    parts = []
    timers = []
    for home in sorted(builders):
        record, builder = old.records[home], builders[home]
        if record.next_processing_timer_ms is not None:
            timers.append(record.next_processing_timer_ms)
        if record.snapshots:
            parts.append(
                RestorePart(
                    directory=directory,
                    stage=home[0],
                    partition=home[1],
                    snapshots=tuple(record.snapshots),
                    keyed=builder.keyed,
                    broadcast=frozenset(builder.broadcast),
                    lists=frozenset(builder.lists),
                    dealt=frozenset(builder.dealt),
                )
            )
    return PartitionRestore(*place, tuple(parts), parallelisms, renamed, watermarks, min(timers, default=None))


def _take(shape: OperatorShape, partition: int, uid: str, old: _OldShape, builders: dict[Place, _PartBuilder]) -> bool:
    """Add what this partition of the operator takes to `builders`. Return True if its list state is dealt out."""
    same = old.same_partition(shape, partition)
    mine = key_group_range(partition, old.max_parallelism, shape.parallelism)
    if same is not None:
        builder = builders.setdefault(same, _PartBuilder())
        builder.keyed[uid] = mine
        builder.broadcast.add(uid)
        builder.lists.add(uid)
        return False
    homes = old.homes(shape.uid)
    for home in homes:
        builder = builders.setdefault(home, _PartBuilder())
        theirs = old.key_groups(shape.uid, home)
        shared = range(max(mine.start, theirs.start), min(mine.stop, theirs.stop))
        if shared:
            builder.keyed[uid] = shared
        builder.dealt.add(uid)
    # If the manifest does not say who had the operator, read all: those that have its broadcast state have the same.
    for home in [homes[partition % len(homes)]] if old.knows(shape.uid) else homes:
        builders[home].broadcast.add(uid)
    return True
