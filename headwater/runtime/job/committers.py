"""Makes the output of completed epochs visible, and asks a sink again that cannot do so just now."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping

from headwater.common.connector import Committer
from headwater.common.errors import HeadwaterError, LocalDiskError, UserCodeError
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.restart_policy import NoRestart, RestartPolicy


class SinkCommitters:
    """The committers of all sinks of a job, in the driver. Made at start, so that a bad sink fails early.

    `pause(reason, delay_ms)` waits before a commit is tried again. It raises if that must not be any more.
    """

    def __init__(
        self,
        plan: JobPlan,
        policy: RestartPolicy | None = None,
        pause: Callable[[str, int], None] = lambda reason, delay_ms: None,
    ) -> None:
        self._policy = policy or NoRestart()
        self._pause = pause
        self._failures_ms: list[int] = []
        self._committers: dict[str, tuple[str, Committer]] = {}
        self.eager: set[str] = set()
        """Uids of the sinks whose output need not wait for a checkpoint."""
        for stage in plan.stages:
            for operator in stage.operators:
                if operator.sink is not None:
                    self._committers[operator.uid] = (operator.name, operator.sink.create_committer())
                    if operator.sink.eager:
                        self.eager.add(operator.uid)

    def commit(self, committables: Mapping[str, list[bytes]]) -> None:
        """Commit what a durable manifest names. Idempotent, because committers are.

        A sink that raises is asked again, as the restart policy says: the manifest stands, so there is no other way to
        go on. What headwater itself finds wrong with the output is not cured by time.
        """
        for uid, items in committables.items():
            name, committer = self._committers[uid]
            tried = 0
            while True:
                tried += 1
                try:
                    committer.commit([pickle.loads(item) for item in items])
                    break
                except Exception as error:
                    may_pass = isinstance(error, LocalDiskError) or not isinstance(error, HeadwaterError)
                    delay_ms = self._next_delay_ms() if may_pass else None
                    if delay_ms is not None:
                        self._pause(f"sink '{name}' could not commit: {type(error).__name__}: {error}", delay_ms)
                    elif isinstance(error, HeadwaterError):
                        raise
                    else:
                        times = f", tried {tried} times" if tried > 1 else ""
                        raise UserCodeError.from_exception(
                            error, f"{name} (commit{times})", f"{len(items)} committables", -1
                        ) from error
        if self._policy.forgets_on_success:
            self._failures_ms.clear()

    def _next_delay_ms(self) -> int | None:
        now_ms = int(time.monotonic() * 1000)
        self._failures_ms.append(now_ms)
        return self._policy.next_delay_ms(self._failures_ms, now_ms)

    def clean_up(self, job_id: str, check: Callable[[], None]) -> None:
        """Let sinks delete what dead attempts left. No attempt of the job may be running.

        `check` raises if another driver has taken over. It is called after the search and before the deletion:
        otherwise a driver that wakes up late would delete what the next driver has prepared.
        """
        found = [(committer, committer.find_leftovers(job_id)) for _, committer in self._committers.values()]
        if any(leftovers for _, leftovers in found):
            check()
        for committer, leftovers in found:
            committer.delete_leftovers(leftovers)

    def close(self) -> None:
        for _, committer in self._committers.values():
            committer.close()
