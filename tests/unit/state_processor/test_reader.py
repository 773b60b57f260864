"""State as rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import CheckpointError, StateError
from headwater.state.descriptors import AggregatingStateDescriptor
from headwater.state_processor import KeyedRow, SavepointReader, StateRows, TimerRow, WindowRow
from tests.unit.checkpoint.old_job import LIST, OFFSETS, RULES, VALUE, OldJob
from tests.unit.state_processor.stored_windows import same_for_all_keys, sessions, with_elements_and_merged


@pytest.fixture
def job(tmp_path: Path) -> OldJob:
    """Operator `count` in three partitions, two epochs."""
    job = OldJob(tmp_path / "job", ["count", "window"], 3)

    def change(job: OldJob) -> None:
        for key in range(30):
            backend = job.of_key("count", key)
            backend.get_state(VALUE).update(None if job.epoch and key % 10 == 0 else key * 10 + job.epoch)
            backend.get_state(LIST).add(job.epoch)
            backend.event_timers.register(1000 + key, key)
            if key < 2:
                backend.processing_timers.register(5, key, ("w", key))
        for index, state in enumerate(job.states["count"]):
            state.unkeyed.get_list_state(OFFSETS).add((index, job.epoch))
            state.unkeyed.get_broadcast_state(RULES).put("limit", job.epoch)

    job.run_epoch(change)
    job.run_epoch(change)
    return job


@pytest.fixture
def reader(job: OldJob) -> SavepointReader:
    return SavepointReader(str(job.layout.root))


def test_keyed_state_is_what_the_job_held(reader: SavepointReader) -> None:
    rows = reader.keyed_state("count", "value")
    expected = [KeyedRow(key, None, key * 10 + 1) for key in range(30) if key % 10]
    assert sorted(rows) == expected == sorted(rows), "rows can be gone through again"
    assert {row.key: row.value for row in reader.keyed_state("count", "list")} == {key: [0, 1] for key in range(30)}


def test_the_catalogue_lists_everything(reader: SavepointReader) -> None:
    found = {(info.name, info.kind, info.operator) for info in reader.states() if info.bytes > 0}
    assert found == {
        ("value", "value", "Count"),
        ("list", "list", "Count"),
        ("offsets", "operator list", "Count"),
        ("rules", "broadcast", "Count"),
        ("timers", "event-time timers", "Count"),
        ("timers", "processing-time timers", "Count"),
    }
    assert reader.operators() == {"count": "Count", "window": "Window"}


def test_operator_and_broadcast_state(reader: SavepointReader) -> None:
    assert sorted(reader.operator_state("count", "offsets")) == [(p, (p, e)) for p in range(3) for e in range(2)]
    assert list(reader.broadcast_state("count", "rules")) == [("limit", 1)]


def test_timers(reader: SavepointReader) -> None:
    rows = list(reader.timers("count"))
    assert sorted(row for row in rows if row.time_domain == "event") == [
        TimerRow("event", 1000 + key, key, None) for key in range(30)
    ]
    assert sorted(row[1:] for row in rows if row.time_domain == "processing") == [(5, 0, ("w", 0)), (5, 1, ("w", 1))]


def test_an_older_checkpoint_can_be_read(job: OldJob) -> None:
    reader = SavepointReader(f"{job.layout.root}@0")
    assert sum(1 for _ in reader.keyed_state("count", "value")) == 30


def test_any_division_into_splits_gives_the_same_rows(reader: SavepointReader) -> None:
    rows = reader.keyed_state("count", "value")
    travelled: StateRows = pickle.loads(pickle.dumps(rows))
    for number in (1, 3, 16, 100):
        splits = travelled.splits(number)
        assert len(splits) == min(number, 16) and sum(map(len, splits)) == 16
        assert sorted(row for split in splits for row in travelled.read(split)) == sorted(rows)


# --- windows


def windows_of(tmp_path: Path, fill: Any) -> list[WindowRow]:
    job = OldJob(tmp_path / "windows", ["w"], 2)
    job.run_epoch(lambda job: fill(lambda key: job.of_key("w", key)))
    return sorted(SavepointReader(str(job.layout.root)).windows("w"))


def test_windows_that_are_the_same_for_all_keys(tmp_path: Path) -> None:
    assert windows_of(tmp_path, same_for_all_keys) == [
        ("a", 0, None, 1), ("a", 60, None, 2), ("b", 0, None, 1), ("b", 60, None, 2),
    ]  # fmt: skip


def test_windows_with_elements_and_merged_ones(tmp_path: Path) -> None:
    assert windows_of(tmp_path, with_elements_and_merged) == [("a", 0, 25, [1, 2]), ("b", 30, 40, [3])]


@pytest.mark.parametrize("buffered", [False, True])
def test_sessions(tmp_path: Path, buffered: bool) -> None:
    assert windows_of(tmp_path, sessions(buffered=buffered)) == [("a", 0, 10, [7]), ("a", 40, 70, [8, 9])]


def test_an_aggregate_shows_its_accumulator(tmp_path: Path) -> None:
    from headwater.operators.functions.plain import AggregateFunction

    class Mean(AggregateFunction):  # type: ignore[type-arg, unused-ignore]
        def create_accumulator(self) -> Any:
            return (0, 0)

        def add(self, value: Any, accumulator: Any) -> Any:
            return accumulator[0] + value, accumulator[1] + 1

        def get_result(self, accumulator: Any) -> Any:
            return accumulator[0] / accumulator[1]

        def merge(self, a: Any, b: Any) -> Any:
            return a[0] + b[0], a[1] + b[1]

    job = OldJob(tmp_path / "job", ["op"], 1)

    def change(job: OldJob) -> None:
        state = job.of_key("op", "k").get_state(AggregatingStateDescriptor("mean", Mean(), None))
        state.add(4)
        state.add(8)

    job.run_epoch(change)
    assert list(SavepointReader(str(job.layout.root)).keyed_state("op", "mean")) == [("k", None, (12, 2))]


# --- what is not there


def test_wrong_names_are_answered_with_the_right_ones(reader: SavepointReader, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"no state of an operator 'cuont'; did you mean 'count'\? .*count, window"):
        reader.keyed_state("cuont", "value")
    with pytest.raises(StateError, match=r"operator 'count' .* has no state 'vlaue'; did you mean 'value'\?"):
        reader.keyed_state("count", "vlaue")
    with pytest.raises(StateError, match="'offsets' of operator 'count' is of kind 'operator list'"):
        reader.keyed_state("count", "offsets")
    with pytest.raises(StateError, match="'count' is not a window"):
        reader.windows("count")
    with pytest.raises(CheckpointError, match="no-such"):
        SavepointReader(str(tmp_path / "no-such"))


def test_a_missing_file_is_named(reader: SavepointReader, job: OldJob) -> None:
    rows = reader.keyed_state("count", "value")
    Path(str(job.layout.snapshot(job.manifest.partitions[1].snapshots[0].name))).unlink()
    with pytest.raises(CheckpointError, match=r"s1-p1-e000000000000-a0.delta of epoch 0 is missing"):
        list(rows)
