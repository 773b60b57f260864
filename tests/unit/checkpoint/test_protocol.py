"""Every case of starting, resuming and replaying, without a disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from headwater.checkpoint.manifest import Manifest, SourceRecord
from headwater.checkpoint.protocol import (
    AlreadyFinished,
    Refuse,
    RequestedJob,
    Resume,
    Run,
    SkipAndRecommit,
    Start,
    decide_epoch,
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
        (LATEST, replace(JOB, plan_fingerprint="shape-2"), "order or parallelism differ"),
        (
            LATEST,
            replace(JOB, plan_fingerprint="shape-2", operators={**JOB.operators, "extra": "Extra"}),
            "new stateful operators: 'extra'",
        ),
        (changed(finished=True), replace(JOB, plan_fingerprint="shape-2"), "another shape"),
    ],
)
def test_a_job_that_does_not_fit_is_refused_with_the_reason(latest: Manifest, job: RequestedJob, expected: str) -> None:
    decision = decide_start(latest, job)
    assert isinstance(decision, Refuse)
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(decision.reason)
    assert "epoch 7" in decision.reason and "'payments'" in decision.reason


def test_state_may_be_dropped_on_request() -> None:
    job = replace(JOB, operators={"count": "Count"}, allow_non_restored_state=True)
    assert isinstance(decide_start(LATEST, job), Resume)


def test_output_of_a_lost_sink_is_never_dropped() -> None:
    job = replace(JOB, sinks=frozenset(), allow_non_restored_state=True)
    assert isinstance(decide_start(LATEST, job), Refuse)
    assert isinstance(decide_start(changed(committables={"out": []}), job), Resume)


@pytest.mark.parametrize(
    ("batch_id", "latest_epoch", "expected"),
    [(0, None, Run(0)), (8, 7, Run(8)), (7, 7, SkipAndRecommit(7)), (0, 0, SkipAndRecommit(0))],
)
def test_an_epoch_runs_once(batch_id: int, latest_epoch: int | None, expected: object) -> None:
    assert decide_epoch(batch_id, latest_epoch) == expected


@pytest.mark.parametrize(("batch_id", "latest_epoch"), [(1, None), (9, 7), (6, 7), (0, 7)])
def test_offsets_that_do_not_belong_to_the_manifests_are_refused(batch_id: int, latest_epoch: int | None) -> None:
    decision = decide_epoch(batch_id, latest_epoch)
    assert isinstance(decision, Refuse)
    assert f"batch {batch_id}" in decision.reason
