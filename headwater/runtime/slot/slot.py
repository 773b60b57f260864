"""The state machine of a slot: which epoch its state belongs to, and how it reaches the next one. Knows no sockets.

The slot holds the state of an accepted epoch (all partitions acknowledged it). After `finish` it also holds the changes
of one more epoch, not knowing yet whether that was accepted. `checkpoint_completed` says so when its checkpoint is
durable. If that message does not come, the next `begin` names the last accepted epoch: the slot keeps or undoes the
changes, and learns whether the last checkpoint succeeded. If it cannot reach the state to start from in memory (by
keeping, by undoing, by going back to the last checkpoint), it loads the last checkpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from headwater.checkpoint.paths import CheckpointLayout, SnapshotKind
from headwater.checkpoint.restore.damaged import RestoreRepair
from headwater.checkpoint.restore.reader import TakeKeyGroups, restored_sections
from headwater.checkpoint.snapshot.file import SnapshotRef, write_snapshot
from headwater.checkpoint.snapshot.native_reader import StoredDatabase, snapshot_sections
from headwater.checkpoint.storage.base import Location
from headwater.common.errors import (
    CheckpointError,
    DamagedSnapshotError,
    LocalDiskError,
    SerializationError,
    StateError,
)
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import Attempt, Base, BeginEpoch, PartitionAck, SlotAddress
from headwater.runtime.epoch.steps import Step, run_steps
from headwater.runtime.slot.full_snapshot import (
    FullSnapshot,
    FullSnapshotChild,
    full_snapshot_is_due,
    warn_of_time_limit,
)
from headwater.runtime.slot.garbage import GarbageCollection
from headwater.runtime.slot.native_snapshots import NativeSnapshots
from headwater.runtime.slot.recent_deltas import RecentDeltas
from headwater.runtime.slot.upload import GRACE_SECONDS, Upload
from headwater.runtime.stage.edges import Emit
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.wiring import RunnerIdentity
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.readable_backend import ReadableBackend
from headwater.state.snapshot.native_state import NativeState
from headwater.state.snapshot.section import Section

log = logging.getLogger(__name__)


class Queries(Protocol):
    """What the thread that processes does for readers of the slot's state."""

    def poll(self) -> None:
        """Answer the look-ups that have arrived. Called between two steps, when nobody holds a lock of the state."""

    def epoch_ended(self) -> None:
        """There will be no `poll` until the next epoch."""


