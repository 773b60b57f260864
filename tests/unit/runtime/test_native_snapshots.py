"""Slots on RocksDB: native snapshots in place of full ones, with real files and no sockets."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from rocksdict import Options

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.restore.rescale import PartitionRestore, RestorePart
from headwater.checkpoint.snapshot.file import SnapshotRef, _read_index
from headwater.checkpoint.snapshot.native import NativeSnapshot
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, LocalDiskError
from headwater.common.machine.descriptors import wait_any
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS
from headwater.runtime.epoch.messages import BeginEpoch, EpochHeader, PartitionAck
from headwater.runtime.slot.full_snapshot import FullSnapshotChild
from headwater.runtime.slot.native_snapshots import NativeUpload
from headwater.runtime.slot.slot import Slot
from headwater.runtime.stage.edges import Emit
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.rocksdb.facts import Facts
from headwater.state.rocksdb.options import RocksDBMemory
from headwater.state.snapshot.section import KEYED
from headwater.state.timers import TimerQueue
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.test_coordinator import Job, summing
from tests.unit.runtime.test_coordinator import expected as job_results
from tests.unit.runtime.test_slot import Driver


class Keep(KeyedProcessFunction):
    """Does what records say, and yields all that it holds for the key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))

    def process_element(self, record: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key, what = record
        if what == "clear":
            for state in (self.value, self.list, self.map):
                state.clear()
        elif what == "wait":
            timers = ctx.timer_service()
            for later in range(1, 5):
                timers.register_processing_time_timer(timers.current_processing_time() + later)
        elif what != "look":
            self.value.update(what)
            self.list.add(what)
            self.map.put(what, len(self.list.get()))
        yield key, self.value.value(), list(self.list.get()), sorted(self.map.items())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), timestamp, list(self.list.get())


def build(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1]).key_by(lambda record: record[0]).process(Keep()).uid("keep").rebalance().map(str)


def rocksdb_plan(directory: Path, **more: Any) -> JobPlan:
    conf: dict[str, Any] = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(directory),
        "state.backend.rocksdb.memory.fixed-per-slot": "8 mb",
        **more,
    }
    return plan_of(build, **conf)


class RocksDriver(Driver):
    """Makes a native snapshot whenever two deltas have piled up."""

    def __init__(self, directory: Path) -> None:
        super().__init__(rocksdb_plan(directory / "local"), directory / "checkpoints")
        self.local = directory / "local"
        self.slots: list[Slot] = []

    def new_slot(self) -> Slot:
        self.slots.append(super().new_slot())
        return self.slots[-1]

    def epoch(self, slot: Slot, *records: Any) -> list[Any]:
        """One epoch, and all that is being written beside it."""
        results = super().epoch(slot, *records)
        finish_upload(slot)
        return results

    def until_native(self, slot: Slot, *records: Any) -> SnapshotRef:
        """Run epochs until the chain begins with another native snapshot; `records` are in each."""
        before = self.snapshots[0].name if self.snapshots else None
        for _ in range(8):
            self.epoch(slot, *records)
            if self.snapshots[0].kind == "native" and self.snapshots[0].name != before:
                return self.snapshots[0]
        raise AssertionError("no native snapshot was made")

    def files(self) -> dict[str, int]:
        """{name: bytes} of what is in the storage."""
        assert self.layout is not None
        return {path.name: path.stat().st_size for path in Path(str(self.layout.snapshots)).iterdir()}


def finish_upload(slot: Slot) -> None:
    if isinstance(slot._full, NativeUpload):
        slot._full._ref.result(30)
    elif slot._full is not None:
        wait_any([slot._full._pipe], 30)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RocksDriver]:
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 2)
    monkeypatch.setattr("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 3)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process with RocksDB must not fork"))
    made = RocksDriver(tmp_path)
    yield made
    for slot in made.slots:
        slot.close()
    assert not list(made.local.iterdir()), "something is left on the local disk"


