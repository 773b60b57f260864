"""The coordinator: runs epochs one after another, decides when one counts, and makes its output visible.

One epoch: plan what to read → attempt (again, within the restart policy) → manifest → commit sinks → next.
Law 3 lives in `complete`: nothing of an epoch is visible before its manifest is durable.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwater.checkpoint.epoch_sizing import EpochSizer
from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import TEMPORARY_SUFFIX, CheckpointLayout
from headwater.checkpoint.restart_policy import RestartPolicy
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import HeadwaterError, JobFailedError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.graph.plan import JobPlan
from headwater.runtime import fault
from headwater.runtime.engine import Engine, EpochAttemptError, EpochHeader
from headwater.runtime.job.acks import SourceAck, SplitAck, StageAck
from headwater.runtime.job.committers import SinkCommitters
from headwater.runtime.job.fingerprint import plan_fingerprint, stateful_operators
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.source_progress import DataFrameProgress, SplitSourceProgress, group_by_source
from headwater.runtime.slot.protocol import Attempt, SlotAddress
from headwater.runtime.source_task import SourceTask

log = logging.getLogger(__name__)


class JobCancelledError(HeadwaterError):
    """The job was asked to stop. Its checkpoint stays."""


class StartOverError(HeadwaterError):
    """A BATCH run lost its state. Nothing of it was visible yet, so it begins again."""


class Coordinator:
    """Owns the truth about a running job. Used by one thread; `cancel` and `progress` may be used by any."""

    def __init__(
        self,
        plan: JobPlan,
        job_id: str,
        engine: Engine,
        layout: CheckpointLayout | None,
        restart_policy: RestartPolicy,
        sizer: EpochSizer,
        retained: int,
    ) -> None:
        self.plan = plan
        self.job_id = job_id
        self._engine = engine
        self._store = ManifestStore(layout) if layout is not None else None
        self._policy = restart_policy
        self._sizer = sizer
        self._retained = retained
        self._run = secrets.token_hex(3)
        self._incarnation = 1
        self._failures_ms: list[int] = []
        self._committers = SinkCommitters(plan)
        self._book: dict[tuple[int, int], SlotAddress] = {}
        self._watermarks: dict[tuple[int, int], dict[str, int]] = {}
        self._snapshots: dict[tuple[int, int], list[Any]] = {}
        self._held_back: dict[str, list[bytes]] = {}  # BATCH: committed at the end only
        self._writing: set[str] = set()
        self._worker_pids: list[int] = []
        self.split_sources = [
            SplitSourceProgress(spec, layout) for spec in plan.sources if not hasattr(spec.source, "dataframe")
        ]
        self.dataframes = [DataFrameProgress(spec) for spec in plan.sources if hasattr(spec.source, "dataframe")]
        self.progress = JobProgress()
        self.epoch = -1
        """The last completed epoch."""
        self.now_ms = 0
        self.next_timer_ms: int | None = None
        self.finished = False
        self.spark: dict[str, Any] = {}
        """What the last manifest says about Structured Streaming: the micro-batch it belongs to."""
        self.first_epoch_started: float | None = None
        self.last_commit: float | None = None
        self._cancelled = threading.Event()

    # --- start

    def resume(self, manifest: Manifest, incarnation: int) -> None:
        """Take up where `manifest` ends, and commit its output again if the crash may have come before that."""
        self.epoch, self.now_ms, self._incarnation = manifest.epoch, manifest.now_ms, incarnation
        for record in manifest.partitions:
            place = (record.stage, record.partition)
            self._snapshots[place] = list(record.snapshots)
            self._watermarks[place] = dict(record.watermarks)
        timers = [record.next_processing_timer_ms for record in manifest.partitions]
        self.next_timer_ms = min((timer for timer in timers if timer is not None), default=None)
        for source in self.split_sources:
            if source.spec.uid in manifest.sources:
                source.restore(manifest.sources[source.spec.uid], self.now_ms)
            source.next_epoch = manifest.epoch + 1
        for dataframe in self.dataframes:
            if dataframe.spec.uid in manifest.sources:
                dataframe.restore(manifest.sources[dataframe.spec.uid])
        self.progress.epoch = manifest.epoch
        self.progress.counters.update(manifest.counters)
        self.progress.records_in = manifest.counters.get("records_in", 0)
        self.finished = manifest.finished
        self.spark = dict(manifest.spark)
        if self._store is not None and not self._store.is_committed(manifest.epoch):
            self._committers.commit(manifest.committables)
            self._store.note_committed(manifest.epoch)

    # --- the epoch

    def stamp(self) -> int:
        """The next epoch's processing time: the clock's, but never before the last epoch's."""
        return max(self.now_ms + 1 if self.epoch >= 0 else 0, int(time.time() * 1000))

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
    ) -> int:
        """Run the next epoch to its commit. Returns how many records it read."""
        started = time.monotonic()
        if self.first_epoch_started is None:
            self.first_epoch_started = started
        dataframes = dataframes or {}
        epoch = self.epoch + 1
        tasks = self._plan_tasks(now_ms, dataframes, final=final)
        attempt, messages = self._attempt_until_done(epoch, tasks, dataframes, now_ms, final=final)
        records = self._complete(attempt, messages, now_ms, dataframes, final=final, spark=spark or {})
        duration_ms = (time.monotonic() - started) * 1000
        if self._policy.forgets_on_success:
            self._failures_ms.clear()
        if not final:
            self._sizer.observe(records, duration_ms)
        self.last_commit = time.monotonic()
        self.progress.epoch_ms = duration_ms
        self.progress.epoch_done(records)
        return records

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
        self, epoch: int, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any], now_ms: int, *, final: bool
    ) -> tuple[Attempt, list[Any]]:
        number = 0
        while True:
            attempt = Attempt(self._incarnation, epoch, number, self._run)
            header = EpochHeader(
                attempt=attempt,
                base_epoch=self.epoch,
                now_ms=now_ms,
                checkpointing=self._store is not None,
                final=final,
                driver_pid=os.getpid(),
                address_book=dict(self._book),
                watermarks=dict(self._watermarks),
                snapshots=dict(self._snapshots),
                dataframe_state={source.spec.id: source.state() for source in self.dataframes},
                dataframe_bounded=not any(source.streaming for source in self.dataframes),
            )
            try:
                return attempt, self._engine.run(header, tasks, dataframes)
            except EpochAttemptError as failure:
                if self._cancelled.is_set():
                    raise JobCancelledError("the job was cancelled") from None
                self._after_failure(epoch, failure)
                number += 1

    def _after_failure(self, epoch: int, failure: EpochAttemptError) -> None:
        """Wait as the restart policy says, or give up."""
        if failure.error is not None:
            raise failure.error
        if failure.state_lost and not self.plan.batch_mode:
            raise JobFailedError(
                f"epoch {epoch} failed: {failure}; without checkpoints there is nothing to go back to. Set "
                "execution.checkpointing.dir, or start the job again from the beginning"
            ) from None
        now_ms = int(time.monotonic() * 1000)
        self._failures_ms.append(now_ms)
        delay_ms = self._policy.next_delay_ms(self._failures_ms, now_ms)
        self.progress.last_failure = str(failure)
        if delay_ms is None:
            raise JobFailedError(
                f"epoch {epoch} failed {len(self._failures_ms)} times, and the restart policy allows no more: {failure}"
            ) from None
        self.progress.restarts += 1
        log.warning("epoch %d failed (%s); trying again in %d ms", epoch, failure, delay_ms)
        if self._cancelled.wait(delay_ms / 1000):
            raise JobCancelledError("the job was cancelled") from None
        if failure.state_lost:
            self._start_over()
            raise StartOverError(str(failure)) from None

    def _start_over(self) -> None:
        """Forget everything: BATCH commits at its end only, so a run can be repeated from its beginning."""
        self.epoch = -1
        self._incarnation += 1  # slots serve only newer attempts
        self._watermarks, self._snapshots, self._held_back = {}, {}, {}
        self.next_timer_ms = None
        self.progress.counters.clear()
        self.progress.records_in = 0
        for source in self._sources():
            source.reset()

    def _complete(
        self,
        attempt: Attempt,
        messages: Sequence[Any],
        now_ms: int,
        dataframes: Mapping[int, Any],
        *,
        final: bool,
        spark: dict[str, Any],
    ) -> int:
        """The barrier: all acknowledgements are there. Write the manifest, then let the output be seen."""
        acks = [message for message in messages if isinstance(message, StageAck)]
        self._check_complete(attempt, acks)
        committables = self._collect_committables(messages)
        split_acks = group_by_source(message for message in messages if isinstance(message, SplitAck))
        self._note_partitions(acks)
        records = 0
        for source in self.split_sources:
            records += source.apply(split_acks.get(source.spec.id, ()), attempt.epoch, attempt.id)
        for dataframe in self.dataframes:
            read = dataframe.spec.id in dataframes
            records += dataframe.apply(split_acks.get(dataframe.spec.id, ()), read=read)
        self._count(messages, records)
        self.epoch, self.now_ms, self.finished = attempt.epoch, now_ms, final
        if self._store is not None:
            self._store.write(self._manifest(acks, committables, spark))
        self.spark = spark
        fault.reached("manifest-written", attempt.epoch, self._victims(acks))
        if self.plan.batch_mode and not final:
            for uid, items in committables.items():
                self._held_back.setdefault(uid, []).extend(items)
        else:
            for uid, items in self._held_back.items():
                committables[uid] = items + committables.get(uid, [])
            self._held_back = {}
            self._committers.commit(committables)
        fault.reached("sink-committed", attempt.epoch, self._victims(acks))
        if self._store is not None:
            self._store.note_committed(attempt.epoch)
            protected = self._writing | {name + TEMPORARY_SUFFIX for name in self._writing}
            self._store.collect_garbage(self._retained, protected)
        return records

    def _check_complete(self, attempt: Attempt, acks: Sequence[StageAck]) -> None:
        expected = {(stage.index, index) for stage in self.plan.stages[1:] for index in range(stage.parallelism)}
        found = [(ack.stage, ack.partition) for ack in acks]
        if len(found) != len(expected) or set(found) != expected:
            raise JobFailedError(
                f"epoch {attempt.epoch}: acknowledged by {sorted(found)}, expected {sorted(expected)}; nothing of the "
                "epoch was committed"
            )

    def _collect_committables(self, messages: Sequence[Any]) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for message in messages:
            if isinstance(message, StageAck | SourceAck):
                for uid, items in message.outcome.committables.items():
                    found.setdefault(uid, []).extend(items)
        return found

    def _note_partitions(self, acks: Sequence[StageAck]) -> None:
        timers: list[int] = []
        entries = 0
        self._writing = set()
        for ack in sorted(acks, key=lambda ack: (ack.stage, ack.partition)):
            place = (ack.stage, ack.partition)
            self._watermarks[place] = ack.outcome.watermarks
            if ack.address is not None:
                self._book[place] = ack.address
            chain = self._snapshots.setdefault(place, [])
            if ack.delta is not None:
                chain.append(ack.delta)
            if ack.full is not None:
                self._snapshots[place] = [ack.full, *(ref for ref in chain if ref.epoch > ack.full.epoch)]
            if ack.writing is not None:
                self._writing.add(ack.writing)
            if ack.outcome.next_timer_ms is not None:
                timers.append(ack.outcome.next_timer_ms)
            entries += ack.outcome.state_entries
            self.progress.restored_slots += int(ack.restored and self.epoch >= 0)
        self.next_timer_ms = min(timers, default=None)
        self.progress.state_entries = entries
        self.progress.slots = [self._book[place] for place in sorted(self._book)]
        self._worker_pids = [ack.worker_pid for ack in acks]

    def _count(self, messages: Sequence[Any], records: int) -> None:
        counters = self.progress.counters
        counters["records_in"] = counters.get("records_in", 0) + records
        counters["epochs"] = counters.get("epochs", 0) + 1
        for message in messages:
            if isinstance(message, SplitAck):
                for name, count in message.counters.items():
                    counters[name] = counters.get(name, 0) + count
            elif isinstance(message, StageAck | SourceAck):
                self.progress.add_metrics(message.outcome.metrics)
                for uid, count in message.outcome.records_in.items():
                    counters[f"{uid}.records_in"] = counters.get(f"{uid}.records_in", 0) + count
        heads = [
            watermark
            for watermarks in self._watermarks.values()
            for place, watermark in watermarks.items()
            if place.startswith("head:") and MIN_WATERMARK < watermark < MAX_WATERMARK
        ]
        self.progress.watermark = min(heads, default=self.progress.watermark)
        self.progress.epoch = self.epoch + 1

    def _manifest(
        self, acks: Sequence[StageAck], committables: dict[str, list[bytes]], spark: dict[str, Any]
    ) -> Manifest:
        timers = {(ack.stage, ack.partition): ack.outcome.next_timer_ms for ack in acks}
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
                PartitionRecord(
                    stage, partition, self._snapshots.get((stage, partition), []), watermarks,
                    next_processing_timer_ms=timers.get((stage, partition)),
                )
                for (stage, partition), watermarks in sorted(self._watermarks.items())
            ],
            sources={source.spec.uid: source.record() for source in self._sources()},
            committables=committables,
            counters=dict(self.progress.counters),
            finished=self.finished,
            spark=spark,
        )  # fmt: skip

    def _victims(self, acks: Sequence[StageAck]) -> dict[str, int]:
        victims = {"driver": os.getpid()}
        slots = [ack.address.pid for ack in acks if ack.address is not None]
        if slots:
            victims["slot"] = slots[0]
        if self._worker_pids:
            victims["worker"] = self._worker_pids[0]
        return victims

    # --- the end

    def cancel(self) -> None:
        """Ask the job to stop. The epoch under way is given up."""
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
        """Delete what attempts that died left in the sinks' places. Called when none is under way."""
        self._committers.clean_up(self.job_id)

    def close(self) -> None:
        self._committers.close()
