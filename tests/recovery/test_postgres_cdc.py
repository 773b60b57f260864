"""Change data of PostgreSQL while drivers get `kill -9`, at steps and at random, and others write: the changelog is the
table.

In an ordinary run a few drivers are killed; `make chaos` kills thirty at each step.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headwater.common import Row, RowKind
from headwater.testing import STEPS
from tests.postgres_server import postgres_server
from tests.recovery.size import KILLS
from tests.unit.connectors.cdc import Table
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.postgres_cdc.changelog import CREATE, FULL, Writer
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
RANDOM = "at random"


KILLS_PER_JOB = 24


@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
def test_drivers_killed_at_every_step_and_at_random(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 30)))
    print(f"CHAOS_SEED={seed}")
    dice = random.Random(seed)
    steps = [*STEPS, RANDOM] * KILLS if KILLS > 1 else [*dice.sample(STEPS, 3), RANDOM]
    dice.shuffle(steps)
    with postgres_server() as server:
        server.set_and_restart(wal_level="logical")
        for first in range(0, len(steps), KILLS_PER_JOB):
            some = steps[first : first + KILLS_PER_JOB]
            one_job(server.new_database(), tmp_path / str(first), some, dice)
    print(f"{len(steps)} drivers killed at {dict(Counter(steps))}")


def one_job(uri: str, directory: Path, steps: list[str], dice: random.Random) -> None:
    tables.run(uri, CREATE, FULL, "INSERT INTO items SELECT n, 'n', n FROM generate_series(1, 400) n")
    tables.run(uri, "CREATE TABLE changes (number bigserial PRIMARY KEY, kind text, id int, name text)")
    writer = Writer(uri, dice.randrange(1 << 30))
    writer.start()
    command = [sys.executable, "-m", "tests.recovery.cdc_driver", uri, str(directory)]
    for step in steps:
        driver = subprocess.Popen(
            [*command, step, str(dice.randint(1, 3))], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            if step == RANDOM:
                before = written(uri)
                wait_until(lambda before=before: written(uri) > before, "output")  # type: ignore[misc]
                time.sleep(dice.random() / 2)
                driver.kill()
            assert driver.wait(120) == -signal.SIGKILL, f"the driver ended by itself before {step}"
        finally:
            driver.kill()
            driver.wait()
    ((lsn,),) = tables.run(uri, "SELECT pg_current_wal_lsn()::text")
    writer.stop()
    driver = subprocess.Popen([*command, "none", "0"], cwd=ROOT)
    try:
        wait_until(lambda: applied(uri) == tables.run(uri, "SELECT id, name FROM items ORDER BY 1"), "the table")
        slot = f"slot_name = 'slot_{urlsplit(uri).path[1:]}'"
        moved = f"SELECT confirmed_flush_lsn >= '{lsn}'::pg_lsn - 1000 FROM pg_replication_slots WHERE {slot}"
        wait_until(lambda: tables.run(uri, moved) == [(True,)], "the slot to move")
    finally:
        driver.kill()
        driver.wait()
    print(f"{len(steps)} drivers killed; {written(uri)} changes of {writer.transactions} transactions, all exact")


def written(uri: str) -> int:
    return int(tables.run(uri, "SELECT coalesce(max(number), 0) FROM changes")[0][0])


def applied(uri: str) -> list[tuple[int, str]]:
    table = Table()
    for kind, *values in tables.run(uri, "SELECT kind, id, name FROM changes ORDER BY number"):
        table.apply(Row.of_kind(RowKind[kind], *values))
    return sorted(table.rows.values())  # type: ignore[arg-type]
