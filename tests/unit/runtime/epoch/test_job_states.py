"""A job moves only along the table of its states."""

from __future__ import annotations

from itertools import product

from headwater.common.job_status import JobStatus
from headwater.runtime.epoch.job_states import TRANSITIONS, JobState


def job_at(status: JobStatus) -> JobState:
    state = JobState()
    state._status = status
    return state


def test_every_transition_is_as_the_table_says() -> None:
    for before, after in product(TRANSITIONS, TRANSITIONS):
        state = job_at(before)
        legal = after is before or after in TRANSITIONS[before]
        assert state.to(after) is legal
        assert state.status is (after if legal else before)


def test_nothing_follows_an_end() -> None:
    ends = {status for status in TRANSITIONS if status.is_globally_terminal_state()}
    assert ends == {status for status, after in TRANSITIONS.items() if not after}


def test_a_job_that_is_being_cancelled_does_not_restart() -> None:
    state = job_at(JobStatus.CANCELLING)
    assert not state.to(JobStatus.RESTARTING) and not state.to(JobStatus.RUNNING)
    assert state.status is JobStatus.CANCELLING
