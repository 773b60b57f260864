"""From the cut of a checkpoint to its commit: parts arrive, the manifest is written, then sinks commit.

`_complete` keeps law 3: nothing is visible before its manifest is durable. That may take long; epochs go on meanwhile.
At most one checkpoint is in flight. If it fails, the next one contains its changes and its output.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field

import msgspec

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import TEMPORARY_SUFFIX
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError
from headwater.common.ids import Place as Place
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule
from headwater.runtime.epoch.messages import SnapshotPart
from headwater.runtime.job.checkpoint_failures import StageOperators, part_failed
from headwater.runtime.job.checkpoint_failures import not_in_time as parts_not_in_time
from headwater.runtime.job.checkpoint_stats import CheckpointStats, PartStats
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.requests import RescaleRequest, SavepointRequest
from headwater.runtime.job.savepoint_copies import SavepointCopies, not_in_time

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.1
"""How long an epoch waits for its own checkpoint before the next epoch starts."""

HISTORY = 100
"""Number of checkpoints whose statistics are kept."""


class ManifestNotWrittenError(CheckpointError):
    """The manifest could not be written, so the checkpoint in flight failed. State and output are unchanged."""


@dataclass
class Cut:
    """A checkpoint in flight."""

    token: str
    draft: Manifest
    """Its manifest without the snapshots, which are not known at the cut."""
    waiting_for: set[Place]
    triggered_ms: int
    started: float
    parts: dict[Place, SnapshotPart] = field(default_factory=dict)
    arrived: dict[Place, float] = field(default_factory=dict)
    manifest: Manifest | None = None
    chains: dict[Place, list[SnapshotRef]] = field(default_factory=dict)
    future: Future[None] | None = None
    """Done when its output is visible."""
    savepoints: list[SavepointRequest] = field(default_factory=list)
    """Copy the checkpoint for these requests."""


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
        self.chains: dict[Place, list[SnapshotRef]] = {}
        """The snapshot chains of the last durable checkpoint."""
        self._fulls: dict[Place, SnapshotRef] = {}
        self.writing: set[str] = set()
        """Names of files that slots are writing. They are not garbage."""
        self.durable: Manifest | None = None
        """The last checkpoint of this run, or the one it started from."""
        self.durable_token = "start"
        """Token of the state that can be loaded."""
        self.committed_token = "start"
        """Names the state up to which output is visible; without a store nothing can be loaded."""
        self._tidied = False
        self._tidying: Future[None] | None = None
        """What follows the last checkpoint: its note, and the deletion of garbage."""
        self._visible: int | None = None
        """The last epoch whose output this run has made visible with its checkpoint."""
        self.in_flight: Cut | None = None
        self.savepoints: list[SavepointRequest] = []
        """Requests that wait for the next cut."""
        self.history: deque[CheckpointStats] = deque(maxlen=HISTORY)
        self.on_state_loaded: list[Callable[[], object]] = []
        """Called once, beside the epochs, when all partitions of this run have loaded their state."""
        self.on_durable: list[Callable[[Manifest], None]] = []
        """Called in the coordinator's thread after each completed checkpoint."""

    def start_from(self, manifest: Manifest | None, token: str, chains: Mapping[Place, list[SnapshotRef]]) -> None:
        """The job starts from a complete checkpoint, or from the very beginning (None)."""
        self.durable, self.durable_token, self.committed_token = manifest, token, token
        self.chains = {place: list(chain) for place, chain in chains.items()}
        self._fulls = {}
        self.in_flight = None
        self.schedule.abandoned()

    # --- the coordinator's thread

    def cut(self, cut: Cut) -> None:
        """Begin a checkpoint, which ends with the epoch that was just accepted."""
        assert self.in_flight is None
        self.in_flight = cut
        cut.savepoints, self.savepoints = self.savepoints, []
        self.schedule.cut(_now_ms())

    def state_is_loaded(self) -> None:
        """All partitions have their state: what drivers before this one left is garbage for sure. Idempotent."""
        if self._store is not None and not self._tidied:
            self._tidied = True
            for tidy in (self._store.remove_orphans, *self.on_state_loaded):
                self._queue().submit(tidy)

    def add_part(self, place: Place, part: SnapshotPart, elapsed_ms: float) -> None:
        """Add a partition's part, which arrived `elapsed_ms` after its epoch began. Ignores parts of other cuts."""
        cut = self.in_flight
        if cut is not None and part.token == cut.token and place in cut.waiting_for:
            cut.waiting_for.discard(place)
            cut.parts[place] = part
            cut.arrived[place] = elapsed_ms

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

    def give_up(self, request: SavepointRequest | RescaleRequest) -> None:
        """There was no checkpoint for it in time. The job goes on."""
        text = f"{request.where} was not written within {not_in_time(self.schedule.timeout_ms)}{self._last_failure()}"
        request.fail(CheckpointError(f"{text}. The job goes on"))
        self.savepoints = [other for other in self.savepoints if other is not request]

    def _last_failure(self) -> str:
        last = self.history[-1] if self.history else None
        return f". The last checkpoint failed: {last.reason}" if last is not None and last.status == "failed" else ""

    def copied(self, request: SavepointRequest) -> str:
        """Where the savepoint of the checkpoint that was just completed is. Raises why it is not there."""
        return self._copies.wait(request, self.schedule.timeout_ms)

    def add_full(self, place: Place, full: SnapshotRef) -> None:
        """A full snapshot takes the place of all that is not newer; from the next manifest on.

        It is of a checkpoint that is durable or in flight: a slot discards one of a checkpoint that was given up before
        it acknowledges anything again.
        """
        self._fulls[place] = full

    def advance(self, *, wait: bool) -> dict[str, list[bytes]] | None:
        """Advance the checkpoint in flight as far as possible. If it failed, return its uncommitted output.

        With `wait` it waits for it, but no longer than a checkpoint may take. If a manifest is then still on its way,
        so is the checkpoint: what hangs may yet become durable.
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
            cut.chains = self._chains_with(cut.parts)
            cut.manifest = _with_snapshots(cut.draft, cut.chains)
            protected = self.writing | {name + TEMPORARY_SUFFIX for name in self.writing} | self._copies.names()
            cut.future = self._queue().submit(self._complete, cut.manifest)
            self._tidying = self._queue().submit(self._tidy, cut.manifest.epoch, protected)
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
        # The job starts over now: that is all that too many failures could ask for.
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
        self.chains = cut.chains
        self._fulls = {place: ref for place, ref in self._fulls.items() if not _is_past(cut.chains.get(place), ref)}
        self.committed_token = cut.token
        if self._store is not None:
            self.durable, self.durable_token = cut.manifest, cut.token
        self.schedule.completed(_now_ms())
        self.history.append(_stats(cut, "completed"))
        for request in cut.savepoints:
            assert self._store is not None
            self._copies.start(self._store, cut.manifest, request, self.clock_ms())
        for callback in self.on_durable:
            callback(cut.manifest)

    def _fail(self, cut: Cut, reason: str) -> dict[str, list[bytes]]:
        self._give_up(cut)
        self.history.append(_stats(cut, "failed", reason))
        log.warning("checkpoint of epoch %d failed: %s", cut.draft.epoch, reason)
        if not self.schedule.failed(_now_ms()):
            raise CheckpointFailuresError(f"checkpoint of epoch {cut.draft.epoch} failed: {reason}", cut)
        return cut.draft.committables

    def _give_up(self, cut: Cut) -> None:
        """The cut comes to be no checkpoint."""
        self.in_flight = None
        # Full snapshots of its state have no checkpoint to go on from: the next deltas go on from the one before.
        self._fulls = {place: ref for place, ref in self._fulls.items() if ref.epoch < cut.draft.epoch}
        self.savepoints = [*cut.savepoints, *self.savepoints]

    def _chains_with(self, parts: Mapping[Place, SnapshotPart]) -> dict[Place, list[SnapshotRef]]:
        chains = {place: list(chain) for place, chain in self.chains.items()}
        for place, part in parts.items():
            chain = [] if part.whole else chains.get(place, [])
            if part.ref is not None:
                chain = [*chain, part.ref]
            full = self._fulls.get(place)
            if full is not None and not part.whole:
                chain = [full, *(ref for ref in chain if ref.epoch > full.epoch)]
            chains[place] = chain
        return chains

    # --- beside it

    def _queue(self) -> Executor:
        if self._executor is None:
            self._executor = self._background.queue("checkpoint")
        return self._executor

    def _complete(self, manifest: Manifest) -> None:
        """Write the manifest, then commit the sinks."""
        if self._store is not None:
            try:
                self._store.write(manifest)
            except FencedError:
                raise  # another driver has taken over: nothing of this one counts any more
            except CheckpointError as error:
                raise ManifestNotWrittenError(str(error)) from error
        fault.reached("manifest-written", manifest.epoch)
        self._committers.commit(manifest.committables)
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
        self.committables = cut.draft.committables


def _with_snapshots(draft: Manifest, chains: Mapping[Place, list[SnapshotRef]]) -> Manifest:
    partitions = [
        msgspec.structs.replace(record, snapshots=chains.get(record.place, [])) for record in draft.partitions
    ]
    return msgspec.structs.replace(draft, partitions=partitions)


def _is_past(chain: list[SnapshotRef] | None, full: SnapshotRef) -> bool:
    """Return True if `chain` begins with `full`, or with a later snapshot that replaces it."""
    return chain is not None and len(chain) > 0 and chain[0].kind != "delta" and chain[0].epoch >= full.epoch


def _stats(cut: Cut, status: str, reason: str | None = None) -> CheckpointStats:
    ended = time.monotonic()
    parts = [
        PartStats(
            stage=place[0],
            partition=place[1],
            full_bytes=sum(ref.total_bytes for ref in cut.chains.get(place, ())),
            delta_bytes=part.ref.total_bytes if part.ref is not None else 0,
            sync_ms=part.sync_ms,
            async_ms=part.async_ms,
            arrived_ms=cut.arrived[place],
        )
        for place, part in sorted(cut.parts.items())
    ]
    full_bytes = sum(ref.total_bytes for chain in cut.chains.values() for ref in chain)
    return CheckpointStats(
        epoch=cut.draft.epoch,
        status=status,
        reason=reason,
        triggered_ms=cut.triggered_ms,
        duration_ms=(ended - cut.started) * 1000,
        full_bytes=full_bytes,
        parts=tuple(parts),
    )


def _now_ms() -> float:
    return time.monotonic() * 1000
