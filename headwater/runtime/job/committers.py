"""Makes the output of completed epochs visible."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping

from headwater.common.connector import Committer
from headwater.common.errors import HeadwaterError, UserCodeError
from headwater.graph.plan import JobPlan


class SinkCommitters:
    """The committers of all sinks of a job, in the driver. Made at start, so that a bad sink fails early."""

    def __init__(self, plan: JobPlan) -> None:
        self._committers: dict[str, tuple[str, Committer]] = {}
        self.eager: set[str] = set()
        """Uids of the sinks that need not wait for a checkpoint."""
        for stage in plan.stages:
            for operator in stage.operators:
                if operator.sink is not None:
                    self._committers[operator.uid] = (operator.name, operator.sink.create_committer())
                    if operator.sink.eager:
                        self.eager.add(operator.uid)

    def commit(self, committables: Mapping[str, list[bytes]]) -> None:
        """Commit what a durable manifest names. Idempotent, because committers are."""
        for uid, items in committables.items():
            name, committer = self._committers[uid]
            try:
                committer.commit([pickle.loads(item) for item in items])
            except HeadwaterError:
                raise
            except Exception as error:
                raise UserCodeError.from_exception(
                    error, f"{name} (commit)", f"{len(items)} committables", -1
                ) from error

    def clean_up(self, job_id: str, check: Callable[[], None]) -> None:
        """Let sinks delete what dead attempts left. Nothing of the job may be in flight.

        `check` raises if another driver has the job. It comes after what is found and before what is deleted: a driver
        that wakes up late would otherwise delete what the next one has prepared.
        """
        found = [(committer, committer.find_leftovers(job_id)) for _, committer in self._committers.values()]
        if any(leftovers for _, leftovers in found):
            check()
        for committer, leftovers in found:
            committer.delete_leftovers(leftovers)

    def close(self) -> None:
        for _, committer in self._committers.values():
            committer.close()
