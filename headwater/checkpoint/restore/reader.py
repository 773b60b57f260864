"""Reads the sections that one new partition loads, in order, as `rescale` decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.restore.rescale import PartitionRestore, RestorePart
from headwater.checkpoint.snapshot.native_reader import StoredDatabase, TakeDatabase, snapshot_sections
from headwater.state.snapshot.redistribution import deal_list_state
from headwater.state.snapshot.section import BROADCAST, OPERATOR, Section

TakeKeyGroups = Callable[[StoredDatabase, str, range], bool]
"""(database, the operator's uid now, the key groups that the partition takes): returns True if the caller restored this
database directly, so that its sections are not needed."""


def restored_sections(
    restore: PartitionRestore, take: TakeKeyGroups | None = None, scratch: Path | None = None
) -> Iterator[Section]:
    """Yield all sections for the partition's backends, with the operators' uids as they are now.

    Load them in this order, before the first epoch. Raises CheckpointError if a file is missing or damaged; the caller
    must then discard what it loaded. `scratch` is the same as in `snapshot_sections`.
    """
    renamed = restore.renamed
    to_deal: dict[str, list[list[Section]]] = {}  # {uid in the snapshots: chains of the old partitions}
    for part in restore.parts:
        for uid in part.dealt:
            to_deal.setdefault(uid, []).append([])
        for section in _sections_of(part, _taking(part, renamed, take), scratch):
            if section.kind == OPERATOR and section.uid in part.dealt:
                to_deal[section.uid][-1].append(section)
            else:
                now = renamed.get(section.uid)
                yield section if now is None else replace(section, uid=now)
    for uid, chains in sorted(to_deal.items()):
        yield from deal_list_state(chains, renamed.get(uid, uid), restore.partition, restore.parallelisms[uid])


def _taking(part: RestorePart, renamed: Mapping[str, str], take: TakeKeyGroups | None) -> TakeDatabase:
    def taken(database: StoredDatabase) -> bool:
        groups = part.keyed.get(database.uid)
        if groups is None:
            return True  # the operator is not in this partition: skip its sections
        return take is not None and take(database, renamed.get(database.uid, database.uid), groups)

    return taken


def _sections_of(part: RestorePart, take: TakeDatabase, scratch: Path | None) -> Iterator[Section]:
    """Yield the sections that the new partition takes from one old partition's chain."""
    ranges = part.keyed.values()
    hull = range(min(groups.start for groups in ranges), max(groups.stop for groups in ranges)) if ranges else range(0)
    unkeyed = bool(part.broadcast or part.lists or part.dealt)
    nothing = range(0)
    layout = CheckpointLayout(part.directory)
    for ref in part.snapshots:
        for section in snapshot_sections(layout, ref, hull, include_unkeyed=unkeyed, take=take, scratch=scratch):
            if section.key_group >= 0:
                wanted = section.key_group in part.keyed.get(section.uid, nothing)
            elif section.kind == BROADCAST:
                wanted = section.uid in part.broadcast
            else:
                wanted = section.uid in part.lists or section.uid in part.dealt
            if wanted:
                yield section
