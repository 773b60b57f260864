"""The state machine of a slot, with real snapshot files and no sockets."""

from __future__ import annotations

import select
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot_file import SnapshotRef
from headwater.common.errors import CheckpointError, UserCodeError
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.graph.plan import JobPlan
from headwater.runtime.chunk import FrameKind, decode_header, decode_records, payload_of
from headwater.runtime.slot.protocol import Attempt, BeginEpoch, SlotAck, SlotAddress
from headwater.runtime.slot.slot import NOTHING, Slot, StateLostError
from headwater.runtime.stage_runner import edge_id
from tests.unit.runtime.in_process_engine import plan_of


class Sum(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        if value[1] == "bad":
            raise ValueError("bad record")
        self.total.update((self.total.value() or 0) + value[1])
        yield value[0], self.total.value()


def build(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1]).key_by(lambda pair: pair[0]).process(Sum()).uid("sum").rebalance().map(str)


@pytest.fixture(scope="module")
def plan() -> JobPlan:
    return plan_of(build)


class Driver:
    """Plays the relay and the coordinator: knows which epoch is committed, and by which snapshots."""

    def __init__(self, plan: JobPlan, directory: Path | None) -> None:
        self.plan = plan
        self.layout = None if directory is None else CheckpointLayout(directory)
        if self.layout is not None:
            self.layout.create()
        self.committed = -1
        self.snapshots: list[SnapshotRef] = []
        self.attempts = 0
        self.edge = edge_id(plan.stages[1].operators[0].id, 0)

    def new_slot(self) -> Slot:
        return Slot(self.plan, "job", SlotAddress(1, 0, "here", 0, "", 1, "one"), self.layout)

    def begin(self, slot: Slot) -> tuple[BeginEpoch, bool, list[Any]]:
        self.attempts += 1
        begin = BeginEpoch(
            attempt=Attempt(1, self.committed + 1, self.attempts),
            base_epoch=self.committed,
            now_ms=1_700_000_000_000,
            watermarks={},
            snapshots=list(self.snapshots),
            checkpointing=self.layout is not None,
            relay_pid=0,
            driver_pid=0,
        )
        results: list[Any] = []

        def emit(target: int, frame: bytes) -> None:
            if decode_header(frame).kind == FrameKind.DATA:
                results.extend(decode_records(payload_of(frame))[0])

        return begin, slot.begin(begin, emit), results

    def attempt(self, slot: Slot, *records: Any) -> tuple[SlotAck, list[Any]]:
        """One attempt up to the acknowledgement; not committed."""
        begin, restored, results = self.begin(slot)
        slot.runner.batch(self.edge, list(records), None)
        ack = slot.finish(begin, restored, lambda: None)
        return ack, results

    def commit(self, ack: SlotAck) -> None:
        self.committed += 1
        if ack.delta is not None:
            self.snapshots.append(ack.delta)
        if ack.full is not None:
            self.snapshots = [ack.full, *(ref for ref in self.snapshots if ref.epoch > ack.full.epoch)]

    def epoch(self, slot: Slot, *records: Any) -> list[Any]:
        ack, results = self.attempt(slot, *records)
        self.commit(ack)
        return results


@pytest.fixture
def driver(plan: JobPlan, tmp_path: Path) -> Driver:
    return Driver(plan, tmp_path)


def test_epochs_follow_each_other(driver: Driver) -> None:
    slot = driver.new_slot()
    assert slot.committed == NOTHING
    ack, results = driver.attempt(slot, ("a", 1), ("b", 5))
    assert results == [("a", 1), ("b", 5)]
    assert ack.restored and ack.delta is not None and ack.delta.kind == "delta"
    assert slot.committed == -1 and slot.pending == 0
    driver.commit(ack)
    ack, results = driver.attempt(slot, ("a", 10))
    assert results == [("a", 11)] and not ack.restored
    assert slot.committed == 0 and slot.pending == 1


