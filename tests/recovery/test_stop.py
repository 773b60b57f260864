"""A job that is stopped from outside, politely or not, goes on where it was; and nobody runs it twice at a time."""

from __future__ import annotations

import os
import signal
import socket

from tests.recovery.conftest import EPOCH_RECORDS, MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import KILLED, Run, assert_same

EPOCHS = 40
"""So many that the job is never over before it is stopped."""


def test_stopped_by_sigterm_then_by_kill_of_the_whole_group(make_run: MakeRun) -> None:
    run = make_run(records=EPOCHS * EPOCH_RECORDS)

    first = run.start()
    run.wait_for_epoch(2)
    assert len(run.slots()) == 4
    second = run.start()
    assert second.wait(60) == 1, "a second driver was let in"
    assert f"is in use by job 'recovery', pid {first.pid} on host {socket.gethostname()}" in run.log()
    assert first.poll() is None, "the second driver disturbed the first"

    first.terminate()
    assert first.wait(60) == -signal.SIGTERM
    assert_all_gone(run)
    stopped_at, lines_then = run.epoch(), run.lines()
    assert 2 <= stopped_at < EPOCHS

    third = run.start()
    run.wait_for_epoch(stopped_at + 2)
    os.killpg(third.pid, signal.SIGKILL)
    assert third.wait(60) == KILLED
    assert_all_gone(run)
    killed_at = run.epoch()
    assert stopped_at < killed_at < EPOCHS

    progress = run.finish()
    assert progress["counters"]["records_in"] == run.records
    assert not lines_then - run.lines(), "what was visible before is gone"
    assert_same(run.lines(), expected(run.records))
    assert not run.pending_files()


def assert_all_gone(run: Run) -> None:
    """No signal to the group reaches slots, which have sessions of their own: they watch the JVM, and it the driver."""
    run.wait_until(lambda: not run.processes(), "JVM, workers and slots to end", seconds=60)
