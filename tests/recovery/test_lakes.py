"""`kill -9` of the driver at every step of an epoch and of its commit, to files, Delta and Iceberg: the whole output is
compared. Zombies: drivers that are stopped in a commit, replaced, and go on.

In an ordinary run each step of the commit is hit once (those of the epoch are hit in process, in the tests of the
sinks); `make chaos` hits each of all thirty times.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from headwater.testing import STEPS
from tests.recovery.hitting import ROOT, STOP, outlive_a_zombie
from tests.recovery.lake_driver import IN_COMMIT
from tests.recovery.size import KILLS

KILLS_PER_JOB = 13
RECORDS_PER_KILL = 60


def command(kind: str, base: Path, step: str, times: int, count: int) -> list[str]:
    arguments = [kind, str(base / "out"), str(base / "checkpoints"), step, str(times), str(count)]
    return [sys.executable, "-m", "tests.recovery.lake_driver", *arguments]


def driver(kind: str, base: Path, step: str, times: int, count: int) -> int:
    done = subprocess.run(
        command(kind, base, step, times, count), cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
    return done.returncode


def output(kind: str, place: Path) -> Counter[tuple[str, int]]:
    if kind == "files":
        paths = [path for path in place.rglob("*") if path.is_file() and not path.name.startswith(".")]
        lines = [line.split() for path in paths for line in path.read_text().splitlines()]
        return Counter((key, int(number)) for key, number in lines)
    if kind == "delta":
        table = DeltaTable(str(place)).to_pyarrow_table()
    else:
        properties = {"type": "sql", "uri": f"sqlite:///{place}/catalogue.db", "warehouse": f"file://{place}/lake"}
        table = load_catalog("test", **properties).load_table("shop.counts").scan().to_arrow()
    return Counter((row["key"], row["n"]) for row in table.to_pylist())


def expected(count: int) -> Counter[tuple[str, int]]:
    return Counter((f"k{key}", n) for key in range(7) for n in range(1, len(range(key, count, 7)) + 1))


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
@pytest.mark.parametrize("kind", IN_COMMIT)
def test_drivers_killed_at_every_step(tmp_path: Path, kind: str) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 30)))
    print(f"CHAOS_SEED={seed}")
    dice = random.Random(seed)
    of_epoch = STEPS if KILLS > 1 else ("manifest-written",)
    steps = [step for step in (*of_epoch, *IN_COMMIT[kind]) for _ in range(KILLS)]
    dice.shuffle(steps)
    killed: Counter[str] = Counter()
    left = steps
    for number in itertools.count():
        some, left = left[:KILLS_PER_JOB], left[KILLS_PER_JOB:]
        base = tmp_path / str(number)
        base.mkdir()
        count = RECORDS_PER_KILL * (len(some) + 1)
        for step in some:
            if driver(kind, base, step, dice.randint(1, 2), count) != 0:
                killed[step] += 1
            elif number < 2 * len(steps):
                left = [*left, step]  # the job ended before it got there: another one will
        assert driver(kind, base, "none", 0, count) == 0
        assert output(kind, base / "out") == expected(count), f"after kills at {some}"
        print(f"{kind}: {sum(killed.values())} drivers killed at {dict(killed)}; each record counted once", flush=True)
        if not left:
            break
    assert set(killed) == set(steps) and min(killed.values()) >= KILLS, killed


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("kind", "step"),
    [("files", "before-grow"), ("files", "before-rename"), ("delta", "before-append"), ("iceberg", "before-append")],
)
def test_a_stopped_driver_that_goes_on_later_changes_nothing(tmp_path: Path, kind: str, step: str) -> None:
    """It is stopped inside a commit; its lock is taken away, as if its lease were over; another driver ends the job."""
    count = 300

    def end() -> None:
        assert driver(kind, tmp_path, "none", 0, count) == 0

    def check() -> None:
        assert output(kind, tmp_path / "out") == expected(count)

    stopping = command(kind, tmp_path, STOP + step, 2, count)
    outlive_a_zombie(stopping, tmp_path / "checkpoints", end, check)
