"""One history: drivers that come and go, their slots, the store and the outside, and a supervisor that starts it again.

Nothing here is drawn from anything but the seed.
"""

from __future__ import annotations

import contextlib
import logging
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar
from unittest import mock

from headwater.checkpoint import paths
from headwater.checkpoint.restore import damaged as restore_repair
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.storage.base import StorageSpec, is_remote, open_storage
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch import fault as engine_faults
from headwater.runtime.job.requests import SavepointRequest
from headwater.runtime.slot import garbage
from headwater.runtime.slot import slot as slot_module
from headwater.runtime.stage.runner import StageRunner
from tests.chaos.simulator import strikes
from tests.chaos.simulator.driver import Driver
from tests.chaos.simulator.engine import Call, SlotHost
from tests.chaos.simulator.faults import Fault, FaultPlan
from tests.chaos.simulator.full_snapshots import SimulatedFullSnapshot
from tests.chaos.simulator.jobs import Shape
from tests.chaos.simulator.oracles import Oracles
from tests.chaos.simulator.scheduler import Scheduler, StuckError
from tests.chaos.simulator.sink import new_outside
from tests.chaos.simulator.store import SimulatedStorage
from tests.halved_batches import halved

_T = TypeVar("_T")

MOST_STARTS = 40
DIRECTORY = "sim://job"


