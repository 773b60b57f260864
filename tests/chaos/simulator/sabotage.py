"""Ways to break the engine on purpose, to see that the oracles notice."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.start.claims import DriverClaim
from headwater.runtime.epoch.messages import Attempt, BeginEpoch
from headwater.runtime.job.checkpoints import Checkpoints
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.partitions import Partitions
from headwater.runtime.job.pending_output import PendingOutput
from headwater.runtime.job.processing_clock import ProcessingClock
from headwater.runtime.slot.fence import AttemptFence
from headwater.runtime.slot.recent_deltas import RecentDeltas
from headwater.runtime.slot.slot import Slot
from headwater.state.heap.backend import HeapKeyedStateBackend

Patch = AbstractContextManager[Any]


def commit_before_manifest() -> Patch:
    """Output is visible before its manifest is durable."""
    complete = Checkpoints._complete

    def hasty(self: Checkpoints, manifest: Any, cut: Any) -> None:
        self._committers.commit(manifest.committables)
        complete(self, manifest, cut)

    return mock.patch.object(Checkpoints, "_complete", hasty)


def skip_rollback() -> Patch:
    """A slot keeps what a failed attempt changed."""
    return mock.patch.object(HeapKeyedStateBackend, "rollback_epoch", HeapKeyedStateBackend.commit_epoch)


def drop_a_delta() -> Patch:
    """A partition forgets to persist every third of its deltas."""
    sections = Slot._checkpoint_sections
    cuts: dict[int, int] = {}

    def forgetful(self: Slot, *, whole: bool) -> Any:
        cuts[id(self)] = cuts.get(id(self), 0) + 1
        return [] if not whole and cuts[id(self)] % 3 == 0 else sections(self, whole=whole)

    return mock.patch.object(Slot, "_checkpoint_sections", forgetful)


def ignore_tokens() -> Patch:
    """A slot takes whatever state it holds for the one that it is asked to start from."""
    settle = Slot._settle

    def trusting(self: Slot, begin: BeginEpoch) -> None:
        held = self._pending[0] if self._pending is not None else self._accepted
        base = begin.base if held is None else dataclasses.replace(begin.base, token=held)
        settle(self, dataclasses.replace(begin, base=base))
        if self._accepted is not None:
            self._accepted = begin.base.token

    return mock.patch.object(Slot, "_settle", trusting)


def ignore_claims() -> Patch:
    """A driver that was replaced does not look whether it was."""
    return mock.patch.object(DriverClaim, "check", lambda self: self.record.number + 1)


def ignore_the_fence() -> Patch:
    """A slot serves attempts that were given up."""

    def admits(self: AttemptFence, attempt: Attempt) -> bool:
        self.newest = attempt.order()
        return True

    return mock.patch.object(AttemptFence, "admits", admits)


def commit_backwards() -> Patch:
    """The output of several epochs becomes visible in the wrong order."""
    commit = SinkCommitters.commit

    def backwards(self: SinkCommitters, committables: Mapping[str, list[bytes]]) -> None:
        commit(self, {uid: items[::-1] for uid, items in committables.items()})

    return mock.patch.object(SinkCommitters, "commit", backwards)


def forget_output_of_a_failed_checkpoint() -> Patch:
    """The output of a checkpoint that failed is not committed with the next one."""
    return mock.patch.object(PendingOutput, "hold", lambda self, older: None)


def load_the_old_shape_again() -> Patch:
    """A rescaled job that goes back to its own first checkpoint loads the state it was rescaled from."""
    return mock.patch.object(Partitions, "forget_restores", lambda self: None)


def delete_without_looking() -> Patch:
    """A driver that was replaced deletes what sinks have prepared for the next one."""
    return mock.patch.object(Coordinator, "_check_claim", lambda self: None)


def keep_full_snapshots_of_an_abandoned_checkpoint() -> Patch:
    """A full snapshot of a cut that was dropped when the job went back becomes the base of later checkpoints."""
    settle = Checkpoints.settle

    def keeping(self: Checkpoints) -> None:
        fulls, dropped = dict(self.chains.fulls), self.in_flight is not None and self.in_flight.future is None
        settle(self)
        if dropped:
            self.chains.fulls = fulls

    return mock.patch.object(Checkpoints, "settle", keeping)


def forget_an_absorbed_delta() -> Patch:
    """A delta takes the place of earlier ones and lacks the last of them."""
    sections_of = RecentDeltas.sections_of
    return mock.patch.object(RecentDeltas, "sections_of", lambda self, refs: sections_of(self, refs[:-1]))


def keep_the_progress_of_new_sources() -> Patch:
    """A job that goes back leaves sources where they are that the checkpoint does not know."""
    stand_at = JobSources.stand_at

    def keeping(self: JobSources, manifest: Manifest | None, now_ms: int) -> None:
        with contextlib.ExitStack() as patches:
            for source in self:
                if manifest is not None and source.spec.uid not in manifest.sources:
                    patches.enter_context(mock.patch.object(source, "reset", lambda: None))
            stand_at(self, manifest, now_ms)

    return mock.patch.object(JobSources, "stand_at", keeping)


def wait_for_the_wall_clock() -> Patch:
    """When the clock goes back, time stands still until it has caught up."""

    def standing(self: ProcessingClock) -> float:
        self._now_ms = max(self._now_ms, self._wall_ms())
        return self._now_ms

    return mock.patch.object(ProcessingClock, "now_ms", standing)


def follow_the_wall_clock() -> Patch:
    """Each driver stamps epochs with what its clock shows."""
    return mock.patch.object(Coordinator, "stamp", lambda self: int(self.clock._wall_ms()))


@dataclass(frozen=True)
class Sabotage:
    """How the engine is broken, and what an oracle says about it."""

    patch: Callable[[], Patch]
    says: str
    more: tuple[str, ...] = ()
    """Faults that a seed gets beside its own, where few seeds have what it takes."""


SABOTAGES = (
    Sabotage(commit_before_manifest, "visible without a manifest"),
    Sabotage(skip_rollback, "output: lost"),
    Sabotage(drop_a_delta, "the slots hold something else than the checkpoint"),
    Sabotage(ignore_tokens, "output: lost"),
    Sabotage(ignore_claims, "output: lost"),
    # Tokens make a slot survive nearly every late attempt. What is left is a file that is written a second time.
    Sabotage(ignore_the_fence, "is damaged", ("duplicate-attempt",) * 12),
    Sabotage(commit_backwards, "order: "),
    Sabotage(forget_output_of_a_failed_checkpoint, "output: lost"),
    Sabotage(load_the_old_shape_again, "output: lost", ("stop-and-restore", "slot-crash-beside-checkpoint")),
    Sabotage(delete_without_looking, "was deleted before its commit", ("driver-zombie",) * 3),
    Sabotage(
        keep_full_snapshots_of_an_abandoned_checkpoint,
        "is not what the slots held",
        ("slot-crash-beside-checkpoint",) * 6,
    ),
    Sabotage(forget_an_absorbed_delta, "is not what the slots held"),
    Sabotage(keep_the_progress_of_new_sources, "output: lost"),
    Sabotage(wait_for_the_wall_clock, "processing time stands still"),
    Sabotage(follow_the_wall_clock, "processing time went back"),
)
