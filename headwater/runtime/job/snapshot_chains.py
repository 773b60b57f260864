"""Which snapshots make up the state of each partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.checkpoint.paths import TEMPORARY_SUFFIX
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.ids import Place
from headwater.runtime.epoch.messages import SnapshotPart

Chains = dict[Place, list[SnapshotRef]]
"""{partition: its snapshots, oldest first}"""


class SnapshotChains:
    """The chains of the last durable checkpoint, and the full snapshots that will shorten the next ones."""

    def __init__(self, chains: Mapping[Place, list[SnapshotRef]] | None = None) -> None:
        self.durable: Chains = {place: list(chain) for place, chain in (chains or {}).items()}
        self.fulls: dict[Place, SnapshotRef] = {}
        self.writing: set[str] = set()
        """Names of files that slots are writing."""

    def add_full(self, place: Place, full: SnapshotRef) -> None:
        """From the next manifest on, a full snapshot replaces all snapshots that are not newer.

        Its checkpoint is durable or in flight: if that is given up, the slot discards the snapshot before its next
        acknowledgement.
        """
        self.fulls[place] = full

    def with_parts(self, parts: Mapping[Place, SnapshotPart]) -> Chains:
        """Return the chains of a checkpoint that consists of these parts and what was durable before."""
        chains = {place: list(chain) for place, chain in self.durable.items()}
        for place, part in parts.items():
            chain = [] if part.whole else chains.get(place, [])
            if part.ref is not None:  # it may have absorbed the last deltas
                chain = [*(ref for ref in chain if ref.epoch < part.ref.first_epoch), part.ref]
            full = self.fulls.get(place)
            if full is not None and not part.whole and not _spans(chain, full):
                chain = [full, *(ref for ref in chain if ref.epoch > full.epoch)]
            chains[place] = chain
        return chains

    def completed(self, chains: Chains) -> None:
        """A checkpoint with these chains is durable."""
        self.durable = chains
        self.fulls = {
            place: ref
            for place, ref in self.fulls.items()
            if not _is_past(chains.get(place), ref) and not _spans(chains.get(place, ()), ref)
        }

    def given_up(self, epoch: int) -> None:
        """The checkpoint of `epoch` was given up: forget its full snapshots.

        No delta can follow them: the next deltas follow the checkpoint before.
        """
        self.fulls = {place: ref for place, ref in self.fulls.items() if ref.epoch < epoch}

    def unfinished_names(self) -> set[str]:
        """Return names of files that are not garbage though no manifest names them."""
        return self.writing | {name + TEMPORARY_SUFFIX for name in self.writing}


def _is_past(chain: list[SnapshotRef] | None, full: SnapshotRef) -> bool:
    """Return True if `chain` begins with `full`, or with a later snapshot that replaces it."""
    return chain is not None and len(chain) > 0 and chain[0].kind != "delta" and chain[0].epoch >= full.epoch


def _spans(chain: Iterable[SnapshotRef], full: SnapshotRef) -> bool:
    """Return True if a delta of `chain` has changes from before and after `full`: it cannot follow it."""
    return any(ref.first_epoch <= full.epoch < ref.epoch for ref in chain)
