"""The failures of a run, and what follows each of them."""

from __future__ import annotations

import logging
import time

from headwater.common.errors import JobFailedError
from headwater.runtime.epoch.decisions import GiveUp, GoBack, TryAgain, decide_after_failure
from headwater.runtime.epoch.failure import AttemptFailedError
from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.runtime.job.progress import JobProgress

log = logging.getLogger(__name__)


class Failures:
    """Remembers failures for the restart policy. `can_go_back`: there is a state to which the job may go back."""

    def __init__(self, policy: RestartPolicy, progress: JobProgress, *, can_go_back: bool) -> None:
        self._policy = policy
        self._progress = progress
        self._can_go_back = can_go_back
        self._failures_ms: list[int] = []

    def add(self, epoch: int, failure: AttemptFailedError) -> TryAgain | GoBack:
        """An attempt at `epoch` failed. Return what to do, and after how long; raise if the job fails."""
        self._progress.exceptions.add(failure, epoch)
        if failure.error is not None:
            raise failure.error
        self._failures_ms.append(int(time.monotonic() * 1000))
        decision = decide_after_failure(failure, self._failures_ms, self._policy, can_go_back=self._can_go_back)
        self._progress.last_failure = str(failure)
        if isinstance(decision, GiveUp):
            raise JobFailedError(f"epoch {epoch} {decision.why}") from None
        self._progress.restarts += 1
        log.warning("epoch %d failed (%s); trying again in %d ms", epoch, failure, decision.delay_ms)
        return decision

    def forget(self) -> None:
        """An epoch succeeded: some policies count only failures in a row."""
        if self._policy.forgets_on_success:
            self._failures_ms.clear()
