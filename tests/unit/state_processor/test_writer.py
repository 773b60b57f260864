"""Savepoints that were made or changed by hand restore like any other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import SourceRecord
from headwater.checkpoint.restore.rescale import OperatorShape, plan_restore
from headwater.checkpoint.savepoint.savepoint import open_savepoint, write_savepoint
from headwater.checkpoint.snapshot.file import read_sections
from headwater.common.errors import CheckpointError, StateError, TypeMismatchError
from headwater.common.time import Time
from headwater.common.typeinfo import Types
from headwater.common.types import Row
from headwater.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.ttl.config import StateTtlConfig
from headwater.state_processor import SavepointReader, SavepointWriter
from tests.unit.checkpoint.old_job import LIST, OFFSETS, RULES, VALUE, OldJob, OperatorState, restored


@pytest.fixture
def job(tmp_path: Path) -> OldJob:
    job = OldJob(tmp_path / "job", ["a", "b"], 3)
    finished = FinishedSplits(job.layout, "src", durable=False)
    finished.add([f"file-{number}" for number in range(600)], 0, "a0")

    def change(job: OldJob) -> None:
        for key in range(20):
            for uid in ("a", "b"):
                backend = job.of_key(uid, key)
                backend.get_state(VALUE).update((uid, key, job.epoch))
                backend.get_state(LIST).add(job.epoch)
                backend.event_timers.register(100 + key, key)
        for index, state in enumerate(job.states["a"]):
            state.unkeyed.get_list_state(OFFSETS).add((job.epoch, index))
            state.unkeyed.get_broadcast_state(RULES).put("epoch", job.epoch)

    sources = {"src": SourceRecord(finished_splits=finished.record())}
    job.run_epoch(change, sources=sources)
    job.run_epoch(change, sources=sources, committables={"out": [b"pending"]})
    return job


def existing(job: OldJob) -> SavepointWriter:
    return SavepointWriter.from_existing(str(job.layout.root))


def states(path: Path | str, uid: str, parallelism: int, max_parallelism: int = 16) -> list[OperatorState]:
    """What the partitions of a job find that starts from `path`."""
    opened = open_savepoint(path)
    plan = plan_restore(opened.manifest, [OperatorShape(uid, 1, parallelism, True)], opened.directory)
    return [restored(plan[1, index], uid, max_parallelism, parallelism) for index in range(parallelism)]


def values(path: Path | str, uid: str, parallelism: int = 2, max_parallelism: int = 16) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for state in states(path, uid, parallelism, max_parallelism):
        found |= state.values()
    return found


# --- from nothing


@settings(max_examples=25, deadline=None)
@given(
    entries=st.dictionaries(st.one_of(st.integers(), st.text(max_size=4)), st.integers(), max_size=30),
    parallelism=st.integers(1, 16),
)
def test_a_bootstrapped_state_finds_its_partitions(entries: dict[Any, int], parallelism: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        writer = SavepointWriter.new(16).with_keyed_state("op", VALUE, list(entries.items()))
        writer.write(f"{directory}/sp", durable=False)
        assert values(f"{directory}/sp", "op", parallelism) == entries


def test_every_kind_of_state_can_be_given(tmp_path: Path) -> None:
    total = ReducingStateDescriptor("total", lambda a, b: a + b, None)
    info = (
        SavepointWriter.new(16, "shop")
        .with_keyed_state("op", "value", [("a", 1), ("b", 2)])
        .with_keyed_state("op", LIST, [("a", [1, 2])])
        .with_keyed_state("op", MapStateDescriptor("map"), [("a", {"x": 1})])
        .with_keyed_state("op", total, [("a", 3), ("b", 1), ("a", 4)])
        .with_keyed_state("op", ValueStateDescriptor("per-window"), [("a", (0, 10), 5), ("a", (10, 20), 6)])
        .with_operator_state("op", "offsets", [1, 2, 3, 4, 5])
        .with_broadcast_state("op", "rules", {"limit": 9})
        .with_timers("op", [(500, "a"), (400, "b")])
        .with_timers("op", [(70, "a")], event_time=False)
        .write(tmp_path / "sp", durable=False)
    )
    assert (info.job_name, info.epoch) == ("shop", 0)
    reader = SavepointReader(tmp_path / "sp")
    assert sorted(reader.keyed_state("op", "value")) == [("a", None, 1), ("b", None, 2)]
    assert list(reader.keyed_state("op", "list")) == [("a", None, [1, 2])]
    assert list(reader.keyed_state("op", "map")) == [("a", None, {"x": 1})]
    assert sorted(reader.keyed_state("op", "total")) == [("a", None, 7), ("b", None, 1)]
    assert sorted(reader.keyed_state("op", "per-window")) == [("a", (0, 10), 5), ("a", (10, 20), 6)]
    assert sorted(reader.timers("op")) == [
        ("event", 400, "b", None), ("event", 500, "a", None), ("processing", 70, "a", None),
    ]  # fmt: skip
    found = states(tmp_path / "sp", "op", 2)
    assert [state.unkeyed.committed_list("offsets") for state in found] == [[1, 3, 5], [2, 4]]
    assert [state.unkeyed.committed_broadcast("rules") for state in found] == [{"limit": 9}] * 2
    plan = plan_restore(open_savepoint(tmp_path / "sp").manifest, [OperatorShape("op", 1, 2, True)], "")
    assert plan[1, 0].next_processing_timer_ms == 70


def test_the_job_opens_what_was_given_with_its_own_descriptor(tmp_path: Path) -> None:
    descriptor = ValueStateDescriptor("value")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    SavepointWriter.new(16).with_keyed_state("op", descriptor, [("a", 1)]).write(tmp_path / "sp", durable=False)
    (state,) = states(tmp_path / "sp", "op", 1)
    state.keyed.current_key = "a"
    assert state.keyed.get_state(descriptor).value() == 1
    state.keyed.processing_time_ms = 1 << 60
    assert state.keyed.get_state(descriptor).value() is None


class Frame:
    """What of a DataFrame the writer uses."""

    def __init__(self, columns: list[str], rows: list[dict[str, Any]]) -> None:
        self.columns = columns
        self._rows = rows

    def toLocalIterator(self) -> Any:
        return iter(self._rows)


def spark_row(**fields: Any) -> Any:
    kind: Any = type("SparkRow", (tuple,), {"__fields__": list(fields)})
    return kind(fields.values())


def test_structs_of_a_dataframe_become_tuples_and_rows(tmp_path: Path) -> None:
    row = {"key": spark_row(a=1, b="x"), "value": spark_row(n=1, inner=[spark_row(m=2)])}
    writer = SavepointWriter.new(16).with_keyed_state("op", VALUE, Frame(["key", "value"], [row]))
    writer.write(tmp_path / "sp", durable=False)
    assert values(tmp_path / "sp", "op") == {(1, "x"): Row(n=1, inner=[Row(m=2)])}


def test_rows_can_be_converted_on_the_way(tmp_path: Path) -> None:
    frame = Frame(["key", "value"], [{"key": "7", "value": 3}])
    writer = SavepointWriter.new(16).with_keyed_state("op", VALUE, frame, key=int, value=lambda n: SimpleNamespace(n=n))
    writer.write(tmp_path / "sp", durable=False)
    assert values(tmp_path / "sp", "op") == {7: SimpleNamespace(n=3)}


# --- from an existing one


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5, 16])
def test_one_value_is_changed_and_all_else_stays(job: OldJob, tmp_path: Path, parallelism: int) -> None:
    existing(job).change("a", "value", 7, "repaired").change("a", "value", 8, None).change(
        "a", "value", 99, "new"
    ).write(tmp_path / "sp", durable=False)
    expected: dict[Any, Any] = {key: ("a", key, 1) for key in range(20)} | {7: "repaired", 99: "new"}
    del expected[8]
    assert values(tmp_path / "sp", "a", parallelism) == expected
    assert values(tmp_path / "sp", "b", parallelism) == {key: ("b", key, 1) for key in range(20)}
    found = states(tmp_path / "sp", "a", parallelism)
    assert sorted(t for state in found for t in state.keyed.event_timers.timers()) == [
        (100 + key, key, None) for key in range(20)
    ]
    assert {key: each for state in found for key, each in state.lists().items()} == {k: [0, 1] for k in range(20)}
    elements = [each for state in found for each in state.unkeyed.committed_list("offsets")]
    assert sorted(elements) == [(epoch, index) for epoch in range(2) for index in range(3)]
    assert all(state.unkeyed.committed_broadcast("rules") == {"epoch": 1} for state in found)


def test_what_is_not_state_stays_too(job: OldJob, tmp_path: Path) -> None:
    existing(job).change("a", "value", 7, 0).write(tmp_path / "sp", durable=False)
    opened = open_savepoint(tmp_path / "sp")
    before, after = job.manifest, opened.manifest
    assert [record.watermarks for record in after.partitions] == [record.watermarks for record in before.partitions]
    assert (after.epoch, after.job_id, after.committables) == (before.epoch, before.job_id, before.committables)
    assert len(FinishedSplits.restore(opened.layout, "src", after.sources["src"].finished_splits)) == 600
    assert open_savepoint(str(job.layout.root)).manifest == before, "the one it was made from is as it was"


def test_output_that_was_committed_is_not_committed_again(job: OldJob, tmp_path: Path) -> None:
    write_savepoint(job.layout, job.manifest, tmp_path / "one", output_committed=True, durable=False)
    SavepointWriter.from_existing(tmp_path / "one").write(tmp_path / "two", durable=False)
    assert open_savepoint(tmp_path / "two").manifest.committables == {}


def test_a_state_is_replaced_and_another_given_to_a_new_operator(job: OldJob, tmp_path: Path) -> None:
    rows = [(row.key, row.value[1] * 2) for row in SavepointReader(str(job.layout.root)).keyed_state("a", "value")]
    writer = existing(job).with_keyed_state("a", VALUE, rows).with_keyed_state("fresh", VALUE, [("x", 1)])
    writer.with_operator_state("a", "offsets", list(range(9))).write(tmp_path / "sp", durable=False)
    for parallelism in (1, 3, 7):
        assert values(tmp_path / "sp", "a", parallelism) == {key: key * 2 for key in range(20)}
        assert values(tmp_path / "sp", "fresh", parallelism) == {"x": 1}
        lists = [each.unkeyed.committed_list("offsets") for each in states(tmp_path / "sp", "a", parallelism)]
        assert sorted(element for elements in lists for element in elements) == list(range(9))
        assert max(map(len, lists)) - min(map(len, lists)) <= 1


def test_a_changed_savepoint_can_be_changed_again(job: OldJob, tmp_path: Path) -> None:
    existing(job).with_keyed_state("fresh", VALUE, [("x", 1)]).write(tmp_path / "one", durable=False)
    again = SavepointWriter.from_existing(tmp_path / "one").change("fresh", "value", "x", 2).change("a", "value", 0, 0)
    again.with_keyed_state("other", VALUE, [("y", 3)]).write(tmp_path / "two", durable=False)
    assert values(tmp_path / "two", "fresh") == {"x": 2}
    assert values(tmp_path / "two", "other") == {"y": 3}
    assert values(tmp_path / "two", "a")[0] == 0


def test_removed_state_is_in_no_file(job: OldJob, tmp_path: Path) -> None:
    existing(job).remove("b").remove("a", "list").write(tmp_path / "sp", durable=False)
    opened = open_savepoint(tmp_path / "sp")
    assert opened.manifest.operators == {"a": "A"}
    assert {info.name for info in SavepointReader(tmp_path / "sp").states()} == {"value", "offsets", "rules", "timers"}
    refs = [ref for record in opened.manifest.partitions for ref in record.snapshots]
    sections = [section for ref in refs for section in read_sections(opened.snapshot_path(ref), ref)]
    assert {section.uid for section in sections} == {"a"} and "list" not in {section.name for section in sections}
    assert values(tmp_path / "sp", "b") == {}


def test_what_is_given_after_a_removal_counts(job: OldJob, tmp_path: Path) -> None:
    descriptor = ListStateDescriptor("value")
    existing(job).remove("a", "value").with_keyed_state("a", descriptor, [(1, [2])]).change("a", "value", 3, [4]).write(
        tmp_path / "sp", durable=False
    )
    assert sorted(SavepointReader(tmp_path / "sp").keyed_state("a", "value")) == [(1, None, [2]), (3, None, [4])]


def test_a_changed_value_keeps_its_expiry(tmp_path: Path) -> None:
    descriptor = ValueStateDescriptor("value")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(10)).build())
    job = OldJob(tmp_path / "job", ["op"], 1)

    def change(job: OldJob) -> None:
        backend = job.of_key("op", "k")
        backend.processing_time_ms = 1000
        backend.get_state(descriptor).update(1)

    job.run_epoch(change)
    existing(job).change("op", "value", "k", 2).write(tmp_path / "sp", durable=False)
    (state,) = states(tmp_path / "sp", "op", 1)
    state.keyed.current_key = "k"
    for now_ms, expected in ((10_999, 2), (11_000, None)):
        state.keyed.processing_time_ms = now_ms
        assert state.keyed.get_state(descriptor).value() == expected


# --- mistakes


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda w: w.change("x", "value", 1, 1), "no state of an operator 'x'"),
        (lambda w: w.change("a", "valeu", 1, 1), "did you mean 'value'"),
        (lambda w: w.change("a", "value", 1, 1, namespace=(0, 1)), "has no namespaces"),
        (lambda w: w.remove("x"), "no state of an operator 'x'"),
        (lambda w: w.remove("a", "x"), "has no state 'x'"),
        (lambda w: w.remove("a", "value").change("a", "value", 1, 1), "was removed"),
        (lambda w: w.with_keyed_state("a", LIST.name, []), "is of kind 'list' in .* but is given as 'value'"),
        (lambda w: w.with_broadcast_state("a", "offsets", {}), "kind 'operator list' .* given as 'broadcast'"),
        (lambda w: w.with_keyed_state("n", VALUE, [(1, 1), (1, 2)]), "key 1: the key comes twice"),
        (lambda w: w.with_keyed_state("n", LIST, [(1, 5)]), "5 does not fit a list state"),
        (lambda w: w.with_keyed_state("n", VALUE, [1]), r"a row is 1; expected \(key, value\)"),
        (lambda w: w.with_keyed_state("n", VALUE, [(1, 1), (2, "w", 1)]), "some rows have a namespace"),
        (lambda w: w.with_keyed_state("n", VALUE, Frame(["k", "v"], [])), "the columns k, v; expected key, value"),
    ],
)
def test_mistakes_are_answered_at_once(job: OldJob, act: Any, expected: str) -> None:
    with pytest.raises(StateError, match=expected):
        act(existing(job))


def test_a_writer_that_begins_with_nothing_has_nothing_to_change() -> None:
    with pytest.raises(StateError, match="begins with nothing"):
        SavepointWriter.new().change("a", "value", 1, 1)
    with pytest.raises(StateError, match="max_parallelism is 0"):
        SavepointWriter.new(0)


def test_a_target_that_exists_is_left_alone(job: OldJob, tmp_path: Path) -> None:
    (tmp_path / "sp").mkdir()
    (tmp_path / "sp" / "mine").write_text("x")
    with pytest.raises(CheckpointError, match="exists"):
        existing(job).write(tmp_path / "sp")
    assert (tmp_path / "sp" / "mine").read_text() == "x"
    assert {path.name for path in tmp_path.iterdir()} == {"job", "sp"}


def test_values_that_do_not_fit_the_declared_type_are_refused() -> None:
    counts = ValueStateDescriptor("counts", Types.LONG())
    with pytest.raises(TypeMismatchError, match=r"operator 'op': state 'counts' of key 'b' .* expected LONG"):
        SavepointWriter.new(16).with_keyed_state("op", counts, [("a", 1), ("b", "2")])
    SavepointWriter.new(16).with_keyed_state("op", counts, [("a", 1), ("b", "2")], value=int)
