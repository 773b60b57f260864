"""The coordinator: runs epochs one after another, and counts those that every partition has acknowledged.

It executes what others decide: `loop.py` asks `decide` what comes next, `serving.py` does what people ask for. One
epoch: plan → attempt (again, within the restart policy) → accept. If it is a cut, `checkpoints` then writes the
manifest and commits the sinks. If a partition lost state that no checkpoint has, the job goes back to the last one.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.restore.rescale import PartitionRestore
from headwater.checkpoint.store import ManifestStore
from headwater.common.ids import Place
from headwater.common.job_status import JobStatus
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.epoch.decisions import CHECKPOINT, COLLECT, DRAIN, Facts, GoBack, Pace, Run
from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.epoch_plan import EpochPlan, LastEpoch
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.job_states import JobState
from headwater.runtime.epoch.messages import Ack, Attempt, EpochHeader, PartitionAck, SlotAddress
from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.job.checkpoints import CheckpointFailuresError, Checkpoints, Cut
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.endings import JobCancelledError, WentBackError
from headwater.runtime.job.failures import Failures
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.manifest_draft import ManifestDrafts
from headwater.runtime.job.partitions import Partitions
from headwater.runtime.job.pending_output import PendingOutput
from headwater.runtime.job.processing_clock import ProcessingClock
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.requests import Request, RequestQueue

log = logging.getLogger(__name__)


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
        settings = settings or CheckpointSettings()
        self.plan = plan
        self.job_id = job_id
        self._engine = engine
        self._store = store
        self._sizer = sizer
        self._run = secrets.token_hex(3)
        self._incarnation = 1
        self.last = LastEpoch()
        self._dry_since_ms: int | None = None
        """When the last epoch ended, if it read nothing."""
        self.progress = progress or JobProgress()
        self.state = JobState()
        """Of the job: whoever shows it to others puts theirs here."""
        self.clock = ProcessingClock()
        self.requests = RequestQueue()
        self.sources = JobSources(plan, store.layout if store is not None else None)
        self._partitions = Partitions(plan)
        self._failures = Failures(restart_policy, self.progress, can_go_back=store is not None or plan.batch_mode)
        self._committers = SinkCommitters(plan, restart_policy, self._pause_before_commit)
        self._output = PendingOutput(self._committers.eager if settings.interval_ms > 0 else set())
        self._drafts = ManifestDrafts(plan, job_id, self._partitions, self.sources)
        self.checkpoints = Checkpoints(
            store,
            self._committers,
            CheckpointSchedule(settings),
            retained,
            background,
            {stage.index: [each.name for each in stage.operators if each.needs_slot] for stage in plan.stages},
        )
        self.checkpoints.on_durable.append(self._checkpoint_completed)
        self.on_first_epoch: Callable[[], None] | None = None
        """Called once, after this coordinator's first epoch."""
        self.first_epoch_started: float | None = None
        self.last_commit: float | None = None
        self._cancelled = threading.Event()
        self.wakeup = Wakeup()

    # --- where the job stands

    @property
    def epoch(self) -> int:
        """The last accepted epoch."""
        return self.last.epoch

    @property
    def finished(self) -> bool:
        return self.last.finished

    @property
    def has_checkpoints(self) -> bool:
        return self._store is not None

    def slots(self) -> list[SlotAddress]:
        return list(self._partitions.book.values())

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
        self._partitions.restores = dict(restores or {})
        chains = {record.place: list(record.snapshots) for record in manifest.partitions}
        self.checkpoints.start_from(manifest, f"manifest-{manifest.epoch}", {} if restores else chains)
        self._stand_at(manifest)
        if self._store is not None and not self._store.is_committed(manifest.epoch):
            self._committers.commit(manifest.committables if recommit is None else recommit)
            self._store.note_committed(manifest.epoch)

    def _stand_at(self, manifest: Manifest) -> None:
        """Set everything except the slots to the state of `manifest`, the durable checkpoint."""
        now_ms = max(self.last.now_ms, manifest.now_ms)
        self._dry_since_ms = None
        self.last = LastEpoch(
            manifest.epoch, now_ms, self.checkpoints.durable_token, manifest.finished, dict(manifest.spark)
        )
        self.clock.not_before(now_ms)
        self._output.drop()
        self._partitions.stand_at(manifest)
        self.sources.stand_at(manifest, now_ms)
        self.progress.went_to(manifest.epoch, manifest.counters)

    def _go_back(self) -> None:
        """Go back to the last complete checkpoint, or to the beginning. Later output was never visible."""
        self.checkpoints.settle()
        self._incarnation += 1  # epoch numbers are reused, and slots serve only newer attempts
        self.progress.rewinds += 1
        if self.checkpoints.durable is not None:
            self._stand_at(self.checkpoints.durable)
            return
        self._dry_since_ms = None
        self.last = LastEpoch(now_ms=self.last.now_ms, token=f"start-{self._incarnation}")
        self.checkpoints.start_from(None, self.last.token, {})
        self._output.drop()
        self._partitions.start_over()
        self.sources.start_over()
        self.progress.went_to(-1, {})

    # --- between two epochs

    def stamp(self) -> int:
        """The next epoch's processing time: the clock's, and later than the last epoch's."""
        return max(self.last.now_ms + 1, int(self.clock.now_ms()))

    def facts(self, pace: Pace, *, micro_batch: bool = False) -> Facts:
        """Return what is known between two epochs. Looks for new splits, and gives up what takes too long."""
        self.wakeup.clear()  # before looking: whatever comes now wakes the next `wait`
        self.checkpoints.give_up_late()
        now_ms = self.stamp()
        self.sources.discover(now_ms)
        return Facts(
            now_ms=now_ms,
            pace=pace,
            last_epoch_ms=self.last.now_ms,
            dry_since_ms=self._dry_since_ms,
            cancelled=self.cancelled,
            asked=bool(self.requests),
            micro_batch=micro_batch,
            next_timer_ms=self._partitions.next_timer_ms,
            batch_mode=self.plan.batch_mode,
            sources=self.sources.facts(now_ms),
            checkpoint=self.checkpoints.facts(self.last, now_ms),
        )

    def wait(self, facts: Facts, until_ms: int) -> None:
        """Wait until then, or until somebody asks for something, cancels the job, or the engine reports input."""
        if self._engine.wait((until_ms - facts.now_ms) / 1000, self.wakeup):
            self._dry_since_ms = None

    def settle_checkpoint(self, request: Request | None = None) -> None:
        """Bring a checkpoint that is in flight to its end, by epochs that read nothing.

        For a `request` it takes as long as that may take: then `GivenUpError`.
        """
        while self.checkpoints.in_flight is not None:
            self._execute(self.plan_epoch(COLLECT, self.stamp()))
            self._advance_checkpoint(wait=True)
            self.checkpoints.check_time(request)

    def checkpoint_now(self, run: Run, request: Request | None = None) -> None:
        """Run an epoch without input for its checkpoint. Complete on return; `GivenUpError` as above."""
        while True:
            if self.checkpoints.in_flight is None:
                self._execute(self.plan_epoch(run, self.stamp()))
            self._advance_checkpoint(wait=True)
            if self.checkpoints.committed_token == self.last.token:
                return
            self.checkpoints.check_time(request)

    # --- the epoch

    def plan_epoch(
        self,
        run: Run,
        now_ms: int,
        batch: Mapping[int, Any] | None = None,
        spark: Mapping[str, Any] | None = None,
    ) -> EpochPlan:
        """Return the next epoch. `batch` is a micro-batch of the streaming DataFrames, and `spark` its record."""
        self.sources.discover(now_ms)  # the checkpoint of a bounded source must contain its splits
        frames: dict[int, Any] = {}
        if run.reads:
            frames = {**(batch or {}), **self.sources.unread_dataframes()}
            tasks = self.sources.tasks(now_ms, self._sizer.next_budget(), frames, final=run.final)
        else:
            tasks = self.sources.markers(final=run.final)
            spark = self.last.spark
        return EpochPlan(self.last.epoch + 1, now_ms, tasks, frames, run.final, run.cut, run.wait, spark or {})

    def run_epoch(self, plan: EpochPlan) -> int:
        """Run an epoch until it is accepted, and with `plan.wait` until its checkpoint is complete.

        Return how many records it read.
        """
        started = time.monotonic()
        if self.first_epoch_started is None:
            self.first_epoch_started = started
        records = self._execute(plan)
        self._advance_checkpoint(wait=plan.wait)
        if plan.wait and self.checkpoints.committed_token != self.last.token:
            # The epoch's checkpoint failed, but the caller must not go on without one.
            self.checkpoint_now(DRAIN if plan.final else CHECKPOINT)
        self.last_commit = time.monotonic()
        duration_ms = (self.last_commit - started) * 1000
        if not self.checkpoints.schedule.fails:
            self._failures.forget()
        if not plan.final:
            self._sizer.observe(records, duration_ms)
        self.state.to(JobStatus.RUNNING)
        notify, self.on_first_epoch = self.on_first_epoch, None
        if notify is not None:
            notify()
        self.progress.epoch_ms = duration_ms
        self.progress.epoch_done(records)
        self._dry_since_ms = None if records or plan.dataframes else int(self.clock.now_ms())
        return records

    def _execute(self, plan: EpochPlan) -> int:
        """Attempt an epoch until it can be accepted. Return how many records it read."""
        number = 0
        while True:
            attempt = Attempt(self._incarnation, plan.epoch, number, self._run)
            try:
                messages = self._engine.run(self._header(plan, attempt), plan.tasks, plan.dataframes)
            except AttemptFailedError as failure:
                if self.cancelled:
                    raise JobCancelledError from None
                self._after_failure(plan.epoch, failure)
                number += 1
            else:
                return self._accept(plan, attempt, messages)

    def _header(self, plan: EpochPlan, attempt: Attempt) -> EpochHeader:
        return EpochHeader(
            attempt=attempt,
            base=self.checkpoints.base(self.last),
            now_ms=plan.now_ms,
            checkpointing=self._store is not None,
            final=plan.final,
            cut=plan.cut,
            wait=plan.wait,
            address_book=dict(self._partitions.book),
            watermarks=dict(self._partitions.watermarks),
            snapshots=dict(self.checkpoints.chains),
            restores=dict(self._partitions.restores),
            dataframe_state=self.sources.dataframe_state(),
            dataframe_bounded=not self.sources.streaming,
        )

    def _accept(self, plan: EpochPlan, attempt: Attempt, messages: Sequence[Ack]) -> int:
        """The barrier: all acknowledgements have come, so the epoch counts. Its output waits for a checkpoint.

        Raises `JobFailedError` if an acknowledgement is missing.
        """
        acks = [message for message in messages if isinstance(message, PartitionAck)]
        self._partitions.check_complete(plan.epoch, acks)
        at_once = self._output.collect(messages)
        self._partitions.accept(acks)
        records = self.sources.accept(plan, messages)
        self.progress.accept(plan.epoch, messages, records, self._partitions)
        self.last = LastEpoch.accepted(plan, attempt)
        if plan.cut:
            self._cut(acks)
        self.checkpoints.accept(acks)
        self._committers.commit(at_once)
        self.checkpoints.state_is_loaded()
        return records

    def _cut(self, acks: Sequence[PartitionAck]) -> None:
        """The epoch that was just accepted is a checkpoint, as soon as its parts are there."""
        slots = {ack.place for ack in acks if ack.address is not None}
        self.checkpoints.cut(
            Cut(
                token=self.last.token,
                draft=self._drafts.draft(self.last, self._incarnation, self._output.take(), self.progress.counters),
                waiting_for=slots if self._store is not None else set(),
                triggered_ms=int(time.time() * 1000),
                started=time.monotonic(),
            )
        )

    def _advance_checkpoint(self, *, wait: bool) -> None:
        """Advance the checkpoint in flight. If it failed, its output goes to the next one."""
        try:
            self._output.hold(self.checkpoints.advance(wait=wait) or {})
        except CheckpointFailuresError as error:
            self._output.hold(error.committables)
            self._after_failure(self.last.epoch, AttemptFailedError(str(error), FailureReason.CHECKPOINTS))

    def _checkpoint_completed(self, manifest: Manifest) -> None:
        self._partitions.forget_restores()
        self._engine.checkpoint_completed(self.checkpoints.committed_token)

    def _after_failure(self, epoch: int, failure: AttemptFailedError) -> None:
        """Wait as the restart policy says, or raise. Raises `WentBackError` if state was lost and the job went back."""
        decision = self._failures.add(epoch, failure)
        self.state.to(JobStatus.RESTARTING)
        self._pause(decision.delay_ms)
        if isinstance(decision, GoBack):
            self._go_back()
            raise WentBackError(str(failure)) from None

    # --- from outside, and the end

    def ask(self, request: Request) -> None:
        """Queue a request, to be served between two epochs. Any thread may call this."""
        self.requests.add(request)
        self.wakeup.set()

    def cancel(self) -> None:
        """Cancel the job. The current epoch is given up. Any thread may call this."""
        self._cancelled.set()
        self.wakeup.set()
        self._engine.cancel()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def _pause(self, delay_ms: int) -> None:
        if self._cancelled.wait(delay_ms / 1000):
            raise JobCancelledError from None

    def _pause_before_commit(self, reason: str, delay_ms: int) -> None:
        """A sink is asked again in `delay_ms`, unless the job is cancelled or another driver's by then."""
        self.progress.last_failure = reason
        log.warning("%s; trying again in %d ms", reason, delay_ms)
        self._pause(delay_ms)
        self._check_claim()

    def _check_claim(self) -> None:
        if self._store is not None:
            self._store.check_claim()

    def clean_up(self) -> None:
        """Delete what dead attempts left at the sinks. Called when no attempt runs."""
        self._committers.clean_up(self.job_id, self._check_claim)

    def close(self) -> None:
        self.checkpoints.close()
        self.requests.close()
        self._committers.close()
        self.wakeup.close()
