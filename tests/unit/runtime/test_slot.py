"""The state machine of a slot, with real snapshot files and no sockets."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import SnapshotRef, write_snapshot
from headwater.common.errors import CheckpointError, UserCodeError
from headwater.common.machine.descriptors import wait_any
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import FrameKind, decode_header, decode_records, payload_of
from headwater.runtime.epoch.failure import AttemptFailedError
from headwater.runtime.epoch.messages import Attempt, Base, BeginEpoch, PartitionAck, SlotAddress
from headwater.runtime.slot.full_snapshot import FullSnapshotChild
from headwater.runtime.slot.slot import Slot
from headwater.runtime.stage.edge_ids import edge_id
from tests.unit.runtime.in_process_engine import plan_of
from tests.waiting import wait_until


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
    """Plays the relay and the coordinator: knows which epoch is accepted, which is durable, and by which snapshots."""

    def __init__(self, plan: JobPlan, directory: Path | None) -> None:
        self.plan = plan
        self.layout = None if directory is None else CheckpointLayout(directory)
        if self.layout is not None:
            self.layout.create()
        self.epoch_number = -1
        self.token = self.durable_token = "start"
        self.durable_epoch = -1
        self.in_flight: str | None = None
        self.part_in_flight: SnapshotRef | None = None
        self.snapshots: list[SnapshotRef] = []
        self.durable_snapshots: list[SnapshotRef] = []
        """Those that the last manifest names."""
        self.attempts = 0
        self.now_ms = 1_700_000_000_000
        self.edge = edge_id(plan.stages[1].operators[0].id, 0)

    def new_slot(self) -> Slot:
        return Slot(self.plan, "job", SlotAddress(1, 0, "here", 0, "", 1, "one"), self.layout)

    def begin(self, slot: Slot, *, cut: bool = True) -> tuple[BeginEpoch, bool, list[Any]]:
        self.attempts += 1
        begin = BeginEpoch(
            attempt=Attempt(1, self.epoch_number + 1, self.attempts),
            base=Base(self.epoch_number, self.token, self.durable_epoch, self.durable_token, self.in_flight),
            now_ms=self.now_ms,
            watermarks={},
            snapshots=list(self.snapshots),
            checkpointing=self.layout is not None,
            cut=cut,
            wait=True,
        )
        results: list[Any] = []

        def emit(target: int, frame: bytes) -> None:
            if decode_header(frame).kind == FrameKind.DATA:
                results.extend(decode_records(payload_of(frame))[0])

        return begin, slot.begin(begin, emit), results

    def attempt(self, slot: Slot, *records: Any, cut: bool = True) -> tuple[PartitionAck, list[Any]]:
        """One attempt up to the acknowledgement; not accepted."""
        begin, restored, results = self.begin(slot, cut=cut)
        slot.runner.batch(self.edge, list(records), None)
        ack = slot.finish(begin, restored)
        self.last_token = begin.attempt.id
        return ack, results

    def accept(self, ack: PartitionAck, *, cut: bool = True) -> None:
        """All partitions acknowledged the epoch. A cut is in flight then."""
        self.epoch_number += 1
        self.token = self.last_token
        if cut:
            self.in_flight = self.token
            self.part_in_flight = ack.part.ref if ack.part is not None else None
        if ack.full is not None:
            self.snapshots = [ack.full, *(ref for ref in self.snapshots if ref.epoch > ack.full.epoch)]

    def complete(self) -> None:
        """The manifest of the checkpoint in flight is durable."""
        assert self.in_flight is not None
        self.durable_token, self.durable_epoch, self.in_flight = self.in_flight, self.epoch_number, None
        if self.part_in_flight is not None:
            self.snapshots.append(self.part_in_flight)
        self.durable_snapshots = list(self.snapshots)

    def commit(self, ack: PartitionAck) -> None:
        self.accept(ack)
        if self.layout is not None:
            self.complete()

    def go_back(self) -> None:
        """Another partition lost its state: the job goes on from the last durable checkpoint."""
        self.token, self.epoch_number, self.in_flight = self.durable_token, self.durable_epoch, None
        self.snapshots = list(self.durable_snapshots)

    def epoch(self, slot: Slot, *records: Any) -> list[Any]:
        ack, results = self.attempt(slot, *records)
        self.commit(ack)
        return results


@pytest.fixture
def driver(plan: JobPlan, tmp_path: Path) -> Driver:
    return Driver(plan, tmp_path)


def test_epochs_follow_each_other(driver: Driver) -> None:
    slot = driver.new_slot()
    ack, results = driver.attempt(slot, ("a", 1), ("b", 5))
    assert results == [("a", 1), ("b", 5)]
    assert ack.restored and ack.part is not None and ack.part.ref.kind == "delta"
    driver.commit(ack)
    ack, results = driver.attempt(slot, ("a", 10))
    assert results == [("a", 11)] and not ack.restored


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
    assert ack.part is not None and ack.part.ref is None
    assert sorted(path.name for path in tmp_path.rglob("*.delta")) == before


def test_attempts_of_one_epoch_write_different_files(driver: Driver, tmp_path: Path) -> None:
    slot = driver.new_slot()
    names = set()
    for _ in range(3):
        ack, _ = driver.attempt(slot, ("a", 1))
        assert ack.part is not None
        names.add(ack.part.ref.name)
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


def test_a_full_snapshot_that_hangs_is_given_up_and_the_next_one_is_tried(
    plan: JobPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Deltas do not pile up without a word."""
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 3)
    driver = Driver(plan, tmp_path)
    address = SlotAddress(1, 0, "here", 0, "", 1, "one")
    slot = Slot(plan, "job", address, driver.layout, checkpoint_seconds=0.05)
    with monkeypatch.context() as patched:
        patched.setattr("headwater.runtime.slot.slot.write_snapshot", hangs_in_a_child(write_snapshot))
        children: list[FullSnapshotChild] = []
        deadline = time.monotonic() + 30
        while len(children) < 3 or slot._full is children[-1]:
            assert time.monotonic() < deadline
            driver.epoch(slot, ("a", 1))
            if isinstance(slot._full, FullSnapshotChild) and slot._full not in children:
                children.append(slot._full)
        assert all(ref.kind == "delta" for ref in driver.snapshots)
    assert "full snapshot of stage 1 partition 0 was not written within 0.05 s" in caplog.text
    assert "execution.checkpointing.timeout" in caplog.text
    for child in children[:2]:
        wait_until_gone(child._pid)
    # The store is back: one that is begun now is written.
    while not any(ref.kind == "full" for ref in driver.snapshots):
        assert time.monotonic() < deadline
        driver.epoch(slot, ("a", 1))
        if isinstance(slot._full, FullSnapshotChild) and slot._full not in children:
            wait_any([slot._full._pipe], 30)
    slot.close()


