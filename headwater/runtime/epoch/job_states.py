"""The states of a job and the transitions between them: the one table, and the one place that holds a job's state."""

from __future__ import annotations

import threading
import time

from headwater.common.job_status import JobStatus

TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.CREATED: frozenset(
        {JobStatus.RUNNING, JobStatus.CANCELLING, JobStatus.FAILED, JobStatus.FINISHED, JobStatus.CANCELED}
    ),
    JobStatus.RUNNING: frozenset(
        {JobStatus.RESTARTING, JobStatus.CANCELLING, JobStatus.FAILED, JobStatus.FINISHED, JobStatus.CANCELED}
    ),
    JobStatus.RESTARTING: frozenset(
        {JobStatus.RUNNING, JobStatus.CANCELLING, JobStatus.FAILED, JobStatus.FINISHED, JobStatus.CANCELED}
    ),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED}),
    JobStatus.CANCELED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.FINISHED: frozenset(),
}
"""{state: the states that may follow it}. A job that is asked to end may fail or finish before it gets to it."""


class JobState:
    """The state of one job. Any thread may read it. It moves only as `TRANSITIONS` says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status = JobStatus.CREATED
        self._since_ms = {JobStatus.CREATED: _now_ms()}

    @property
    def status(self) -> JobStatus:
        return self._status

    @property
    def since_ms(self) -> dict[JobStatus, int]:
        """Return when the job last came to each state that it has been in, in milliseconds since 1970."""
        with self._lock:
            return dict(self._since_ms)

    def to(self, status: JobStatus) -> bool:
        """Move on to `status`. Returns False where that is no longer possible: a job that ends does not restart."""
        with self._lock:
            if status is self._status:
                return True
            if status not in TRANSITIONS[self._status]:
                return False
            self._status = status
            self._since_ms[status] = _now_ms()
            return True


def _now_ms() -> int:
    return int(time.time() * 1000)
