"""The same program on a Spark standalone cluster: a master and two workers, as processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.recovery.conftest import MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import MARK, assert_same

HOME = Path(pyspark.__file__).parent
WORKERS = 2


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster with two workers of one core each."""
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    environ = os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        MARK: str(tmp_path / "run-0"),  # executors are children of the workers, not of the driver
    }
    commands = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    commands += [
        ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0",
         "--work-dir", str(tmp_path / f"work-{number}"), url]
        for number in range(WORKERS)
    ]  # fmt: skip
    started = []
    with open(tmp_path / "cluster.log", "wb") as log:
        for name, *arguments in commands:
            started.append(
                subprocess.Popen(
                    [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
                    env=environ, stdout=log, stderr=log, start_new_session=True,
                )
            )  # fmt: skip
            if name == "master.Master":
                _wait_for(port)
    yield url
    for process in reversed(started):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _wait_for(port: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the master does not listen"
            time.sleep(0.1)


def test_slots_are_spread_over_the_workers_and_a_killed_executor_is_replaced(make_run: MakeRun, master: str) -> None:
    conf = {"headwater.master": master, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    run = make_run(records=30_000, conf=conf)
    run.start()
    run.wait_for_epoch(3)
    run.wait_until(lambda: len(run.slots_by_executor()) == WORKERS, "an executor on each worker")
    assert all(run.slots_by_executor().values()), "an executor has no slot"
    os.kill(run.executors()[0], signal.SIGKILL)
    run.wait_for_end()
    assert_same(run.lines(), expected(run.records))