class World:
    """What one seed makes of one job."""

    EPOCH_MS: ClassVar[int] = 25
    """How much time passes from one attempt to the next, more or less."""

    def __init__(self, seed: int, shape: Shape, faults: list[Fault], *, grown: bool = False) -> None:
        self.shape = shape
        self.random = random.Random(f"world-{seed}")
        self.scheduler = Scheduler(seed, self.random.choice((0.0, 0.5, 0.8, 0.95)))
        self.faults = FaultPlan(faults)
        self.clock_ms = 1_000_000
        self.tolerable_failures = self.random.choice((0, 1, 3))
        self.claim_mode = self.random.choice(("CLAIM", "NO_CLAIM"))
        self._quickness = self.random.choice((0.0, 0.0, 0.5, 0.95))
        """How often work beside an epoch is done within its grace."""
        self._slow_partition = self.random.choice((0, 0, 1)) if self._quickness == 0 else None
        """Every other delta of this partition, and every other full snapshot, takes epochs to be written."""
        self._deltas_per_full = self.random.choice((1, 3)) if self._slow_partition is None else 1
        """A full snapshot is due after so many: often, because histories are short."""
        self.checkpoint_timeout_ms = self.random.choice((100, 600_000)) if self._slow_partition is None else 600_000
        self.most_epoch_records = 16 if self._slow_partition is None else 8
        self.storages: dict[str, SimulatedStorage] = {}
        self.store_is_down_for = 0
        self.outside = new_outside()
        self.savepoints: list[SavepointRequest] = []
        self.drivers: list[Driver] = []
        self.next_parallelism = shape.parallelism
        self.oracles = Oracles(self)
        self.digest = 0
        """Of all that happened: two histories with the same one are the same."""
        self.trace: Callable[[str], None] | None = None
        self._plans: dict[tuple[int, bool], JobPlan] = {}
        self._looking = False
        self._grown = grown
        """Whether the first program has all sources."""

    # --- the history

    def run(self) -> None:
        """From the first start to the end of the last actor. What is wrong is in `oracles.problems`."""
        with self._installed():
            try:
                self.scheduler.run(self._supervise)
            except StuckError as error:
                self.oracles.problem(f"stuck: {error}")
            finally:
                self.scheduler.end()
            self.oracles.judge()
            self._sweep()

    def _sweep(self) -> None:
        """Slots that were killed leave databases behind, which would end with their machine."""
        for driver in self.drivers:
            for host in driver.all_hosts.values():
                with contextlib.suppress(Exception):
                    host.slot.close()

    def _supervise(self) -> None:
        """Start the job again when its driver has gone, or seems to have."""
        newest = self.drivers[-1] if self.drivers else None
        if newest is None:
            self._start(DIRECTORY, None, grown=self._grown)
        elif newest.killed or newest.replaced or newest.ended:
            if newest.ended:
                self.oracles.driver_ended(newest)
            if newest.finished:
                return
            if len(self.drivers) == MOST_STARTS:
                raise StuckError(f"{MOST_STARTS} starts were not enough")
            if newest.stopped_at is not None:
                grown = newest.grown or (self.shape.can_grow and self.random.random() < 0.7)
                self._start(f"{DIRECTORY}-{len(self.drivers)}", newest.stopped_at, grown=grown)
            else:
                self._start(newest.directory, newest.savepoint, grown=newest.grown)

    def _start(self, directory: str, savepoint: str | None, *, grown: bool) -> None:
        if savepoint is not None and self.drivers[-1].stopped_at == savepoint:
            self.next_parallelism = self.random.choice((1, 2, 3))
        elif self.drivers:
            self.next_parallelism = self.next_parallelism if self.random.random() < 0.9 else self.random.randint(1, 4)
        driver = Driver(self, len(self.drivers) + 1, directory, savepoint, self.next_parallelism, grown=grown)
        self.drivers.append(driver)
        self.scheduler.spawn(driver.process, driver.process, driver.live)

    def abandon_starts(self, stopped: Driver) -> None:
        """The job moves to another directory: whoever has yet to start it in the old one must not, any more.

        No claim in the new directory could fence it. This is up to the people who move a job, here as in Flink.
        """
        claim = stopped.claim()
        assert claim is not None
        for driver in self.drivers:
            theirs = driver.claim()
            if driver is not stopped and not driver.ended and (theirs is None or theirs > claim):
                driver.killed = True
                self.scheduler.kill(driver.group)

    def plan(self, parallelism: int, *, grown: bool) -> JobPlan:
        if (parallelism, grown) not in self._plans:
            self._plans[parallelism, grown] = self.shape.plan(parallelism, grown=grown)
        return self._plans[parallelism, grown]

    @property
    def grown(self) -> bool:
        """Whether the job got a source more in the course of this history."""
        return any(driver.grown for driver in self.drivers)

    def full_snapshot_is_due(self, chain: Sequence[SnapshotRef]) -> bool:
        return sum(ref.kind == "delta" for ref in chain) >= self._deltas_per_full

    def next_savepoint(self) -> str:
        return f"sim://savepoint-{len(self.savepoints)}"

    def patience(self) -> int:
        """How many steps others do while somebody waits for work beside an epoch."""
        return 10_000 if self.random.random() < self._quickness else self.random.randint(0, 20)

    def attempt_begins(self) -> None:
        self.clock_ms += self.random.randint(1, 2 * self.EPOCH_MS)

    # --- what actors do, and what may happen to them

    def reached(self, step: str, driver: Driver, host: SlotHost | None = None, call: Call | None = None) -> None:
        """An actor is at a named step."""
        self.scheduler.step()
        fault = self._visit(step)
        if fault is not None:
            strikes.at_step(self, fault, driver, host, call)

    def around(self, operation: str, name: str, perform: Callable[[], _T], tear: Callable[[], None] | None) -> _T:
        """An actor does something to the store."""
        if self.scheduler.current is None or self._looking:
            return perform()
        self.scheduler.step()
        if self.store_is_down_for > 0:
            self.store_is_down_for -= 1
            raise strikes.problem(self)
        fault = self._visit(f"{operation}:{name.partition('/')[0]}")
        if fault is not None:
            return strikes.at_store(self, fault, self._owner(), perform, tear)
        if operation == "write" and self._slow_partition is not None and self.random.random() < 0.5:
            self._dawdle(name)
        return perform()

    def _dawdle(self, name: str) -> None:
        """A snapshot takes epochs to be written, so that checkpoints are in flight, and full snapshots beside them."""
        if name.endswith(".full") or (name.endswith(".delta") and f"-p{self._slow_partition}-" in name):
            self.scheduler.pause(self.random.randint(50, 200))

    def _visit(self, site: str) -> Fault | None:
        fault = self.faults.visit(site)
        who = self.scheduler.current.group if self.scheduler.current is not None else ""
        line = f"{self.clock_ms} {who}: {site}" + (f" !! {fault}" if fault is not None else "")
        self.digest = zlib.crc32(line.encode(), self.digest)
        if self.trace is not None:
            self.trace(line)
        return fault

    def _owner(self) -> tuple[Driver, SlotHost | None]:
        """Whose the actor is that has the baton."""
        assert self.scheduler.current is not None
        process, _, part = self.scheduler.current.group.partition("/")
        driver = self.drivers[int(process.removeprefix("driver-")) - 1]
        return driver, None if part == "driver" else driver.all_hosts[part]

    def _reached_in_engine(self, step: str, epoch: int) -> None:
        driver, host = self._owner()
        call = host.call if host is not None else None
        if step == "manifest-written":
            self.oracles.manifest_written(driver, epoch)
        if step == "snapshot-written" and host is not None and call is not None and call.begin.cut:
            self.oracles.cut(call.begin.attempt.id, host.place, host.slot)
        self.reached(step, driver, host, call)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """An oracle looks at the store: nothing happens meanwhile."""
        before, self._looking = self._looking, True
        try:
            yield
        finally:
            self._looking = before

    # --- the seams of the engine

    def storage(self, url: str) -> SimulatedStorage:
        return self.storages.setdefault(url, SimulatedStorage(url, self))

    def _open_storage(self, where: Any) -> Any:
        url = where.url if isinstance(where, StorageSpec) else str(where)
        return self.storage(url) if is_remote(url) and url.startswith("sim://") else open_storage(where)

    @contextlib.contextmanager
    def _installed(self) -> Iterator[None]:
        """Put this world in the place of disks, forks and the collector."""
        no_collector = SimpleNamespace(
            disable=lambda: None, collect=lambda generation=2: 0, freeze=lambda: None
        )  # it would look at all that pytest has loaded, in every epoch
        logger = logging.getLogger("headwater")
        level = logger.level
        with (
            mock.patch.object(paths, "open_storage", self._open_storage),
            mock.patch.object(engine_faults, "hook", self._reached_in_engine),
            mock.patch.object(StageRunner, "batch", halved(StageRunner.batch)),
            # No file may ever have to be repaired here: whoever finds one damaged must say so.
            mock.patch.object(restore_repair, "retained_manifests", lambda layout: []),
            mock.patch.object(garbage, "gc", no_collector),
            mock.patch.object(slot_module, "full_snapshot_is_due", self.full_snapshot_is_due),
            mock.patch.object(slot_module, "FullSnapshotChild", SimulatedFullSnapshot.in_world(self)),
        ):
            try:
                yield
            finally:
                logger.setLevel(level)
