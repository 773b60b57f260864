"""An engine that runs epochs in this process: real runners, real slots, no Spark, no sockets, no other process."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.ids import Place
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.failure import failure_of
from headwater.runtime.epoch.messages import Ack, BeginEpoch, EpochHeader, SlotAddress, SourceTask
from headwater.runtime.epoch.steps import Step
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.slot import Slot
from headwater.runtime.stage.readers import KeptReaders
from headwater.runtime.stage.round import Event, OutputEnded, Round
from headwater.runtime.stage.runners import StatelessRunners
from headwater.runtime.stage.source_task import read_dataframe


class InProcessSlots:
    """The slots of a job as objects (`stage.round.Slots`). A call runs to its end at once."""

    def __init__(
        self, plan: JobPlan, job_id: str, layout: CheckpointLayout | None, background: Background = THREADS
    ) -> None:
        self._plan = plan
        self._job_id = job_id
        self._layout = layout
        self._background = background
        self._events: deque[Event] = deque()
        self._started = 0
        self.by_place: dict[Place, Slot] = {}
        self.checkpoint_seconds = 600.0

    def call(self, known: SlotAddress | None, place: Place, begin: BeginEpoch, steps: Iterator[Step]) -> None:
        slot = self.by_place.get(place)
        if slot is None:
            slot = self.by_place[place] = self._new(place)
        try:
            ack = slot.run(begin, lambda target, frame: self._events.append((target, frame)), steps)
        except Exception:
            self._events.clear()
            slot.abort()
            raise
        self._events += (OutputEnded(place), ack)

    def events(self) -> Iterator[Event]:
        while self._events:
            yield self._events.popleft()

    def _new(self, place: Place) -> Slot:
        self._started += 1
        address = SlotAddress(*place, "here", 0, "", os.getpid(), f"{self._started}")
        return Slot(self._plan, self._job_id, address, self._layout, self._background, self.checkpoint_seconds)

    def kill(self, place: Place) -> None:
        """Forget a slot with all that it holds, as kill -9 would."""
        self.by_place.pop(place, None)

    def completed(self, token: str) -> None:
        """The checkpoint with `token` is durable."""
        for slot in self.by_place.values():
            slot.checkpoint_completed(token)

    def close(self) -> None:
        """Close the functions of all slots."""
        for slot in self.by_place.values():
            slot.close()
        self.by_place.clear()


class InProcessEngine:
    """Implements `runtime.epoch.engine.Engine`. A DataFrame is whatever has its rows in an attribute `rows`."""

    watches = False

    def __init__(
        self,
        plan: JobPlan,
        layout: CheckpointLayout | None,
        background: Background = THREADS,
        job_id: str = "job",
    ) -> None:
        self.plan = plan
        self.slots = InProcessSlots(plan, job_id, layout, background)
        self._runners = StatelessRunners(plan, job_id)
        self._readers = KeptReaders()
        self.before: Callable[[EpochHeader], None] = lambda header: None
        """Called at the start of each attempt. What it raises fails the attempt."""
        self.after_stages: Callable[[EpochHeader], None] = lambda header: None
        """Called when all partitions have acknowledged an attempt."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]:
        self.before(header)
        attempt = Round(self.plan, header, self._runners, self._readers, self.slots)
        try:
            for source_id, dataframe in dataframes.items():
                attempt.read(0, lambda runner, i=source_id, d=dataframe: read_dataframe(runner, header, i, 0, [d.rows]))  # type: ignore[misc]
            acks = attempt.run(tasks)
        except Exception as error:
            raise failure_of(error, "the engine") from None
        self.after_stages(header)
        return acks

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        wakeup.wait(seconds)
        return False

    def checkpoint_completed(self, token: str) -> None:
        self.slots.completed(token)

    def cancel(self) -> None: ...

    def close(self) -> None:
        """Close all functions and readers."""
        self._readers.close()
        self._runners.close()
        self.slots.close()
