"""Runs epoch attempts on simulated slots: the real `Slot` and `StageRunner`, each slot an actor of its own.

As on Spark: a stage begins when the one before it has ended in all partitions; partitions run side by side; a slot
serves one attempt at a time and only the newest; a relay that loses its slot fails the attempt.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.errors import HeadwaterError
from headwater.common.ids import Place
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.chunk import decode_header
from headwater.runtime.epoch.failure import ConnectionLostError, failure_of
from headwater.runtime.epoch.messages import BeginEpoch, EpochHeader, PartitionAck, SlotAddress, SourceTask
from headwater.runtime.epoch.steps import Step
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.fence import AttemptFence
from headwater.runtime.slot.slot import Slot
from headwater.runtime.stage.edges import Emit
from headwater.runtime.stage.input import StageInput
from headwater.runtime.stage.runner import RunnerIdentity, StageRunner
from headwater.runtime.stage.source_task import read_dataframe, run_source_task
from tests.chaos.simulator import faults
from tests.chaos.simulator.scheduler import SimulatedBackground

if TYPE_CHECKING:
    from tests.chaos.simulator.driver import Driver

Routed = tuple[int, bytes]
Frames = dict[Place, list[bytes]]
"""{(stage, partition): the frames on their way there}"""


class Call:
    """One attempt on one slot, as its relay sees it."""

    def __init__(self, begin: BeginEpoch, steps: list[Step], emit: Emit) -> None:
        self.begin = begin
        self.steps = steps
        self.emit = emit
        self.cut = False
        """The connection is gone. The slot notices when it next receives."""
        self.ack: PartitionAck | None = None
        self.error: Exception | None = None

    def lose(self) -> None:
        """The relay dies: whatever the slot says is not heard."""
        self.cut, self.ack = True, None


class SlotHost:
    """A slot process: the slot, the fence before it, and whether it is still there."""

    def __init__(self, engine: SimulatedEngine, place: Place) -> None:
        driver, world = engine.driver, engine.driver.world
        name = f"slot-{len(driver.all_hosts) + 1}"
        driver.all_hosts[name] = self
        self.engine = engine
        self.place = place
        self.group = f"{driver.group}/{name}"
        self.fence = AttemptFence()
        self.dead = False
        self.busy = False
        self.calls: list[Call] = []
        self.call: Call | None = None
        """The one that is served, or was served last."""
        address = SlotAddress(*place, "here", 0, "", os.getpid(), name)
        background = SimulatedBackground(world.scheduler, self.group, world.patience)
        seconds = world.checkpoint_timeout_ms / 1000
        self.slot = Slot(engine.plan, engine.job_id, address, engine.layout, background, seconds)
        self.slot._clock = lambda: driver.monotonic_ms() / 1000

    def receive(self, call: Call) -> None:
        """What the slot's server does with a connection."""
        if not self.fence.admits(call.begin.attempt):
            call.error = ConnectionLostError(f"attempt {call.begin.attempt.id} is fenced")
            return
        for earlier in self.calls:
            earlier.lose()
        self.calls = [*self.calls[-1:], call]
        scheduler = self.engine.driver.world.scheduler
        scheduler.spawn(f"{self.group} {call.begin.attempt.id}", self.group, lambda: self._serve(call))

    def _serve(self, call: Call) -> None:
        scheduler = self.engine.driver.world.scheduler
        scheduler.wait_until(lambda: not self.busy)
        if not self.fence.is_newest(call.begin.attempt):
            call.cut = True
            return
        self.busy = True
        try:
            self._apply(call)
        except ConnectionLostError:
            call.cut = True
            self.slot.abort()
        except Exception as error:
            self.slot.abort()
            call.error = error
        finally:
            self.busy = False

    def _apply(self, call: Call) -> None:
        self.call = call
        ack = self.slot.run(call.begin, call.emit, self._received(call))
        if not call.cut:
            # As it arrives at the driver: nothing is shared with the slot.
            call.ack = pickle.loads(pickle.dumps(ack))
            fault.reached("acked", call.begin.attempt.epoch)

    @staticmethod
    def _received(call: Call) -> Iterator[Step]:
        """What the slot receives, until its relay is gone."""
        for step in call.steps:
            if call.cut:
                raise ConnectionLostError("the relay is gone")
            yield step
        if call.cut:
            raise ConnectionLostError("the relay is gone")

    def die(self) -> None:
        """As kill -9 would: its memory and what it was uploading are gone."""
        self.dead = True
        self.engine.driver.world.scheduler.kill(self.group)
        self.engine.forget(self)


