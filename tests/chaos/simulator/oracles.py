"""What must hold, whatever happened."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import Savepoint, open_savepoint
from headwater.checkpoint.snapshot.native_reader import snapshot_sections
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError, HeadwaterError, JobFailedError
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import BROADCAST, OPERATOR, Section
from headwater.state.snapshot.stored_state import StoredKeyedState
from tests.chaos.simulator.jobs import MAX_PARALLELISM
from tests.chaos.simulator.strikes import InjectedError

if TYPE_CHECKING:
    from headwater.runtime.slot.slot import Slot
    from tests.chaos.simulator.driver import Driver, SimulatedCoordinator
    from tests.chaos.simulator.world import World

Place = tuple[int, int]
State = dict[tuple[str, str, str], Any]
"""{(uid, kind, state): content}, comparable"""

_NEVER = re.compile(r"missing|damaged|lacks|does not have its checksum|internal error")
"""What the newest driver must never say about its own files."""


class Oracles:
    """Watches one history and judges its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.problems: list[str] = []
        self.state: State | None = None
        world.outside.on_commit = self._on_commit
        self._judged: set[int] = set()
        self._held: dict[str, dict[Place, list[Section]]] = {}
        """{token of a cut: {: what the slot held}}, until its manifest is written"""

    def problem(self, text: str) -> None:
        self.problems.append(text)

    # --- while it runs

    def _on_commit(self, transaction: str) -> None:
        """Law 3: nothing is visible before a manifest that counts names it."""
        world = self._world
        world.scheduler.step()
        if transaction in world.outside.visible:
            return
        with world.looking():
            if not any(transaction in named for named in self._named_transactions()):
                self.problem(f"visible without a manifest: {transaction}")

    def _named_transactions(self) -> Iterator[set[str]]:
        for storage in self._world.storages.values():
            store = ManifestStore(CheckpointLayout(storage))
            for epoch in store.epochs():
                manifest = store.load(epoch)
                yield {pickle.loads(item) for items in manifest.committables.values() for item in items}

    def cut(self, token: str, place: Place, slot: Slot) -> None:
        """A slot has run the last epoch of a checkpoint: note what it holds."""
        if self._world.shape.backend == "hashmap":  # others write down what waits, if they are asked
            self._held.setdefault(token, {})[place] = list(_held(slot))

    def manifest_written(self, driver: Driver, epoch: int) -> None:
        """A checkpoint is what the slots held when it was cut, whatever it is made of."""
        assert driver.coordinator is not None
        cut = driver.coordinator.checkpoints.in_flight
        held = self._held.pop(cut.token, None) if cut is not None else None
        if held is None:
            return
        storage = self._world.storage(driver.directory)
        with self._world.looking():
            stored = state_of(_savepoint(storage, ManifestStore(CheckpointLayout(storage)).load(epoch)))
        found = state_in((place, section) for place in sorted(held) for section in held[place])
        if stored != found:
            self.problem(f"the checkpoint of epoch {epoch} is not what the slots held: {difference(stored, found)}")

    def stamped(self, coordinator: SimulatedCoordinator, now_ms: int) -> None:
        """Law 2: processing time never goes back; and it passes, whatever is done to the wall clock."""
        manifest = coordinator.checkpoints.durable
        if now_ms <= coordinator.last.now_ms or (manifest is not None and now_ms <= manifest.now_ms):
            self.problem(f"processing time went back to {now_ms}")
        assert coordinator.first_stamp is not None
        read_at_ms, first_ms = coordinator.first_stamp
        passed_ms = coordinator.driver.monotonic_ms() - read_at_ms
        if now_ms - first_ms < passed_ms - 1:
            self.problem(f"processing time stands still: {now_ms - first_ms} ms went by in {passed_ms} ms")

    def driver_ended(self, driver: Driver) -> None:
        """A driver may end with what the store did to it. Anything else is an error of the engine."""
        error = driver.error
        if error is None or driver.number in self._judged:
            return
        self._judged.add(driver.number)
        newest = driver is self._world.drivers[-1]
        expected: tuple[type[BaseException], ...] = (CheckpointError, JobFailedError, InjectedError)
        if not isinstance(error, expected) or (newest and _NEVER.search(str(error))):
            self.problem(f"{driver.group} ended with {type(error).__name__}: {error}")
        elif isinstance(error, FencedError) and not any(other.replaced for other in self._world.drivers):
            self.problem(f"{driver.group} was fenced by nobody: {error}")

    # --- at the end

    def judge(self) -> None:
        """The last driver has finished, and everybody else is gone."""
        for driver in self._world.drivers[:-1]:
            self.driver_ended(driver)
        last = self._world.drivers[-1]
        if not last.finished:
            self.problem(f"the job did not finish: {last.error!r}")
            return
        storage = self._world.storage(last.directory)
        try:
            manifest = ManifestStore(CheckpointLayout(storage)).latest()
            if manifest is None or not manifest.finished:
                self.problem("the newest manifest is not that of the end")
                return
            self.state = state_of(_savepoint(storage, manifest))
        except HeadwaterError as error:
            self.problem(f"the last checkpoint cannot be read: {error}")
            return
        engine = last.engine
        if engine is not None and len(engine.hosts) == sum(
            stage.parallelism for stage in engine.plan.stages if stage.needs_slot
        ):
            in_memory = state_in(
                (place, section) for place, host in engine.hosts.items() for section in _held(host.slot)
            )
            if in_memory != self.state:
                self.problem(f"the slots hold something else than the checkpoint: {difference(in_memory, self.state)}")
        self._judge_savepoints()

    def _judge_savepoints(self) -> None:
        for request in self._world.savepoints:
            if not request.path.done() or request.path.exception() is not None:
                continue
            url = request.path.result()
            claimed = self._world.claim_mode == "CLAIM" and any(each.savepoint == url for each in self._world.drivers)
            if claimed:
                continue  # and disposed of
            try:
                state_of(open_savepoint(url))
            except HeadwaterError as error:
                self.problem(f"savepoint {url} cannot be read: {error}")

    def compare(self, expected: Expected) -> None:
        """With the run in which nothing went wrong."""
        found = self._world.outside.records()
        if Counter(found) != Counter(expected.records):
            lost = Counter(expected.records) - Counter(found)
            more = Counter(found) - Counter(expected.records)
            self.problem(f"output: lost {sorted(lost.elements())[:5]}, too much {sorted(more.elements())[:5]}")
        elif by_key(found) != by_key(expected.records):
            wrong = [key for key, rows in by_key(found).items() if rows != by_key(expected.records)[key]]
            self.problem(f"order: of keys {wrong[:5]}")
        if self.state is not None and self.state != expected.state:
            self.problem(f"state: {difference(self.state, expected.state)}")


