"""A checkpoint that is not done in time has failed; the next one has what it would have had."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.runtime.engine import EpochHeader
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
    assert first.status == "failed" and str(first.reason).endswith("were not done in time")
    assert {stats.status for stats in others} == {"completed"}, others
