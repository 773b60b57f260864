"""Why an attempt at an epoch failed: one error, from the slot or task that noticed to the driver that decides."""

from __future__ import annotations

import contextlib
import pickle
import socket
import traceback
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from headwater.common.errors import ExternalSystemError, HeadwaterError, LocalDiskError
from headwater.common.ids import Place


class ConnectionLostError(HeadwaterError):
    """The other end is gone, or is not who it should be. The epoch is tried again."""


class FailureReason(Enum):
    """What failed. `decisions.py` says what follows."""

    PROGRAM = "user code, user data or a bug raised an error: another attempt would raise it again"
    STATE_LOST = "a slot lost state that no checkpoint has: the job goes back to its last checkpoint"
    LOCAL_DISK = "a local disk is full: another attempt, after a while, may find room"
    EXTERNAL = "a system outside does not answer: another attempt, after a while, may find it"
    PROCESS_LOST = "a process or a connection is gone: another attempt may find it back"
    CHECKPOINTS = "too many checkpoints in a row failed"


class FailedAt(NamedTuple):
    """The partition that failed, and the host it ran on."""

    place: Place
    host: str


class AttemptFailedError(HeadwaterError):
    """The attempt cannot complete. With `FailureReason.PROGRAM`, `error` is what the user gets to see."""

    def __init__(
        self, text: str, reason: FailureReason, error: HeadwaterError | None = None, at: FailedAt | None = None
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.error = error
        self.at = at
        """Where it failed; None if that is not known."""

    @classmethod
    def of_program(cls, error: HeadwaterError) -> AttemptFailedError:
        return cls(str(error), FailureReason.PROGRAM, error)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reason, self.error, self.at)


def failure_of(error: Exception, where: str | Place) -> AttemptFailedError:
    """The failure that `error` is, noticed in `where`: a partition of a stage of this host, or something else."""
    if isinstance(where, str):
        return _classified(error, where)
    failure = _classified(error, f"stage {where.stage} partition {where.partition}")
    failure.at = failure.at or FailedAt(where, socket.gethostname())
    return failure


@contextlib.contextmanager
def failures_at(place: Place) -> Iterator[None]:
    """Whatever the block raises is a failure of that partition, on this host."""
    try:
        yield
    except Exception as error:
        raise failure_of(error, place) from None


def _classified(error: Exception, where: str) -> AttemptFailedError:
    if isinstance(error, AttemptFailedError):
        return error
    if isinstance(error, ConnectionLostError | EOFError | ConnectionError):
        return AttemptFailedError(f"{where}: {error}", FailureReason.PROCESS_LOST)
    if isinstance(error, LocalDiskError):
        return AttemptFailedError(str(error), FailureReason.LOCAL_DISK)
    if isinstance(error, ExternalSystemError):
        return AttemptFailedError(str(error), FailureReason.EXTERNAL)
    if isinstance(error, HeadwaterError):
        return AttemptFailedError.of_program(_picklable(error))
    trace = "".join(traceback.format_exception(error))
    return AttemptFailedError.of_program(HeadwaterError(f"internal error in {where}:\n{trace}"))


def _picklable(error: HeadwaterError) -> HeadwaterError:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return HeadwaterError(str(error))
    return error


def worst(failures: list[AttemptFailedError]) -> AttemptFailedError:
    """The failure that explains the others: a user's error, then lost state, then the connections these cost."""
    order = list(FailureReason)
    return min(failures, key=lambda failure: order.index(failure.reason))
