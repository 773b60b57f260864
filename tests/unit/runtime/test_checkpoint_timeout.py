"""A checkpoint that is not done in time has failed; the next one has what it would have had."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.runtime.epoch.messages import EpochHeader, SnapshotPart
from headwater.runtime.job.checkpoint_cut import Cut
from headwater.runtime.job.checkpoint_failures import not_in_time
from tests.unit.runtime.test_checkpoints import SpanningJob, hold_snapshots_back
from tests.unit.runtime.test_coordinator import expected


def test_a_checkpoint_that_takes_too_long_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = hold_snapshots_back(monkeypatch)
    job = SpanningJob(tmp_path, {1, 2, 3, 4, 5, 6}, timeout_ms=1, tolerable_failures=10)
    job.start()
    checkpoints = job.coordinator.checkpoints
    killed: list[int] = []

    def look(header: EpochHeader) -> None:
        if not gate.is_set() and checkpoints.history:
            monkeypatch.setattr(checkpoints.schedule, "timed_out", lambda now_ms: False)
            gate.set()
        if header.attempt.epoch == 8 and not killed:
            assert gate.is_set(), "no checkpoint was given up"
            killed.append(8)
            job.engine.kill_slot(1, 0)

    job.engine.before = look
    job.run()
    assert job.results() == expected()
    first, *others = checkpoints.history
    assert first.status == "failed"
    assert re.match(
        r"\d+ ms after its cut, stage 1 partition \d \(KEYED PROCESS\).* not written what changed; "
        r"execution\.checkpointing\.timeout allows 1 ms\. .*See whether .*; or raise execution\.checkpointing\.timeout",
        str(first.reason),
    ), first.reason
    assert {stats.status for stats in others} == {"completed"}, others


def manifest_of(epoch: int) -> Manifest:
    return Manifest("j", "job", epoch, 1, 0, 0, "f", 128)


def test_it_names_the_slowest_and_the_slowest_of_those_that_were_done() -> None:
    names = {1: ("Count", "Top")}
    cut = Cut("token", manifest_of(7), {(1, 2)}, 0, 0.0)
    cut.parts = {(1, 0): SnapshotPart("token", async_ms=40.0), (1, 1): SnapshotPart("token", async_ms=1_500.0)}
    text = not_in_time(cut, waited_ms=61_000.0, timeout_ms=60_000, operators=names)
    assert text.startswith(
        "61.0 s after its cut, stage 1 partition 2 (Count, Top) has not written what changed; "
        "execution.checkpointing.timeout allows 60.0 s. The slowest of the 2 others, stage 1 partition 1 (Count, Top), "
        "wrote for 1.5 s. See whether"
    )
    cut.waiting_for = {(1, index) for index in range(2, 12)}
    assert "stage 1 partition 4 (Count, Top) and 7 more have not" in not_in_time(cut, 61_000.0, 60_000, names)
