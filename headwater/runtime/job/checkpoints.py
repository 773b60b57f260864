"""From the cut of a checkpoint to its commit: parts arrive, the manifest is written, then sinks commit.

`_complete` keeps law 3: nothing is visible before its manifest is durable. That may take long; epochs go on meanwhile.
At most one checkpoint is in flight. If it fails, the next one contains its changes and its output.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial

from headwater.checkpoint.manifest import HeldRecord, Manifest
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError
from headwater.common.ids import Place
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule
from headwater.runtime.epoch.decisions import CheckpointFacts
from headwater.runtime.epoch.epoch_plan import LastEpoch
from headwater.runtime.epoch.messages import Base, PartitionAck
from headwater.runtime.job.checkpoint_cut import Cut
from headwater.runtime.job.checkpoint_failures import StageOperators, part_failed
from headwater.runtime.job.checkpoint_failures import not_in_time as parts_not_in_time
from headwater.runtime.job.checkpoint_stats import CheckpointStats
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.endings import GivenUpError
from headwater.runtime.job.requests import Request, SavepointRequest
from headwater.runtime.job.savepoint_copies import SavepointCopies, not_in_time
from headwater.runtime.job.snapshot_chains import SnapshotChains

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.1
"""How long an epoch waits for its own checkpoint before the next epoch starts."""

HISTORY = 100
"""Number of checkpoints whose statistics are kept."""


class ManifestNotWrittenError(CheckpointError):
    """The manifest could not be written, so the checkpoint in flight failed. State and output are unchanged."""


class Checkpoints:
    """The checkpoints of a job. The coordinator's thread uses it; only `_complete` runs in another thread."""

    def __init__(
        self,
        store: ManifestStore | None,
        committers: SinkCommitters,
        schedule: CheckpointSchedule,
        retained: int,
        background: Background = THREADS,
        operators: StageOperators | None = None,
    ) -> None:
        self._store = store
        self._operators = operators or {}
        self._committers = committers
        self.schedule = schedule
        self._retained = retained
        self._background = background
        self._executor: Executor | None = None
        self._copies = SavepointCopies(background)
        self.clock_ms: Callable[[], float] = _now_ms
        self.chains = SnapshotChains()
        self.held: dict[str, HeldRecord] = {}
        """Output that the last checkpoint holds back."""
        self.durable: Manifest | None = None
        """The last checkpoint of this run, or the one it started from."""
        self.durable_token = "start"
        """Token of the state that can be loaded."""
        self.committed_token = "start"
        """Token of the state up to which output is visible. Newer than `durable_token` in a job without a store."""
        self._tidied = False
        self._tidying: Future[None] | None = None
        """What follows the last checkpoint: its note, and the deletion of garbage."""
        self._visible: int | None = None
        """The last epoch whose output this run has made visible with its checkpoint."""
        self.in_flight: Cut | None = None
        self.savepoints: list[SavepointRequest] = []
        """Requests that wait for the next cut."""
        self.requested = False
        """Somebody wants the next epoch to end with a checkpoint."""
        self.history: deque[CheckpointStats] = deque(maxlen=HISTORY)
        self.last_savepoint: tuple[CheckpointStats, str] | None = None
        """The checkpoint that was last copied, and where to."""
        self.completed = 0
        self.failed = 0
        self.on_state_loaded: list[Callable[[], object]] = []
        """Called once, beside the epochs, when all partitions of this run have loaded their state."""
        self.on_durable: list[Callable[[Manifest], None]] = []
        """Called in the coordinator's thread after each completed checkpoint."""

    @property
    def visible_epoch(self) -> int:
        """Output up to this epoch is visible, if there was any; -1: nothing is. Any thread may ask."""
        durable = self.durable  # it is set after its output was committed
        return max(-1 if self._visible is None else self._visible, -1 if durable is None else durable.epoch)

    @property
    def durably(self) -> bool:
        """There is a place to write them to."""
        return self._store is not None

    def start_from(self, manifest: Manifest | None, token: str, chains: Mapping[Place, list[SnapshotRef]]) -> None:
        """The job starts from a complete checkpoint, or from the very beginning (None)."""
        self.durable, self.durable_token, self.committed_token = manifest, token, token
        self.chains = SnapshotChains(chains)
        self.held = {} if manifest is None else manifest.held
        self.in_flight = None
        self.schedule.abandoned()

    # --- the coordinator's thread

    def request(self, savepoint: SavepointRequest) -> None:
        """Cut a checkpoint as soon as possible, and copy it."""
        self.savepoints.append(savepoint)
        self.requested = True

    def cut(self, cut: Cut) -> None:
        """Begin a checkpoint, which ends with the epoch that was just accepted."""
        assert self.in_flight is None
        self.in_flight, self.requested = cut, False
        cut.savepoints, self.savepoints = self.savepoints, []
        self.schedule.cut(_now_ms())

    def state_is_loaded(self) -> None:
        """All partitions have their state: what drivers before this one left is garbage for sure. Idempotent."""
        if self._store is not None and not self._tidied:
            self._tidied = True
            for tidy in (self._store.remove_orphans, *self.on_state_loaded):
                self._queue().submit(tidy)

    def accept(self, acks: Iterable[PartitionAck]) -> None:
        """Take what the partitions say about snapshots. If the epoch was a cut, `cut` comes before."""
        self.chains.writing = set()
        for ack in acks:
            self.chains.writing.update(ack.writing)
            if ack.full is not None:
                self.chains.add_full(ack.place, ack.full)
            if ack.part is not None and self.in_flight is not None:
                self.in_flight.add_part(ack.place, ack.part, ack.processing_ms + ack.snapshot_ms)

    def give_up_late(self) -> None:
        """Tell those who have waited too long for a savepoint."""
        self._copies.give_up_late(self.is_late, self.schedule.timeout_ms)
        waiting = [*self.savepoints, *(self.in_flight.savepoints if self.in_flight is not None else ())]
        for request in waiting:
            if not request.stop and self.is_late(request.since_ms):
                self.give_up(request)

    def is_late(self, since_ms: float) -> bool:
        """Whether what began then has taken longer than a checkpoint may."""
        return self.clock_ms() - since_ms > self.schedule.timeout_ms

    def check_time(self, request: Request | None) -> None:
        """Raise `GivenUpError` if the request has been served for longer than a checkpoint may take."""
        if request is not None and self.is_late(request.since_ms):
            raise GivenUpError(f"{request.where} takes too long")

    def give_up(self, request: Request) -> None:
        """Tell whoever asked that there was no checkpoint in time. The job goes on."""
        text = f"{request.where} was not written within {not_in_time(self.schedule.timeout_ms)}{self._last_failure()}"
        request.fail(CheckpointError(f"{text}. The job goes on"))
        self.savepoints = [other for other in self.savepoints if other is not request]

    def _last_failure(self) -> str:
        last = self.history[-1] if self.history else None
        return f". The last checkpoint failed: {last.reason}" if last is not None and last.status == "failed" else ""

    def copied(self, request: SavepointRequest) -> str:
        """Wait for the savepoint of the checkpoint that has just completed. Return its path, or raise why not."""
        return self._copies.wait(request, self.schedule.timeout_ms)

    def facts(self, last: LastEpoch, now_ms: int) -> CheckpointFacts:
        """Return what is known at `now_ms`, in processing time, after `last`."""
        due_in_ms = self.schedule.due_in_ms(_now_ms())
        return CheckpointFacts(
            in_flight=self.in_flight is not None,
            due=self.schedule.due(_now_ms()),
            due_ms=None if due_in_ms is None else now_ms + math.ceil(due_in_ms),
            requested=self.requested,
            behind=last.token != self.committed_token,
            held_until_ms=min(
                (each.again_ms for each in self.held.values() if each.again_ms is not None), default=None
            ),
        )

    def base(self, last: LastEpoch) -> Base:
        """Return what an epoch after `last` starts from."""
        return Base(
            epoch=last.epoch,
            token=last.token,
            durable_epoch=self.durable.epoch if self.durable is not None else -1,
            durable_token=self.durable_token,
            in_flight=self.in_flight.token if self.in_flight is not None else None,
        )

    def advance(self, *, wait: bool) -> dict[str, list[bytes]] | None:
        """Advance the checkpoint in flight as far as possible. If it failed, return its uncommitted output.

        With `wait`, wait for it, at most as long as a checkpoint may take. If its manifest is still being written then,
        it stays in flight: it may yet become durable.
        Raises what a sink's commit raised, and CheckpointError when too many checkpoints failed in a row.
        """
        self.give_up_late()
        cut = self.in_flight
        if cut is None:
            return None
        errors = [
            part_failed(place, part.error, self._operators)
            for place, part in cut.parts.items()
            if part.error is not None
        ]
        if errors:
            return self._fail(cut, errors[0])
        if cut.waiting_for:
            now_ms = _now_ms()
            limit_ms = self.schedule.timeout_ms
            if wait or self.schedule.timed_out(now_ms):  # the slots have waited as well
                waited_ms = max(now_ms - cut.started * 1000, limit_ms if wait else 0)
                return self._fail(cut, parts_not_in_time(cut, waited_ms, limit_ms, self._operators))
            return None
        if cut.future is None:
            manifest = cut.complete(self.chains.with_parts(cut.parts))
            protected = self.chains.unfinished_names() | self._copies.names()
            cut.future = self._queue().submit(self._complete, manifest, cut)
            self._tidying = self._queue().submit(self._tidy, manifest.epoch, protected)
        try:
            cut.future.result(self.schedule.timeout_ms / 1000 if wait else GRACE_SECONDS)
        except FutureTimeoutError:
            if wait:
                log.warning(
                    "the manifest of epoch %d was not written, or its output not committed, within %g s; the job waits",
                    cut.draft.epoch, self.schedule.timeout_ms / 1000,
                )  # fmt: skip
            return None
        except ManifestNotWrittenError as error:
            return self._fail(cut, str(error))
        self._completed(cut)
        return None

    def settle(self) -> None:
        """Finish or drop the checkpoint in flight. Called before the job goes back: it must not become durable later.

        The replayed epochs produce the output of a dropped checkpoint again.
        """
        cut = self.in_flight
        if cut is None:
            return
        if cut.future is None:
            self._give_up(cut)
            self.schedule.abandoned()
            return
        # Too many failures would make the job start over. That is what happens now anyway.
        with contextlib.suppress(CheckpointFailuresError):
            while self.in_flight is not None:
                self.advance(wait=True)

    def wait_until_noted(self) -> None:
        """Wait until it is noted that the output of the last checkpoint is visible."""
        if self._tidying is not None:
            self._tidying.result()

    def close(self) -> None:
        """Wait for running work to end, and fail the requests that will get no savepoint."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)
        self._copies.close(self.schedule.timeout_ms)
        waiting = [*self.savepoints, *(self.in_flight.savepoints if self.in_flight is not None else ())]
        for request in waiting:
            request.fail(CheckpointError("the job ended before there was a checkpoint to copy"))
        self.savepoints = []

    def _completed(self, cut: Cut) -> None:
        assert cut.manifest is not None
        self.in_flight = None
        self.chains.completed(cut.chains)
        self.committed_token = cut.token
        self.held = cut.manifest.held
        if self._store is not None:
            self.durable, self.durable_token = cut.manifest, cut.token
        self.schedule.completed(_now_ms())
        self.history.append(cut.stats("completed"))
        self.completed += 1
        for request in cut.savepoints:
            assert self._store is not None
            request.path.add_done_callback(partial(self._savepoint_made, self.history[-1]))
            self._copies.start(self._store, cut.manifest, request, self.clock_ms())
        for callback in self.on_durable:
            callback(cut.manifest)

    def _savepoint_made(self, stats: CheckpointStats, path: Future[str]) -> None:
        if not path.cancelled() and path.exception() is None:
            self.last_savepoint = stats, path.result()

    def _fail(self, cut: Cut, reason: str) -> dict[str, list[bytes]]:
        self._give_up(cut)
        self.history.append(cut.stats("failed", reason))
        self.failed += 1
        log.warning("checkpoint of epoch %d failed: %s", cut.draft.epoch, reason)
        if not self.schedule.failed(_now_ms()):
            raise CheckpointFailuresError(f"checkpoint of epoch {cut.draft.epoch} failed: {reason}", cut)
        return cut.output

    def _give_up(self, cut: Cut) -> None:
        """Drop the cut: its checkpoint will not become durable. Its savepoints wait for the next cut."""
        self.in_flight = None
        self.chains.given_up(cut.draft.epoch)
        self.savepoints = [*cut.savepoints, *self.savepoints]

    # --- beside it

    def _queue(self) -> Executor:
        if self._executor is None:
            self._executor = self._background.queue("checkpoint")
        return self._executor

    def _complete(self, manifest: Manifest, cut: Cut) -> None:
        """Write the manifest, then commit the sinks."""
        started = time.monotonic()
        if self._store is not None:
            try:
                self._store.write(manifest)
            except FencedError:
                raise  # another driver has taken over: nothing of this one counts any more
            except CheckpointError as error:
                raise ManifestNotWrittenError(str(error)) from error
        fault.reached("manifest-written", manifest.epoch)
        written = time.monotonic()
        cut.manifest_ms = (written - started) * 1000
        self._committers.commit(manifest.committables)
        cut.commit_ms = (time.monotonic() - written) * 1000
        fault.reached("sink-committed", manifest.epoch)
        self._visible = manifest.epoch

    def _tidy(self, epoch: int, protected: set[str]) -> None:
        """What nobody waits for when a checkpoint is complete. It comes before the next manifest, in the same queue."""
        if self._store is None or self._visible != epoch:
            return
        self._store.note_committed(epoch)
        try:
            self._store.collect_garbage(self._retained, protected)
        except (OSError, CheckpointError) as error:  # if another driver has taken over, the next manifest will say so
            log.warning("old checkpoints cannot be deleted: %s", error)


class CheckpointFailuresError(CheckpointError):
    """More checkpoints in a row failed than `execution.checkpointing.tolerable-failed-checkpoints` allows."""

    def __init__(self, reason: str, cut: Cut) -> None:
        super().__init__(reason)
        self.committables = cut.output


def _now_ms() -> float:
    return time.monotonic() * 1000
