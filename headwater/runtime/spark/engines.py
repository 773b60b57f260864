"""The engine of a job on Spark: shuffle or resident, as each epoch's header says."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import SparkContext

from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.messages import Ack, EpochHeader, PartitionAck, SlotAddress, SourceTask
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.notices import SlotNotices
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.epoch_job import SparkEngine
from headwater.runtime.spark.resident.engine import NoCoreError, ResidentEngine

IDLE_SECONDS = 10.0
"""A job that has had nothing to do for so long gives its resident task's core to whoever waits for one."""


class SparkEngines:
    """Both engines of one job. Only one of them has cores at a time, so that they never wait for each other."""

    def __init__(self, context: SparkContext, plan: JobPlan, launch: SlotLaunch) -> None:
        self._context = context
        self._shuffle = SparkEngine(context, plan, launch)
        self._resident = ResidentEngine(context, plan.name, launch, self._shuffle.launch)
        self._notices = SlotNotices(launch.secret)
        self._slots: tuple[SlotAddress, ...] = ()
        self._last_run = time.monotonic()

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]:
        acks = self._run(header, tasks, dataframes)
        self._slots = tuple(ack.address for ack in acks if isinstance(ack, PartitionAck) and ack.address is not None)
        self._last_run = time.monotonic()
        return acks

    def _run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]:
        if header.resident and not dataframes:
            try:
                return self._resident.run(header, tasks)
            except NoCoreError:
                pass  # others have all cores; Spark gives the epoch's tasks some when it can
        self._resident.rest()
        return self._shuffle.run(header, tasks, dataframes)

    @property
    def watches(self) -> bool:
        return self._resident.watches

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        if self._resident.is_running and self._is_idle() and self._others_wait():
            self._resident.rest()
        return self._resident.wait(seconds, wakeup)

    def _is_idle(self) -> bool:
        return time.monotonic() - self._last_run > IDLE_SECONDS

    def _others_wait(self) -> bool:
        """Whether Spark has tasks without a core."""
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(
            stage.numTasks > stage.numActiveTasks + stage.numCompletedTasks for stage in stages if stage is not None
        )

    def checkpoint_completed(self, token: str) -> None:
        if self._resident.is_running:
            self._resident.checkpoint_completed(token)
        else:
            self._notices.tell(token, self._slots)

    def cancel(self) -> None:
        self._resident.cancel()
        self._shuffle.cancel()

    def close(self) -> None:
        self._notices.close()
        self._resident.close()
        self._shuffle.close()
