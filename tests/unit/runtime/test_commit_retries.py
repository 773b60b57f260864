"""A sink that cannot commit just now is asked again, as the restart policy says. Then the job fails, and can resume."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import CheckpointError, FencedError, LocalDiskError, UserCodeError
from headwater.runtime.epoch.restart_policy import FixedDelay, NoRestart
from headwater.runtime.job.endings import JobCancelledError
from headwater.testing import collecting_sink
from tests.unit.runtime.test_coordinator import Job, expected, job

__all__ = ["job"]


class Flaky:
    """A committer that raises where it is told, after half of its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.problem: Callable[[int], Exception | None] = lambda call: None
        committer = collecting_sink._CollectingCommitter
        commit = committer.commit

        def flaky(this: Any, committables: list[Any]) -> None:
            self.calls += 1
            problem = self.problem(self.calls)
            commit(this, committables if problem is None else committables[:1])
            if problem is not None:
                raise problem

        monkeypatch.setattr(committer, "commit", flaky)


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Flaky:
    return Flaky(monkeypatch)


@pytest.mark.parametrize("problem", [TimeoutError("the sink is away"), LocalDiskError("the disk is full")])
def test_it_is_tried_again(job: Job, flaky: Flaky, caplog: pytest.LogCaptureFixture, problem: Exception) -> None:
    flaky.problem = lambda call: problem if call in (3, 4, 8) else None
    job.start(FixedDelay(attempts=2, delay_ms=0))
    job.run()
    assert job.results() == expected()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 3 and all(str(problem) in text and "trying again in 0 ms" in text for text in warnings)
    assert str(problem) in str(job.coordinator.progress.last_failure)


def test_then_the_job_fails_and_the_next_run_commits_it(job: Job, flaky: Flaky) -> None:
    flaky.problem = lambda call: TimeoutError("the sink is away") if call >= 4 else None
    job.start(FixedDelay(attempts=5, delay_ms=0))
    with pytest.raises(UserCodeError, match=r"\(commit, tried 6 times\).*the sink is away"):
        job.run()
    job.coordinator.close()
    assert flaky.calls == 3 + 6
    flaky.problem = lambda call: TimeoutError("still away") if call == 10 else None
    job.start(FixedDelay(attempts=5, delay_ms=0))  # commits the output of the last manifest again, at the second try
    job.run()
    assert job.results() == expected()


@pytest.mark.parametrize("problem", [CheckpointError("an output file is damaged"), FencedError("fenced")])
def test_what_no_retry_cures_ends_the_job_at_once(job: Job, flaky: Flaky, problem: Exception) -> None:
    flaky.problem = lambda call: problem
    job.start()
    with pytest.raises(type(problem)):
        job.run()
    assert flaky.calls == 1


def test_without_a_restart_policy_it_ends_at_once(job: Job, flaky: Flaky) -> None:
    flaky.problem = lambda call: TimeoutError("the sink is away")
    job.start(NoRestart())
    with pytest.raises(UserCodeError, match=r"\(commit\).*the sink is away"):
        job.run()
    assert flaky.calls == 1


def test_a_job_that_is_cancelled_does_not_wait_for_its_sink(job: Job, flaky: Flaky) -> None:
    def away(call: int) -> Exception:
        job.coordinator.cancel()
        return TimeoutError("the sink is away")

    flaky.problem = away
    job.start(FixedDelay(attempts=5, delay_ms=3_600_000))
    with pytest.raises(JobCancelledError):
        job.run()
    job.coordinator.close()
    assert flaky.calls == 1


def test_a_driver_that_was_fenced_meanwhile_does_not_try_again(tmp_path: Path, flaky: Flaky) -> None:
    job = Job(tmp_path)
    job.start()
    store = job.coordinator._store
    assert store is not None
    store.take_over("job")

    def away(call: int) -> Exception:
        job.store.take_over("job")  # another driver
        return TimeoutError("the sink is away")

    flaky.problem = away
    with pytest.raises(FencedError):
        job.run()
    assert flaky.calls == 1


def test_output_that_waits_for_no_checkpoint_is_tried_again_too(
    job: Job, flaky: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    flaky.problem = lambda call: TimeoutError("the sink is away") if call == 3 else None
    job.start(FixedDelay(attempts=2, delay_ms=0))
    job.coordinator._output.eager = {
        operator.uid for stage in job.coordinator.plan.stages for operator in stage.operators
    }
    job.engine.before = lambda header: seen.append(header.attempt.number)
    job.run()
    assert job.results() == expected()
    assert set(seen) == {0}, "the epoch itself was accepted: it is not run again"
