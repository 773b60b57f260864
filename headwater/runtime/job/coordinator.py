"""The coordinator: runs epochs one after another and decides when an epoch counts.

One epoch: plan what to read → attempt (again, within the restart policy) → accept → next. If a checkpoint is due, the
epoch is a cut: `checkpoints` then writes the manifest and commits the sinks. If a partition lost state that no
checkpoint has, the job goes back to the last complete checkpoint.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.restore.rescale import PartitionRestore
from headwater.checkpoint.savepoint.savepoint import check_target
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError, HeadwaterError, JobFailedError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK, Place
from headwater.common.job_status import JobStatus
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.epoch.decisions import CheckpointFacts, Facts, GiveUp, GoBack, cuts, decide_after_failure
from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.job_states import JobState
from headwater.runtime.epoch.messages import (
    Attempt,
    Base,
    EpochHeader,
    PartitionAck,
    SlotAddress,
    SourceAck,
    SourceTask,
    SplitAck,
)
from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.checkpoints import CheckpointFailuresError, Checkpoints, Cut
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.fingerprint import parallelisms, plan_fingerprint, stateful_operators
from headwater.runtime.job.processing_clock import ProcessingClock
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.requests import Request, RescaleRequest, SavepointRequest
from headwater.runtime.job.source_progress import DataFrameProgress, SplitSourceProgress, group_by_source
from headwater.time.watermark_keys import is_input

log = logging.getLogger(__name__)


class JobCancelledError(HeadwaterError):
    """The job was cancelled."""


class StoppedWithSavepoint(Exception):
    """The job has ended with a savepoint, as requested."""


class RescaleAsked(Exception):
    """A rescale was requested. The last checkpoint contains everything: resume from it with another parallelism."""

    def __init__(self, request: RescaleRequest, started: float) -> None:
        super().__init__(f"parallelism {request.parallelism}")
        self.request = request
        self._started = started

    def goes_on(self) -> None:
        """Complete the request: the job runs again."""
        self.request.done.set_result(time.monotonic() - self._started)


class GivenUpError(HeadwaterError):
    """What was asked for takes too long. Whoever asked is told, and the job goes on."""


class WentBackError(HeadwaterError):
    """The job went back to an earlier epoch. Run it from there."""


class Coordinator:
    """Owns the truth about a running job. One thread runs it; any thread may use `cancel`, `ask` and `progress`."""

    def __init__(
        self,
        plan: JobPlan,
        job_id: str,
        engine: Engine,
        store: ManifestStore | None,
        restart_policy: RestartPolicy,
        sizer: EpochSizer,
        retained: int,
        settings: CheckpointSettings | None = None,
        progress: JobProgress | None = None,
        background: Background = THREADS,
    ) -> None:
        self.plan = plan
        self.job_id = job_id
        self._engine = engine
        self._store = store
        layout = store.layout if store is not None else None
        self._policy = restart_policy
        self._sizer = sizer
        self._run = secrets.token_hex(3)
        self._incarnation = 1
        self._failures_ms: list[int] = []
        self._committers = SinkCommitters(plan, restart_policy, self._pause_before_commit)
        self._book: dict[Place, SlotAddress] = {}
        self._watermarks: dict[Place, dict[str, int]] = {}
        self._restores: dict[Place, PartitionRestore] = {}  # empty after the first checkpoint in the job's own shape
        self._uncommitted: dict[str, list[bytes]] = {}  # output of the epochs since the last cut
        self._token = "start"
        self._cut_requested = False
        self._requests: deque[Request] = deque()
        self._closed = False
        self.on_first_epoch: Callable[[], None] | None = None
        """Called once, after this coordinator's first epoch."""
        settings = settings or CheckpointSettings()
        self._eager = self._committers.eager if settings.interval_ms > 0 else set()
        self.checkpoints = Checkpoints(
            self._store,
            self._committers,
            CheckpointSchedule(settings),
            retained,
            background,
            {stage.index: [each.name for each in stage.operators if each.needs_slot] for stage in plan.stages},
        )
        self.split_sources = [
            SplitSourceProgress(spec, layout) for spec in plan.sources if not hasattr(spec.source, "dataframe")
        ]
        self.dataframes = [DataFrameProgress(spec) for spec in plan.sources if hasattr(spec.source, "dataframe")]
        self.progress = progress or JobProgress()
        self.state = JobState()
        """Of the job: whoever shows it to others puts theirs here."""
        self.epoch = -1
        """The last accepted epoch."""
        self.now_ms = 0
        self.clock = ProcessingClock()
        self.next_timer_ms: int | None = None
        self.finished = False
        self.spark: dict[str, Any] = {}
        """The micro-batch of the last epoch with streaming DataFrames, for the next manifest."""
        self.first_epoch_started: float | None = None
        self.last_commit: float | None = None
        self._cancelled = threading.Event()

    # --- start

    def resume(
        self,
        manifest: Manifest,
        incarnation: int,
        recommit: Mapping[str, list[bytes]] | None = None,
        restores: Mapping[Place, PartitionRestore] | None = None,
    ) -> None:
        """Resume from `manifest`, and commit its output again unless it is known to be committed.

        `recommit` is that output (None: all that the manifest names). `restores` is the state that partitions begin
        with if a job of another shape made the manifest.
        """
        self._incarnation = incarnation
        self._restores = dict(restores or {})
        chains = {record.place: list(record.snapshots) for record in manifest.partitions}
        self._token = f"manifest-{manifest.epoch}"
        self.checkpoints.start_from(manifest, self._token, {} if self._restores else chains)
        self._stand_at(manifest)
        if self._store is not None and not self._store.is_committed(manifest.epoch):
            self._committers.commit(manifest.committables if recommit is None else recommit)
            self._store.note_committed(manifest.epoch)

    def _stand_at(self, manifest: Manifest) -> None:
        """Set everything except the slots to the state of `manifest`."""
        self.epoch, self.now_ms = manifest.epoch, max(self.now_ms, manifest.now_ms)
        self.clock.not_before(self.now_ms)
        self._uncommitted = {}
        if self._restores:
            self._watermarks = {place: dict(restore.watermarks) for place, restore in self._restores.items()}
            timers = [restore.next_processing_timer_ms for restore in self._restores.values()]
        else:
            self._watermarks = {record.place: dict(record.watermarks) for record in manifest.partitions}
            timers = [record.next_processing_timer_ms for record in manifest.partitions]
        self.next_timer_ms = min((timer for timer in timers if timer is not None), default=None)
        for source in self._sources():
            source.reset()  # the manifest may not know it: then it was added since, and begins anew
            if source.spec.uid in manifest.sources:
                source.restore(manifest.sources[source.spec.uid], self.now_ms)
        for split_source in self.split_sources:
            split_source.next_epoch = manifest.epoch + 1
        self.progress.went_to(manifest.epoch, manifest.counters)
        self.finished = manifest.finished
        self.spark = dict(manifest.spark)

    # --- the epoch

    def stamp(self) -> int:
        """The next epoch's processing time: the clock's, and later than the last epoch's."""
        return max(self.now_ms + 1, int(self.clock.now_ms()))

    def _sources(self) -> Iterator[SplitSourceProgress | DataFrameProgress]:
        yield from self.split_sources
        yield from self.dataframes

    def all_exhausted(self) -> bool:
        return all(source.exhausted for source in self._sources())

    def run_epoch(
        self,
        now_ms: int,
        *,
        dataframes: Mapping[int, Any] | None = None,
        final: bool = False,
        spark: dict[str, Any] | None = None,
        wait: bool = False,
        cut: bool | None = None,
    ) -> int:
        """Run the next epoch until it is accepted. Return how many records it read.

        With `wait` (and at the end of the job), a checkpoint of the epoch is complete on return. `cut` is what was
        decided about its checkpoint; None: decide it here.
        """
        wait = wait or final
        started = time.monotonic()
        if self.first_epoch_started is None:
            self.first_epoch_started = started
        dataframes = dataframes or {}
        epoch = self.epoch + 1
        if cut is None:
            cut = cuts(self._checkpoint_facts(), batch_mode=self.plan.batch_mode, final=final, wait=wait)
        tasks = self._plan_tasks(now_ms, dataframes, final=final)
        attempt, messages = self._attempt_until_done(epoch, tasks, dataframes, now_ms, final=final, cut=cut, wait=wait)
        records = self._accept(attempt, messages, now_ms, dataframes, final=final, spark=spark or {}, cut=cut)
        self._advance_checkpoint(wait=wait)
        if wait and self.checkpoints.committed_token != self._token:
            # The epoch's checkpoint failed, but the caller must not go on without one.
            self._checkpoint_now(final=final)
        duration_ms = (time.monotonic() - started) * 1000
        if self._policy.forgets_on_success and not self.checkpoints.schedule.fails:
            self._failures_ms.clear()
        if not final:
            self._sizer.observe(records, duration_ms)
        self.last_commit = time.monotonic()
        self.state.to(JobStatus.RUNNING)
        notify, self.on_first_epoch = self.on_first_epoch, None
        if notify is not None:
            notify()
        self.progress.epoch_ms = duration_ms
        self.progress.epoch_done(records)
        return records

    def facts(self, tick_ms: int | None) -> Facts:
        """Return what is known between two epochs. Looks for new splits; `tick_ms` is how often time must pass."""
        self.checkpoints.give_up_late()
        now_ms = self.stamp()
        for source in self.split_sources:
            source.discover(now_ms)
        return Facts(
            now_ms=now_ms,
            last_epoch_ms=self.now_ms,
            cancelled=self.cancelled,
            asked=bool(self._requests),
            exhausted=self.all_exhausted(),
            readable=bool(self.unread_dataframes() or self.readable_sources(now_ms)),
            next_timer_ms=self.next_timer_ms,
            tick_ms=tick_ms,
            batch_mode=self.plan.batch_mode,
            checkpoint=self._checkpoint_facts(),
        )

    def _checkpoint_facts(self) -> CheckpointFacts:
        return CheckpointFacts(
            in_flight=self.checkpoints.in_flight is not None,
            due=self.checkpoints.schedule.due(time.monotonic() * 1000),
            requested=self._cut_requested,
            behind=self._token != self.checkpoints.committed_token,
        )

    def unread_dataframes(self) -> dict[int, Any]:
        """Return {source: DataFrame} of the bounded DataFrames that no epoch has read."""
        return {
            source.spec.id: source.dataframe
            for source in self.dataframes
            if not source.streaming and not source.exhausted
        }

    def readable_sources(self, now_ms: int) -> list[SplitSourceProgress]:
        """Return the sources of which an epoch at `now_ms` may ask for records."""
        return [source for source in self.split_sources if source.can_read(now_ms)]

    def settle_checkpoint(self, request: Request | None = None) -> None:
        """Bring a checkpoint that is in flight to its end, by epochs that read nothing.

        For a `request` it takes as long as that may take: then `GivenUpError`.
        """
        while self.checkpoints.in_flight is not None:
            self._empty_epoch(final=False, cut=False)
            self._advance_checkpoint(wait=True)
            self._check_time(request)

    def _empty_epoch(self, *, final: bool, cut: bool) -> None:
        now_ms = self.stamp()
        for source in self.split_sources:
            source.discover(now_ms)  # the checkpoint of a bounded source must contain its splits
        attempt, messages = self._attempt_until_done(
            self.epoch + 1, self._markers(final=final), {}, now_ms, final=final, cut=cut, wait=True
        )
        self._accept(attempt, messages, now_ms, {}, final=final, spark=self.spark, cut=cut)

    def _markers(self, *, final: bool) -> list[SourceTask]:
        """Return tasks that read nothing and leave event time unchanged."""
        return [source.marker(index, final=final) for index, source in enumerate(self._sources())]

    # --- requests

    def ask(self, request: Request) -> None:
        """Queue a request, to be served between two epochs. Any thread may call this."""
        self._requests.append(request)
        if self._closed:
            self._refuse_requests()

    def take_requests(self) -> list[Request]:
        """Remove and return the requests that are not served yet, for the next coordinator."""
        return [self._requests.popleft() for _ in range(len(self._requests))]

    @property
    def has_checkpoints(self) -> bool:
        return self._store is not None

    def serve_requests(self) -> None:
        """Do what was asked for. Raises `StoppedWithSavepoint` or `RescaleAsked` where the epochs end here."""
        self.checkpoints.give_up_late()
        while self._requests:
            request = self._requests.popleft()
            request.since_ms = self.checkpoints.clock_ms()
            if isinstance(request, SavepointRequest) and not request.stop:
                self.checkpoints.savepoints.append(request)
                self._cut_requested = True
                continue
            if isinstance(request, RescaleRequest) and self._is_present(request):
                request.done.set_result(0.0)
                continue
            if isinstance(request, SavepointRequest) and not self._can_be_written(request):
                continue
            started = time.monotonic()
            try:
                self.settle_checkpoint(request)
                if isinstance(request, RescaleRequest):
                    self._checkpoint_now(final=False, request=request)
                    raise RescaleAsked(request, started)
                if request not in self.checkpoints.savepoints:  # it is there already if the job went back meanwhile
                    self.checkpoints.savepoints.append(request)
                # What was drained cannot go on: then there is no other way than to wait for its checkpoint.
                self._checkpoint_now(final=request.drain, request=None if request.drain else request)
            except WentBackError:
                self._requests.appendleft(request)
                raise
            except GivenUpError:
                self.checkpoints.give_up(request)
                continue
            try:
                self.checkpoints.copied(request)
            except FencedError:
                raise
            except HeadwaterError as error:
                if request.drain:
                    raise
                log.warning("the job was not stopped: %s", error)
                continue
            raise StoppedWithSavepoint

    def _can_be_written(self, request: SavepointRequest) -> bool:
        """Check the savepoint's target before the job is stopped or drained. If it is bad, fail the request."""
        try:
            check_target(request.target)
        except CheckpointError as error:
            request.fail(CheckpointError(f"{error}. The job goes on"))
            return False
        return True

    def _is_present(self, request: RescaleRequest) -> bool:
        """Return True if the job already has that parallelism, perhaps because of an earlier request."""
        return request.plan is not None and parallelisms(request.plan) == parallelisms(self.plan)

    def _checkpoint_now(self, *, final: bool, request: Request | None = None) -> None:
        """A checkpoint of its own, without input. Complete on return; `GivenUpError` if `request` has no time left."""
        while True:
            if self.checkpoints.in_flight is None:
                self._empty_epoch(final=final, cut=True)
            self._advance_checkpoint(wait=True)
            if self.checkpoints.committed_token == self._token:
                return
            self._check_time(request)

    def _check_time(self, request: Request | None) -> None:
        if request is not None and self.checkpoints.is_late(request.since_ms):
            raise GivenUpError(f"{request.where} takes too long")

    def _plan_tasks(self, now_ms: int, dataframes: Mapping[int, Any], *, final: bool) -> list[SourceTask]:
        budget = self._sizer.next_budget()
        reading = max(1, sum(1 for source in self.split_sources if source.can_read(now_ms)))
        tasks: list[SourceTask] = []
        for source in self.split_sources:
            source.discover(now_ms)
            tasks += source.plan(len(tasks), max(1, budget // reading), now_ms, final=final)
        for dataframe in self.dataframes:
            if dataframe.spec.id not in dataframes:
                tasks.append(dataframe.marker(len(tasks), final=final))
        return tasks

    def _attempt_until_done(
        self,
        epoch: int,
        tasks: Sequence[SourceTask],
        dataframes: Mapping[int, Any],
        now_ms: int,
        *,
        final: bool,
        cut: bool,
        wait: bool,
    ) -> tuple[Attempt, list[Any]]:
        number = 0
        while True:
            attempt = Attempt(self._incarnation, epoch, number, self._run)
            header = EpochHeader(
                attempt=attempt,
                base=self._base(),
                now_ms=now_ms,
                checkpointing=self._store is not None,
                final=final,
                cut=cut,
                wait=wait,
                address_book=dict(self._book),
                watermarks=dict(self._watermarks),
                snapshots=dict(self.checkpoints.chains),
                restores=dict(self._restores),
                dataframe_state={source.spec.id: source.state() for source in self.dataframes},
                dataframe_bounded=not any(source.streaming for source in self.dataframes),
            )
            try:
                return attempt, self._engine.run(header, tasks, dataframes)
            except AttemptFailedError as failure:
                if self._cancelled.is_set():
                    raise JobCancelledError("the job was cancelled") from None
                self._after_failure(epoch, failure)
                number += 1

    def _base(self) -> Base:
        durable, in_flight = self.checkpoints.durable, self.checkpoints.in_flight
        return Base(
            epoch=self.epoch,
            token=self._token,
            durable_epoch=durable.epoch if durable is not None else -1,
            durable_token=self.checkpoints.durable_token,
            in_flight=in_flight.token if in_flight is not None else None,
        )

    def _after_failure(self, epoch: int, failure: AttemptFailedError) -> None:
        """Wait as the restart policy says, or raise. Raises `WentBackError` if state was lost and the job went back."""
        if failure.error is not None:
            raise failure.error
        self._failures_ms.append(int(time.monotonic() * 1000))
        can_go_back = self._store is not None or self.plan.batch_mode
        decision = decide_after_failure(failure, self._failures_ms, self._policy, can_go_back=can_go_back)
        self.progress.last_failure = str(failure)
        if isinstance(decision, GiveUp):
            raise JobFailedError(f"epoch {epoch} {decision.why}") from None
        self.state.to(JobStatus.RESTARTING)
        self.progress.restarts += 1
        log.warning("epoch %d failed (%s); trying again in %d ms", epoch, failure, decision.delay_ms)
        if self._cancelled.wait(decision.delay_ms / 1000):
            raise JobCancelledError("the job was cancelled") from None
        if isinstance(decision, GoBack):
            self._go_back()
            raise WentBackError(str(failure)) from None

    def _go_back(self) -> None:
        """Go back to the last complete checkpoint, or to the beginning. Later output was never visible."""
        before = self.checkpoints.committed_token
        self.checkpoints.settle()
        self._forget_restores(before)
        self._incarnation += 1  # epoch numbers are reused, and slots serve only newer attempts
        self.progress.rewinds += 1
        manifest = self.checkpoints.durable
        if manifest is not None:
            self._token = self.checkpoints.durable_token
            self._stand_at(manifest)
            return
        self.epoch = -1
        self._token = f"start-{self._incarnation}"
        self.checkpoints.start_from(None, self._token, {})
        self._watermarks, self._uncommitted = {}, {}
        self.next_timer_ms, self.finished, self.spark = None, False, {}
        self.progress.went_to(-1, {})
        for source in self._sources():
            source.reset()

    def _accept(
        self,
        attempt: Attempt,
        messages: Sequence[Any],
        now_ms: int,
        dataframes: Mapping[int, Any],
        *,
        final: bool,
        spark: dict[str, Any],
        cut: bool,
    ) -> int:
        """The barrier: all acknowledgements have come, so the epoch counts. Its output waits for a checkpoint.

        Return the number of records. Raises `JobFailedError` if an acknowledgement is missing.
        """
        acks = [message for message in messages if isinstance(message, PartitionAck)]
        self._check_complete(attempt, acks)
        eager = self._collect_committables(messages)
        split_acks = group_by_source(message for message in messages if isinstance(message, SplitAck))
        self._note_partitions(acks)
        records = 0
        for source in self.split_sources:
            records += source.apply(split_acks.get(source.spec.id, ()), attempt.epoch)
        for dataframe in self.dataframes:
            read = dataframe.spec.id in dataframes
            records += dataframe.apply(split_acks.get(dataframe.spec.id, ()), read=read)
        self._count(messages, records)
        self.epoch, self.now_ms, self.finished = attempt.epoch, now_ms, final
        self.spark = spark
        self._token = attempt.id
        if cut:
            self._cut_checkpoint(attempt, acks)
        for ack in acks:
            if ack.part is not None:
                elapsed_ms = ack.processing_ms + ack.snapshot_ms
                self.checkpoints.add_part(ack.place, ack.part, elapsed_ms)
        self._committers.commit(eager)
        self.checkpoints.state_is_loaded()
        return records

    def _cut_checkpoint(self, attempt: Attempt, acks: Sequence[PartitionAck]) -> None:
        self._cut_requested = False
        draft = self._manifest(attempt, acks, self._uncommitted)
        self._uncommitted = {}
        slots = {ack.place for ack in acks if ack.address is not None}
        self.checkpoints.cut(
            Cut(
                token=attempt.id,
                draft=draft,
                waiting_for=slots if self._store is not None else set(),
                triggered_ms=int(time.time() * 1000),
                started=time.monotonic(),
            )
        )

    def _advance_checkpoint(self, *, wait: bool) -> None:
        """Advance the checkpoint in flight. If it failed, its output goes to the next one."""
        before = self.checkpoints.committed_token
        try:
            left = self.checkpoints.advance(wait=wait)
        except CheckpointFailuresError as error:
            self._hold(error.committables)
            self._after_failure(self.epoch, AttemptFailedError(str(error), FailureReason.CHECKPOINTS))
            return
        if left is not None:
            self._hold(left)
        self._forget_restores(before)

    def _forget_restores(self, before: str) -> None:
        """Forget the restores if a new checkpoint, in the job's own shape, is complete: partitions load that one."""
        if self.checkpoints.committed_token != before:
            self._restores = {}

    def _hold(self, older: Mapping[str, list[bytes]]) -> None:
        """Put the output of a failed checkpoint before the output that waits for the next one."""
        for uid, items in older.items():
            self._uncommitted[uid] = [*items, *self._uncommitted.get(uid, [])]

    def _check_complete(self, attempt: Attempt, acks: Sequence[PartitionAck]) -> None:
        expected = {Place(stage.index, index) for stage in self.plan.stages[1:] for index in range(stage.parallelism)}
        found = [ack.place for ack in acks]
        if len(found) != len(expected) or set(found) != expected:
            raise JobFailedError(
                f"epoch {attempt.epoch}: acknowledged by {sorted(map(tuple, found))}, expected "
                f"{sorted(map(tuple, expected))}; nothing of the epoch was committed"
            )

    def _collect_committables(self, messages: Sequence[Any]) -> dict[str, list[bytes]]:
        """Add the output to that of the next checkpoint. Return the output that need not wait for one."""
        eager: dict[str, list[bytes]] = {}
        for message in messages:
            if isinstance(message, PartitionAck | SourceAck):
                for uid, items in message.outcome.committables.items():
                    (eager if uid in self._eager else self._uncommitted).setdefault(uid, []).extend(items)
        return eager

    def _note_partitions(self, acks: Sequence[PartitionAck]) -> None:
        timers: list[int] = []
        entries = 0
        self.checkpoints.writing = set()
        for ack in sorted(acks, key=lambda ack: ack.place):
            place = ack.place
            self._watermarks[place] = ack.outcome.watermarks
            if ack.address is not None:
                self._book[place] = ack.address
            if ack.full is not None:
                self.checkpoints.add_full(place, ack.full)
            self.checkpoints.writing.update(ack.writing)
            if ack.outcome.next_timer_ms is not None:
                timers.append(ack.outcome.next_timer_ms)
            entries += ack.outcome.state_entries
            self.progress.restored_slots += int(ack.restored and self.epoch >= 0)
        self.next_timer_ms = min(timers, default=None)
        self.progress.state_entries = entries
        self.progress.slots = [self._book[place] for place in sorted(self._book)]

    def _count(self, messages: Sequence[Any], records: int) -> None:
        counters = self.progress.counters
        counters["records_in"] = counters.get("records_in", 0) + records
        counters["epochs"] = counters.get("epochs", 0) + 1
        for message in messages:
            if isinstance(message, SplitAck):
                for name, count in message.counters.items():
                    counters[name] = counters.get(name, 0) + count
            elif isinstance(message, PartitionAck | SourceAck):
                self.progress.add_metrics(message.outcome.metrics)
                for uid, count in message.outcome.records_in.items():
                    counters[f"{uid}.records_in"] = counters.get(f"{uid}.records_in", 0) + count
        heads = [
            watermark
            for watermarks in self._watermarks.values()
            for place, watermark in watermarks.items()
            if is_input(place) and MIN_WATERMARK < watermark < MAX_WATERMARK
        ]
        self.progress.watermark = min(heads, default=self.progress.watermark)
        self.progress.epoch = self.epoch + 1

    def _manifest(
        self, attempt: Attempt, acks: Sequence[PartitionAck], committables: dict[str, list[bytes]]
    ) -> Manifest:
        """The manifest of the epoch that was just accepted, without its snapshots."""
        timers = {ack.place: ack.outcome.next_timer_ms for ack in acks}
        return Manifest(
            job_id=self.job_id,
            job_name=self.plan.name,
            epoch=self.epoch,
            incarnation=self._incarnation,
            created_ms=int(time.time() * 1000),
            now_ms=self.now_ms,
            plan_fingerprint=plan_fingerprint(self.plan),
            max_parallelism=self.plan.max_parallelism,
            operators=stateful_operators(self.plan),
            partitions=[
                PartitionRecord(*place, [], watermarks, next_processing_timer_ms=timers.get(place))
                for place, watermarks in sorted(self._watermarks.items())
            ],
            sources={source.spec.uid: source.record(attempt.epoch, attempt.id) for source in self._sources()},
            committables=committables,
            counters=dict(self.progress.counters),
            finished=self.finished,
            spark=self.spark,
        )  # fmt: skip

    # --- the end

    def cancel(self) -> None:
        """Cancel the job. The current epoch is given up. Any thread may call this."""
        self._cancelled.set()
        self._engine.cancel()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def wait_cancelled(self, seconds: float) -> bool:
        """Sleep, but wake when cancelled."""
        return self._cancelled.wait(seconds)

    def slots(self) -> list[SlotAddress]:
        return list(self._book.values())

    def clean_up(self) -> None:
        """Delete what dead attempts left at the sinks. Called when no attempt runs."""
        self.checkpoints.wait_until_noted()  # sinks forget what they last committed
        self._committers.clean_up(self.job_id, self._check_claim)

    def _pause_before_commit(self, reason: str, delay_ms: int) -> None:
        """A sink is asked again in `delay_ms`, unless the job is cancelled or another driver's by then."""
        self.progress.last_failure = reason
        log.warning("%s; trying again in %d ms", reason, delay_ms)
        if self._cancelled.wait(delay_ms / 1000):
            raise JobCancelledError("the job was cancelled")
        self._check_claim()

    def _check_claim(self) -> None:
        if self._store is not None:
            self._store.check_claim()

    def close(self) -> None:
        self.checkpoints.close()
        self._closed = True
        self._refuse_requests()
        self._committers.close()

    def _refuse_requests(self) -> None:
        for request in self.take_requests():
            request.fail(HeadwaterError("the job ended before it got to this request"))
