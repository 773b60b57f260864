"""Where a job is in its life."""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """The states of a job, with Flink's names and numbers."""

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Return True if the job has ended for good."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return True if this process does nothing more for the job. A SUSPENDED job may go on elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
