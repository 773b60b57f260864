"""Programs written for PyFlink give on headwater what they gave on PyFlink.

`tests/parity/recorded` has what the programs printed on PyFlink (`make parity` records anew), as sorted lines: outputs
are compared as multisets. All programs run in this process, on the one Spark of the test run.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.run import run_program
from headwater.common.config.session_defaults import set_session_defaults
from headwater.common.configuration import Configuration
from headwater.compat import pyflink_imports

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
RECORDED = HERE / "recorded"
ONLY_ALONE = re.compile(r"^# parity: parallelism 1, because: (.+)$", re.MULTILINE)
PARTITION_PREFIX = re.compile(r"^\d+> ")
"""What print() puts before a line if there are several partitions; PyFlink ran with one."""

KNOWN_DIFFERENCES = {
    "process_without_timestamps": "ctx.timestamp() is None where there is none, as documented; PyFlink gives -2**63",
    "window_session_bridge": "PyFlink loses the reduced value of one window where a record joins two sessions",
    "print_rows": "print() shows rows as Flink does in Java and SQL: +I[a, 1] and null; PyFlink shows +I[a,1] and None",
}
"""Programs that give something else than on PyFlink, on purpose; `docs/pyflink.md` has them too."""

NAMES = [path.stem for path in PROGRAMS]
SPREADABLE = [path.stem for path in PROGRAMS if not ONLY_ALONE.search(path.read_text(encoding="utf-8"))]


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`import pyflink` gives headwater, and what a program does to the process is undone."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    pyflink_imports.install()
    yield
    pyflink_imports.uninstall()
    set_session_defaults(Configuration())


def printed_by(path: Path, parallelism: int, **more: str) -> Counter[str]:
    settings = {
        "parallelism.default": parallelism,
        "headwater.master": "local[2]",
        **more,
    }
    set_session_defaults(Configuration.from_dict(settings))
    printed, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
        code = run_program(str(path), path.read_bytes(), [])
    assert code == 0, complaints.getvalue()
    return Counter(PARTITION_PREFIX.sub("", line) for line in printed.getvalue().splitlines())


def output_of(name: str, parallelism: int, checkpoints: Path) -> Counter[str]:
    more = {"execution.checkpointing.dir": str(checkpoints)}
    return printed_by(HERE / "programs" / f"{name}.py", parallelism, **more)


def as_lines(path: Path) -> Counter[str]:
    return Counter(path.read_text(encoding="utf-8").splitlines())


def recorded(name: str) -> Counter[str]:
    return as_lines(RECORDED / f"{name}.txt")


def cases(names: list[str]) -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=reason))
        if (reason := KNOWN_DIFFERENCES.get(name))
        else name
        for name in names
    ]


@pytest.mark.spark
@pytest.mark.parametrize("name", cases(NAMES))
def test_as_on_pyflink(name: str, tmp_path: Path, mapped: None) -> None:
    assert output_of(name, 1, tmp_path) == recorded(name)


@pytest.mark.spark
@pytest.mark.parametrize("name", cases(SPREADABLE))
def test_as_on_pyflink_in_two_partitions(name: str, tmp_path: Path, mapped: None) -> None:
    assert output_of(name, 2, tmp_path) == recorded(name)


def test_there_are_enough_programs_and_all_are_recorded() -> None:
    assert len(NAMES) >= 40
    assert sorted(path.stem for path in RECORDED.glob("*.txt")) == NAMES