def test_an_epoch_that_was_acknowledged_but_not_committed_is_undone(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    for _ in range(3):
        ack, results = driver.attempt(slot, ("a", 10), ("new", 7))
        assert results == [("a", 11), ("new", 7)], "an earlier attempt shows through"
        assert not ack.restored
    driver.commit(ack)
    assert driver.epoch(slot, ("a", 100), ("new", 1)) == [("a", 111), ("new", 8)]


def test_an_aborted_attempt_leaves_no_trace(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    driver.begin(slot)
    slot.runner.batch(driver.edge, [("a", 10)], None)
    slot.abort()
    assert slot.committed == 0 and slot.pending is None
    assert driver.epoch(slot, ("a", 2)) == [("a", 3)]


def test_a_connection_that_just_goes_away_is_an_abort_at_the_next_begin(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    driver.begin(slot)
    slot.runner.batch(driver.edge, [("a", 10)], None)
    assert driver.epoch(slot, ("a", 2)) == [("a", 3)]


def test_a_user_error_in_the_middle_of_a_batch_is_rolled_back(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    driver.begin(slot)
    with pytest.raises(UserCodeError, match="bad record"):
        slot.runner.batch(driver.edge, [("a", 10), ("a", "bad")], None)
    slot.abort()
    assert driver.epoch(slot, ("a", 2)) == [("a", 3)]


def test_a_new_slot_restores_what_the_manifest_names(driver: Driver) -> None:
    slot = driver.new_slot()
    for number in range(5):
        driver.epoch(slot, ("a", 1), (f"k{number}", number))
    driver.attempt(slot, ("a", 1_000))  # acknowledged, never committed: must not be seen by the new slot
    other = driver.new_slot()
    ack, results = driver.attempt(other, ("a", 1), ("k3", 10))
    assert ack.restored and results == [("a", 6), ("k3", 13)]
    assert other.committed == 4


def test_a_slot_that_is_behind_loads_the_state(driver: Driver) -> None:
    """The relay reached another slot for a while; the old one comes back."""
    old, new = driver.new_slot(), driver.new_slot()
    driver.epoch(old, ("a", 1))
    driver.epoch(new, ("a", 1))
    driver.epoch(new, ("a", 1))
    ack, results = driver.attempt(old, ("a", 1))
    assert ack.restored and results == [("a", 4)]


def test_an_epoch_without_changes_writes_no_file(driver: Driver, tmp_path: Path) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    before = sorted(path.name for path in tmp_path.rglob("*.delta"))
    ack, _ = driver.attempt(slot)
    assert ack.delta is None
    assert sorted(path.name for path in tmp_path.rglob("*.delta")) == before


def test_attempts_of_one_epoch_write_different_files(driver: Driver, tmp_path: Path) -> None:
    slot = driver.new_slot()
    names = set()
    for _ in range(3):
        ack, _ = driver.attempt(slot, ("a", 1))
        assert ack.delta is not None
        names.add(ack.delta.name)
    assert len(names) == 3 == len(list(tmp_path.rglob("*.delta")))


@pytest.mark.parametrize("damage", ["missing", "truncated", "changed"])
def test_a_damaged_snapshot_is_an_error_that_names_the_file(driver: Driver, damage: str) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    driver.epoch(slot, ("a", 1))
    assert driver.layout is not None
    path = driver.layout.snapshot(driver.snapshots[0].name)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(content[:-3])
    else:
        path.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    with pytest.raises(CheckpointError, match=path.name):
        driver.attempt(driver.new_slot(), ("a", 1))


def test_a_full_snapshot_replaces_the_chain(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 3)
    slot = driver.new_slot()
    chains = []
    for number in range(12):
        ack, _ = driver.attempt(slot, ("a", 1), (f"k{number}", 1))
        child = slot._full
        driver.commit(ack)
        chains.append([ref.kind for ref in driver.snapshots])
        if child is not None:  # let the forked child finish before the next epoch asks for it
            select.select([child._pipe], [], [], 10)
    assert ["full", "delta"] in [chain[:2] for chain in chains]
    assert max(map(len, chains)) < 12, "the chain was never shortened"
    assert driver.epoch(driver.new_slot(), ("a", 1), ("k2", 1), ("k11", 1)) == [("a", 13), ("k2", 2), ("k11", 2)]


def test_without_checkpoints_a_lost_state_is_said_to_be_lost(plan: JobPlan) -> None:
    driver = Driver(plan, None)
    slot = driver.new_slot()
    ack, _ = driver.attempt(slot, ("a", 1))
    assert ack.delta is None
    driver.commit(ack)
    assert driver.epoch(slot, ("a", 1)) == [("a", 2)]
    with pytest.raises(StateLostError):
        driver.begin(driver.new_slot())


def test_close_closes_the_functions(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    slot.close()
    driver.new_slot().close()  # one that never began