class SimulatedEngine:
    """Implements `headwater.runtime.epoch.engine.Engine`."""

    def __init__(self, driver: Driver, plan: JobPlan, job_id: str, layout: CheckpointLayout | None) -> None:
        self.driver = driver
        self.plan = plan
        self.job_id = job_id
        self.layout = layout
        self.hosts: dict[Place, SlotHost] = {}
        self._readers: dict[int, tuple[StageRunner, list[Routed]]] = {}

    def forget(self, host: SlotHost) -> None:
        """The relays do not find this slot any more."""
        if self.hosts.get(host.place) is host:
            del self.hosts[host.place]

    # --- Engine

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        world = self.driver.world
        world.attempt_begins()
        messages: list[Any] = []
        frames: Frames = {}
        try:
            world.reached(faults.ATTEMPT_STARTED, self.driver)
            if header.base.in_flight is not None:
                world.reached(faults.CUT_IN_FLIGHT, self.driver)
                if self.driver.has_full_in_flight():
                    world.reached(faults.FULL_IN_FLIGHT, self.driver)
                if header.restores:
                    world.reached(faults.FIRST_IN_FLIGHT, self.driver)
            for task in tasks:
                messages += self._read(header, task, frames)
                world.reached(faults.SOURCE_READ, self.driver)
            for source_id, dataframe in dataframes.items():
                messages += self._read_dataframe(header, source_id, dataframe, frames)
                world.reached(faults.SOURCE_READ, self.driver)
            for stage in self.plan.stages[1:]:
                messages += self._run_stage(header, stage.index, stage.parallelism, frames)
            world.reached(faults.EPOCH_ACKED, self.driver)
        except HeadwaterError as error:
            raise failure_of(error, "the engine") from None
        return messages

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        if not wakeup.wait(0):
            self.driver.world.clock_ms += round(seconds * 1000)
        self.driver.world.scheduler.step()
        return False

    def checkpoint_completed(self, token: str) -> None:
        pass

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        pass

    # --- stages

    def _read(self, header: EpochHeader, task: SourceTask, frames: Frames) -> list[Any]:
        source = next(source for source in self.plan.sources if source.id == task.source_id)

        def read(runner: StageRunner) -> Iterator[Any]:
            return run_source_task(
                runner, task, source.source, source.name, header.attempt, header.now_ms, header.batch_records
            )

        return self._in_worker(task.subtask, read, frames)

    def _read_dataframe(self, header: EpochHeader, source_id: int, dataframe: Any, frames: Frames) -> list[Any]:
        return self._in_worker(0, lambda runner: read_dataframe(runner, header, source_id, 0, [dataframe.rows]), frames)

    def _in_worker(self, subtask: int, read: Callable[[StageRunner], Iterator[Any]], frames: Frames) -> list[Any]:
        # A worker keeps its runner from epoch to epoch, but only after success.
        runner, outbox = self._readers.pop(subtask, None) or self._new_reader(subtask)
        outbox.clear()
        found = list(read(runner))
        for target, frame in outbox:
            frames.setdefault((decode_header(frame).stage, target), []).append(frame)
        self._readers[subtask] = (runner, outbox)
        return [pickle.loads(pickle.dumps(message)) for message in found if message is not None]

    def _new_reader(self, subtask: int) -> tuple[StageRunner, list[Routed]]:
        outbox: list[Routed] = []
        identity = RunnerIdentity(self.job_id, subtask)
        runner = StageRunner(self.plan, 0, identity, lambda target, frame: outbox.append((target, frame)))
        runner.open()
        return runner, outbox

    def _run_stage(self, header: EpochHeader, stage: int, parallelism: int, frames: Frames) -> list[Any]:
        """All partitions side by side. The first that fails ends the attempt: the other relays go, too."""
        calls = [self._call(header, Place(stage, partition), frames) for partition in range(parallelism)]
        scheduler = self.driver.world.scheduler
        scheduler.wait_until(
            lambda: (
                all(call.ack is not None for _, call in calls)
                or any(call.cut or call.error or (host.dead and call.ack is None) for host, call in calls)
            )
        )
        for _, call in calls:
            if call.error is not None:
                self._cut(calls)
                raise call.error
        lost = [host.place for host, call in calls if call.ack is None]
        if lost:
            self._cut(calls)
            raise ConnectionLostError(f"stage {stage}: partitions {lost} do not answer")
        return [call.ack for _, call in calls if call.ack is not None]

    @staticmethod
    def _cut(calls: list[tuple[SlotHost, Call]]) -> None:
        for _, call in calls:
            call.lose()

    def _call(self, header: EpochHeader, place: Place, frames: Frames) -> tuple[SlotHost, Call]:
        collected = StageInput(place[0])
        for frame in frames.pop(place, []):
            collected.add(frame)
        begin = header.begin_for(place)
        steps = list(collected.steps(header.floors(self.plan.stages[place[0]], place[1])))
        host = self.hosts.get(place)
        if host is None:
            host = self.hosts[place] = SlotHost(self, place)
        call = Call(pickle.loads(pickle.dumps(begin)), steps, _into(frames))
        host.receive(call)
        return host, call


def _into(frames: Frames) -> Callable[[int, bytes], None]:
    def emit(target: int, frame: bytes) -> None:
        frames.setdefault((decode_header(frame).stage, target), []).append(frame)

    return emit
