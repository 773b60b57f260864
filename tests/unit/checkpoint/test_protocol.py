"""Every case of starting and resuming, without a disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord
from headwater.checkpoint.start.decision import (
    AlreadyFinished,
    ClaimMode,
    GivenSavepoint,
    Refuse,
    RequestedJob,
    Resume,
    Start,
    decide_start,
)

JOB = RequestedJob(
    job_name="payments",
    plan_fingerprint="shape-1",
    max_parallelism=128,
    operators={"count": "Count", "alert": "Alert"},
    sources=frozenset({"src"}),
    sinks=frozenset({"out"}),
)
LATEST = Manifest(
    job_id="j",
    job_name="payments",
    epoch=7,
    incarnation=2,
    created_ms=0,
    now_ms=0,
    plan_fingerprint="shape-1",
    max_parallelism=128,
    operators={"count": "Count", "alert": "Alert"},
    sources={"src": SourceRecord()},
    committables={"out": [b"file-7"]},
)


def changed(**fields: Any) -> Manifest:
    return msgspec.structs.replace(LATEST, **fields)


def test_a_fresh_directory_starts_at_epoch_zero() -> None:
    assert decide_start(None, JOB) == Start(next_epoch=0, incarnation=1)


def test_a_job_goes_on_after_its_last_manifest_and_commits_that_one_again() -> None:
    assert decide_start(LATEST, JOB) == Resume(LATEST, next_epoch=8, incarnation=3, recommit={"out": [b"file-7"]})


def test_a_finished_job_only_repeats_its_last_commit() -> None:
    finished = changed(finished=True)
    assert decide_start(finished, JOB) == AlreadyFinished(finished, {"out": [b"file-7"]})


@pytest.mark.parametrize(
    ("latest", "job", "expected"),
    [
        (LATEST, replace(JOB, max_parallelism=64), "max parallelism 128, this job asks for 64"),
        (LATEST, replace(JOB, operators={"count": "Count"}), r"state for uid 'alert' \(Alert\), which this job lacks"),
        (LATEST, replace(JOB, sources=frozenset()), "positions of source 'src'"),
        (LATEST, replace(JOB, sinks=frozenset()), "output to commit for sink 'out'"),
        (changed(finished=True), replace(JOB, max_parallelism=64), "key groups are fixed"),
        (LATEST, replace(JOB, uid_mapping={"cuont": "total"}), "no uid 'cuont'.*did you mean 'count'"),
        (LATEST, replace(JOB, uid_mapping={"count": "Alert2"}), "no stateful operator, source or sink 'Alert2'"),
        (LATEST, replace(JOB, uid_mapping={"count": "alert"}), "state of two operators for uid 'alert'"),
        (LATEST, replace(JOB, uid_mapping={"count": "alert", "alert": "count"}), "of two operators for uid 'alert'"),
    ],
)
def test_a_job_that_does_not_fit_is_refused_with_the_reason(latest: Manifest, job: RequestedJob, expected: str) -> None:
    decision = decide_start(latest, job)
    assert isinstance(decision, Refuse)
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(decision.reason)
    if "which this job lacks" in decision.reason and "sink" not in decision.reason:
        assert "headwater.state-recovery.uid-mapping" in decision.reason
        assert "execution.state-recovery.ignore-unclaimed-state=true (headwater run -n)" in decision.reason
    if "the uid mapping renames" not in decision.reason:
        assert "epoch 7" in decision.reason and "'payments'" in decision.reason


def test_state_may_be_dropped_on_request() -> None:
    job = replace(JOB, operators={"count": "Count"}, allow_non_restored_state=True)
    assert isinstance(decide_start(LATEST, job), Resume)


def test_output_of_a_lost_sink_is_never_dropped() -> None:
    job = replace(JOB, sinks=frozenset(), allow_non_restored_state=True)
    assert isinstance(decide_start(LATEST, job), Refuse)
    assert isinstance(decide_start(changed(committables={"out": []}), job), Resume)


def resumed(latest: Manifest | None, job: RequestedJob, given: GivenSavepoint | None = None) -> Resume:
    decision = decide_start(latest, job, given)
    assert isinstance(decision, Resume), decision
    return decision


def refusal(latest: Manifest | None, job: RequestedJob, given: GivenSavepoint | None = None) -> str:
    decision = decide_start(latest, job, given)
    assert isinstance(decision, Refuse), decision
    return decision.reason


# --- another shape


def test_another_parallelism_or_a_new_operator_goes_on_with_another_shape() -> None:
    assert resumed(LATEST, replace(JOB, plan_fingerprint="shape-2")).reshaped
    grown = replace(JOB, plan_fingerprint="shape-2", operators={**JOB.operators, "extra": "Extra"})
    assert resumed(LATEST, grown).reshaped
    assert not resumed(LATEST, JOB).reshaped


def test_what_is_left_behind_is_told() -> None:
    job = replace(JOB, plan_fingerprint="s", operators={"count": "Count"}, allow_non_restored_state=True)
    assert resumed(LATEST, job).dropped == ("alert",)


def test_renamed_operators_sources_and_sinks_keep_what_is_theirs() -> None:
    latest = changed(
        partitions=[PartitionRecord(1, 0, watermarks={"head:count": 5, "out:count": 5, "out:alert": 4})],
        counters={"count.records_in": 3, "epochs": 8},
    )
    job = replace(
        JOB,
        operators={"total": "Count", "alert": "Alert"},
        sources=frozenset({"input"}),
        sinks=frozenset({"result"}),
        uid_mapping={"count": "total", "src": "input", "out": "result"},
    )
    decision = resumed(latest, job)
    assert decision.reshaped and decision.renamed == {"count": "total", "src": "input", "out": "result"}
    assert decision.manifest.operators == {"total": "Count", "alert": "Alert"}
    assert set(decision.manifest.sources) == {"input"}
    assert decision.recommit == {"result": [b"file-7"]}
    assert decision.manifest.partitions[0].watermarks == {"head:total": 5, "out:total": 5, "out:alert": 4}
    assert decision.manifest.counters == {"total.records_in": 3, "epochs": 8}
    assert latest.operators == {"count": "Count", "alert": "Alert"}, "the manifest itself stays as it was read"


def test_a_mapping_that_was_applied_in_an_earlier_run_does_nothing() -> None:
    decision = resumed(LATEST, replace(JOB, uid_mapping={"was-count": "count", "alert": "alert"}))
    assert not decision.renamed and not decision.reshaped


# --- savepoints


GIVEN = GivenSavepoint("/sp/17", LATEST, is_savepoint=True)


def test_a_job_without_a_checkpoint_starts_from_the_savepoint() -> None:
    decision = resumed(None, JOB, GIVEN)
    assert (decision.next_epoch, decision.incarnation, decision.reshaped) == (8, 1, True)
    assert decision.savepoint is GIVEN and not decision.dispose_savepoint
    assert decision.recommit == {"out": [b"file-7"]}


def test_a_job_with_a_checkpoint_of_its_own_resumes_and_ignores_the_savepoint() -> None:
    own = changed(epoch=12, plan_fingerprint="shape-1")
    decision = resumed(own, JOB, replace(GIVEN, claim_mode=ClaimMode.CLAIM))
    assert (decision.next_epoch, decision.savepoint, decision.reshaped) == (13, None, False)
    assert not decision.dispose_savepoint


def test_output_that_is_visible_is_not_committed_again() -> None:
    given = replace(GIVEN, output_committed=True)
    assert resumed(None, JOB, given).recommit == {}
    resumed(None, replace(JOB, sinks=frozenset()), given)
    assert "output to commit for sink 'out'" in refusal(None, replace(JOB, sinks=frozenset()), GIVEN)


def test_a_claimed_savepoint_is_deleted_later() -> None:
    assert resumed(None, JOB, replace(GIVEN, claim_mode=ClaimMode.CLAIM)).dispose_savepoint


def test_a_checkpoint_that_another_job_retains_cannot_be_claimed() -> None:
    reason = refusal(None, JOB, replace(GIVEN, is_savepoint=False, claim_mode=ClaimMode.CLAIM))
    assert "cannot be claimed" in reason and "NO_CLAIM" in reason and "/sp/17" in reason
    resumed(None, JOB, replace(GIVEN, is_savepoint=False))


def test_a_savepoint_that_does_not_fit_is_refused_by_its_name() -> None:
    reason = refusal(None, replace(JOB, operators={"count": "Count"}), GIVEN)
    assert reason.startswith("savepoint /sp/17 of job 'payments', epoch 7, has state for uid 'alert' (Alert)")
    assert "max parallelism 128" in refusal(None, replace(JOB, max_parallelism=7), GIVEN)


def test_the_state_of_a_finished_job_can_be_a_beginning() -> None:
    decision = resumed(None, JOB, replace(GIVEN, manifest=changed(finished=True)))
    assert decision.next_epoch == 8
