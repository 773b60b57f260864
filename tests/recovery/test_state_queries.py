"""Readers of state while its slots are killed and stopped: no torn value, none that was not committed.

`STATE_LOAD=full` is the long version: 200 readers for a minute, and slots that are sabotaged, to see the oracle notice.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from headwater.common.query_error import MAY_HAVE_MOVED, QueryError, QueryProblem
from headwater.queryable_state.control_locator import ControlLocator
from headwater.queryable_state.reader import THAT_PASS, StateReader, StateValue
from headwater.queryable_state.sql import run_sql
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from headwater.runtime.slot.process import PROCESS_NAME
from tests.recovery.queried_job import KEYS, OPERATOR, SABOTAGE
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("STATE_LOAD") == "full"
READERS, SECONDS, PAUSE_SECONDS, BETWEEN_KILLS = (200, 60.0, 0.2, 10) if FULL else (20, 12.0, 0.05, 3)
PATIENCE_SECONDS = 0.25
"""Readers ask once, as over HTTP, and wait so long for the answer: a value, or that the slot is away (503)."""


class Oracle:
    """Notes every value that was read as a committed one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drawn: dict[tuple[str, int], int] = {}
        self._of_epoch: dict[tuple[str, int], int] = {}
        self._last_epoch: dict[tuple[int, str], int] = {}
        self.served: set[int] = set()
        """The readers that got a value."""
        self.wrong: list[str] = []
        self.values = 0
        self.latencies: list[float] = []
        """Of values."""
        self.refusals: list[float] = []
        """How long readers waited for a 503 or 429, or in vain."""
        self.problems: dict[QueryProblem, int] = {}

    def saw(self, found: StateValue, reader: int) -> None:
        count, drawn, again = found.value if isinstance(found.value, list) else _of_map(found.value)
        assert found.epoch is not None
        with self._lock:
            self.values += 1
            self.served.add(reader)
            before = self._last_epoch.get((reader, found.key), -1)
            if found.epoch < before:
                self.wrong.append(f"went back: {found}, but the same reader had seen epoch {before}")
            self._last_epoch[reader, found.key] = found.epoch
            if count != again:
                self.wrong.append(f"torn: {found}")
            if self._drawn.setdefault((found.key, count), drawn) != drawn:
                self.wrong.append(f"not committed: {found}, but it was {self._drawn[found.key, count]}")
            if self._of_epoch.setdefault((found.key, found.epoch), count) != count:
                self.wrong.append(f"of another epoch: {found}, but it was {self._of_epoch[found.key, found.epoch]}")

    def took(self, seconds: float) -> None:
        with self._lock:
            self.latencies.append(seconds)

    def failed(self, error: QueryError, seconds: float) -> None:
        with self._lock:
            self.refusals.append(seconds)
            self.problems[error.problem] = self.problems.get(error.problem, 0) + 1

    def report(self) -> str:
        with self._lock:
            values, refusals = sorted(self.latencies), sorted(self.refusals)
        problems = {problem.code: count for problem, count in self.problems.items()}
        return (
            f"{len(values)} values: {quantiles(values)}; {len(refusals)} refusals: {quantiles(refusals)}; "
            f"both: {quantiles(sorted(values + refusals))}; problems {problems}"
        )


def quantiles(ordered: list[float]) -> str:
    parts = (50, 95, 99, 99.9) if ordered else ()
    return ", ".join(f"p{part:g} {ordered[int(len(ordered) * part / 100)] * 1000:.1f} ms" for part in parts)


def _of_map(value: dict[str, int]) -> tuple[int, int, int]:
    return value["first"], value["drawn"], value["last"]


