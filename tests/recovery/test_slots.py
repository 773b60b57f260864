"""Slots come and go with their job: no attempt that failed leaves one behind."""

from __future__ import annotations

from tests.recovery.conftest import MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import Fault, assert_same

SLOTS_OF_THE_JOB = 4
"""Two keyed stages with two partitions."""


def test_slots_that_a_failed_attempt_started_are_used_or_ended(make_run: MakeRun) -> None:
    """The first epoch starts all slots; when its attempt fails, no acknowledgement tells the driver where they are."""
    run = make_run(records=20_000)
    run.plan([Fault("processed", 0, "worker"), Fault("mid-chunk", 0, "slot"), Fault("snapshot-written", 1, "worker")])
    driver = run.start()
    run.wait_for_epoch(4)
    run.wait_until(lambda: len(run.slots()) == SLOTS_OF_THE_JOB, "one slot per partition", seconds=10)
    assert driver.poll() is None
    run.wait_for_end()
    run.assert_all_fired_in_mid_run()
    assert_same(run.lines(), expected(run.records))