class Slot:
    """Owns one partition of a stateful stage."""

    def __init__(
        self,
        plan: JobPlan,
        job_id: str,
        address: SlotAddress,
        layout: CheckpointLayout | None,
        background: Background = THREADS,
        checkpoint_seconds: float = 600.0,
    ) -> None:
        """What is written for a checkpoint may take `checkpoint_seconds`; then it is given up."""
        self.plan = plan
        self._job_id = job_id
        self._address = address
        self._layout = layout
        self._background = background
        self._checkpoint_seconds = checkpoint_seconds
        self._clock = time.monotonic
        self._runner: StageRunner | None = None
        self.readable: StageRunner | None = None
        """The runner whose state other threads may read; None while a checkpoint is loaded."""
        self.processing = False
        """An epoch is under way."""
        self.processing_thread: int | None = None
        """The thread of the last epoch."""
        self.queries: Queries | None = None
        """None: nobody can read the state."""
        self._emit: Emit | None = None
        self._natives = NativeSnapshots(background)
        self._native: list[NativeState] = []
        self._native_of: StageRunner | None = None
        """The runner whose backends `_native` has."""
        self._full: FullSnapshot | None = None
        self._full_started = 0.0
        self._full_token = ""
        """Token of the checkpoint whose state `_full` holds. Discard `_full` if that checkpoint fails."""
        self._handed_out: str | None = None
        """Name of the full snapshot reported last, kept until the first checkpoint that may contain it settles."""
        self._upload: Upload | None = None
        self._deltas = RecentDeltas()
        self._garbage = GarbageCollection()
        self._accepted: str | None = None
        """Token of the state that the slot holds. None: the slot has no state yet, not even an empty one."""
        self._durable: str | None = None
        """Token of the last durable checkpoint: the backends can go back to it in memory."""
        self._in_flight: str | None = None
        """Token of the last checkpoint that was cut, until it completes or fails."""
        self._pending: tuple[str, bool, int] | None = None
        """Token of the epoch that ran but is not accepted yet, whether a checkpoint was cut at its end, the epoch."""
        self._dirty = False
        self._rewrites = False
        """The durable chain has a damaged file: every checkpoint writes a whole snapshot until one is durable."""

    # --- the epoch

    def begin(self, begin: BeginEpoch, emit: Emit) -> bool:
        """Reach the state of `begin.base` and start the attempt. Return True if the slot loaded a checkpoint."""
        self._garbage.begin_epoch()
        self.processing, self.processing_thread = True, threading.get_ident()
        base = begin.base
        self._settle(begin)
        if any(backend.damaged for backend in self._native_backends()):
            self._accepted = self._durable = None  # its disk was full: only checkpoints are left
        self._deltas.keep(begin.snapshots)
        restored = self._accepted != base.token and not self._go_back_to(base)
        if restored:
            self._restore(begin)
        runner = self._runner
        assert runner is not None
        if self._full_is_due(begin):
            self._full, self._full_token = self._start_full(runner, begin), base.token
            self._full_started = self._clock()
        self._emit = emit
        self._dirty = True
        for backend in runner.backends():
            backend.begin_epoch()
        self._started = time.perf_counter()
        runner.begin_epoch(
            begin.attempt.epoch, begin.attempt.id, begin.now_ms, begin.watermarks, refusals=begin.refusals
        )
        runner.replay(begin.letters)
        return restored

    @property
    def runner(self) -> StageRunner:
        assert self._runner is not None
        return self._runner

    def run(
        self,
        begin: BeginEpoch,
        emit: Emit,
        steps: Iterable[Step],
        output_ended: Callable[[], None] = lambda: None,
    ) -> PartitionAck:
        """Run one attempt: get to its base, apply its input, end it. Call `abort` if this raises.

        `output_ended` is called after the last `emit`, before anything is persisted.
        """
        try:
            restored = self.begin(begin, emit)
            for _ in run_steps(self.runner, steps, begin.attempt.epoch):
                if self.queries is not None:
                    self.queries.poll()
            return self.finish(begin, restored, output_ended)
        except (StateError, SerializationError, LocalDiskError) as error:
            error.args = (self.plan.with_names(str(error)),)  # as the program names operators
            raise

    def finish(
        self, begin: BeginEpoch, restored: bool, output_ended: Callable[[], None] = lambda: None
    ) -> PartitionAck:
        """End the epoch after its last input, and start to persist its changes if it is a cut. Return the ack.

        The next `begin` says whether the epoch was accepted.
        """
        outcome = self.runner.finish_epoch(begin.now_ms, durable=False)
        outcome.figures.gc_ms = self._garbage.take_pause_ms()
        fault.reached("processed", begin.attempt.epoch)
        output_ended()
        after_processing = time.perf_counter()
        ack = PartitionAck(self._address.place, outcome, address=self._address, restored=restored)
        if begin.checkpointing and begin.cut:
            self._upload = self._start_upload(begin)
        self.runner.make_durable()  # while the state is written, too
        if begin.checkpointing:
            if self._upload is not None:
                # Repeated until it is settled: an acknowledgement may be lost with its attempt.
                seconds = self._checkpoint_seconds if begin.wait else GRACE_SECONDS if begin.cut else 0
                ack.part = self._upload.result(seconds)
            self._look_after_full(ack, begin)
            ack.writing = self._full.names if self._full is not None else ()
        cut = begin.cut or not begin.checkpointing
        self._pending, self._dirty = (begin.attempt.id, cut, begin.attempt.epoch), False
        self._end_processing()
        ack.processing_ms = (after_processing - self._started) * 1000
        ack.snapshot_ms = (time.perf_counter() - after_processing) * 1000
        self._garbage.epoch_ended()
        fault.reached("snapshot-written", begin.attempt.epoch)
        return ack

    def _end_processing(self) -> None:
        self.processing = False
        if self.queries is not None:
            self.queries.epoch_ended()

    def abort(self) -> None:
        """Give up the current attempt, if there is one, and undo its changes."""
        self._end_processing()
        if self._dirty:
            self._undo()

    def close(self) -> None:
        """Close the user's functions and delete the slot's files on the local disk. Called when the job is over."""
        self._drop_full()
        runner, self.readable = self._runner, None
        try:
            if runner is not None:
                runner.close()
        finally:
            self._close_backends()

    # --- getting to a state

    def checkpoint_completed(self, token: str) -> None:
        """The checkpoint with `token` is durable, so its epoch was accepted. Called between epochs; may come late.

        Without it the next `begin` would say so. But that may be long in coming, and until then whoever asks for
        committed values would get those before the checkpoint.
        """
        if self._runner is None or self._dirty:
            return
        if self._pending is not None and self._pending[0] == token:
            self._keep_pending()
        if self._pending is None and self._in_flight == token:
            self._complete_checkpoint()

    def _settle(self, begin: BeginEpoch) -> None:
        """Keep or undo the pending epoch, and settle the checkpoint in flight, as `begin.base` says."""
        base = begin.base
        if self._dirty:
            self.abort()
        if self._runner is None:
            return
        if self._pending is not None:
            if self._pending[0] == base.token:
                self._keep_pending()
            else:
                (token, _, _), self._pending = self._pending, None
                self._undo()
                self._forget_upload(token)
        if self._in_flight is None:
            return
        if not begin.checkpointing or self._in_flight == base.durable_token:
            self._complete_checkpoint()
        elif self._in_flight != base.in_flight:
            for backend in self._runner.backends():
                backend.checkpoint_failed()
            self._forget_upload(self._in_flight)
            if self._full_token == self._in_flight:
                self._drop_full()
            self._in_flight = None

    def _keep_pending(self) -> None:
        """The pending epoch was accepted."""
        assert self._pending is not None
        (token, cut, epoch), self._pending = self._pending, None
        for backend in self.runner.backends():
            if cut and isinstance(backend, ReadableBackend):
                backend.cut_epoch = epoch
            backend.commit_epoch(cut=cut)
        self._accepted = token
        self._in_flight = token if cut else self._in_flight

    def _complete_checkpoint(self) -> None:
        """The checkpoint in flight is durable."""
        assert self._in_flight is not None
        for backend in self.runner.backends():
            backend.checkpoint_completed()
        self._natives.checkpoint_completed()
        self._forget_upload(self._in_flight)
        self._durable, self._in_flight = self._in_flight, None
        self._rewrites = False

    def _go_back_to(self, base: Base) -> bool:
        """Undo in memory all epochs since the last durable checkpoint. Return False if that state must be loaded."""
        if self._runner is None or self._durable is None or base.token != self._durable:
            return False
        self._runner.abort_epoch()
        if not all([backend.rewind() for backend in self._runner.backends()]):
            return False
        self._accepted = self._durable
        self._drop_full()  # its state is no longer part of the job's history
        return True

    def _drop_full(self) -> None:
        if self._full is not None:
            self._full.kill()
            self._full = None

    def _close_backends(self) -> None:
        """Close the native backends: they hold files and memory outside of Python."""
        self._natives.forget()
        for backend in self._native_backends():
            backend.close()

    def _native_backends(self) -> list[NativeState]:
        if self._runner is None:
            return []
        if self._native_of is not self._runner:  # looking at the classes takes longer than all else in a small epoch
            self._native = [backend for backend in self._runner.backends() if isinstance(backend, NativeState)]
            self._native_of = self._runner
        return self._native

    def _forget_upload(self, token: str) -> None:
        """Stop reporting the upload of `token`. Any file it writes is garbage."""
        if self._upload is not None and self._upload.token == token:
            self._upload = None

    def _undo(self) -> None:
        """Go back to the accepted epoch: first what operators keep outside of state, then the state."""
        self._dirty = False
        if self._runner is None:
            return
        try:
            self._runner.abort_epoch()
        finally:
            for backend in self._runner.backends():
                backend.rollback_epoch()

    def _restore(self, begin: BeginEpoch) -> None:
        base = begin.base
        if base.token != base.durable_token:
            last = f"the last checkpoint is of epoch {base.durable_epoch}" if begin.checkpointing else "there is none"
            stage, partition = self._address.place
            raise AttemptFailedError(
                f"stage {stage} partition {partition} lost its state of epoch {base.epoch}; {last}",
                FailureReason.STATE_LOST,
            )
        self.readable = None
        if self._runner is not None:
            try:
                self._runner.close()
            except Exception:
                log.warning("closing the functions of a replaced state failed", exc_info=True)
        self._drop_full()
        self._close_backends()
        self._runner = None
        self._accepted = self._durable = self._in_flight = self._pending = self._upload = None
        repair = RestoreRepair()
        while (runner := self._loaded(begin, repair)) is None:
            pass
        repair.report()
        self._rewrites = repair.made
        if begin.checkpointing and (begin.restore is not None or self._rewrites):
            self._natives.begin_with(runner.backends())
        self._accepted = self._durable = base.token
        for backend in runner.backends():
            if isinstance(backend, ReadableBackend):
                backend.durable_epoch = base.durable_epoch
        self.readable = runner
        self._garbage.state_loaded()

    def _loaded(self, begin: BeginEpoch, repair: RestoreRepair) -> StageRunner | None:
        """Return a runner with the state of the last checkpoint, or None if `repair` has noted a damaged file."""
        identity = RunnerIdentity(self._job_id, self._address.partition, begin.attempt.incarnation, self._layout)
        runner = self._runner = StageRunner(self.plan, self._address.stage, identity, self._forward)
        try:
            self._load(runner, begin, repair)
            runner.open()
        except BaseException as error:
            self._close_backends()
            self._runner = None
            if not isinstance(error, DamagedSnapshotError):
                raise
            repair.found(error)
            return None
        return runner

    def _load(self, runner: StageRunner, begin: BeginEpoch, repair: RestoreRepair) -> None:
        backends = {(backend.uid, isinstance(backend, KeyedStateBackend)): backend for backend in runner.backends()}
        natives = [backend for backend in backends.values() if isinstance(backend, NativeState)]
        scratch = natives[0].local_directory if natives else None

        def take(database: StoredDatabase, uid: str, key_groups: range) -> bool:
            backend = backends.get((uid, True))
            if not isinstance(backend, NativeState):
                return backend is None
            own = begin.restore is None and not repair.made
            return self._natives.load(backend, database, key_groups, own=own)

        for section in self._sections_of(begin, repair, take, scratch):
            backend = backends.get((section.uid, section.key_group >= 0))
            if backend is not None:
                backend.load_section(section)

    def _sections_of(
        self, begin: BeginEpoch, repair: RestoreRepair, take: TakeKeyGroups, scratch: Path | None
    ) -> Iterable[Section]:
        if begin.restore is not None:
            yield from restored_sections(repair.restore(begin.restore), take, scratch)
        elif begin.snapshots:
            if self._layout is None:
                raise CheckpointError("snapshots to restore, but no checkpoint directory is known")

            def take_own(database: StoredDatabase) -> bool:
                return take(database, database.uid, database.key_groups)

            for ref in repair.chain(self._layout, self._address.place, begin.snapshots):
                yield from snapshot_sections(self._layout, ref, take=take_own, scratch=scratch)

    def _forward(self, target: int, frame: bytes) -> None:
        assert self._emit is not None
        started = time.perf_counter()
        self._emit(target, frame)
        self.runner.busy.blocked(time.perf_counter() - started)

    # --- snapshots

    def _start_upload(self, begin: BeginEpoch) -> Upload:
        """Encode this partition's part of the checkpoint now; write it in the background, during the next epochs."""
        started = time.perf_counter()
        attempt, whole = begin.attempt, begin.restore is not None or self._rewrites
        if whole and self._natives.begins_a_chain:
            return self._start_first(attempt, started)
        sections = self._checkpoint_sections(whole=whole)
        if not sections and not whole:
            sync_ms = (time.perf_counter() - started) * 1000
            return Upload(attempt.id, None, self._background, whole=False, sync_ms=sync_ms)
        assert self._layout is not None
        kind: SnapshotKind = "full" if whole else "delta"
        path = self._new_snapshot(attempt, attempt.epoch, kind)
        header = self._header(attempt.epoch, kind)
        if not whole:
            absorbed = self._absorbable(begin)
            if absorbed:
                header["since"] = absorbed[0].first_epoch
                sections = [*self._deltas.sections_of(absorbed), *sections]
            self._deltas.wrote(path.name, sections)
        return Upload(
            attempt.id,
            lambda: write_snapshot(path, header, sections),
            self._background,
            whole=whole,
            sync_ms=(time.perf_counter() - started) * 1000,
        )

    def _absorbable(self, begin: BeginEpoch) -> list[SnapshotRef]:
        """Return the deltas whose place the next one takes. None while a full snapshot is to come between them."""
        if self._full is not None or self._handed_out is not None:
            return []
        return self._deltas.absorbable(begin.snapshots)

    def _start_first(self, attempt: Attempt, started: float) -> Upload:
        assert self._layout is not None
        path = self._new_snapshot(attempt, attempt.epoch, "native")
        header = self._header(attempt.epoch, "native")
        write = self._natives.first(self._layout, path, header, self.runner.backends())
        sync_ms = (time.perf_counter() - started) * 1000
        return Upload(attempt.id, write, self._background, whole=True, sync_ms=sync_ms)

    def _checkpoint_sections(self, *, whole: bool) -> list[Section]:
        backends = self.runner.backends()
        for backend in backends:
            if self.queries is not None and isinstance(backend, ReadableBackend):
                backend.breathe = self.queries.poll
        if whole:
            return [section for backend in backends for section in backend.full_sections()]
        return [section for backend in backends for section in backend.delta_sections()]

    def _full_is_due(self, begin: BeginEpoch) -> bool:
        """Return True if a full snapshot must begin. The state must be a checkpoint's, so that deltas fit on it."""
        base = begin.base
        if not begin.checkpointing or self._full is not None or base.token not in (self._durable, self._in_flight):
            return False
        if self._rewrites:
            return False  # the next checkpoint writes a whole snapshot anyway
        if base.in_flight is None or any(ref.name == self._handed_out for ref in begin.snapshots):
            self._handed_out = None
        return self._handed_out is None and full_snapshot_is_due(begin.snapshots)

    def _start_full(self, runner: StageRunner, begin: BeginEpoch) -> FullSnapshot | None:
        assert self._layout is not None
        backends, epoch = runner.backends(), begin.base.epoch
        if self._native_backends():
            path = self._new_snapshot(begin.attempt, epoch, "native")
            header = self._header(epoch, "native")
            return self._natives.start(self._layout, path, header, backends, begin.snapshots)
        path = self._new_snapshot(begin.attempt, epoch, "full")
        header = self._header(epoch, "full")

        def write() -> SnapshotRef:
            return write_snapshot(path, header, (section for each in backends for section in each.full_sections()))

        return self._write_full(path.name, write)

    def _write_full(self, name: str, write: Callable[[], SnapshotRef]) -> FullSnapshot:
        """Begin to write the state as it is now. The slot goes on meanwhile."""
        return FullSnapshotChild.start(name, write)

    def _look_after_full(self, ack: PartitionAck, begin: BeginEpoch) -> None:
        """Hand the full snapshot out that was being written, or give it up if it takes too long."""
        if self._full is None:
            return
        if self._full.done():
            ack.full, self._full = self._full.result(), None
            self._handed_out = ack.full.name if ack.full is not None else None
        elif self._clock() - self._full_started > self._checkpoint_seconds:
            where = f"stage {self._address.stage} partition {self._address.partition}"
            deltas = sum(ref.kind == "delta" for ref in begin.snapshots)
            warn_of_time_limit(self._full.kind, where, self._checkpoint_seconds, deltas)
            self._drop_full()

    def _new_snapshot(self, attempt: Attempt, epoch: int, kind: SnapshotKind) -> Location:
        assert self._layout is not None
        # If this slot is taken for dead, another slot may make a native snapshot in the same attempt, of other files.
        # Without the slot's incarnation both would write to the same names.
        unique = f"{attempt.id}-{self._address.incarnation}" if kind == "native" else attempt.id
        return self._layout.new_snapshot(self._address.stage, self._address.partition, epoch, unique, kind)

    def _header(self, epoch: int, kind: str) -> dict[str, object]:
        return {
            "epoch": epoch,
            "kind": kind,
            "key_groups": [0, self.plan.max_parallelism],
            "stage": self._address.stage,
            "partition": self._address.partition,
        }
