"""The coordinator: runs epochs one after another, and counts those that every partition has acknowledged.

It executes what others decide: `loop.py` asks `decide` what comes next, `serving.py` does what people ask for. One
epoch: plan → attempt (again, within the restart policy) → accept. If it is a cut, `checkpoints` then writes the
manifest and commits the sinks. If a partition lost state that no checkpoint has, the job goes back to the last one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.restore.rescale import PartitionRestore
from headwater.checkpoint.store import ManifestStore
from headwater.common.connector import CheckpointMoment
from headwater.common.dead_letter import DeadLetter
from headwater.common.errors import HeadwaterError
from headwater.common.ids import Place
from headwater.common.job_status import JobStatus
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.epoch.decisions import CHECKPOINT, COLLECT, DRAIN, Facts, GoBack, Run
from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.engine_choice import EngineChoice
from headwater.runtime.epoch.epoch_plan import EpochPlan, LastEpoch
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.job_states import JobState
from headwater.runtime.epoch.messages import Ack, Attempt, PartitionAck, SlotAddress
from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.job.attempts import Attempts
from headwater.runtime.job.checkpoint_cut import Cut
from headwater.runtime.job.checkpoints import CheckpointFailuresError, Checkpoints
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.dead_letter_limits import DeadLetterLimits
from headwater.runtime.job.endings import JobCancelledError, WentBackError
from headwater.runtime.job.failures import Failures
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.manifest_draft import ManifestDrafts
from headwater.runtime.job.metrics.job_metrics import JobMetrics
from headwater.runtime.job.partitions import Partitions
from headwater.runtime.job.pending_output import PendingOutput
from headwater.runtime.job.processing_clock import ProcessingClock
from headwater.runtime.job.progress import JobProgress, LastRestore
from headwater.runtime.job.requests import Request, RequestQueue
from headwater.runtime.job.source_notices import SourceNotices

log = logging.getLogger(__name__)

VAIN_CALLS = 10
"""After so many reports of input in a row where there was none, sources are polled, until an epoch reads something."""


class Coordinator:
    """Owns the truth about a running job. One thread runs it; any thread may use `cancel`, `ask` and `progress`."""

    def __init__(
        self,
        plan: JobPlan,
        job_id: str,
        engine: Engine,
        store: ManifestStore | None,
        restart_policy: RestartPolicy,
        sizer: EpochSizer | EngineChoice,
        retained: int,
        settings: CheckpointSettings | None = None,
        progress: JobProgress | None = None,
        background: Background = THREADS,
        spark_session: Callable[[], Any] | None = None,
        requests: RequestQueue | None = None,
    ) -> None:
        """`requests`: what is asked of the job. Whoever gives it closes it."""
        settings = settings or CheckpointSettings()
        self.plan = plan
        self.job_id = job_id
        self._engine = engine
        self._store = store
        self._choice = sizer if isinstance(sizer, EngineChoice) else EngineChoice(sizer)
        self.last = LastEpoch()
        self.dry_since_ms: int | None = None
        """When the last epoch ended, if it read nothing."""
        self._called = False
        """The engine has reported input since the last epoch."""
        self._vain_calls = 0
        """Epochs in a row that found nothing although the engine had reported input."""
        self.progress = progress or JobProgress()
        self.state = JobState()
        """The job's state."""
        self.clock = ProcessingClock()
        self.requests = RequestQueue() if requests is None else requests
        self.sources = JobSources(plan, store.layout if store is not None else None)
        self.partitions = Partitions(plan)
        self.metrics = JobMetrics(plan)
        self._failures = Failures(restart_policy, self.progress, can_go_back=store is not None or plan.batch_mode)
        layout = store.layout if store is not None else None
        self._dead_letters = DeadLetterLimits(plan.settings)
        self._committers = SinkCommitters(
            plan, restart_policy, self._pause_before_commit, job_id, layout, spark_session
        )
        self._notices = SourceNotices(self.sources.splits, background)
        self._output = PendingOutput(self._committers.eager if settings.interval_ms > 0 else set())
        self._drafts = ManifestDrafts(plan, job_id, self.partitions, self.sources)
        self.checkpoints = Checkpoints(
            store,
            self._committers,
            CheckpointSchedule(settings),
            retained,
            background,
            {stage.index: [each.name for each in stage.operators if each.needs_slot] for stage in plan.stages},
        )
        self._attempts = Attempts(engine, self.checkpoints, self.partitions, self.sources)
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

    @property
    def eager_sinks(self) -> set[str]:
        """Uids of the sinks whose output does not wait for a checkpoint."""
        return set(self._output.eager)

    @property
    def is_resident(self) -> bool:
        """The next epoch runs on the resident engine, in milliseconds."""
        return self._choice.resident

    @property
    def is_watching(self) -> bool:
        """While the job waits, its engine watches the sources."""
        return self._engine.watches and self._vain_calls < VAIN_CALLS

    def slots(self) -> list[SlotAddress]:
        return list(self.partitions.book.values())

    def begin(self, state: JobState) -> None:
        """The job runs. `state` is the one that its handle shows."""
        self.state = state
        state.to(JobStatus.RUNNING)

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
        self._attempts.incarnation = incarnation
        self._committers.open(manifest.epoch)
        self.partitions.restores = dict(restores or {})
        chains = {record.place: list(record.snapshots) for record in manifest.partitions}
        self.checkpoints.start_from(manifest, f"manifest-{manifest.epoch}", {} if restores else chains)
        self._stand_at(manifest)
        if self._store is not None and not self._store.is_committed(manifest.epoch):
            self._committers.commit(manifest.committables if recommit is None else recommit)
            self._store.note_committed(manifest.epoch)

    def _stand_at(self, manifest: Manifest | None) -> None:
        """Set everything except the slots to the last complete checkpoint; None: to the beginning."""
        self.last = LastEpoch.of(manifest, self.checkpoints.durable_token, self.last.now_ms)
        self.dry_since_ms = None
        self.clock.not_before(self.last.now_ms)
        self._output.drop()
        self.partitions.stand_at(manifest)
        self.sources.stand_at(manifest, self.last.now_ms)
        self.progress.went_to(self.last.epoch, manifest.counters if manifest is not None else {})
        self.metrics.went_back(to_the_beginning=manifest is None)

    def _go_back(self) -> None:
        """Go back to the last complete checkpoint, or to the beginning. Later output was never visible."""
        self.checkpoints.settle()
        self._attempts.incarnation += 1  # epoch numbers are reused, and slots serve only newer attempts
        self.progress.rewinds += 1
        if self.checkpoints.durable is None:
            self.checkpoints.start_from(None, f"start-{self._attempts.incarnation}", {})
        elif self._store is not None:
            epoch = self.checkpoints.durable.epoch
            self.progress.last_restore = LastRestore(epoch, f"{self._store.layout.root}@{epoch}", False)
        self._stand_at(self.checkpoints.durable)

    # --- between two epochs

    def stamp(self) -> int:
        """The next epoch's processing time: the clock's, and later than the last epoch's."""
        return max(self.last.now_ms + 1, int(self.clock.now_ms()))

    def wait(self, facts: Facts, until_ms: int) -> None:
        """Wait until then, or until somebody asks for something, cancels the job, or the engine reports input."""
        seconds = (until_ms - facts.now_ms) / 1000
        if self._vain_calls >= VAIN_CALLS:
            self.wakeup.wait(seconds)
        elif self._engine.wait(seconds, self.wakeup):
            self.dry_since_ms, self._called = None, True

    def settle_checkpoint(self, request: Request | None = None) -> None:
        """Bring a checkpoint that is in flight to its end, by epochs that read nothing.

        With a `request`, raise `GivenUpError` once that has taken longer than a checkpoint may.
        """
        while self.checkpoints.in_flight is not None:
            self._execute(self.plan_epoch(COLLECT, self.stamp()))
            self._advance_checkpoint(wait=True)
            self.checkpoints.check_time(request)

    def checkpoint_now(self, run: Run, request: Request | None = None) -> None:
        """Complete a checkpoint: run epochs without input until one of theirs succeeds. `GivenUpError` as above."""
        while True:
            if self.checkpoints.in_flight is None:
                self._execute(self.plan_epoch(run, self.stamp()))
            self._advance_checkpoint(wait=True)
            if self.checkpoints.committed_token == self.last.token:
                return
            self.checkpoints.check_time(request)

    def replay(self, letters: tuple[DeadLetter, ...], request: Request) -> None:
        """Run an epoch without input, but with these dead letters. Its checkpoint is complete on return.

        No checkpoint may be in flight. `GivenUpError` as above: the letters are then in the next checkpoint.
        """
        self._execute(replace(self.plan_epoch(CHECKPOINT, self.stamp()), letters=letters))
        self._advance_checkpoint(wait=True)
        if self.checkpoints.committed_token != self.last.token:
            self.checkpoint_now(CHECKPOINT, request)

    # --- the epoch

    def plan_epoch(
        self,
        run: Run,
        now_ms: int,
        batch: Mapping[int, Any] | None = None,
        spark: Mapping[str, Any] | None = None,
    ) -> EpochPlan:
        """Return the next epoch. `batch` is a micro-batch of the streaming DataFrames, and `spark` its record."""
        started = time.monotonic()
        self.sources.discover(now_ms)  # the checkpoint of a bounded source must contain its splits
        frames: dict[int, Any] = {}
        budget = self._choice.budget()
        if run.reads:
            frames = {**(batch or {}), **self.sources.unread_dataframes()}
            tasks = self.sources.tasks(now_ms, budget, frames, final=run.final)
        else:
            tasks = self.sources.markers(final=run.final)
            spark = self.last.spark
        resident = self._choice.resident and not frames
        self.metrics.plan_ms = (time.monotonic() - started) * 1000
        return EpochPlan(
            self.last.epoch + 1, now_ms, tasks, frames, run.final, run.cut, run.wait, spark or {}, budget, resident
        )

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
            self._choice.observe(resident=plan.resident, records=records, budget=plan.budget, duration_ms=duration_ms)
        notify, self.on_first_epoch = self.on_first_epoch, None
        if notify is not None:
            notify()
        self.progress.epoch_ms = duration_ms
        self.progress.epoch_done(records)
        self.dry_since_ms = None if records or plan.dataframes else int(self.clock.now_ms())
        self._vain_calls = 0 if records else self._vain_calls + self._called
        self._called = False
        return records

    def _execute(self, plan: EpochPlan) -> int:
        """Attempt an epoch until it can be accepted. Return how many records it read."""
        number = 0
        while True:
            try:
                self.metrics.attempt_begins(plan.now_ms)
                attempt, messages = self._attempts.run(plan, self.last, number)
                if (too_many := self._dead_letters.check(plan.now_ms, messages)) is not None:
                    raise AttemptFailedError.of_program(too_many)
            except AttemptFailedError as failure:
                self.metrics.attempt_failed()
                if self.cancelled:
                    raise JobCancelledError from None
                self._choice.failed()
                refusals = self._dead_letters.without_refused(plan.refusals, failure)
                if refusals is None:
                    self._after_failure(plan.epoch, failure)
                number += 1
                plan = replace(
                    plan, resident=plan.resident and self._choice.resident, refusals=refusals or plan.refusals
                )
            else:
                return self._accept(plan, attempt, messages)

    def _accept(self, plan: EpochPlan, attempt: Attempt, messages: Sequence[Ack]) -> int:
        """The barrier: all acknowledgements have come, so the epoch counts. Its output waits for a checkpoint.

        Raises `JobFailedError` if an acknowledgement is missing.
        """
        started = time.monotonic()
        acks = [message for message in messages if isinstance(message, PartitionAck)]
        self.partitions.check_complete(plan.epoch, acks)
        at_once = self._output.collect(messages)
        self.partitions.accept(acks)
        records = self.sources.accept(plan, messages)
        self.progress.accept(plan.epoch, messages, records, self.partitions)
        self.metrics.accept(plan, messages, self.partitions.event_time)
        self.last = LastEpoch.accepted(plan, attempt)
        self.state.to(JobStatus.RUNNING)
        if plan.cut:
            self._cut(acks)
        self.checkpoints.accept(acks)
        self._committers.commit(at_once)
        if self.checkpoints.in_flight is None:
            self.metrics.commit_problem = None
        self.checkpoints.state_is_loaded()
        self.metrics.accepted_in((time.monotonic() - started) * 1000)
        return records

    def _cut(self, acks: Sequence[PartitionAck]) -> None:
        """The epoch that was just accepted is a checkpoint, as soon as its parts are there."""
        self.metrics.cut()
        self.progress.cut()
        output = self._output.take()
        final = self.last.finished or bool(self.checkpoints.savepoints)
        due, held = self._committers.select(
            output, self.checkpoints.held, CheckpointMoment(self.last.epoch, self.last.now_ms, final)
        )
        slots = {ack.place for ack in acks if ack.address is not None}
        self.checkpoints.cut(
            Cut(
                token=self.last.token,
                draft=self._drafts.draft(self.last, self._attempts.incarnation, due, held, self.progress.counters),
                waiting_for=slots if self._store is not None else set(),
                triggered_ms=int(time.time() * 1000),
                started=time.monotonic(),
                output=output,
            )
        )

    def _advance_checkpoint(self, *, wait: bool) -> None:
        """Advance the checkpoint in flight. If it failed, its output goes to the next one."""
        try:
            self._output.hold(self.checkpoints.advance(wait=wait) or {})
        except CheckpointFailuresError as error:
            self._output.hold(error.committables)
            self._after_failure(self.last.epoch, AttemptFailedError(str(error), FailureReason.CHECKPOINTS))
            self.state.to(JobStatus.RUNNING)  # the epoch itself counts

    def _checkpoint_completed(self, manifest: Manifest) -> None:
        self.metrics.checkpoint_completed(self.checkpoints.history[-1])
        self.progress.checkpoint_completed()
        self.partitions.forget_restores()
        self._notices.committed(manifest)
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
        self.progress.last_failure = self.metrics.commit_problem = reason
        self.progress.exceptions.add(HeadwaterError(reason), self.last.epoch)
        log.warning("%s; trying again in %d ms", reason, delay_ms)
        self._pause(delay_ms)
        self._check_claim()

    def _check_claim(self) -> None:
        if self._store is not None:
            self._store.check_claim()

    def clean_up(self) -> None:
        """Delete what dead attempts left at the sinks. Called when no attempt runs."""
        self.checkpoints.wait_until_noted()  # sinks forget what they last committed
        self._committers.clean_up(self.job_id, self._check_claim, self.checkpoints.held)

    def close(self) -> None:
        self.checkpoints.close()
        self._committers.close()
        self._notices.close()
        self.wakeup.close()