def hangs_in_a_child(write: Callable[..., SnapshotRef]) -> Callable[..., SnapshotRef]:
    this = os.getpid()

    def write_or_hang(*arguments: Any) -> SnapshotRef:
        if os.getpid() != this:
            signal.pause()
        return write(*arguments)

    return write_or_hang


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


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
            wait_any([child._pipe], 10)
    assert ["full", "delta"] in [chain[:2] for chain in chains]
    assert max(map(len, chains)) < 12, "the chain was never shortened"
    assert driver.epoch(driver.new_slot(), ("a", 1), ("k2", 1), ("k11", 1)) == [("a", 13), ("k2", 2), ("k11", 2)]


def test_without_checkpoints_a_lost_state_is_said_to_be_lost(plan: JobPlan) -> None:
    driver = Driver(plan, None)
    slot = driver.new_slot()
    ack, _ = driver.attempt(slot, ("a", 1))
    assert ack.part is None
    driver.commit(ack)
    assert driver.epoch(slot, ("a", 1)) == [("a", 2)]
    with pytest.raises(AttemptFailedError, match="lost its state"):
        driver.begin(driver.new_slot())


def test_close_closes_the_functions(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    slot.close()
    driver.new_slot().close()  # one that never began


# --- checkpoints of several epochs


def test_epochs_between_checkpoints_write_nothing(driver: Driver, tmp_path: Path) -> None:
    slot = driver.new_slot()
    for number in range(3):
        ack, results = driver.attempt(slot, ("a", 1), cut=False)
        driver.accept(ack, cut=False)
        assert results == [("a", number + 1)] and ack.part is None
    assert not list(tmp_path.rglob("*.delta"))
    ack, _ = driver.attempt(slot, ("b", 7))
    driver.commit(ack)
    assert driver.epoch(driver.new_slot(), ("a", 1), ("b", 1)) == [("a", 4), ("b", 8)]


def test_a_slot_goes_back_to_the_last_checkpoint_without_loading_it(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    for _ in range(3):
        ack, _ = driver.attempt(slot, ("a", 10), ("new", 1), cut=False)
        driver.accept(ack, cut=False)
    driver.go_back()
    ack, results = driver.attempt(slot, ("a", 2), ("new", 5))
    assert results == [("a", 3), ("new", 5)] and not ack.restored


def test_a_new_slot_cannot_be_at_an_epoch_that_was_not_persisted(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    ack, _ = driver.attempt(slot, ("a", 1), cut=False)
    driver.accept(ack, cut=False)
    with pytest.raises(AttemptFailedError, match="the last checkpoint is of epoch 0"):
        driver.begin(driver.new_slot())
    driver.go_back()
    assert driver.epoch(driver.new_slot(), ("a", 2)) == [("a", 3)]


@pytest.mark.parametrize("completes", [True, False])
def test_epochs_go_on_beside_a_checkpoint_in_flight(driver: Driver, completes: bool) -> None:
    slot = driver.new_slot()
    ack, _ = driver.attempt(slot, ("a", 1))
    driver.accept(ack)
    for _ in range(2):
        ack, _ = driver.attempt(slot, ("a", 1), cut=False)
        driver.accept(ack, cut=False)
        assert ack.part is not None and ack.part.token == driver.in_flight, (
            "an acknowledgement may be lost: say it again"
        )
    if completes:
        driver.durable_token, driver.durable_epoch, driver.in_flight = str(driver.in_flight), 0, None
        driver.snapshots.append(driver.part_in_flight)  # type: ignore[arg-type]
    else:
        driver.in_flight = None
    ack, _ = driver.attempt(slot, ("b", 1))
    driver.commit(ack)
    assert driver.epoch(driver.new_slot(), ("a", 1), ("b", 1)) == [("a", 4), ("b", 2)]


def test_going_back_forgets_a_checkpoint_in_flight(driver: Driver) -> None:
    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    ack, _ = driver.attempt(slot, ("a", 10))
    driver.accept(ack)
    ack, _ = driver.attempt(slot, ("a", 100), cut=False)
    driver.accept(ack, cut=False)
    driver.go_back()
    assert driver.epoch(slot, ("a", 2)) == [("a", 3)]
    assert driver.epoch(driver.new_slot(), ("a", 1)) == [("a", 4)]


def test_an_epoch_of_the_same_number_is_not_the_same_state(driver: Driver) -> None:
    """A slot that missed a while must not take its old epoch 1 for the new one."""
    old, new = driver.new_slot(), driver.new_slot()
    driver.epoch(old, ("a", 1))
    ack, _ = driver.attempt(old, ("a", 1_000))
    driver.accept(ack)
    driver.go_back()
    driver.epoch(new, ("a", 1))
    assert driver.epoch(old, ("a", 1)) == [("a", 3)]


def test_a_part_that_cannot_be_written_is_reported(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: Any, **__: Any) -> None:
        raise CheckpointError("no space left")

    slot = driver.new_slot()
    driver.epoch(slot, ("a", 1))
    with monkeypatch.context() as patched:
        patched.setattr("headwater.runtime.slot.slot.write_snapshot", full_disk)
        ack, _ = driver.attempt(slot, ("a", 1))
    assert ack.part is not None and ack.part.error is not None and "no space left" in ack.part.error
    driver.accept(ack)
    driver.in_flight = None
    assert driver.epoch(slot, ("a", 1)) == [("a", 3)]
    assert driver.epoch(driver.new_slot(), ("a", 1)) == [("a", 4)]


class TestCheckpointCompleted:
    """Slots are told at once that a checkpoint is durable. The next epoch must not depend on it."""

    def test_it_accepts_the_pending_epoch(self, driver: Driver) -> None:
        slot = driver.new_slot()
        ack, _ = driver.attempt(slot, ("a", 1))
        slot.checkpoint_completed(driver.last_token)
        assert (slot._accepted, slot._durable, slot._pending) == (driver.last_token, driver.last_token, None)
        driver.commit(ack)
        assert driver.epoch(slot, ("a", 2)) == [("a", 3)]

    def test_the_epoch_after_it_can_still_be_undone(self, driver: Driver) -> None:
        slot = driver.new_slot()
        ack, _ = driver.attempt(slot, ("a", 1))
        slot.checkpoint_completed(driver.last_token)
        driver.commit(ack)
        driver.attempt(slot, ("a", 10))  # never accepted
        ack, results = driver.attempt(slot, ("a", 100))
        assert results == [("a", 101)] and not ack.restored

    def test_it_waits_for_the_verdict_on_a_later_epoch(self, driver: Driver) -> None:
        """An epoch that the slot has run since is pending: the next `begin` settles both."""
        slot = driver.new_slot()
        ack, _ = driver.attempt(slot, ("a", 1))
        driver.accept(ack)
        cut = driver.token
        ack, _ = driver.attempt(slot, ("a", 10), cut=False)
        driver.accept(ack, cut=False)
        slot.checkpoint_completed(cut)
        assert slot._pending is not None and slot._in_flight == cut
        driver.durable_token, driver.durable_epoch, driver.in_flight = cut, 0, None
        assert driver.part_in_flight is not None
        driver.snapshots.append(driver.part_in_flight)
        driver.durable_snapshots = list(driver.snapshots)
        assert driver.epoch(slot, ("a", 100)) == [("a", 111)]

    def test_going_back_after_it_is_going_back_to_it(self, driver: Driver) -> None:
        slot = driver.new_slot()
        ack, _ = driver.attempt(slot, ("a", 1))
        slot.checkpoint_completed(driver.last_token)
        driver.commit(ack)
        ack, _ = driver.attempt(slot, ("a", 10), cut=False)
        driver.accept(ack, cut=False)
        driver.go_back()
        ack, results = driver.attempt(slot, ("a", 100))
        assert results == [("a", 101)] and not ack.restored

    def test_it_does_not_come_between_the_changes_of_an_epoch(self, driver: Driver) -> None:
        slot = driver.new_slot()
        ack, _ = driver.attempt(slot, ("a", 1))
        driver.accept(ack)
        driver.begin(slot)
        slot.runner.batch(driver.edge, [("a", 10)], None)
        slot.checkpoint_completed(driver.token)
        assert slot._in_flight == driver.token
        slot.abort()
        driver.complete()
        assert driver.epoch(slot, ("a", 100)) == [("a", 101)]

    @pytest.mark.parametrize("when", ["before any epoch", "in an epoch", "late", "unknown"])
    def test_one_that_does_not_fit_changes_nothing(self, when: str, driver: Driver) -> None:
        slot = driver.new_slot()
        if when == "before any epoch":
            slot.checkpoint_completed("start")
            assert driver.epoch(slot, ("a", 1)) == [("a", 1)]
            return
        driver.epoch(slot, ("a", 1))
        first = driver.token
        if when == "in an epoch":
            begin, _, _ = driver.begin(slot)
            slot.runner.batch(driver.edge, [("a", 10)], None)
            slot.checkpoint_completed(begin.attempt.id)
            slot.checkpoint_completed(first)
            slot.abort()
            assert driver.epoch(slot, ("a", 2)) == [("a", 3)]
            return
        driver.attempt(slot, ("a", 10))  # never accepted
        slot.checkpoint_completed(first if when == "late" else "nobody's")
        assert driver.epoch(slot, ("a", 2)) == [("a", 3)], "an epoch that nobody accepted was kept"
