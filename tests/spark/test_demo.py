"""`make demo`, shorter: a slot is killed, the job recovers, and the last line proves it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(240)
def test_the_demo_ends_with_its_proof(tmp_path: Path) -> None:
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "headwater.demo", "--payments", "200000", "--rate", "20000"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "200,000 in, 200,000 counted, 1 slot killed, 0 lost, 0 twice"
    killed = re.search(r"kill -9 (\d+)", ended.stdout)
    replaced = re.search(r"slot (\d+) restored its state", ended.stdout)
    assert killed is not None
    assert replaced is not None
    assert killed[1] != replaced[1]
