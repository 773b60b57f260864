"""The stateless functions of a job that one process has opened: a runner per partition, used from epoch to epoch."""

from __future__ import annotations

import contextlib
import traceback

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.ids import Place
from headwater.graph.plan import JobPlan
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.wiring import RunnerIdentity

Routed = tuple[int, bytes]
"""A frame, with the partition of its stage that gets it, or EVERY."""


class StatelessRunners:
    """Runners of the stages without state, and of stage 0. Only a cache: any other process may run the next epoch."""

    def __init__(self, plan: JobPlan, job_id: str, layout: CheckpointLayout | None = None) -> None:
        self._plan = plan
        self._job_id = job_id
        self._layout = layout
        self._idle: dict[Place, tuple[StageRunner, list[Routed]]] = {}
        self._borrowed: StageRunner | None = None

    def borrow(self, place: Place, incarnation: int) -> tuple[StageRunner, list[Routed]]:
        """Return a runner with opened functions, and its empty output list. Give it back only after success."""
        found = self._idle.pop(place, None)
        if found is not None:
            self._borrowed = found[0]
            found[1].clear()
            return found
        outbox: list[Routed] = []
        identity = RunnerIdentity(self._job_id, place.partition, incarnation, self._layout)
        runner = StageRunner(self._plan, place.stage, identity, lambda target, frame: outbox.append((target, frame)))
        self._borrowed = runner
        runner.open()
        return runner, outbox

    def give_back(self, place: Place, runner: StageRunner, outbox: list[Routed], *, final: bool = False) -> None:
        """Return a runner after its task has succeeded. With `final` it was the last task: close the functions."""
        self._borrowed = None
        if final:
            runner.close()
        else:
            self._idle[place] = (runner, outbox)

    def give_up(self) -> None:
        """A task has ended. If it failed, abort its runner: sinks delete what they wrote."""
        if self._borrowed is not None:
            runner, self._borrowed = self._borrowed, None
            with contextlib.suppress(Exception):
                runner.abort_epoch()

    def close(self) -> None:
        for runner, _ in self._idle.values():
            try:
                runner.close()
            except Exception:
                traceback.print_exc()
        self._idle.clear()
