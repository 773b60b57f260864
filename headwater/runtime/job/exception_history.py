"""What went wrong in a run of a job: Flink's exception history, newest first."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from headwater.common.errors import HeadwaterError, UserCodeError
from headwater.runtime.epoch.failure import AttemptFailedError, FailedAt

SIZE = 16
"""How many are kept, as Flink keeps them (web.exception-history-size)."""


@dataclass(frozen=True)
class JobException:
    """One failure, after which the job was restarted or ended."""

    timestamp_ms: int
    exception_name: str
    message: str
    stacktrace: str
    """The user's own frames if the user's code raised, else the text."""
    operator: str | None = None
    """The operator whose function raised."""
    stage: int | None = None
    partition: int | None = None
    host: str | None = None
    epoch: int | None = None


class ExceptionHistory:
    """The last failures of a job. The job's thread adds them; any thread may read."""

    def __init__(self, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._kept: deque[JobException] = deque(maxlen=SIZE)
        self._last: BaseException | None = None
        self._forgotten = 0

    def add(self, error: BaseException, epoch: int | None = None) -> None:
        """Remember a failure. The error with which the job ends may be the one that was added last: it counts once."""
        at = error.at if isinstance(error, AttemptFailedError) else None
        cause = error.error if isinstance(error, AttemptFailedError) and error.error is not None else error
        with self._lock:
            if cause is self._last:
                return
            self._last = cause
            self._forgotten += len(self._kept) == SIZE
            self._kept.append(_described(cause, at, epoch, self._now_ms()))

    def remember(self, earlier: Iterable[JobException]) -> None:
        """Begin with failures of earlier drivers of the job, oldest first."""
        with self._lock:
            self._kept.extend(earlier)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values: the entries, newest first, and whether older ones were dropped."""
        with self._lock:
            return {"entries": [asdict(each) for each in reversed(self._kept)], "truncated": self._forgotten > 0}


def _described(error: BaseException, at: FailedAt | None, epoch: int | None, now_ms: int) -> JobException:
    name, message, operator = type(error).__name__, str(error), None
    trace = message if isinstance(error, HeadwaterError) else "".join(traceback.format_exception(error))
    if isinstance(error, UserCodeError):
        name, operator, epoch = error.cause_repr.partition("(")[0] or name, error.operator_name, error.epoch
        trace = f"{error.user_traceback.rstrip()}\nrecord: {error.record_repr}"
    elif isinstance(error, AttemptFailedError):
        name = error.reason.name
    return JobException(
        now_ms,
        name,
        message,
        trace,
        operator,
        at.place.stage if at is not None else None,
        at.place.partition if at is not None else None,
        at.host if at is not None else None,
        epoch,
    )
