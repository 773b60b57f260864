"""A slot that is stopped, not killed: its sockets are open and its kernel accepts connections, but nobody answers."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.recovery.conftest import MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import ENGINE, ENGINES, assert_same

HEALTH = {"headwater.slot.health-check": "1 s"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stopped_slot_is_replaced(engine: str, make_run: MakeRun) -> None:
    run = make_run(records=20_000, conf=HEALTH | {ENGINE: engine})
    run.start()
    run.wait_for_epoch(3)
    victim = run.slots()[0]
    os.kill(victim, signal.SIGSTOP)
    run.wait_for_end()
    assert_same(run.lines(), expected(run.records))
    assert run.progress()["restored_slots"] >= 1
    assert not psutil.pid_exists(victim) or psutil.Process(victim).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slot_that_is_only_slow_to_wake_goes_on(engine: str, make_run: MakeRun) -> None:
    run = make_run(records=20_000, conf={"headwater.slot.health-check": "60 s", ENGINE: engine})
    run.start()
    run.wait_for_epoch(3)
    before = run.slots()
    for victim in before:
        os.kill(victim, signal.SIGSTOP)
    epoch = run.epoch()
    for victim in before:
        os.kill(victim, signal.SIGCONT)
    run.wait_for_epoch(epoch + 2)
    assert sorted(run.slots()) == sorted(before)
    run.wait_for_end()
    assert_same(run.lines(), expected(run.records))
    assert run.progress()["restarts"] == 0
