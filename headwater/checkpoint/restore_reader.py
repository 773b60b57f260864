"""Reads what `rescale` decided: the sections that one new partition loads, in the order in which it loads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.rescale import PartitionRestore, RestorePart
from headwater.checkpoint.snapshot_file import SnapshotRef, read_sections
from headwater.checkpoint.storage import Location
from headwater.state.redistribution import deal_list_state
from headwater.state.section import BROADCAST, OPERATOR, Section

FindSnapshot = Callable[[RestorePart, SnapshotRef], Location]
"""Where a snapshot of a part can be read: a local copy, say."""


def snapshot_in_directory(part: RestorePart, ref: SnapshotRef) -> Location:
    """The file in the directory that the part names."""
    return CheckpointLayout(part.directory).snapshot(ref.name)


def restored_sections(restore: PartitionRestore, find: FindSnapshot = snapshot_in_directory) -> Iterator[Section]:
    """All sections for the partition's backends, with the operators' present uids.

    Load them as they come, before the first epoch. Raises CheckpointError if a file is not what its manifest says;
    nothing that was loaded before may then be used.
    """
    renamed = restore.renamed
    to_deal: dict[str, list[list[Section]]] = {}  # {uid in the snapshots: chains of the old partitions}
    for part in restore.parts:
        for uid in part.dealt:
            to_deal.setdefault(uid, []).append([])
        for section in _sections_of(part, find):
            if section.kind == OPERATOR and section.uid in part.dealt:
                to_deal[section.uid][-1].append(section)
            else:
                now = renamed.get(section.uid)
                yield section if now is None else replace(section, uid=now)
    for uid, chains in sorted(to_deal.items()):
        yield from deal_list_state(chains, renamed.get(uid, uid), restore.partition, restore.parallelisms[uid])


def _sections_of(part: RestorePart, find: FindSnapshot) -> Iterator[Section]:
    """What the partition takes of one old partition's chain."""
    ranges = part.keyed.values()
    hull = range(min(groups.start for groups in ranges), max(groups.stop for groups in ranges)) if ranges else range(0)
    unkeyed = bool(part.broadcast or part.lists or part.dealt)
    nothing = range(0)
    for ref in part.snapshots:
        for section in read_sections(find(part, ref), ref, hull, include_unkeyed=unkeyed):
            if section.key_group >= 0:
                wanted = section.key_group in part.keyed.get(section.uid, nothing)
            elif section.kind == BROADCAST:
                wanted = section.uid in part.broadcast
            else:
                wanted = section.uid in part.lists or section.uid in part.dealt
            if wanted:
                yield section