class QueriedJob:
    """The job in a process of its own, and its slots."""

    def __init__(self, directory: Path, backend: str, program: str, *arguments: object) -> None:
        self._state = directory / "state"
        settings = {
            "headwater.state.dir": self._state,
            "headwater.slot.health-check": "1 s",
            "headwater.rest.enabled": "false",
            "state.backend.type": backend,
            "execution.checkpointing.interval": "200 ms",
            "restart-strategy.fixed-delay.delay": "50 ms",
            "restart-strategy.fixed-delay.attempts": 1000,
        }
        options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        command = [sys.executable, "-m", "headwater", "run", "-p", "2", "-c", str(directory / "job"), *options]
        self._command = [*command, str(ROOT / "tests/recovery" / program), *map(str, arguments)]
        self._log_path = directory / "log"
        self._log = self._log_path.open("w")
        self.start()

    def start(self) -> None:
        """Start the driver. After `kill_driver` it goes on from the last checkpoint."""
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def kill_driver(self) -> None:
        self._process.kill()
        self._process.wait()

    def reader(self, seconds: float = 30.0, retried: frozenset[QueryProblem] = THAT_PASS) -> StateReader:
        directory = RunDirectory(str(self._state))
        wait_until(lambda: bool(self._cards(directory)), lambda: f"the job: {self._log_path.read_text()}", 120)
        return StateReader(ControlLocator(directory, self._cards(directory)[0]), seconds, retried=retried)

    def _cards(self, directory: RunDirectory) -> list[JobCard]:
        return [card for card in directory.cards() if card.pid == self._process.pid]

    def slots(self) -> list[psutil.Process]:
        """Of this job: they are below its driver's JVM, or were."""
        found = []
        for process in psutil.process_iter(["name"]):
            with contextlib.suppress(psutil.Error):
                if process.info["name"].startswith(PROCESS_NAME[:15]) and str(ROOT) == process.cwd():
                    found.append(process)
        return [process for process in found if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return str(self._state) in " ".join(process.environ().values()) or self._is_below(process)
        return False

    def _is_below(self, process: psutil.Process) -> bool:
        own = {child.pid for child in psutil.Process(self._process.pid).children(recursive=True)}
        return process.pid in own or bool({parent.pid for parent in process.parents()} & own)

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


@pytest.fixture(params=["heap", "rocksdb"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QueriedJob]:
    found = QueriedJob(tmp_path, request.param, "queried_job.py", 2000)
    yield found
    found.close()


def read_on(reader: StateReader, oracle: Oracle, done: threading.Event, seed: int) -> None:
    chosen = random.Random(seed)
    while not done.is_set():
        key, state = f"key-{chosen.randrange(KEYS):02d}", chosen.choice(["value", "map"])
        started = time.monotonic()
        try:
            (found,) = reader.get(OPERATOR, state, [key])
        except QueryError as error:
            oracle.failed(error, time.monotonic() - started)
        else:
            oracle.took(time.monotonic() - started)
            if found.found:
                oracle.saw(found, seed)
        done.wait(PAUSE_SECONDS * 2 * chosen.random())


def disturb(job: QueriedJob, seconds: float) -> int:
    """Kill a slot, stop another, and so on; the stopped ones wake in the end. Return how many slots were hit."""
    until, hits = time.monotonic() + seconds, 0
    stopped: list[psutil.Process] = []
    try:
        while time.monotonic() < until:
            threading.Event().wait(BETWEEN_KILLS)
            slots = job.slots()
            if slots:
                victim = slots[hits % len(slots)]
                with contextlib.suppress(psutil.Error):
                    victim.send_signal((signal.SIGKILL, signal.SIGSTOP)[hits % 2])
                    stopped += [victim] if hits % 2 else []
                    hits += 1
    finally:
        for victim in stopped:
            with contextlib.suppress(psutil.Error):  # most were ended when they did not answer
                victim.send_signal(signal.SIGCONT)
    return hits


@pytest.mark.timeout(600)
def test_readers_see_committed_values_only_while_slots_die(job: QueriedJob) -> None:
    oracle, hits = read_while_slots_die(job)
    assert not oracle.wrong, oracle.wrong[:5]
    assert hits >= 2 and oracle.values > 100  # there was something to see
    assert set(oracle.problems) <= MAY_HAVE_MOVED | {QueryProblem.TOO_MANY_READERS}
    assert {problem.status for problem in oracle.problems} <= {429, 503}
    if FULL:  # timings are printed: they are the machine's
        assert hits >= SECONDS / BETWEEN_KILLS - 2  # finding the slots takes its time, too
        assert oracle.served == set(range(READERS))
        assert oracle.values > sum(oracle.problems.values())  # the rule are values, not refusals
    check_one_epoch(job.reader())


@pytest.mark.skipif(not FULL, reason="STATE_LOAD=full runs it")
def test_the_oracle_notices_values_that_are_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SABOTAGE, "live")
    job = QueriedJob(tmp_path, "heap", "queried_job.py", 2000)
    try:
        oracle, _ = read_while_slots_die(job, 12)
    finally:
        job.close()
    assert oracle.wrong


def read_while_slots_die(job: QueriedJob, seconds: float = SECONDS) -> tuple[Oracle, int]:
    """Return what readers saw, and how many slots were hit meanwhile."""
    reader, oracle, done = job.reader(), Oracle(), threading.Event()
    wait_until(lambda: is_there(reader), "the first checkpoint", 120, 0.1)
    impatient = job.reader(PATIENCE_SECONDS, frozenset())
    threads = [threading.Thread(target=read_on, args=(impatient, oracle, done, seed)) for seed in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        hits = disturb(job, seconds)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    wait_until(lambda: is_there(reader), "the job to go on", 60, 0.1)
    print(f"\n{READERS} readers, {hits} slots hit, {oracle.report()}")
    return oracle, hits


def is_there(reader: StateReader) -> bool:
    with contextlib.suppress(QueryError):
        return reader.get(OPERATOR, "value", ["key-00"])[0].found
    return False


def check_one_epoch(reader: StateReader) -> None:
    """The states of one operator agree at one epoch, over all slots."""
    query = f"""
        select count(*), count(distinct v.key)
        from {OPERATOR}.value v join {OPERATOR}.map m on v.key = m.key
        where m.map_key = 'drawn' and m.value = v.value[2]
    """
    result = run_sql(reader, query)
    assert result.rows == [(KEYS, KEYS)], result
    page: Any = reader.scan(OPERATOR, "value", prefix="key-0", limit=4)
    assert [row.key for row in page.rows] == ["key-00", "key-01", "key-02", "key-03"]
