"""Real servers and real drivers, without Spark: a program whose output shows a record that is lost or comes twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from headwater.common.machine.processes import start_time
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.server.cluster import RunRequest
from headwater.server.jobs.job_folder import JobFolder, job_ids
from headwater.server.jobs.session_jobs import SessionJobs
from headwater.testing import CollectingSink
from tests.waiting import wait_until

PROGRAM = """
import sys
from headwater.common import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.testing import CollectingSink

out, count, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
env = StreamExecutionEnvironment.get_execution_environment()
numbers = DataGeneratorSource(lambda i: i, count=count, rate_per_second=rate)
pairs = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").map(lambda n: (n % 3, 1))
pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).sink_to(CollectingSink(out))
print("it begins", flush=True)
env.execute("counts")
"""
IN_PROCESS = {"headwater.master": "in-process", "headwater.epoch.duration": "50 ms", "parallelism.default": "1"}


def expected(count: int) -> list[tuple[int, int]]:
    """The count of each key after each number, in whatever order they came."""
    return sorted((number % 3, number // 3 + 1) for number in range(count))


@contextlib.contextmanager
def server_here(storage: Path, attempts: int = 3, history: int = 100) -> Iterator[SessionJobs]:
    """A server in this process. Its drivers are processes of their own, and are ended with the test."""
    jobs = SessionJobs(storage, FixedDelay(attempts, 100), history)
    jobs.start("http://here:1")
    try:
        wait_until(lambda: jobs.leader() is None, "it leads")
        yield jobs
    finally:
        jobs.stop()


class ServerProcess:
    """`headwater server` in a process of its own."""

    def __init__(self, storage: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "server", "--port", "0", "--storage", str(storage), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    @property
    def address(self) -> str:
        """Where it listens. Waits for it."""
        if not hasattr(self, "_address"):
            assert self.process.stdout is not None
            self._address = self.process.stdout.readline().strip().removeprefix("headwater: server at ")
        return self._address

    def end(self, signal_: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal_)
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()


class Storage:
    """A server's storage, and what a test looks at in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "storage"
        self.path.mkdir(mode=0o700)
        self.out = tmp_path / "out"
        self.program = tmp_path / "0_counts.py"  # as an upload is named
        self.program.write_text(PROGRAM)

    def request(self, count: int, rate: int, **more: str) -> RunRequest:
        return RunRequest(program_args=(str(self.out), str(count), str(rate)), configuration=IN_PROCESS | more)

    def submitted_by_hand(self, count: int, rate: int) -> JobFolder:
        """A job in the storage before there is a server."""
        from headwater.server.jobs.session_jobs import _submitted

        folder = JobFolder(self.path, "a" * 32)
        folder.create()
        (folder.files / "counts.py").write_text(PROGRAM)
        folder.submit(_submitted(folder.job_id, self.program, self.request(count, rate), ["counts.py"]))
        return folder

    def results(self) -> list[tuple[int, int]]:
        return sorted(CollectingSink(str(self.out)).results())

    def folder(self) -> JobFolder:
        (job_id,) = job_ids(self.path)
        return JobFolder(self.path, job_id)

    def driver(self, number: int = 1) -> int:
        """The pid of a start's driver, once it has begun its job."""
        wait_until(lambda: any(s.number == number and s.job for s in self.folder().starts()), f"driver {number} begins")
        record = self.folder().start(number).driver
        assert record is not None
        return record.pid

    def end_drivers(self) -> None:
        for job_id in job_ids(self.path):
            for start in JobFolder(self.path, job_id).starts():
                if start.driver is not None and start_time(start.driver.pid) == start.driver.start_time:
                    os.kill(start.driver.pid, signal.SIGKILL)
