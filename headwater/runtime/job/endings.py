"""How a coordinator's epochs end, or are interrupted, before the job's input has ended."""

from __future__ import annotations

import time

from headwater.common.errors import HeadwaterError
from headwater.runtime.job.requests import RescaleRequest


class JobCancelledError(HeadwaterError):
    """The job was cancelled."""

    def __init__(self, text: str = "the job was cancelled") -> None:
        super().__init__(text)


class StoppedWithSavepoint(Exception):
    """The job has ended with a savepoint, as requested."""


class RescaleAsked(Exception):
    """A rescale was requested. The last checkpoint contains everything: resume from it with another parallelism."""

    def __init__(self, request: RescaleRequest, started: float) -> None:
        super().__init__(f"parallelism {request.parallelism}")
        self.request = request
        self._started = started

    def goes_on(self) -> None:
        """Complete the request: the job runs again."""
        self.request.done.set_result(time.monotonic() - self._started)


class GivenUpError(HeadwaterError):
    """What was asked for takes too long. Whoever asked is told, and the job goes on."""


class WentBackError(HeadwaterError):
    """The job went back to an earlier epoch. Run it from there."""
