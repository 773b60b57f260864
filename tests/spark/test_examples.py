"""Each example runs as `python examples/x.py` in a process of its own and prints what examples/expected/x.txt says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
SEVERAL_SINKS = {"sensor_averages"}
"""The lines of one sink have an order; between two sinks there is none."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    printed = ended.stdout.splitlines()
    expected = (ROOT / "examples" / "expected" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    if name in SEVERAL_SINKS:
        printed.sort()
        expected.sort()
    assert printed == expected


def test_there_are_the_examples_that_the_readme_names() -> None:
    assert {"word_count", "sensor_averages", "fraud_alert", "sessionised_clicks"} <= set(EXAMPLES)