@pytest.fixture(autouse=True)
def files_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB joins small files when it has the time to, and which snapshots share one would be luck."""
    options_of = RocksDBMemory.database_options

    def options(memory: RocksDBMemory) -> Options:
        made = options_of(memory)
        made.set_disable_auto_compactions(True)
        return made

    monkeypatch.setattr(RocksDBMemory, "database_options", options)


LOOK = "look"


def test_a_native_snapshot_replaces_the_chain(driver: RocksDriver) -> None:
    slot = driver.new_slot()
    native = driver.until_native(slot, ("a", 1))
    assert [ref.kind for ref in driver.snapshots[1:]] == ["delta"] * (len(driver.snapshots) - 1)
    assert native.files and native.total_bytes == native.length + sum(file.length for file in native.files)
    (before,) = driver.epoch(slot, ("a", LOOK))
    ack, results = driver.attempt(driver.new_slot(), ("a", LOOK))
    assert ack.restored and results == [before]


@pytest.mark.parametrize("in_memory", [4, 1000])
def test_timers_are_part_of_a_native_snapshot(
    driver: RocksDriver, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr("headwater.state.rocksdb.options.DEFAULT_TIMERS_IN_MEMORY", in_memory)
    slot = driver.new_slot()
    driver.epoch(slot, *((key, "wait") for key in range(10)))
    driver.until_native(slot, ("other", 1))
    driver.now_ms += 2
    expected = [(key, driver.now_ms - 2 + later, []) for later in (1, 2) for key in range(10)]
    for each in (slot, driver.new_slot()):
        assert driver.attempt(each)[1] == expected
    (backend,) = [each for each in slot.runner.backends() if isinstance(each, KeyedStateBackend)]
    assert getattr(backend.processing_timers, "stored") is (in_memory == 4)  # noqa: B009 - not of every backend


def test_timers_stay_on_the_heap_if_that_is_said(driver: RocksDriver) -> None:
    driver.plan = rocksdb_plan(driver.local, **{"state.backend.rocksdb.timer-service.factory": "HEAP"})
    slot = driver.new_slot()
    driver.epoch(slot, ("a", "wait"))
    (backend,) = [each for each in slot.runner.backends() if isinstance(each, KeyedStateBackend)]
    assert type(backend.processing_timers) is TimerQueue and len(backend.processing_timers) == 4


def test_after_a_small_change_little_is_sent(driver: RocksDriver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, *((f"key {number}", f"{number}" * 20) for number in range(5_000)))
    driver.until_native(slot, ("other", 1))
    first = driver.files()
    second = driver.until_native(slot, *((f"key {number}", "new") for number in range(0, 5_000, 100)))
    sent = {name: size for name, size in driver.files().items() if name not in first and not name.endswith(".delta")}
    assert second.name in sent and sum(sent.values()) < 0.05 * second.total_bytes
    assert {file.name for file in second.files} & first.keys(), "nothing is shared"
    assert driver.epoch(driver.new_slot(), ("key 100", LOOK))[0][1] == "new"


def test_a_restored_slot_goes_on_with_the_files_of_its_snapshot(driver: RocksDriver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, *((number, "x" * 100) for number in range(2_000)))
    first = driver.until_native(slot, (1, "y"))
    second = driver.until_native(driver.new_slot(), (1, "y"))
    assert {file.name for file in first.files} <= {file.name for file in second.files}


def test_a_slot_that_was_restored_by_other_means_shares_nothing(
    driver: RocksDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new database numbers its files from the beginning: the same names, and other content."""
    slot = driver.new_slot()
    driver.epoch(slot, *((number, "x" * 100) for number in range(500)))
    first = driver.until_native(slot, (1, "y"))
    expected = driver.epoch(slot, (1, LOOK))
    monkeypatch.setattr(Facts, "fits", lambda *_: False)  # as if a class had changed
    for _ in range(2):
        ack, _ = driver.attempt(slot, (1, "z"), cut=False)
        driver.accept(ack, cut=False)
    driver.go_back()
    ack, results = driver.attempt(slot, (1, LOOK))
    assert ack.restored and results == expected
    assert slot._natives._uploaded.named_by([first]) == {}
    second = driver.until_native(slot, (1, "y"))
    assert not {file.name for file in first.files} & {file.name for file in second.files}


def manifest(driver: RocksDriver) -> Manifest:
    return Manifest(
        job_id="j",
        job_name="job",
        epoch=driver.epoch_number,
        incarnation=1,
        created_ms=0,
        now_ms=0,
        plan_fingerprint="p",
        max_parallelism=driver.plan.max_parallelism,
        operators={"keep": "Keep"},
        partitions=[PartitionRecord(1, 0, list(driver.snapshots))],
    )


