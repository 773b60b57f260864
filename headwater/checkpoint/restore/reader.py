"""Reads what `rescale` decided: the sections that one new partition loads, in the order in which it loads them."""

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
"""Asked with a database, the operator's present uid, and the key groups of it that the partition is to have: whether
the caller has restored it as it is, so that its sections are not wanted."""


def restored_sections(
    restore: PartitionRestore, take: TakeKeyGroups | None = None, scratch: Path | None = None
) -> Iterator[Section]:
    """All sections for the partition's backends, with the operators' present uids.

    Load them as they come, before the first epoch. Raises CheckpointError if a file is not what its manifest says;
    nothing that was loaded before may then be used. `scratch` as for `snapshot_sections`.
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
            return True  # of an operator that is not here: nobody wants its sections
        return take is not None and take(database, renamed.get(database.uid, database.uid), groups)

    return taken


def _sections_of(part: RestorePart, take: TakeDatabase, scratch: Path | None) -> Iterator[Section]:
    """What the partition takes of one old partition's chain."""
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
