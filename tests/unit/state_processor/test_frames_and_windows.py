"""State of every kind from DataFrames, and windows that get other contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import StateError
from headwater.operators.window.base import PANES
from headwater.state_processor import SavepointReader, SavepointWriter
from tests.unit.checkpoint.old_job import OldJob
from tests.unit.state_processor.stored_windows import same_for_all_keys, sessions, with_elements_and_merged
from tests.unit.state_processor.test_writer import Frame, spark_row


def frame(*columns: str, rows: list[tuple[Any, ...]]) -> Frame:
    return Frame(list(columns), [dict(zip(columns, row, strict=True)) for row in rows])


def test_timers_of_a_dataframe(tmp_path: Path) -> None:
    both = frame(
        "time_domain", "timestamp_ms", "key", "namespace",
        rows=[("event", 5, "a", None), ("processing", 7, "a", None), ("event", 6, spark_row(x=1, y=2), [0, 10])],
    )  # fmt: skip
    writer = SavepointWriter.new(16).with_timers("op", both).with_timers("op", both, event_time=False)
    writer.with_timers("other", [(1, "a"), (2, "b", ("w", 1))])
    writer.write(tmp_path / "sp", durable=False)
    reader = SavepointReader(tmp_path / "sp")
    assert sorted(reader.timers("op"), key=repr) == [
        ("event", 5, "a", None), ("event", 6, (1, 2), (0, 10)), ("processing", 7, "a", None),
    ]  # fmt: skip
    assert sorted(reader.timers("other")) == [("event", 1, "a", None), ("event", 2, "b", ("w", 1))]


def test_operator_and_broadcast_state_of_dataframes(tmp_path: Path) -> None:
    writer = SavepointWriter.new(16)
    writer.with_operator_state("op", "list", frame("partition", "value", rows=[(0, 1), (5, spark_row(_1="a", _2=2))]))
    writer.with_broadcast_state("op", "rules", frame("key", "value", rows=[(spark_row(a=1), [1]), ("all", 2)]))
    writer.write(tmp_path / "sp", durable=False)
    reader = SavepointReader(tmp_path / "sp")
    found = [row.value for row in reader.operator_state("op", "list")]
    assert sorted(found, key=repr) == [("a", 2), 1], "Spark's names for the fields of a tuple"
    assert type(next(each for each in found if each != 1)) is tuple
    assert dict(reader.broadcast_state("op", "rules")) == {(1,): [1], "all": 2}


@pytest.mark.parametrize(
    ("give", "expected"),
    [
        (lambda w, f: w.with_timers("op", f), "timestamp_ms, key and maybe time_domain, namespace"),
        (lambda w, f: w.with_operator_state("op", "s", f), "value and maybe partition"),
        (lambda w, f: w.with_broadcast_state("op", "s", f), "key, value: choose"),
        (lambda w, f: w.with_timers("op", [5]), "a timer is 5; expected"),
    ],
)
def test_other_columns_are_refused(give: Any, expected: str) -> None:
    with pytest.raises(StateError, match=expected):
        give(SavepointWriter.new(16), frame("kye", rows=[]))


# --- windows


def changed(tmp_path: Path, fill: Any, *changes: Any, **more: Any) -> list[Any]:
    job = OldJob(tmp_path / "job", ["w"], 2)
    job.run_epoch(lambda job: fill(lambda key: job.of_key("w", key)))
    writer = SavepointWriter.from_existing(str(job.layout.root))
    for rows in changes:
        writer.change_windows("w", rows, **more)
    writer.write(tmp_path / "sp", durable=False)
    return sorted(SavepointReader(tmp_path / "sp").windows("w"))


def test_windows_that_are_the_same_for_all_keys(tmp_path: Path) -> None:
    rows = frame("key", "start_ms", "contents", rows=[("a", 60, 70)])
    assert changed(tmp_path, same_for_all_keys, rows, [("b", 0, None, 80)], contents=lambda value: value + 1) == [
        ("a", 0, None, 1), ("a", 60, None, 71), ("b", 0, None, 81), ("b", 60, None, 2),
    ]  # fmt: skip


def test_windows_with_elements_and_merged_ones(tmp_path: Path) -> None:
    assert changed(tmp_path, with_elements_and_merged, [("a", 0, 25, [2])]) == [("a", 0, 25, [2]), ("b", 30, 40, [3])]


@pytest.mark.parametrize("buffered", [False, True])
def test_sessions(tmp_path: Path, buffered: bool) -> None:
    expected = [("a", 0, 10, [1]), ("a", 40, 70, [9])]
    assert changed(tmp_path, sessions(buffered=buffered), [("a", 40, 70, [9])], [("a", 0, 10, [1])]) == expected


def test_windows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    def fill(of_key: Any) -> None:
        of_key("a").get_folded_panes(PANES).reduce(["a"], [0], [1], max)

    with pytest.raises(StateError, match=r"no window of key 'a' from 60 to None; windows can be changed, not made"):
        changed(tmp_path, fill, [("a", 60, None, 1)])
    writer = SavepointWriter.from_existing(str(tmp_path / "job"))
    with pytest.raises(StateError, match="is to contain None"):
        writer.change_windows("w", [("a", 0, None, None)])
    with pytest.raises(StateError, match=r"a window is \('a', 1\); expected \(key, start_ms, end_ms, contents\)"):
        writer.change_windows("w", [("a", 1)])
    with pytest.raises(StateError, match="begins with nothing"):
        SavepointWriter.new(16).change_windows("w", [])