class Expected:
    """What the job gives when nothing goes wrong."""

    def __init__(self, records: list[Any], state: State, visits: Counter[str]) -> None:
        self.records = records
        self.state = state
        self.visits = visits


def by_key(records: Iterable[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return found


# --- state


def _savepoint(storage: Any, manifest: Manifest) -> Savepoint:
    return Savepoint(storage.url, storage.url, CheckpointLayout(storage), manifest, False, True)


def state_of(savepoint: Savepoint) -> State:
    """Everything in a checkpoint, as it would be restored."""
    return state_in(
        ((record.stage, record.partition), section)
        for record in sorted(savepoint.manifest.partitions, key=lambda each: (each.stage, each.partition))
        for ref in record.snapshots
        for section in snapshot_sections(savepoint.layout, ref)
    )


def _held(slot: Any) -> Iterator[Section]:
    for backend in slot.runner.backends():
        yield from backend.full_sections()


def state_in(sections: Iterable[tuple[tuple[int, int], Section]]) -> State:
    """Chains of sections as a value that does not depend on who had what."""
    keyed: dict[str, StoredKeyedState] = {}
    broadcast: dict[tuple[str, str, tuple[int, int]], OperatorStateBackend] = {}
    for place, section in sections:
        if section.kind == BROADCAST:
            backend = broadcast.setdefault((section.uid, section.name, place), OperatorStateBackend(section.uid))
            backend.load_section(section)
        else:
            assert section.kind != OPERATOR, "no job of the simulator has list state"
            if section.uid not in keyed:
                keyed[section.uid] = StoredKeyedState(section.uid, MAX_PARALLELISM, range(MAX_PARALLELISM))
            keyed[section.uid].load_section(section)
    found: State = {}
    for uid, state in keyed.items():
        for name in state.state_names():
            entries = sorted(repr((key, namespace, _plain(value))) for key, namespace, value in state.entries(name))
            if entries:
                found[uid, "keyed", name] = entries
        for kind, queue in (("event", state.event_timers), ("processing", state.processing_timers)):
            if timers := sorted(map(repr, queue.timers())):
                found[uid, kind, "timers"] = timers
    for (uid, name, _), backend in broadcast.items():
        # All partitions must have the same: if they do not, there is more than one element here.
        content = repr(sorted(backend.committed_broadcast(name).items()))
        found[uid, "broadcast", name] = sorted({*found.get((uid, "broadcast", name), ()), content})
    return found


def _plain(value: Any) -> Any:
    """The order in which a map came to its entries is no part of it."""
    return sorted(value.items()) if isinstance(value, dict) else value


def difference(found: State, expected: State) -> str:
    parts = []
    for place in sorted({*found, *expected}):
        here, there = Counter(found.get(place, [])), Counter(expected.get(place, []))
        if here != there:
            parts.append(f"{place}: lacks {sorted(there - here)[:3]}, has {sorted(here - there)[:3]}")
    return "; ".join(parts)
