"""One attempt at an epoch through all stages, in one process: sources, then stage after stage, then acknowledgements.

The resident Spark task, the in-process engine and the simulator run this loop. They differ in who the slots are. (The
shuffle engine spreads the same steps over Spark's tasks: `runtime/spark/tasks.py`.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.common.ids import Place
from headwater.graph.plan import JobPlan, StageSpec
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.chunk import EVERY, decode_header
from headwater.runtime.epoch.failure import failures_at
from headwater.runtime.epoch.messages import Ack, BeginEpoch, EpochHeader, PartitionAck, SlotAddress, SourceTask
from headwater.runtime.epoch.steps import Step, run_steps
from headwater.runtime.stage.input import StageInput
from headwater.runtime.stage.readers import Readers
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.runners import Routed, StatelessRunners
from headwater.runtime.stage.source_task import run_source_task


@dataclass(frozen=True)
class OutputEnded:
    """A partition has sent its last output of the epoch. Its acknowledgement follows."""

    place: Place


Event = Routed | OutputEnded | PartitionAck
"""What a slot says: a frame with its target, the end of its output, or that it has done its part."""


class Slots(Protocol):
    """The slots of a job, as one attempt sees them."""

    def call(self, known: SlotAddress | None, place: Place, begin: BeginEpoch, steps: Iterator[Step]) -> None:
        """Begin the attempt on the slot of `place`, which the address book knows as `known`."""
        ...

    def events(self) -> Iterator[Event]:
        """What the slots say, until all that were called have acknowledged. May be left and called again.

        Raises what failed a slot. The attempt is then lost.
        """
        ...


class Round:
    """One attempt. `header` has been made for it, and is used once."""

    def __init__(
        self, plan: JobPlan, header: EpochHeader, runners: StatelessRunners, readers: Readers, slots: Slots
    ) -> None:
        self._plan = plan
        self._header = header
        self._runners = runners
        self._readers = readers
        self._slots = slots
        self._inputs: dict[Place, StageInput] = {}
        self._acks: list[Ack] = []

    def run(self, tasks: Sequence[SourceTask]) -> list[Ack]:
        """Run the attempt and return all acknowledgements. If it raises, nothing of the epoch counts."""
        sources = {source.id: source for source in self._plan.sources}
        try:
            for task in tasks:
                spec = sources[task.source_id]
                self.read(
                    task.subtask,
                    lambda runner, task=task, spec=spec: run_source_task(  # type: ignore[misc]
                        runner, task, spec, self._header, self._readers
                    ),
                )
            for stage in self._plan.stages[1:]:
                self._run_stage(stage)
            for event in self._slots.events():
                self._take(event)
        finally:
            self._runners.give_up()
            for collected in self._inputs.values():
                collected.close()
        return self._acks

    def read(self, subtask: int, messages_of: Callable[[StageRunner], Iterable[Ack | None]]) -> None:
        """Run one task of stage 0. What `messages_of` yields are its acknowledgements, and None after each batch."""
        place = Place(0, subtask)
        with failures_at(place):
            runner, outbox = self._runners.borrow(place, self._header.attempt.incarnation)
            for message in messages_of(runner):
                self._route(outbox)
                if message is not None:
                    self._acks.append(message)
            self._route(outbox)
            self._runners.give_back(place, runner, outbox, final=self._header.final)

    # --- the later stages

    def _run_stage(self, stage: StageSpec) -> None:
        """Run all partitions of a stage, until all its output is there. Acknowledgements may still be on their way."""
        places = [Place(stage.index, partition) for partition in range(stage.parallelism)]
        if not stage.needs_slot:
            for place in places:
                with failures_at(place):
                    self._run_here(place, self._steps(stage, place))
            return
        header = self._header
        for place in places:
            known = header.address_book.get(place)
            self._slots.call(known, place, header.begin_for(place), self._steps(stage, place))
        working = set(places)
        for event in self._slots.events():
            self._take(event)
            if isinstance(event, OutputEnded):
                working.discard(event.place)
                if not working:
                    return

    def _steps(self, stage: StageSpec, place: Place) -> Iterator[Step]:
        return self._input(place).steps(self._header.floors(stage, place.partition))

    def _run_here(self, place: Place, steps: Iterator[Step]) -> None:
        header, attempt = self._header, self._header.attempt
        started = time.perf_counter()
        runner, outbox = self._runners.borrow(place, attempt.incarnation)
        runner.begin_epoch(
            attempt.epoch, attempt.id, header.now_ms, header.watermarks.get(place, {}), refusals=header.refusals
        )
        runner.replay(header.letters)
        for _ in run_steps(runner, steps, attempt.epoch):
            self._route(outbox)
        outcome = runner.finish_epoch(header.now_ms)
        fault.reached("processed", attempt.epoch)
        self._route(outbox)
        self._acks.append(PartitionAck(place, outcome, (time.perf_counter() - started) * 1000))
        self._runners.give_back(place, runner, outbox, final=header.final)

    # --- frames

    def _take(self, event: Event) -> None:
        if isinstance(event, PartitionAck):
            self._acks.append(event)
        elif not isinstance(event, OutputEnded):
            self._add(*event)

    def _route(self, outbox: list[Routed]) -> None:
        for target, frame in outbox:
            self._add(target, frame)
        outbox.clear()

    def _add(self, target: int, frame: bytes) -> None:
        header = decode_header(frame)
        width = self._plan.stages[header.stage].parallelism
        for partition in range(width) if target == EVERY else (target,):
            self._input(Place(header.stage, partition)).add(frame, header)

    def _input(self, place: Place) -> StageInput:
        collected = self._inputs.get(place)
        if collected is None:
            collected = self._inputs[place] = StageInput(place.stage)
        return collected
