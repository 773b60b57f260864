"""PyFlink's own examples run unchanged, and print what they printed on PyFlink.

Those for the Table API run to their end. They are not copied: the tests run where PyFlink is installed (after
`make bench` or `make parity`, for example).
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.parity.flink_examples import (
    ELSEWHERE,
    ENDLESS_TABLE_EXAMPLES,
    EXAMPLES,
    RECORDED_EXAMPLES,
    TABLE_EXAMPLES,
    examples_folder,
)
from tests.parity.test_programs import as_lines, mapped, printed_by

__all__ = ["mapped"]


def in_single_precision(line: str) -> str:
    """Types.FLOAT(): PyFlink rounds to 32 bits on the way, here numbers stay Python's."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.3f}", line)


def without_value(line: str) -> str:
    """State that lives for a second of the wall clock: what the last timers still find depends on the machine."""
    return re.sub(r", (None|\d+\.\d+)\)$", ", value)", line)


COMPARED_AS = {"state_access": in_single_precision, "event_time_timer": without_value}

FOLDER = examples_folder()
if_installed = pytest.mark.skipif(FOLDER is None, reason="PyFlink and its examples are not installed")


@pytest.mark.spark
@if_installed
@pytest.mark.parametrize("name", EXAMPLES)
def test_as_on_pyflink(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: None) -> None:
    assert FOLDER is not None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # as a user runs it: no directory for checkpoints is named
    found = printed_by(FOLDER / f"{name}.py", 1)
    recorded = as_lines(RECORDED_EXAMPLES / f"{Path(name).name}.txt")
    if name in COMPARED_AS:
        found = Counter(map(COMPARED_AS[name], found.elements()))
        recorded = Counter(map(COMPARED_AS[name], recorded.elements()))
    assert found == recorded


@pytest.mark.spark
@pytest.mark.timeout(600)  # basic_operations is some thirty jobs
@if_installed
@pytest.mark.parametrize("name", TABLE_EXAMPLES)
def test_examples_of_tables_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: None) -> None:
    assert FOLDER is not None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert printed_by(FOLDER.parent / "table" / f"{name}.py", 1)


@if_installed
def test_all_examples_of_tables_are_known() -> None:
    assert FOLDER is not None
    folder = FOLDER.parent / "table"
    names = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.py")}
    names = {name for name in names if not name.endswith("__init__")}
    assert names == {*TABLE_EXAMPLES, *ENDLESS_TABLE_EXAMPLES}


@if_installed
def test_every_example_runs_here_or_has_a_reason() -> None:
    assert FOLDER is not None
    names = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.py")}
    names = {name for name in names if not name.endswith("__init__")}
    assert names - set(EXAMPLES) == {name for name in names if name.startswith(tuple(ELSEWHERE))}
    assert set(EXAMPLES) <= names
