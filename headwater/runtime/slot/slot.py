"""The state machine of a slot: which epoch its state stands at, and how it gets to the next. Knows no sockets.

State stands at `committed` (an epoch whose manifest is durable), plus, after `finish`, the changes of one more epoch
that are not known to be committed yet. The next `begin` says which manifest is the last one, and so whether those
changes are kept or undone. If the slot cannot get to that manifest's state by keeping or undoing, it loads it.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot_file import SnapshotRef, read_sections, write_snapshot
from headwater.common.errors import CheckpointError, HeadwaterError
from headwater.graph.plan import JobPlan
from headwater.runtime.edges import Emit
from headwater.runtime.slot.full_snapshot import FullSnapshotChild, full_snapshot_is_due
from headwater.runtime.slot.protocol import Attempt, BeginEpoch, SlotAck, SlotAddress
from headwater.runtime.stage_runner import RunnerIdentity, StageRunner
from headwater.state.keyed_backend import KeyedStateBackend

log = logging.getLogger(__name__)

NOTHING = -2
"""`committed` of a slot that holds no state yet, not even the empty one (-1) that a job begins with."""

FULL_COLLECTION_EVERY = 200
"""Epochs between two full garbage collections; young objects are collected after each epoch."""


class StateLostError(HeadwaterError):
    """The slot does not hold the state asked for and there is no snapshot to load it from: the run starts over."""


class Slot:
    """Owns one partition of a stateful stage."""

    def __init__(self, plan: JobPlan, job_id: str, address: SlotAddress, layout: CheckpointLayout | None) -> None:
        self._plan = plan
        self._job_id = job_id
        self._address = address
        self._layout = layout
        self._runner: StageRunner | None = None
        self._emit: Emit | None = None
        self._full: FullSnapshotChild | None = None
        self._epochs_run = 0
        self.committed = NOTHING
        self.pending: int | None = None
        self._dirty = False

    # --- the epoch

    def begin(self, begin: BeginEpoch, emit: Emit) -> bool:
        """Get to the state of `begin.base_epoch` and start the attempt. Returns True if state had to be loaded."""
        gc.disable()
        self._settle(begin.base_epoch)
        restored = self.committed != begin.base_epoch
        if restored:
            self._restore(begin)
        runner = self._runner
        assert runner is not None
        if begin.checkpointing and self._full is None and full_snapshot_is_due(begin.snapshots):
            self._full = self._start_full(runner, begin.attempt, begin.base_epoch)
        self._emit = emit
        self._dirty = True
        for backend in runner.backends():
            backend.begin_epoch()
        self._started = time.perf_counter()
        runner.begin_epoch(begin.attempt.epoch, begin.attempt.id, begin.now_ms, begin.watermarks)
        return restored

    @property
    def runner(self) -> StageRunner:
        assert self._runner is not None
        return self._runner

    def finish(self, begin: BeginEpoch, restored: bool, processed: Callable[[], None]) -> SlotAck:
        """All input was applied: end the epoch, persist what it changed, and wait for the verdict."""
        outcome = self.runner.finish_epoch(begin.now_ms)
        processed()
        after_processing = time.perf_counter()
        ack = SlotAck(self._address.stage, self._address.partition, self._address, outcome, restored=restored)
        if begin.checkpointing:
            ack.delta = self._write_delta(begin.attempt)
            if self._full is not None and self._full.done():
                ack.full, self._full = self._full.result(), None
            ack.writing = self._full.name if self._full is not None else None
        self.pending, self._dirty = begin.attempt.epoch, False
        ack.processing_ms = (after_processing - self._started) * 1000
        ack.snapshot_ms = (time.perf_counter() - after_processing) * 1000
        self._epochs_run += 1
        gc.collect(2 if self._epochs_run % FULL_COLLECTION_EVERY == 0 else 0)
        return ack

    def abort(self) -> None:
        """The attempt under way is given up."""
        if self._dirty:
            self._undo()

    def close(self) -> None:
        """The job is over: close the user's functions."""
        if self._full is not None:
            self._full.kill()
        if self._runner is not None:
            self._runner.close()

    # --- getting to a state

    def _settle(self, base_epoch: int) -> None:
        """Keep or undo the changes that are not known to be committed."""
        if self._dirty:
            self.abort()
        if self.pending is None:
            return
        if self.pending == base_epoch and self._runner is not None:
            for backend in self._runner.backends():
                backend.commit_epoch(cut=True)
                backend.checkpoint_completed()
            self.committed = base_epoch
        else:
            self._undo()
        self.pending = None

    def _undo(self) -> None:
        """Back to the committed epoch: what operators keep beside their state, then the state."""
        self._dirty = False
        if self._runner is None:
            return
        try:
            self._runner.abort_epoch()
        finally:
            for backend in self._runner.backends():
                backend.rollback_epoch()

    def _restore(self, begin: BeginEpoch) -> None:
        if begin.base_epoch >= 0 and not begin.checkpointing:
            raise StateLostError(
                f"stage {self._address.stage} partition {self._address.partition} lost its state of epoch "
                f"{begin.base_epoch}, and checkpointing is off"
            )
        if self._runner is not None:
            try:
                self._runner.close()
            except Exception:
                log.warning("closing the functions of a replaced state failed", exc_info=True)
        self.committed, self.pending = NOTHING, None
        identity = RunnerIdentity(self._job_id, self._address.partition, begin.attempt.incarnation)
        runner = StageRunner(self._plan, self._address.stage, identity, self._forward)
        self._load(runner, begin.snapshots)
        runner.open()
        self._runner = runner
        self.committed = begin.base_epoch
        # What was just loaded lives long: keep the collector from looking at it again and again.
        gc.collect()
        gc.freeze()

    def _load(self, runner: StageRunner, snapshots: list[SnapshotRef]) -> None:
        if not snapshots:
            return
        if self._layout is None:
            raise CheckpointError("snapshots to restore, but no checkpoint directory is known")
        backends = {(backend.uid, isinstance(backend, KeyedStateBackend)): backend for backend in runner.backends()}
        for ref in snapshots:
            for section in read_sections(self._layout.snapshot(ref.name), ref):
                backend = backends.get((section.uid, section.key_group >= 0))
                if backend is not None:
                    backend.load_section(section)

    def _forward(self, target: int, frame: bytes) -> None:
        assert self._emit is not None
        self._emit(target, frame)

    # --- snapshots

    def _write_delta(self, attempt: Attempt) -> SnapshotRef | None:
        sections = [section for backend in self.runner.backends() for section in backend.delta_sections()]
        if not sections:
            return None
        assert self._layout is not None
        path = self._layout.new_snapshot(
            self._address.stage, self._address.partition, attempt.epoch, attempt.id, "delta"
        )
        return write_snapshot(path, self._header(attempt.epoch, "delta"), sections)

    def _start_full(self, runner: StageRunner, attempt: Attempt, epoch: int) -> FullSnapshotChild:
        assert self._layout is not None
        path = self._layout.new_snapshot(self._address.stage, self._address.partition, epoch, attempt.id, "full")
        header = self._header(epoch, "full")

        def write() -> SnapshotRef:
            return write_snapshot(
                path, header, (section for backend in runner.backends() for section in backend.full_sections())
            )

        return FullSnapshotChild.start(path.name, write)

    def _header(self, epoch: int, kind: str) -> dict[str, object]:
        return {
            "epoch": epoch,
            "kind": kind,
            "key_groups": [0, self._plan.max_parallelism],
            "stage": self._address.stage,
            "partition": self._address.partition,
        }
