"""A driver dies between the commit of its files and the note of it, and a reader has taken the files meanwhile."""

from __future__ import annotations

from tests.recovery.conftest import MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import KILLED, Fault, assert_same


def test_files_that_a_reader_took_are_committed(make_run: MakeRun) -> None:
    run = make_run(records=8_000)
    run.plan([Fault("sink-committed", 2, "driver")])
    assert run.start().wait(120) == KILLED
    taken = run.lines()
    for path in run.output.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            path.unlink()
    run.finish()
    run.assert_all_fired_in_mid_run()
    assert_same(taken + run.lines(), expected(run.records))
    assert not run.pending_files()
