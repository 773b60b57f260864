"""Each example prints what examples/expected/x.txt says.

They run in this process on the Spark of the test run, as `headwater run examples/x.py` would; one runs as its reader
runs it, as `python examples/x.py` in a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.cli.run import run_program
from headwater.common.config.session_defaults import set_session_defaults
from headwater.common.configuration import Configuration

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
SEVERAL_STREAMS = {"cep_changing_rules", "sensor_averages"}
"""What they print comes from several streams: the lines of each have an order, between two there is none."""


@pytest.fixture
def as_main(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What a program does to the process is undone, and its checkpoints go where nobody looks."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    set_session_defaults(Configuration.from_dict({"headwater.master": "local[2]"}))
    yield
    set_session_defaults(Configuration())


def assert_as_expected(name: str, printed: list[str]) -> None:
    expected = (ROOT / "examples" / "expected" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    if name in SEVERAL_STREAMS:
        printed = sorted(printed)
        expected.sort()
    assert printed == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, as_main: None) -> None:
    path = ROOT / "examples" / f"{name}.py"
    printed, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
        code = run_program(str(path), path.read_bytes(), [])
    assert code == 0, complaints.getvalue()
    assert_as_expected(name, printed.getvalue().splitlines())


def test_an_example_in_a_process_of_its_own(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "fraud_alert.py")],
        cwd=tmp_path,
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert_as_expected("fraud_alert", ended.stdout.splitlines())


def test_there_are_the_examples_that_the_readme_names() -> None:
    assert {"word_count", "sensor_averages", "fraud_alert", "sessionised_clicks"} <= set(EXAMPLES)
