"""`kill -9` of the driver at every step of an epoch and of its commit to PostgreSQL: the whole output is compared.

In an ordinary run each step is hit once; `make chaos` hits each of them thirty times.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common import Row
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.jdbc import postgres as dialect
from headwater.testing import STEPS, in_process
from headwater.testing.sink_contract import SinkCase, committer_of, write
from tests.postgres_server import PostgresServer, postgres_server
from tests.recovery.jdbc_driver import IN_COMMIT
from tests.recovery.size import DOWN_SECONDS, KILLS
from tests.unit.connectors.jdbc import tables
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
KILLS_PER_JOB = 13
RECORDS_PER_KILL = 60
"""Three epochs: a driver gets that far before the next kill at the latest."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def database(server: PostgresServer) -> str:
    uri = server.new_database()
    tables.run(uri, "CREATE TABLE numbers (i bigint, text text)")
    return uri


def driver(uri: str, directory: Path, step: str, times: int, records: int) -> int:
    command = [sys.executable, "-m", "tests.recovery.jdbc_driver", uri, str(directory), step, str(times), str(records)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
    return done.returncode


@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
def test_drivers_killed_at_every_step(tmp_path: Path, server: PostgresServer) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 30)))
    print(f"CHAOS_SEED={seed}")
    dice = random.Random(seed)
    steps = [step for step in (*STEPS, *IN_COMMIT) for _ in range(KILLS)]
    dice.shuffle(steps)
    killed: Counter[str] = Counter()
    for number, first in enumerate(range(0, len(steps), KILLS_PER_JOB)):
        killed += one_job(tmp_path / str(number), server, steps[first : first + KILLS_PER_JOB], dice)
    assert set(killed) == {*STEPS, *IN_COMMIT} and min(killed.values()) >= KILLS, killed


def one_job(directory: Path, server: PostgresServer, steps: list[str], dice: random.Random) -> Counter[str]:
    """Run one job whose drivers are killed at these steps, and compare its output."""
    count = RECORDS_PER_KILL * (len(steps) + 1)
    killed: Counter[str] = Counter()
    uri = server.new_database()
    tables.run(uri, "CREATE TABLE numbers (i bigint, text text)")
    for step in steps:
        if driver(uri, directory, step, dice.randint(1, 2), count) != 0:
            killed[step] += 1
    assert driver(uri, directory, "none", 0, count) == 0
    found = Counter(tables.run(uri, "SELECT i, text FROM numbers"))
    assert found == counted(count), f"kills at {steps}"
    print(f"{sum(killed.values())} drivers killed at {dict(killed)}; {count} records counted once", flush=True)
    return killed


def counted(count: int) -> Counter[tuple[int, str]]:
    return Counter((key, str(number)) for key in range(7) for number in range(1, len(range(key, count, 7)) + 1))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("at", ["begin", "manifest-written"])
def test_a_database_that_is_down_for_a_while_costs_only_time(server: PostgresServer, database: str, at: str) -> None:
    def go_down(_: object) -> None:
        server.stop()
        threading.Timer(DOWN_SECONDS, server.start).start()

    with in_process(epoch_records=40) as here:
        here.call(go_down, epoch=3, at=at)
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.from_sequence(0, 399).map(lambda n: Row(n, str(n)), tables.ROW).add_sink(tables.sink(database))
        env.execute("outage")
    found = tables.run(database, "SELECT i, text FROM numbers")
    assert sorted(found) == [(number, str(number)) for number in range(400)]


@pytest.mark.parametrize("step", IN_COMMIT)
def test_a_stopped_driver_that_goes_on_later_writes_nothing_twice(
    database: str, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGSTOP in the middle of a commit; another driver commits this epoch and the next one; then SIGCONT."""
    monkeypatch.setattr(dialect, "LOCK_SECONDS", 1)
    files = StoredOutputFiles(CheckpointLayout(str(tmp_path)), "sink")
    case = SinkCase(tables.sink(database), lambda: [], files=files)
    epoch_1 = write(case, [Row(n, "first") for n in range(100)], 1)
    epoch_2 = write(case, [Row(n, "second") for n in range(100)], 2)
    committer_of(case).commit(write(case, [Row(0, "zero")], 0))
    command = [sys.executable, "-m", "tests.recovery.jdbc_zombie", database, str(tmp_path), step]
    zombie = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert zombie.stdin is not None
        pickle.dump(epoch_1, zombie.stdin)
        zombie.stdin.close()
        wait_until(lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_STOPPED)
        successor = committer_of(case)
        successor.commit(epoch_1)
        successor.commit(epoch_2)
        os.kill(zombie.pid, signal.SIGCONT)
        zombie.wait(60)
    finally:
        zombie.kill()
        zombie.wait()
    expected = Counter([(0, "zero"), *((n, text) for n in range(100) for text in ("first", "second"))])
    assert Counter(tables.run(database, "SELECT i, text FROM numbers")) == expected
