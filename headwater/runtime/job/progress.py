"""The progress of a running job, for people and tools."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.metrics import Measured, add_measured
from headwater.runtime.epoch.messages import Ack, PartitionAck, SlotAddress, SplitAck
from headwater.runtime.job.exception_history import ExceptionHistory
from headwater.runtime.job.metrics.settling import Settling
from headwater.runtime.job.partitions import Partitions
from headwater.runtime.job.recent_rate import RecentRate


@dataclass(frozen=True)
class LastRestore:
    """What the job last began with, or went back to."""

    epoch: int
    path: str
    is_savepoint: bool
    restored_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    """Wall clock, in milliseconds since 1970."""


@dataclass
class JobProgress:
    """Numbers of a run. The coordinator writes them after each epoch; any thread may read them."""

    epoch: int = -1
    epochs: int = 0
    records_in: int = 0
    watermark: int | None = None
    state_entries: int = 0
    epoch_ms: float = 0.0
    restarts: int = 0
    rewinds: int = 0
    """How often the job went back to its last checkpoint."""
    restored_slots: int = 0
    slots: list[SlotAddress] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    last_failure: str | None = None
    last_restore: LastRestore | None = None
    exceptions: ExceptionHistory = field(default_factory=ExceptionHistory)
    clock: Callable[[], float] = time.monotonic
    """Returns seconds, for the rate."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._rate = RecentRate()
        self._metrics: Settling[Measured] = Settling(dict, add_measured)

    def went_to(self, epoch: int, counters: dict[str, int]) -> None:
        """The job resumes from, or goes back to, a checkpoint: continue with its counters."""
        with self._lock:
            self.epoch = epoch
            self.counters = dict(counters)
            self.records_in = counters.get("records_in", 0)
            self._rate.clear()
            if epoch < 0:
                self._metrics.reset()
            else:
                self._metrics.go_back()

    @property
    def metrics(self) -> Measured:
        """Metrics of user functions in this run's completed epochs, {operator uid: {partition: {metric: value}}}."""
        with self._lock:
            return self._metrics.total()

    def cut(self) -> None:
        """A checkpoint begins, of all epochs so far."""
        with self._lock:
            self._metrics.cut()

    def checkpoint_completed(self) -> None:
        """The checkpoint under way is complete."""
        with self._lock:
            self._metrics.settle()

    def accept(self, epoch: int, messages: Sequence[Ack], records: int, partitions: Partitions) -> None:
        """Count what the acknowledgements of an accepted epoch say. `partitions` know of them already."""
        self._add("records_in", records)
        self._add("epochs", 1)
        entries = 0
        for message in messages:
            if isinstance(message, SplitAck):
                for name, count in message.counters.items():
                    self._add(name, count)
                continue
            with self._lock:
                self._metrics.add(message.outcome.metrics)
            for uid, count in message.outcome.records_in.items():
                self._add(f"{uid}.records_in", count)
            if isinstance(message, PartitionAck):
                entries += message.outcome.state_entries
                self.restored_slots += int(message.restored and epoch > 0)
        self.state_entries = entries
        self.slots = [partitions.book[place] for place in sorted(partitions.book)]
        event_time = partitions.event_time
        self.watermark = event_time if event_time is not None else self.watermark
        self.epoch = epoch

    def _add(self, counter: str, count: int) -> None:
        self.counters[counter] = self.counters.get(counter, 0) + count

    def epoch_done(self, records: int) -> None:
        """Count a completed epoch. Set `epoch_ms` before."""
        with self._lock:
            self.records_in += records
            self.epochs += 1
            self._rate.epoch_done(self.clock(), self.records_in, self.epoch_ms / 1000)

    @property
    def records_per_second(self) -> float:
        """Records per second over the last seconds; 0 if the job has nothing to read."""
        with self._lock:
            return self._rate.at(self.clock())

    def as_dict(self) -> dict[str, Any]:
        """Return a copy as plain values."""
        with self._lock:
            return {
                "epoch": self.epoch,
                "epochs": self.epochs,
                "records_in": self.records_in,
                "records_per_second": self._rate.at(self.clock()),
                "watermark": self.watermark,
                "state_entries": self.state_entries,
                "epoch_ms": self.epoch_ms,
                "restarts": self.restarts,
                "rewinds": self.rewinds,
                "restored_slots": self.restored_slots,
                "slots": [
                    {"stage": slot.stage, "partition": slot.partition, "host": slot.host, "pid": slot.pid}
                    for slot in self.slots
                ],
                "counters": dict(self.counters),
                "last_failure": self.last_failure,
                "last_restore": None if self.last_restore is None else asdict(self.last_restore),
                "metrics": self._metrics.total(),
            }

    def accumulators(self) -> dict[str, Any]:
        """Return the counters of the job, and under "metrics" the metrics of its functions."""
        with self._lock:
            return {**self.counters, "metrics": self._metrics.total()}
