"""One start of the job: the launcher's own way to a running coordinator, with simulated slots in place of Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from headwater.common import Configuration
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.launcher import Job
from headwater.runtime.job.processing_clock import ProcessingClock
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.requests import RescaleRequest, SavepointRequest
from tests.chaos.simulator.engine import SimulatedEngine, SlotHost
from tests.chaos.simulator.scheduler import Killed, SimulatedBackground

if TYPE_CHECKING:
    from tests.chaos.simulator.world import World

RETAINED = 2
BOOTED_MS = 900_000
"""When the machines started: monotonic clocks count from there."""


class VirtualSchedule(CheckpointSchedule):
    """The schedule, with the time of the simulated world instead of the one it is given."""

    def __init__(self, settings: CheckpointSettings, now_ms: Callable[[], float]) -> None:
        super().__init__(settings)
        self._virtual_ms = now_ms

    def due_in_ms(self, now_ms: float) -> float | None:
        return super().due_in_ms(self._virtual_ms())

    def cut(self, now_ms: float) -> None:
        super().cut(self._virtual_ms())

    def timed_out(self, now_ms: float) -> bool:
        return super().timed_out(self._virtual_ms())

    def completed(self, now_ms: float) -> None:
        super().completed(self._virtual_ms())

    def failed(self, now_ms: float) -> bool:
        return super().failed(self._virtual_ms())


class RandomSizer(EpochSizer):
    """Epochs of any size: an epoch that is run again after the job went back has another input."""

    def __init__(self, drawn: random.Random, most: int) -> None:
        super().__init__(10_000, 1, most)
        self._drawn = drawn
        self._most = most

    def next_budget(self) -> int:
        return self._drawn.randint(1, self._most)


class SimulatedCoordinator(Coordinator):
    """The coordinator, with the clocks of the simulated world."""

    driver: Driver
    first_stamp: tuple[int, int] | None = None
    """The monotonic clock and the stamp, in milliseconds."""

    def stamp(self) -> int:
        now_ms = super().stamp()
        self.first_stamp = self.first_stamp or (self.driver.monotonic_ms(), now_ms)
        self.driver.world.oracles.stamped(self, now_ms)
        return now_ms


class Driver:
    """A driver process. What it does is done by the actor that runs `live`."""

    def __init__(
        self, world: World, number: int, directory: str, savepoint: str | None, parallelism: int, *, grown: bool
    ) -> None:
        self.world = world
        self.number = number
        self.directory = directory
        self.savepoint = savepoint
        self.parallelism = parallelism
        self.grown = grown
        """Its program has a source that the first one had not."""
        self.group = f"driver-{number}"
        self.process = f"{self.group}/driver"
        self.skew_ms = world.random.randint(-40, 40)
        """Clocks of machines differ, and people set them."""
        self.engine: SimulatedEngine | None = None
        self.coordinator: SimulatedCoordinator | None = None
        self.stop_requests: list[SavepointRequest] = []
        self.replaced = False
        """It hangs, and the next one was started."""
        self.killed = False
        self.ended = False
        self.finished = False
        self.stopped_at: str | None = None
        """The savepoint with which it ended."""
        self.error: BaseException | None = None
        self.all_hosts: dict[str, SlotHost] = {}
        """All slots that it ever started, by name."""

    def wall_ms(self) -> int:
        return self.world.clock_ms + self.skew_ms

    def monotonic_ms(self) -> int:
        return self.world.clock_ms - BOOTED_MS

    def plan(self, parallelism: int) -> JobPlan:
        return self.world.plan(parallelism, grown=self.grown)

    def live(self) -> None:
        """From the start of the process to its end."""
        job = SimulatedJob(self)
        try:
            job.prepare()
            job.run()
            job.end(None)
            self._note_end()
        except Killed:
            raise
        except BaseException as error:
            self.error = error
            if hasattr(job, "_start"):
                job.end(error)
        self.ended = True

    def _note_end(self) -> None:
        assert self.coordinator is not None
        self.finished = self.coordinator.finished
        if not self.finished:
            served = [request.path for request in self.stop_requests if request.path.done()]
            self.stopped_at = next(path.result() for path in served if path.exception() is None)

    # --- what people ask for

    def ask_for_savepoint(self, *, stop: bool) -> None:
        assert self.coordinator is not None
        background = SimulatedBackground(self.world.scheduler, self.process, self.world.patience)
        request = SavepointRequest(self.world.next_savepoint(), stop=stop, path=background.future())
        if stop:
            self.stop_requests.append(request)
            request.path.add_done_callback(self._stopped)
        self.world.savepoints.append(request)
        self.coordinator.ask(request)

    def _stopped(self, path: Future[str]) -> None:
        if path.exception() is None:
            self.world.abandon_starts(self)

    def claim(self) -> int | None:
        """The number of its claim on its directory; None before it has one."""
        store = self.coordinator._store if self.coordinator is not None else None
        return store._claim.record.number if store is not None and store._claim is not None else None

    def has_full_in_flight(self) -> bool:
        """Whether there is a full snapshot of the state of a checkpoint that is not complete."""
        assert self.coordinator is not None
        checkpoints = self.coordinator.checkpoints
        cut = checkpoints.in_flight
        return cut is not None and any(ref.epoch == cut.draft.epoch for ref in checkpoints.chains.fulls.values())

    def ask_to_rescale(self, parallelism: int) -> None:
        assert self.coordinator is not None
        self.parallelism = parallelism
        self.coordinator.ask(RescaleRequest(parallelism, self.plan(parallelism)))


class SimulatedJob(Job):
    """The launcher's job, as far as it is not about Spark, processes and threads."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        super().__init__(driver.plan(driver.parallelism), _configuration(driver), driver.plan)

    def run(self) -> None:
        self._run_plans(None)

    def _new_coordinator(self, context: Any, progress: JobProgress) -> tuple[Coordinator, Engine]:
        driver, start, plan = self._driver, self._start, self._plan
        settings = self._checkpoint_settings()
        engine = driver.engine = SimulatedEngine(driver, plan, start.job_id, start.layout)
        coordinator = driver.coordinator = SimulatedCoordinator(
            plan,
            start.job_id,
            engine,
            start.store,
            FixedDelay(attempts=5, delay_ms=0),
            RandomSizer(driver.world.random, driver.world.most_epoch_records),
            RETAINED,
            settings,
            progress,
            SimulatedBackground(driver.world.scheduler, driver.process, driver.world.patience),
            requests=self._requests,
        )
        coordinator.driver = driver
        coordinator.clock = ProcessingClock(driver.wall_ms, driver.monotonic_ms)
        coordinator.checkpoints.schedule = VirtualSchedule(settings, driver.monotonic_ms)
        coordinator.checkpoints.clock_ms = driver.monotonic_ms
        return coordinator, engine

    def _end_slots(self) -> None:
        """Those of the plan under way get no more work; what they upload, they upload."""

    def end(self, error: BaseException | None) -> None:
        self._clean_up(error)


def _configuration(driver: Driver) -> Configuration:
    world = driver.world
    settings: dict[str, Any] = {
        "execution.checkpointing.dir": driver.directory,
        "execution.checkpointing.interval": f"{world.shape.interval_epochs * world.EPOCH_MS} ms",
        "execution.checkpointing.timeout": f"{world.checkpoint_timeout_ms} ms",
        "execution.checkpointing.tolerable-failed-checkpoints": world.tolerable_failures,
        "headwater.epoch.duration": f"{world.EPOCH_MS} ms",
        "headwater.log-level": "OFF",
    }
    if driver.savepoint is not None:
        settings["execution.state-recovery.path"] = driver.savepoint
        settings["execution.state-recovery.claim-mode"] = world.claim_mode
    return Configuration.from_dict(settings)
