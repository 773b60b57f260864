"""Finds another chain of snapshots with the same state as a chain with damaged files. Pure.

The manifests that count are one line of history, so an epoch number identifies one state of a partition. What the
chains in two manifests say about these states: ::

    manifest 14:  full 9,  delta 11,  delta 14       "full 9" is the state of checkpoint 9, and of 10: nothing changed
                                                     "delta 11" leads from these to that of 11, 12 and 13
    manifest 10:  full 2,  delta 5,   delta 9        "delta 9" leads to the state of 9, and of 10

So if "full 9" is damaged, "full 2, delta 5, delta 9" leads to a state that "delta 11" can follow: the result is the
state of the same epoch, not of an older one. A chain says nothing about epochs before its first snapshot or after its
manifest. So if a partition started anew with other key groups (a rescaled job), no chain crosses that point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.ids import Place


def another_chain(
    wanted: Sequence[SnapshotRef], place: Place, damaged: Set[str], manifests: Iterable[Manifest]
) -> tuple[SnapshotRef, ...] | None:
    """Return a chain with the same state as `wanted`, a chain of partition `place`, but without `damaged` files.

    Of several such chains, return the one with the fewest bytes; None if there is none. `manifests` are the manifests
    that count in the directory of `wanted`. The manifest with `wanted` must be among them: it tells which history
    `wanted` belongs to.
    """
    chains = [(manifest, _chain(manifest, place)) for manifest in manifests]
    homes = [manifest for manifest, chain in chains if chain == tuple(wanted)]
    if not homes or not wanted:
        return None
    home = max(homes, key=lambda manifest: manifest.epoch)
    history = [(manifest.epoch, chain) for manifest, chain in chains if manifest.job_id == home.job_id and chain]
    best: list[tuple[int, _Step, tuple[SnapshotRef, ...]]] = []  # (bytes, last step, chain to it), in order of epochs
    for step in _steps(history):
        if not damaged.isdisjoint(step.files):
            continue
        if step.before is None:
            best.append((step.ref.total_bytes, step, (step.ref,)))
            continue
        ways = [(size, chain) for size, last, chain in best if last.meets(step.before, step.ref.first_epoch - 1)]
        if ways:
            size, chain = min(ways, key=lambda way: way[0])
            best.append((size + step.ref.total_bytes, step, (*chain, step.ref)))
    goals = [(size, chain) for size, last, chain in best if last.meets(wanted[-1].epoch, home.epoch)]
    return min(goals, key=lambda goal: goal[0])[1] if goals else None


@dataclass
class _Step:
    """What one snapshot does, according to all chains that contain it."""

    ref: SnapshotRef
    before: int | None
    """It may follow the state of any epoch from `before` to the one before its first. None: it needs no state."""
    through: int
    """Its result is the state of every epoch from its own up to `through`."""

    @property
    def files(self) -> set[str]:
        return {self.ref.name, *(file.name for file in self.ref.files)}

    def meets(self, first: int, last: int) -> bool:
        """Return True if its result is the state of an epoch from `first` to `last`."""
        return self.ref.epoch <= last and self.through >= first


def _steps(history: Iterable[tuple[int, Sequence[SnapshotRef]]]) -> Iterator[_Step]:
    """Yield the steps of all chains, each once, in the order of their epochs."""
    steps: dict[str, _Step] = {}
    for manifest_epoch, chain in history:
        for index, ref in enumerate(chain):
            before = chain[index - 1].epoch if index else None
            through = chain[index + 1].epoch - 1 if index + 1 < len(chain) else manifest_epoch
            known = steps.setdefault(ref.name, _Step(ref, before, through))
            known.through = max(known.through, through)
            if before is not None and known.before is not None:
                known.before = min(known.before, before)
    yield from sorted(steps.values(), key=lambda step: step.ref.epoch)


def _chain(manifest: Manifest, place: Place) -> tuple[SnapshotRef, ...]:
    record = manifest.partition(*place)
    return tuple(record.snapshots) if record is not None else ()
