"""`make demo`, shorter: a slot is killed, the job recovers, and the last line proves it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
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
    assert re.search(r"dashboard at http://127\.0\.0\.1:\d+", ended.stdout)


@pytest.mark.timeout(240)
def test_the_live_demo_serves_its_job_until_it_is_interrupted(tmp_path: Path) -> None:
    environ = os.environ | {"HEADWATER_STATE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT), "HEADWATER_REST_PORT": "0"}
    demo = subprocess.Popen(
        [sys.executable, "-m", "headwater.demo", "--live", "--rate", "1000"],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.stdout is not None
    try:
        printed = ""
        while (found := re.search(r"Dashboard at (http://127\.0\.0\.1:\d+)", printed)) is None:
            line = demo.stdout.readline()
            assert line, f"the demo ended: {printed}"
            printed += line
        with urllib.request.urlopen(f"{found[1]}/jobs/overview", timeout=30) as answer:
            (job,) = json.load(answer)["jobs"]
        assert (job["name"], job["state"]) == ("headwater demo", "RUNNING")
        with urllib.request.urlopen(f"{found[1]}/metrics", timeout=30) as answer:
            assert b"flink_taskmanager_job_task_numRecordsIn" in answer.read()
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=100)
        assert demo.returncode == 0 and "Cancelling the job" in rest, rest
    finally:
        demo.kill()
        demo.wait()
