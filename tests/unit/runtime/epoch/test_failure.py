"""One failure, wherever it was noticed: its reason survives the way to the driver."""

from __future__ import annotations

import pickle

import pytest

from headwater.common.errors import HeadwaterError, LocalDiskError, StateError
from headwater.runtime.epoch.failure import (
    AttemptFailedError,
    ConnectionLostError,
    FailureReason,
    failure_of,
    worst,
)


class Unpicklable(HeadwaterError):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionLostError("gone"), FailureReason.PROCESS_LOST),
        (BrokenPipeError("gone"), FailureReason.PROCESS_LOST),
        (EOFError("gone"), FailureReason.PROCESS_LOST),
        (LocalDiskError("gone"), FailureReason.LOCAL_DISK),
        (StateError("gone"), FailureReason.PROGRAM),
        (Unpicklable("go", "ne"), FailureReason.PROGRAM),
        (ValueError("gone"), FailureReason.PROGRAM),
        (AttemptFailedError("gone", FailureReason.STATE_LOST), FailureReason.STATE_LOST),
    ],
)
def test_each_error_has_its_reason_and_arrives(error: Exception, reason: FailureReason) -> None:
    arrived = pickle.loads(pickle.dumps(failure_of(error, "a slot")))
    assert arrived.reason is reason and "gone" in str(arrived)
    assert (arrived.error is not None) is (reason is FailureReason.PROGRAM)


def test_a_bug_keeps_its_traceback() -> None:
    try:
        {}["missing"]
    except KeyError as error:
        failure = failure_of(error, "stage 1 partition 0")
    assert "internal error in stage 1 partition 0" in str(failure) and "KeyError: 'missing'" in str(failure)


def test_the_users_error_explains_the_connections_that_it_cost() -> None:
    lost = AttemptFailedError("lost", FailureReason.PROCESS_LOST)
    users = AttemptFailedError.of_program(HeadwaterError("division by zero"))
    assert worst([lost, users, lost]) is users
    state_lost = AttemptFailedError("no state", FailureReason.STATE_LOST)
    assert worst([lost, state_lost]) is state_lost
