"""The same faults with executors in JVMs of their own, which can be killed, too."""

from __future__ import annotations

import os
import signal
from collections import Counter
from itertools import cycle

import pytest

from headwater.runtime.epoch import fault
from tests.recovery.conftest import MakeRun
from tests.recovery.runs import ENGINE, ENGINES, KILLED, Fault, assert_same

SLOTS_AND_WORKERS = [
    Fault(step, epoch, victim)
    for epoch, (step, victim) in enumerate(zip(fault.STEPS, cycle(("slot", "worker")), strict=False), start=1)
]
"""Each step once. `test_every_step` has each with either victim, on one machine."""

SLOTS_OF_THE_JOB = 4
DRIVER = Fault("manifest-written", 9, "driver")


@pytest.mark.parametrize("engine", ENGINES)
def test_slots_workers_driver_and_an_executor_killed(
    engine: str, make_run: MakeRun, unfailed_lines: Counter[str]
) -> None:
    """With the resident engine, it is the executor of the resident task: slots start beside it."""
    run = make_run(conf={"headwater.master": "local-cluster[2,1,1024]", ENGINE: engine})
    run.plan([*SLOTS_AND_WORKERS, DRIVER])
    assert run.start().wait(300) == KILLED, run.log()
    assert run.epoch() == DRIVER.epoch

    driver = run.start()
    run.wait_for_epoch(DRIVER.epoch + 3)
    victim, its_slots = next((pid, slots) for pid, slots in run.slots_by_executor().items() if slots)
    os.kill(victim, signal.SIGKILL)
    killed_at = run.epoch()
    run.wait_until(lambda: not its_slots & set(run.slots()), "the slots of the executor to end with it", seconds=30)
    run.wait_for_end()
    assert driver.returncode == 0

    run.assert_all_fired_in_mid_run()
    progress = run.progress()
    assert killed_at < progress["epoch"] - 1, "the executor was killed when the job was over"
    # Between two epochs no attempt fails, but the slots must be restored once more than when the driver resumed.
    missed = progress["restarts"] >= 1 or progress["restored_slots"] > SLOTS_OF_THE_JOB
    assert missed, "nobody missed the executor"
    assert_same(run.lines(), unfailed_lines)
    assert not run.pending_files()
