"""An engine that runs epochs in this process: real runners, real slots, no Spark, no sockets, no other process."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.ids import Place
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason, failure_of, failures_at
from headwater.runtime.epoch.messages import (
    Ack,
    BeginEpoch,
    EpochHeader,
    PartitionAck,
    SlotAddress,
    SourceTask,
    SplitAck,
)
from headwater.runtime.epoch.steps import Step
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.local.killed import Killed, ReaderKilled, attempt_in_this_process
from headwater.runtime.local.slot import InProcessSlot
from headwater.runtime.slot.query.answers import Session
from headwater.runtime.stage.readers import KeptReaders
from headwater.runtime.stage.round import Event, OutputEnded, Round
from headwater.runtime.stage.runners import StatelessRunners
from headwater.runtime.stage.source_task import read_dataframe

_DRY_SECONDS = 0.001
"""How long a job without input and timers really rests where it would wait: the test's own thread runs meanwhile."""


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
        self.by_place: dict[Place, InProcessSlot] = {}
        self.checkpoint_seconds = 600.0

    def call(self, known: SlotAddress | None, place: Place, begin: BeginEpoch, steps: Iterator[Step]) -> None:
        slot = self.by_place.get(place)
        if slot is None:
            slot = self.by_place[place] = self._new(place)
        try:
            with failures_at(place):
                ack = slot.run(begin, lambda target, frame: self._events.append((target, frame)), steps)
        except Exception:
            self._events.clear()
            slot.abort()
            raise
        self._events += (OutputEnded(place), ack)

    def events(self) -> Iterator[Event]:
        while self._events:
            yield self._events.popleft()

    def _new(self, place: Place) -> InProcessSlot:
        self._started += 1
        address = SlotAddress(*place, "here", 0, "", os.getpid(), f"{self._started}")
        return InProcessSlot(self._plan, self._job_id, address, self._layout, self._background, self.checkpoint_seconds)

    def kill(self, place: Place) -> None:
        """Forget a slot with all that it holds, as kill -9 would."""
        slot = self.by_place.pop(place, None)
        if slot is not None:
            slot.vanish()

    def completed(self, token: str) -> None:
        """The checkpoint with `token` is durable."""
        for slot in self.by_place.values():
            slot.checkpoint_completed(token)

    def close(self) -> None:
        """Close the functions of all slots."""
        for slot in self.by_place.values():
            slot.close()
        self.by_place.clear()


class TurnedClock(Protocol):
    """Processing time that passes only where the job would wait, or where a test turns it."""

    @property
    def now_ms(self) -> int: ...

    def advance(self, by_ms: int) -> None: ...


class InProcessEngine:
    """Implements `runtime.epoch.engine.Engine`. A DataFrame is whatever has its rows in an attribute `rows`.

    With a `clock` it never waits: it turns the clock instead.
    """

    watches = False

    def __init__(
        self,
        plan: JobPlan,
        layout: CheckpointLayout | None,
        background: Background = THREADS,
        job_id: str = "job",
        clock: TurnedClock | None = None,
    ) -> None:
        self.plan = plan
        self._clock = clock
        self._killed = False
        self._dry = False
        """The last attempt found nothing to read, though it might."""
        self._next_timer_ms: int | None = None
        self.slots = InProcessSlots(plan, job_id, layout, background)
        self._runners = StatelessRunners(plan, job_id, layout)
        self._readers = KeptReaders()
        self.before: Callable[[EpochHeader], None] = lambda header: None
        """Called at the start of each attempt. What it raises fails the attempt."""
        self.after_stages: Callable[[EpochHeader], None] = lambda header: None
        """Called when all partitions have acknowledged an attempt."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]:
        try:
            with attempt_in_this_process():
                return self._run(header, tasks, dataframes)
        except ReaderKilled as killed:
            raise AttemptFailedError(str(killed), FailureReason.PROCESS_LOST) from None
        except Killed:
            self._killed = True
            raise

    def _run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]:
        self.before(header)
        attempt = Round(self.plan, header, self._runners, self._readers, self.slots)
        try:
            for source_id, dataframe in dataframes.items():
                attempt.read(0, lambda runner, i=source_id, d=dataframe: read_dataframe(runner, header, i, 0, [d.rows]))  # type: ignore[misc]
            acks = attempt.run(tasks)
        except Exception as error:
            raise failure_of(error, "the engine") from None
        self.after_stages(header)
        self._note(tasks, acks)
        return acks

    def _note(self, tasks: Sequence[SourceTask], acks: Sequence[Ack]) -> None:
        budgets = [split.budget for task in tasks for split in task.splits]
        self._dry = all(budgets) and not any(ack.records for ack in acks if isinstance(ack, SplitAck))
        timers = [ack.outcome.next_timer_ms for ack in acks if isinstance(ack, PartitionAck)]
        self._next_timer_ms = min((timer for timer in timers if timer is not None), default=None)

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        """Return False: nobody says that a source has input, so it must be asked.

        With a clock, a job that has no input goes straight on to its next timer.
        """
        if self._clock is None:
            wakeup.wait(seconds)
            return False
        wait_ms = max(1, round(seconds * 1000))
        if self._dry and self._next_timer_ms is not None:
            wait_ms = max(wait_ms, self._next_timer_ms - self._clock.now_ms)
        elif self._dry:
            wakeup.wait(_DRY_SECONDS)
        self._clock.advance(wait_ms)
        return False

    def session(self, place: Place) -> Session | None:
        """Return a reader of the state of a slot; None if there is no slot. Any thread may call this."""
        slot = self.slots.by_place.get(place)
        return None if slot is None else slot.session

    def checkpoint_completed(self, token: str) -> None:
        """The checkpoint at the end of the attempt with this id is complete."""
        self.slots.completed(token)

    def cancel(self) -> None: ...

    def close(self) -> None:
        """Close all functions and readers. If the job was killed, only readers: nobody is there to call functions."""
        self._readers.close()
        if self._killed:
            for place in list(self.slots.by_place):
                self.slots.kill(place)
            return
        self._runners.close()
        self.slots.close()
