"""A job in a Python worker of Spark: what the worker keeps between tasks.

All of it is only a cache: nothing may depend on which worker runs a task.
"""

from __future__ import annotations

import gc
import sys

from headwater.graph.plan import JobPlan
from headwater.runtime.main_module import load_plan
from headwater.runtime.slot.starter import SlotLaunch, local_host
from headwater.runtime.spark.quiet_worker import leave_quietly
from headwater.runtime.stage.readers import KeptReaders
from headwater.runtime.stage.runners import StatelessRunners

UNUSED_SECONDS = 30.0
"""A reader that this worker has not used for so long is closed: Spark runs the task of its splits elsewhere."""


class WorkerJob:
    """A job in this Python worker: the plan, and the readers and stateless functions that the worker has opened."""

    _known: dict[str, WorkerJob] = {}  # noqa: RUF012 the cache is the point

    def __init__(self, launch: SlotLaunch) -> None:
        self.launch = launch
        self.plan: JobPlan = load_plan(
            launch.main_classes, launch.plan, f"a Python worker of Spark on host {local_host()}"
        )
        self.readers = KeptReaders(UNUSED_SECONDS)
        self.runners = StatelessRunners(self.plan, launch.job_id, launch.layout)

    @classmethod
    def of(cls, launch: SlotLaunch) -> WorkerJob:
        """Return the job of this launch. Close and forget the jobs of earlier launches."""
        job = cls._known.get(launch.run_id)
        if job is None:
            for old in cls._known.values():
                old.runners.close()
                old.readers.close()
            cls._known.clear()
            job = cls._known[launch.run_id] = cls(launch)
            # PySpark runs a full garbage collection after every task: several times per epoch, 40 ms for all imported
            # modules. These objects stay for the worker's life, so exempt them from collection.
            gc.freeze()
            # Batches are thousands of short-lived tuples; with the default of 700, each batch would cause collections.
            gc.set_threshold(100_000, 20, 50)
            leave_quietly(sys.modules["__main__"])
        return job

    @classmethod
    def give_up(cls, launch: SlotLaunch) -> None:
        """Called when a task has ended. If it failed, abort its runner: sinks delete what they wrote."""
        job = cls._known.get(launch.run_id)
        if job is not None:
            job.runners.give_up()
