"""A job in a Python worker of Spark: what the worker keeps between tasks.

All of it is only a cache: nothing may depend on which worker runs a task.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import traceback

from headwater.common.ids import Place
from headwater.graph.plan import JobPlan
from headwater.runtime.main_module import load_plan
from headwater.runtime.slot.starter import SlotLaunch, local_host
from headwater.runtime.spark.quiet_worker import leave_quietly
from headwater.runtime.stage.runner import RunnerIdentity, StageRunner

Routed = tuple[int, bytes]
"""A frame, with the partition of the next stage that processes it or passes it on."""


class WorkerJob:
    """A job in this Python worker: the plan, and the stateless functions that the worker has opened."""

    _known: dict[str, WorkerJob] = {}  # noqa: RUF012 the cache is the point

    def __init__(self, launch: SlotLaunch) -> None:
        self.launch = launch
        self.plan: JobPlan = load_plan(
            launch.main_classes, launch.plan, f"a Python worker of Spark on host {local_host()}"
        )
        self._runners: dict[Place, tuple[StageRunner, list[Routed]]] = {}
        self._borrowed: StageRunner | None = None
        """The runner of the current task. A worker runs one task at a time."""

    @classmethod
    def of(cls, launch: SlotLaunch) -> WorkerJob:
        """Return the job of this launch. Close and forget the jobs of earlier launches."""
        job = cls._known.get(launch.run_id)
        if job is None:
            for old in cls._known.values():
                old.close()
            cls._known.clear()
            job = cls._known[launch.run_id] = cls(launch)
            # PySpark runs a full garbage collection after every task: several times per epoch, 40 ms for all imported
            # modules. These objects stay for the worker's life, so exempt them from collection.
            gc.freeze()
            # Batches are thousands of short-lived tuples; with the default of 700, each batch would cause collections.
            gc.set_threshold(100_000, 20, 50)
            leave_quietly(sys.modules["__main__"])
        return job

    def borrow_runner(self, place: Place, incarnation: int) -> tuple[StageRunner, list[Routed]]:
        """Return a runner with opened functions, and its output list. Give it back only after success."""
        found = self._runners.pop(place, None)
        if found is not None:
            self._borrowed = found[0]
            return found
        outbox: list[Routed] = []
        identity = RunnerIdentity(self.launch.job_id, place.partition, incarnation)
        runner = StageRunner(self.plan, place.stage, identity, lambda target, frame: outbox.append((target, frame)))
        self._borrowed = runner
        runner.open()
        return runner, outbox

    def give_back(self, place: Place, runner: StageRunner, outbox: list[Routed], *, final: bool = False) -> None:
        """Return a runner after its task has succeeded. With `final` it was the last task: close the functions."""
        self._borrowed = None
        if final:
            runner.close()
        else:
            self._runners[place] = (runner, outbox)

    @classmethod
    def give_up(cls, launch: SlotLaunch) -> None:
        """Called when a task has ended. If it failed, abort its runner: sinks delete what they wrote."""
        job = cls._known.get(launch.run_id)
        if job is not None and job._borrowed is not None:
            runner, job._borrowed = job._borrowed, None
            with contextlib.suppress(Exception):
                runner.abort_epoch()

    def close(self) -> None:
        for runner, _ in self._runners.values():
            try:
                runner.close()
            except Exception:
                traceback.print_exc()
        self._runners.clear()
