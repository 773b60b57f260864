"""Checkpoints further apart than epochs: what is lost between two of them is computed again, and seen once."""

from __future__ import annotations

from tests.recovery.conftest import MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import Fault, assert_same

ONE_AT_EACH_END = {"execution.checkpointing.interval": "1 h"}


def test_kills_between_two_checkpoints(make_run: MakeRun) -> None:
    """The first epoch ends with a checkpoint, and the last. Each kill in between takes the job back to the first."""
    run = make_run(records=20_000, conf=ONE_AT_EACH_END)
    faults = [Fault("mid-chunk", 6, "slot"), Fault("processed", 9, "worker"), Fault("acked", 12, "driver")]
    run.plan([*faults, Fault("snapshot-written", 14, "slot")])
    progress = run.finish()
    run.assert_all_fired_in_mid_run()
    assert_same(run.lines(), expected(run.records))
    assert progress["rewinds"] == 1, "of the second driver: the one of its last fault"
    assert progress["counters"]["records_in"] == run.records
