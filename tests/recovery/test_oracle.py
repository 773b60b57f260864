"""The comparison can fail: an engine that is broken on purpose gives another output, and the oracle says so.

The same faults, without the sabotage, pass in `test_every_step.py`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.recovery import sabotage
from tests.recovery.conftest import EPOCH_RECORDS, MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import ENGINE, Fault, assert_same, lost_and_too_many

EPOCHS = 10

CASES = [
    pytest.param("commit_before_manifest", Fault("manifest-written", 4, "driver"), id="commit before manifest"),
    pytest.param("skip_rollback", Fault("mid-chunk", 4, "worker"), id="skip rollback"),
    pytest.param("drop_a_delta", Fault("chunk-received", 5, "slot"), id="drop a delta"),
    pytest.param("apply_an_epoch_twice", Fault("sink-committed", 4, "driver"), id="apply an epoch twice"),
]

RESIDENT_CASES = [
    pytest.param("send_an_epoch_twice", Fault("mid-chunk", 2, "worker"), id="send an epoch twice"),
    pytest.param("use_a_reader_where_it_stands", Fault("processed", 4, "slot"), id="use a reader where it stands"),
]
"""What only the resident engine could do wrong."""


@pytest.mark.parametrize(("broken", "when"), CASES)
def test_a_broken_engine_is_seen(broken: str, when: Fault, make_run: MakeRun) -> None:
    _, too_many = difference(make_run, broken, when)
    assert too_many, "the engine was broken, and nobody noticed"


@pytest.mark.parametrize(("broken", "when"), RESIDENT_CASES)
def test_a_broken_resident_engine_is_seen(broken: str, when: Fault, make_run: MakeRun) -> None:
    lost, too_many = difference(make_run, broken, when, "resident")
    assert too_many if broken == "send_an_epoch_twice" else lost, "the engine was broken, and nobody noticed"


def difference(
    make_run: MakeRun, broken: str, when: Fault, engine: str = "shuffle"
) -> tuple[Counter[str], Counter[str]]:
    """What a run of a broken engine loses, and has too many of."""
    run = make_run(records=EPOCHS * EPOCH_RECORDS, sabotaged=broken, conf={ENGINE: engine})
    run.plan([when])
    run.finish()
    run.assert_all_fired_in_mid_run()
    with pytest.raises(AssertionError, match="lines lost"):
        assert_same(run.lines(), expected(run.records))
    return lost_and_too_many(run.lines(), expected(run.records))


def test_every_sabotage_is_tried() -> None:
    assert {case.values[0] for case in CASES + RESIDENT_CASES} == set(sabotage.SABOTAGES)


@pytest.mark.parametrize("found", [["a"], ["a", "b", "b"], ["a", "c"], ["a", "a", "b", "b"]])
def test_lost_doubled_and_wrong_lines_are_all_different(found: list[str]) -> None:
    with pytest.raises(AssertionError, match="lost"):
        assert_same(Counter(found), Counter(["a", "b"]))