def test_files_go_when_no_retained_manifest_names_them(driver: RocksDriver) -> None:
    assert driver.layout is not None
    store = ManifestStore(driver.layout, durable=False)
    slot = driver.new_slot()
    driver.epoch(slot, *((number, "x" * 100) for number in range(500)))
    first = driver.until_native(slot, (1, "y"))
    store.write(manifest(driver))
    second = driver.until_native(slot, (1, "y"))
    driver.epoch(slot, (1, "y"))  # the first snapshot's epoch is not the newest any more
    store.write(manifest(driver))
    shared = {file.name for file in first.files} & {file.name for file in second.files}
    assert shared
    protected = slot._full.names if slot._full is not None else ()
    store.collect_garbage(2, protected)
    assert {file.name for file in first.files} <= driver.files().keys()
    store.collect_garbage(1, protected)
    named = store.load(driver.epoch_number).snapshot_names()
    assert shared < named
    assert driver.files().keys() == named | set(protected), "not exactly what is named is left"
    assert first.name not in driver.files()
    before = driver.epoch(slot, (1, LOOK))
    assert driver.epoch(driver.new_slot(), (1, LOOK)) == before


def test_files_that_are_being_sent_are_said_to_be(driver: RocksDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = driver.new_slot()
    sent: list[Callable[[], Any]] = []
    monkeypatch.setattr(slot._natives, "_background", Later(sent))
    acks = [commit(driver, slot, (number, "x")) for number in range(5)]
    (write,) = sent
    writing = {name for ack in acks for name in ack.writing}
    assert {name.rpartition(".")[2] for name in writing} == {"native", "sst"}
    write()
    assert writing <= driver.files().keys()


def commit(driver: Driver, slot: Slot, *records: Any) -> PartitionAck:
    ack, _ = driver.attempt(slot, *records)
    driver.commit(ack)
    return ack


class Later:
    """A `Background` whose work is done by the test."""

    def __init__(self, work: list[Callable[[], Any]]) -> None:
        self._work = work

    def start(self, name: str, work: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        self._work.append(lambda: future.set_result(work()))
        return future


def test_one_that_hangs_is_given_up_and_the_next_one_is_tried(
    driver: RocksDriver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slot = driver.new_slot()
    monkeypatch.setattr(slot, "_clock", count(0.0, 1_000.0).__next__)
    hanging: list[Callable[[], Any]] = []
    monkeypatch.setattr(slot._natives, "_background", Later(hanging))
    for number in range(7):
        commit(driver, slot, (number, "x"))
    assert len(hanging) >= 2
    assert "native snapshot of stage 1 partition 0 was not written within 600 s" in caplog.text
    monkeypatch.setattr(slot, "_clock", time.monotonic)
    monkeypatch.setattr(slot._natives, "_background", THREADS)
    driver.until_native(slot, (1, "y"))
    hanging[0]()  # the first one wakes up: nobody wants it, and it says nothing
    assert "failed" not in caplog.text
    assert driver.epoch(slot, (1, LOOK)) == driver.epoch(driver.new_slot(), (1, LOOK))


def test_a_kill_in_the_middle_of_an_upload_changes_nothing(
    driver: RocksDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, *((number, "x" * 100) for number in range(500)))
    sent: list[Callable[[], Any]] = []
    monkeypatch.setattr(slot._natives, "_background", Later(sent))
    for number in range(3):
        commit(driver, slot, (number, "y"))
    assert slot._full is not None
    # Half of the files arrive, and the index never does.
    snapshot: NativeSnapshot = slot._full._snapshot  # type: ignore[union-attr]
    source, name = next(iter(snapshot._new.values()))
    snapshot._send(source, name)
    expected = driver.epoch(driver.new_slot(), (1, LOOK))
    native = driver.until_native(driver.slots[-1], (3, "z"))
    assert name in driver.files() and name not in {file.name for file in native.files}
    assert driver.epoch(driver.new_slot(), (1, LOOK)) == expected
    assert driver.layout is not None
    store = ManifestStore(driver.layout, durable=False)
    store.write(manifest(driver))
    store.take_over("job")
    store.remove_orphans()
    assert name not in driver.files()
    assert driver.epoch(driver.new_slot(), (1, LOOK)) == expected
    sent[0]()  # the old slot wakes up and goes on writing: under names that nobody else uses
    assert driver.epoch(driver.new_slot(), (1, LOOK)) == expected


@pytest.fixture(params=["heap", "rocksdb"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Driver:
    plan = plan_of(build) if request.param == "heap" else rocksdb_plan(tmp_path / "local")
    return Driver(plan, tmp_path / "checkpoints")


def test_a_snapshot_at_a_checkpoint_that_fails_is_not_used(either: Driver) -> None:
    """What comes later goes on from the checkpoint before: it does not say that a key is gone which that had not."""
    slot = with_full_snapshot_in_flight(either, ("short-lived", 1))
    either.in_flight = None  # failed
    either.epoch(slot, ("short-lived", "clear"))
    either.epoch(slot, ("b", 2))
    assert either.epoch(either.new_slot(), ("short-lived", LOOK)) == [("short-lived", None, [], [])]
    slot.close()


def test_going_back_drops_what_was_begun_later(either: Driver) -> None:
    slot = with_full_snapshot_in_flight(either, ("a", 3))
    either.go_back()
    ack, results = either.attempt(slot, ("a", LOOK))
    assert ack.full is None and results[0][1] == 2
    slot.close()


def with_full_snapshot_in_flight(driver: Driver, record: Any) -> Slot:
    """A slot that has made a full snapshot of a checkpoint in flight, the one with `record`, and not handed it out."""
    slot = driver.new_slot()
    for number in (1, 2):
        commit(driver, slot, ("a", number))
    ack, _ = driver.attempt(slot, record)
    driver.accept(ack)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 1)
        begin, restored, _ = driver.begin(slot, cut=False)
        assert slot._full is not None
        patched.setattr(slot._full, "done", lambda: False)
        ack = slot.finish(begin, restored)
    driver.last_token = begin.attempt.id
    driver.accept(ack, cut=False)
    finish_upload(slot)
    return slot


@pytest.mark.parametrize("damage", ["missing", "truncated", "changed"])
@pytest.mark.parametrize("what", ["index", "file"])
def test_damage_is_found_before_a_database_is_opened(
    driver: RocksDriver, damage: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = driver.new_slot()
    native = driver.until_native(slot, *((number, "x" * 100) for number in range(500)))
    assert driver.layout is not None
    path = Path(str(driver.layout.snapshot(native.name if what == "index" else native.files[0].name)))
    content = path.read_bytes()
    path.unlink()  # a slot may have a link to it
    if damage == "truncated":
        path.write_bytes(content[:-1])
    elif damage == "changed":
        position = 1000 if what == "index" else len(content) // 2  # the index begins with what belongs to the database
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    monkeypatch.setattr(
        "headwater.state.rocksdb.backend.native_facts", lambda _: pytest.fail("it was opened all the same")
    )
    with pytest.raises(CheckpointError, match=path.name):
        driver.attempt(driver.new_slot(), (1, LOOK))


def test_damage_of_what_comes_on_top_of_a_database_is_found(driver: RocksDriver) -> None:
    slot = driver.new_slot()
    native = driver.until_native(slot, *((number, f"{number}" * 10) for number in range(500)))
    assert driver.layout is not None
    path = Path(str(driver.layout.snapshot(native.name)))
    content = bytearray(path.read_bytes())
    with open(path, "rb") as file:
        on_top = [entry for entry in _read_index(file, path, native)[1] if entry.kind == KEYED]
    assert {entry.name for entry in on_top} == {"value"}
    content[on_top[-1].offset + 5] ^= 1
    path.unlink()
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=path.name):
        driver.attempt(driver.new_slot(), (1, LOOK))


# --- from a job of another shape


class StartingFrom(Slot):
    """A slot that begins with another job's checkpoint, until there is one of its own."""

    def start_from(self, parts: tuple[RestorePart, ...]) -> None:
        self.restore: PartitionRestore | None = PartitionRestore(1, 0, parts)

    def begin(self, begin: BeginEpoch, emit: Emit) -> bool:
        return super().begin(replace(begin, restore=self.restore), emit)

    def finish(self, begin: BeginEpoch, restored: bool) -> PartitionAck:
        return super().finish(replace(begin, restore=self.restore), restored)


def starting_from(old: RocksDriver, new: RocksDriver, key_groups: range | None = None) -> StartingFrom:
    assert old.layout is not None
    groups = key_groups or range(old.plan.max_parallelism)
    slot = StartingFrom(new.plan, "job", new.new_slot()._address, new.layout)
    slot.start_from((RestorePart(str(old.layout.root), 1, 0, tuple(old.snapshots), {"keep": groups}),))
    new.slots.append(slot)
    return slot


def test_the_first_snapshot_of_a_new_shape_is_a_native_one(driver: RocksDriver, tmp_path: Path) -> None:
    slot = driver.new_slot()
    driver.until_native(slot, ("a", 1), ("gone", 1))
    driver.epoch(slot, ("gone", "clear"))
    new = RocksDriver(tmp_path / "new")
    first = starting_from(driver, new)
    for records in ([("short-lived", 1), ("a", LOOK)], [("a", 5)]):
        ack, results = new.attempt(first, *records, cut=False)
        new.accept(ack, cut=False)
    assert results[0][1] == 5
    ack, _ = new.attempt(first, ("short-lived", "clear"))
    assert ack.part is not None and ack.part.whole and ack.part.ref.kind == "native"
    new.commit(ack)
    first.restore = None
    expected = new.epoch(first, ("a", LOOK), ("gone", LOOK), ("short-lived", LOOK))
    assert [row[1] for row in expected] == [5, None, None]
    assert new.epoch(new.new_slot(), ("a", LOOK), ("gone", LOOK), ("short-lived", LOOK)) == expected
    shared = new.until_native(first, ("b", 1))
    assert {file.name for file in ack.part.ref.files} & {file.name for file in shared.files}
    for each in new.slots:
        each.close()


def test_if_that_fails_the_next_one_is_again_whole(
    driver: RocksDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.until_native(driver.new_slot(), ("a", 1))
    new = RocksDriver(tmp_path / "new")
    first = starting_from(driver, new)
    with monkeypatch.context() as patched:
        patched.setattr(NativeSnapshot, "write", lambda self: 1 / 0)
        ack, _ = new.attempt(first, ("b", 1))
    assert ack.part is not None and ack.part.error is not None
    new.accept(ack)
    new.in_flight = None
    ack, _ = new.attempt(first, ("c", 1))
    assert ack.part is not None and ack.part.whole and ack.part.error is None
    new.commit(ack)
    rows = new.epoch(new.new_slot(), ("a", LOOK), ("b", LOOK), ("c", LOOK))
    assert [row[1] for row in rows] == [1, 1, 1]
    for each in new.slots:
        each.close()


def test_of_other_key_groups_only_those_are_taken(driver: RocksDriver, tmp_path: Path) -> None:
    driver.until_native(driver.new_slot(), *((number, number) for number in range(100)))
    new = RocksDriver(tmp_path / "new")
    first = starting_from(driver, new, range(10))
    new.attempt(first)
    backend = first.runner.keyed_backend("keep")
    assert isinstance(backend, KeyedStateBackend) and 0 < len(backend.keys("value")) < 100
    for each in new.slots:
        each.close()


# --- against the heap


class Pair(RuleBasedStateMachine):
    """The same job on both backends, through everything that can happen to a slot."""

    directory: Path
    number = 0
    slow = False
    """Whether snapshots that are being written are not ready when the epoch ends."""

    @initialize()
    def start(self) -> None:
        Pair.number += 1
        here = self.directory / str(Pair.number)
        self.rocks = RocksDriver(here / "rocks")
        self.drivers: tuple[Driver, ...] = (Driver(plan_of(build), here / "heap"), self.rocks)
        self.slots = [driver.new_slot() for driver in self.drivers]

    def run(self, records: list[Any], *, cut: bool, slow: bool = False) -> None:
        Pair.slow = slow
        outputs = []
        for driver, slot in zip(self.drivers, self.slots, strict=True):
            ack, results = driver.attempt(slot, *records, cut=cut)
            outputs.append(results)
            self.accept(driver, ack, cut=cut)
        finish_upload(self.slots[1])
        assert outputs[0] == outputs[1]

    def accept(self, driver: Driver, ack: PartitionAck, *, cut: bool) -> None:
        driver.accept(ack, cut=cut)

    @rule(
        records=st.lists(
            st.tuples(st.sampled_from(["a", "b", 1, ("t", 2)]), st.sampled_from([1, 2, 3, "clear", "wait", LOOK])),
            max_size=6,
        ),
        cut=st.booleans(),
        passes=st.integers(0, 3),
        slow=st.booleans(),
    )
    def epoch(self, records: list[Any], cut: bool, passes: int, slow: bool) -> None:
        for driver in self.drivers:
            driver.now_ms += passes
        self.run(records, cut=cut and self.drivers[0].in_flight is None, slow=slow)

    @precondition(lambda self: self.drivers[0].in_flight is not None)
    @rule(completed=st.booleans())
    def end_checkpoint(self, completed: bool) -> None:
        for driver in self.drivers:
            if not completed:
                driver.in_flight = None
                continue
            number, driver.epoch_number = driver.epoch_number, int(str(driver.in_flight).split("-")[2])
            driver.complete()
            driver.epoch_number = number

    @rule()
    def checkpoint(self) -> None:
        if self.drivers[0].in_flight is None:
            self.run([("a", LOOK)], cut=True)
            self.end_checkpoint(True)

    @rule(crash=st.booleans())
    def go_back(self, crash: bool) -> None:
        for index, driver in enumerate(self.drivers):
            driver.go_back()
            if crash:
                self.slots[index].close()
                self.slots[index] = driver.new_slot()
        self.run([(key, LOOK) for key in ("a", "b", 1, ("t", 2))], cut=False)

    def teardown(self) -> None:
        if hasattr(self, "slots"):
            self.go_back(crash=True)
            for slot in (*self.slots, *self.rocks.slots):
                slot.close()


def _awaited(snapshot: Any, done: Any) -> bool:
    while not done(snapshot):
        time.sleep(0.001)
    return True


def test_slots_on_both_backends_stay_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 2)
    monkeypatch.setattr("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 3)
    monkeypatch.setattr("headwater.state.rocksdb.options.DEFAULT_TIMERS_IN_MEMORY", 4)
    for snapshot in (NativeUpload, FullSnapshotChild):
        monkeypatch.setattr(snapshot, "done", lambda self, done=snapshot.done: not Pair.slow and _awaited(self, done))
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else tmp_path) as directory:
        Pair.directory = Path(directory)
        case = Pair.TestCase
        case.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
        case().runTest()


def test_a_reference_with_files_can_be_stored(driver: RocksDriver) -> None:
    native = driver.until_native(driver.new_slot(), ("a", 1))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(native), type=SnapshotRef) == native


# --- whole jobs


class RocksJob(Job):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._conf: dict[str, Any] = {
            "state.backend.type": "rocksdb",
            "state.backend.rocksdb.localdir": str(directory / "local"),
            "state.backend.rocksdb.memory.fixed-per-slot": "8 mb",
        }

    def plan(self, fails_at: int | None = None) -> JobPlan:
        return plan_of(lambda env: summing(env, fails_at), 2, self.sink, **self._conf)


@pytest.mark.parametrize("kill_every", [2, 3, 5])
def test_a_job_whose_slots_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_every: int) -> None:
    """Whatever is half sent at that moment: all results are right, and only what manifests name is left."""
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 2)
    monkeypatch.setattr("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 3)
    job = RocksJob(tmp_path)
    job.start()
    kinds: list[str] = []
    kills: list[int] = []

    def kill(header: EpochHeader) -> None:
        kinds.extend(ref.kind for chain in header.snapshots.values() for ref in chain)
        if header.attempt.epoch % kill_every == kill_every - 1 and header.attempt.number == 0:
            kills.append(header.attempt.epoch)
            job.engine.kill_slot(1, header.attempt.epoch % 2)

    job.engine.before = kill
    job.run()
    assert kills and job.results() == job_results()
    assert "native" in kinds
    named = {name for epoch in job.store.epochs() for name in job.store.load(epoch).snapshot_names()}
    assert job.layout is not None
    assert named <= {path.name for path in Path(str(job.layout.snapshots)).iterdir()}
    for slot in job.engine.slots.by_place.values():
        slot.close()  # one may be at work on its next snapshot
    store = job.store
    store.take_over("job")
    store.remove_orphans()
    assert named == {path.name for path in Path(str(job.layout.snapshots)).iterdir()}


def test_a_full_disk_ends_the_attempt_and_the_next_one_loads_the_checkpoint(driver: RocksDriver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    (backend,) = slot._native_backends()
    database = backend.database  # type: ignore[attr-defined]

    def full(changes: Any) -> None:
        raise RuntimeError("IO error: No space left on device")

    database.write = full
    with pytest.raises(LocalDiskError, match=r"No space left on device.*make room"):
        driver.until_native(slot, ("b", 1))
    assert backend.damaged
    (row,) = driver.epoch(slot, ("a", LOOK))
    assert row[1] == 1
    assert slot._native_backends() != [backend]
