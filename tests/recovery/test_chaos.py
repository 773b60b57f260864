"""The state machine job under chaos: real processes, killed and stopped at random moments.

A few faults in `make test`; with `CHAOS=full` (`make chaos`) 100 kills, 50 stops and 10 executors.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from typing import Any

import psutil
import pytest

from tests.recovery.conftest import MakeRun
from tests.recovery.engines_used import engines_of
from tests.recovery.runs import ENGINE, ENGINES, KILLED, Run, assert_same
from tests.recovery.state_machine import RATE, expected
from tests.spark.harness import epochs_of

FULL = os.environ.get("CHAOS") == "full"
SEED = int(os.environ.get("CHAOS_SEED", "1"))
EPOCH_RECORDS = 1_000
QUICK_STOP = 0.3
"""Seconds; a slot that sleeps so long goes on as if nothing had been."""

HEALTH = {"headwater.slot.health-check": "1 s"}


def chaos_run(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, faults: int, engine: str, **conf: Any) -> Run:
    """A job that is long enough for so many faults.

    With `auto`, input comes so slowly that epochs run resident, and with shuffles only after each fault.
    """
    records = max(300_000 if FULL else 20_000, (faults + 5) * (10 if engine == "shuffle" else 6) * EPOCH_RECORDS)
    conf = HEALTH | {ENGINE: engine} | (epochs_of(5_000) if engine == "auto" else {}) | conf
    if engine != "shuffle":  # as fast as can be, it would be over before the third fault
        monkeypatch.setenv(RATE, "2500")
    return make_run(records, EPOCH_RECORDS, module="tests.recovery.state_machine", conf=conf)


def wait_for_more(run: Run) -> bool:
    """Wait until another epoch has its manifest; False if the job is over."""
    epoch = run.epoch()
    run.wait_until(lambda: run.epoch() > epoch or run._started[-1].poll() is not None, "another epoch")
    return run._started[-1].poll() is None


def python_workers(run: Run) -> list[int]:
    return [pid for pid, command in run._commands() if "pyspark.daemon" in command]


def kill(pids: list[int], dice: random.Random, signal_number: int = signal.SIGKILL) -> int | None:
    """Send a signal to one of `pids`; None if it is gone already."""
    if not pids:
        return None
    pid = dice.choice(pids)
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        return None
    return pid


def check(run: Run) -> None:
    lines = run.lines()
    assert not [line for line in lines if "ILLEGAL" in line][:3]
    assert_same(lines, expected(run.records))
    assert not run.pending_files()


@pytest.mark.timeout(3_600 if FULL else 600)
@pytest.mark.parametrize("engine", ["auto", "resident"])
def test_slots_workers_and_drivers_killed_in_turn(
    engine: str, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = 100 if FULL else 3
    run = chaos_run(make_run, monkeypatch, wanted, engine)
    dice = random.Random(SEED)
    driver = run.start()
    killed = {"slot": 0, "worker": 0, "driver": 0}
    while sum(killed.values()) < wanted and wait_for_more(run):
        time.sleep(dice.random() * 0.3)
        victim = ("slot", "worker", "driver")[sum(killed.values()) % 3]
        if victim == "driver":
            os.killpg(driver.pid, signal.SIGKILL)
            assert driver.wait(30) in (KILLED, 0)
            killed["driver"] += 1
            driver = run.start()
        elif kill(run.slots() if victim == "slot" else python_workers(run), dice) is not None:
            killed[victim] += 1
    run.wait_for_end()
    engines = Counter(engines_of(run.directory))
    print(f"seed {SEED}, {run.records:,} records: killed {killed}; {engines}")
    assert sum(killed.values()) == wanted, f"the job was over after {killed}"
    if engine == "resident":
        # Where the core of a killed resident task is not free yet, an epoch runs with shuffles.
        assert engines["shuffle"] < engines["resident"] / 20
    else:
        assert set(engines) == {"resident", "shuffle"}
    check(run)


@pytest.mark.timeout(3_600 if FULL else 600)
@pytest.mark.parametrize("engine", ENGINES if FULL else ["shuffle"])
def test_slots_stopped_and_woken(engine: str, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other one sleeps longer than it may: it is replaced, and must do no harm when it wakes."""
    wanted = 50 if FULL else 2
    run = chaos_run(make_run, monkeypatch, wanted, engine)
    dice = random.Random(SEED)
    run.start()
    stopped = 0
    while stopped < wanted and wait_for_more(run):
        time.sleep(dice.random() * 0.3)
        pid = kill(run.slots(), dice, signal.SIGSTOP)
        if pid is None:
            continue
        stopped += 1
        if stopped % 2:
            time.sleep(QUICK_STOP)
        else:
            wait_for_more(run)
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGCONT)
    run.wait_for_end()
    print(f"seed {SEED}, {run.records:,} records: {stopped} slots stopped")
    assert stopped == wanted
    check(run)


@pytest.mark.timeout(3_600)
@pytest.mark.skipif(not FULL, reason="one executor is killed in test_local_cluster; ten by make chaos")
@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_executors_killed(engine: str, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = 10
    run = chaos_run(make_run, monkeypatch, wanted, engine, **{"headwater.master": "local-cluster[2,1,1024]"})
    dice = random.Random(SEED)
    run.start()
    killed = 0
    while killed < wanted and wait_for_more(run):
        run.wait_until(lambda: len(run.executors()) == 2, "both executors")
        if kill(run.executors(), dice) is not None:
            killed += 1
    run.wait_for_end()
    print(f"seed {SEED}, {run.records:,} records: {killed} executors killed")
    assert killed == wanted
    check(run)
