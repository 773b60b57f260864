"""The figures of a running job. The coordinator's thread writes them; any thread may read them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.common.ids import MIN_WATERMARK, Place
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.epoch_plan import EpochPlan
from headwater.runtime.epoch.figures import KeySampling
from headwater.runtime.epoch.messages import Ack, SlotAddress, SourceAck, SplitAck
from headwater.runtime.job.checkpoint_stats import CheckpointStats
from headwater.runtime.job.metrics.epoch_counts import Table, add_table, count_epoch
from headwater.runtime.job.metrics.graph_index import GraphIndex
from headwater.runtime.job.metrics.recent import RecentHistory, Slice
from headwater.runtime.job.metrics.settling import Settling
from headwater.time.watermark_keys import at_output

PHASES = ("plan", "read", "process", "ack", "cut", "manifest", "commit")
"""Of an epoch, in order; the last two only of one that ends with a checkpoint."""


@dataclass
class SplitState:
    """One split of a source, as one channel of event time."""

    subtask: int = 0
    """Of the source: who read it last."""
    records: int = 0
    last_record_ms: int | None = None
    """Processing time of the last epoch that read a record of it."""
    since_ms: int = 0
    """When the job first asked it."""
    watermarks: dict[str, int] = field(default_factory=dict)
    idle: bool = False
    gauges: dict[str, float] = field(default_factory=dict)
    """What its reader says of itself: lag, end of the split ..."""

    def watermark(self, uid: str) -> int:
        """The watermark that operator (or source) `uid` has emitted for this split."""
        return self.watermarks.get(at_output(uid), MIN_WATERMARK)


@dataclass
class PartitionState:
    """One partition of a later stage."""

    watermarks: dict[str, int] = field(default_factory=dict)
    event_timers: dict[str, int] = field(default_factory=dict)
    next_timer_ms: int | None = None
    state_entries: dict[str, int] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    address: SlotAddress | None = None


@dataclass
class Flow:
    """When records last went through an operator: processing times of epochs."""

    last_in_ms: int | None = None
    last_out_ms: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """All figures at one moment, for those who read them."""

    graph: GraphIndex
    now_ms: int
    """Processing time."""
    started_ms: int
    totals: Table
    recent: Table
    recent_sums: dict[str, float]
    recent_seconds: float
    slices: list[Slice]
    splits: dict[tuple[int, str], SplitState]
    partitions: dict[Place, PartitionState]
    flows: dict[str, Flow]
    key_samples: dict[tuple[str, int], KeySampling]
    phases: dict[str, float]
    epoch: int
    epoch_under_way_ms: float | None
    """How long the attempt under way has lasted."""
    typical_epoch_ms: float
    checkpoint: CheckpointStats | None
    """The last complete one."""
    output_latency_ms: float | None
    visible_ms: int | None
    """Processing time of the last epoch whose output is visible."""
    last_epoch_ms: int | None
    """Processing time of the last accepted epoch."""


class JobMetrics:
    """Made per plan: a job that is rescaled begins anew."""

    def __init__(self, plan: JobPlan) -> None:
        self.graph = GraphIndex(plan)
        self._lock = threading.Lock()
        self._totals: Settling[Table] = Settling(dict, add_table)
        self._history = RecentHistory(time.monotonic())
        self._splits: dict[tuple[int, str], SplitState] = {}
        self._partitions: dict[Place, PartitionState] = {}
        self._flows: dict[str, Flow] = {uid: Flow() for uid in self.graph.vertex_of}
        self._samples: dict[tuple[str, int], KeySampling] = {}
        self._phases: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._epoch = -1
        self._attempt_since: float | None = None
        self._epoch_ms: list[float] = []
        self._checkpoint: CheckpointStats | None = None
        self._waiting_since: float | None = None
        """When the oldest epoch began whose output waits for a checkpoint to be cut."""
        self._cut_since: float | None = None
        """The same for the checkpoint under way."""
        self._cut_ms: int | None = None
        self._visible_ms: int | None = None
        self._last_epoch_ms: int | None = None
        self._started_ms: int | None = None
        self._latency_ms: float | None = None
        self.commit_problem: str | None = None
        """Why a sink's last try to commit failed; None once it has succeeded. Set by the coordinator."""
        self.plan_ms = 0.0
        """How long it took to plan the next epoch. Set by the coordinator."""

    # --- for the coordinator's thread

    def attempt_begins(self, now_ms: int) -> None:
        """An attempt at an epoch with this processing time begins."""
        self._attempt_since = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = self._attempt_since
        if self._started_ms is None:
            self._started_ms = now_ms

    def attempt_failed(self) -> None:
        self._attempt_since = None

    def accept(self, plan: EpochPlan, messages: Sequence[Ack], watermark: int | None) -> None:
        """An epoch was accepted. `watermark` is the job's, None if it has none."""
        now = time.monotonic()
        began = self._attempt_since if self._attempt_since is not None else now
        attempt_ms = (now - began) * 1000
        with self._lock:
            counts = count_epoch(self.graph, plan, messages, (now - self._history.last_end) * 1000)
            self._totals.add(counts.table)
            readers = {
                (task.source_id, split.split.split_id): task.subtask for task in plan.tasks for split in task.splits
            }
            for message in messages:
                self._take(plan, message, readers)
            self._phases |= {
                "plan": self.plan_ms,
                "read": counts.read_ms,
                "process": counts.process_ms,
                "ack": max(0.0, attempt_ms - counts.read_ms - counts.process_ms),
            }
            entries = sum(sum(each.state_entries.values()) for each in self._partitions.values())
            gauges = {
                "watermarkLag": None if watermark is None else float(plan.now_ms - watermark),
                "stateEntries": float(entries),
                "outputLatency": self._latency_ms,
                "lastCheckpointDuration": self._checkpoint.duration_ms if self._checkpoint is not None else None,
                "lastCheckpointSize": float(self._checkpoint.delta_bytes) if self._checkpoint is not None else None,
            }
            sums = {"epochs": 1.0, "fullEpochs": float(counts.full)}
            sums |= {"records": float(counts.records), "written": float(counts.written)}
            sums |= {f"{phase}Ms": self._phases[phase] for phase in PHASES[:4]} | {"epochMs": attempt_ms}
            self._history.add(now, int(time.time() * 1000), counts.table, sums, gauges, attempt_ms / 1000)
            self._epoch, self._last_epoch_ms, self._attempt_since = plan.epoch, plan.now_ms, None
            self._epoch_ms = [*self._epoch_ms[-19:], attempt_ms]

    def _take(self, plan: EpochPlan, message: Ack, readers: Mapping[tuple[int, str], int]) -> None:
        """Take the gauges of an acknowledgement."""
        if isinstance(message, SplitAck):
            self._take_split(plan, message, readers.get((message.source_id, message.split_id), 0))
            return
        outcome, figures = message.outcome, message.outcome.figures
        for uid, count in outcome.records_in.items():
            if count:
                self._flows[uid].last_in_ms = plan.now_ms
        for uid in figures.records_out:
            self._flows[uid].last_out_ms = plan.now_ms
        if isinstance(message, SourceAck):
            return
        for uid, sampling in figures.key_samples.items():
            self._samples[uid, message.place.partition] = sampling
        self._partitions[message.place] = PartitionState(
            outcome.watermarks, figures.event_timers, outcome.next_timer_ms, figures.state_entries, figures.idle,
            message.address,
        )  # fmt: skip

    def _take_split(self, plan: EpochPlan, ack: SplitAck, subtask: int) -> None:
        key = (ack.source_id, ack.split_id)
        if ack.finished:
            self._splits.pop(key, None)
            return
        split = self._splits.get(key)
        if split is None:
            split = self._splits[key] = SplitState(since_ms=plan.now_ms)
        split.subtask = subtask
        split.records += ack.records
        split.last_record_ms = plan.now_ms if ack.records else split.last_record_ms
        split.watermarks, split.idle, split.gauges = ack.watermarks, ack.idle, ack.gauges

    def accepted_in(self, milliseconds: float) -> None:
        """Accepting the last epoch took the driver so long."""
        self._phases["cut"] = milliseconds

    def cut(self) -> None:
        """A checkpoint begins, of all epochs so far."""
        with self._lock:
            self._totals.cut()
            if self._cut_since is None:
                self._cut_since = self._waiting_since
            self._waiting_since = None
            self._cut_ms = self._last_epoch_ms

    def checkpoint_completed(self, stats: CheckpointStats) -> None:
        """The checkpoint under way is complete, and its output visible."""
        with self._lock:
            self._totals.settle()
            self._checkpoint = stats
            self.commit_problem = None
            self._phases |= {"manifest": stats.manifest_ms, "commit": stats.commit_ms}
            if self._cut_since is not None:
                self._latency_ms = (time.monotonic() - self._cut_since) * 1000
            self._cut_since, self._visible_ms = None, self._cut_ms

    def went_back(self, *, to_the_beginning: bool) -> None:
        """The job goes back to its last complete checkpoint, or starts over."""
        with self._lock:
            if to_the_beginning:
                self._totals.reset()
            else:
                self._totals.go_back()
            self._waiting_since = self._cut_since = self._attempt_since = None
            self._splits.clear()

    # --- for everybody

    def snapshot(self, now_ms: int) -> Snapshot:
        """Return a copy of everything, as of processing time `now_ms`."""
        with self._lock:
            now = time.monotonic()
            recent, sums, seconds = self._history.recent(now)
            since = self._attempt_since
            return Snapshot(
                graph=self.graph,
                now_ms=now_ms,
                started_ms=self._started_ms if self._started_ms is not None else now_ms,
                totals=self._totals.total(),
                recent=recent,
                recent_sums=sums,
                recent_seconds=seconds,
                slices=self._history.slices(),
                splits={key: _copied(split) for key, split in self._splits.items()},
                partitions=dict(self._partitions),
                flows={uid: Flow(flow.last_in_ms, flow.last_out_ms) for uid, flow in self._flows.items()},
                key_samples=dict(self._samples),
                phases=dict(self._phases),
                epoch=self._epoch,
                epoch_under_way_ms=None if since is None else (now - since) * 1000,
                typical_epoch_ms=sorted(self._epoch_ms)[len(self._epoch_ms) // 2] if self._epoch_ms else 0.0,
                checkpoint=self._checkpoint,
                output_latency_ms=self._latency_ms,
                visible_ms=self._visible_ms,
                last_epoch_ms=self._last_epoch_ms,
            )


def _copied(split: SplitState) -> SplitState:
    return replace(split, watermarks=dict(split.watermarks))
