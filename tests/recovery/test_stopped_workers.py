"""Python workers that are stopped, not killed: Spark would wait for them as long as it takes."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.recovery.conftest import MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import ENGINE, ENGINES, Run, assert_same

HEALTH = {"headwater.slot.health-check": "1 s"}


def python_of_spark(run: Run) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """The daemon, and the workers that are forks of it."""
    found = {process.pid: process for process in run.processes() if "pyspark.daemon" in process.cmdline()}
    workers = [process for process in found.values() if process.ppid() in found]
    return [process for process in found.values() if process not in workers], workers


@pytest.mark.parametrize("engine", ENGINES)
def test_stopped_workers_and_their_daemon_are_replaced(engine: str, make_run: MakeRun) -> None:
    """Without shuffles, the resident task is one of them."""
    run = make_run(records=20_000, conf=HEALTH | {ENGINE: engine})
    run.start()
    run.wait_for_epoch(3)
    daemons, workers = python_of_spark(run)
    assert daemons and workers
    for process in (*workers, *daemons):
        os.kill(process.pid, signal.SIGSTOP)
    run.wait_for_end()
    assert_same(run.lines(), expected(run.records))
    assert run.progress()["restarts"] >= 1
    assert not [process for process in workers if process.is_running()]
    assert "gave no sign of life for 1 s (it is stopped)" in run.log()
