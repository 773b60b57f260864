"""Keeps chains of snapshots short while checkpoints follow each other in milliseconds.

From time to time a delta takes the place of the small deltas before it: its file has their sections, in their order,
and then its own. So a chain of thousands of checkpoints has a few dozen files, and needs no full snapshot for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.state.snapshot.section import Section

ABSORB_DELTAS = 16
"""A delta absorbs those before it when there are so many that have absorbed none."""

ABSORB_BYTES = 1 << 20
"""Deltas that are larger together stay as they are: soon a full snapshot takes their place."""


class RecentDeltas:
    """The sections of the small deltas that this slot has written and that its chain has."""

    def __init__(self) -> None:
        self._sections: dict[str, list[Section]] = {}

    def wrote(self, name: str, sections: list[Section]) -> None:
        """The slot writes a delta with these sections."""
        if sum(len(section.payload) for section in sections) <= ABSORB_BYTES // 2:
            self._sections[name] = sections

    def keep(self, chain: Sequence[SnapshotRef]) -> None:
        """Forget deltas that `chain`, that of the durable checkpoint, does not have."""
        if self._sections:
            self._sections = {ref.name: self._sections[ref.name] for ref in chain if ref.name in self._sections}

    def absorbable(self, chain: Sequence[SnapshotRef]) -> list[SnapshotRef]:
        """Return the last deltas of `chain`, if the next delta is to take their place; else [].

        Larger ones before them are included once those behind them are as large together: so each section is written
        again only a few times.
        """
        absorbed: list[SnapshotRef] = []
        size = 0
        for ref in reversed(chain):
            if ref.kind != "delta" or ref.name not in self._sections or size + ref.length > ABSORB_BYTES:
                break
            if ref.since is not None and (len(absorbed) < ABSORB_DELTAS or ref.length > size):
                break
            absorbed.append(ref)
            size += ref.length
        return absorbed[::-1] if len(absorbed) >= ABSORB_DELTAS else []

    def sections_of(self, refs: Sequence[SnapshotRef]) -> list[Section]:
        """The sections of these deltas, in the order in which they must be loaded."""
        return [section for ref in refs for section in self._sections[ref.name]]
