"""An engine that runs epochs in this process: real runners, real slots, no Spark, no sockets, no other process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common import Configuration
from headwater.common.errors import HeadwaterError
from headwater.common.ids import Place
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.chunk import decode_header
from headwater.runtime.epoch.failure import failure_of
from headwater.runtime.epoch.messages import EpochHeader, PartitionAck, SlotAddress, SourceTask
from headwater.runtime.epoch.steps import run_steps
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.slot import Slot
from headwater.runtime.stage.input import StageInput
from headwater.runtime.stage.runner import RunnerIdentity, StageRunner
from headwater.runtime.stage.source_task import read_dataframe, run_source_task
from headwater.testing import CollectingSink

Build = Callable[[StreamExecutionEnvironment], DataStream]
Frames = dict[tuple[int, int], list[bytes]]
"""{(stage, partition): the frames on their way there}"""


def plan_of(build: Build, parallelism: int = 1, sink: CollectingSink | None = None, **conf: Any) -> JobPlan:
    """The plan of the job that `build` describes, into `sink`."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(conf))
    env.set_parallelism(parallelism)
    build(env).sink_to(sink or CollectingSink())
    plan, _ = env._plan("test job")
    return plan


class FakeDataFrame:
    """Rows that Spark would read: all at once."""

    isStreaming = False

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows


class InProcessEngine:
    """Implements `runtime.epoch.engine.Engine`. `before` is called at the start of each attempt and may raise."""

    def __init__(self, plan: JobPlan, layout: CheckpointLayout | None, background: Background = THREADS) -> None:
        self.plan = plan
        self._layout = layout
        self._background = background
        self.slots: dict[tuple[int, int], Slot] = {}
        self.headers: list[EpochHeader] = []
        self.before: Callable[[EpochHeader], None] = lambda header: None
        self.after_stages: Callable[[EpochHeader], None] = lambda header: None
        self.cancelled = False
        self.completed: list[str] = []
        """Tokens of complete checkpoints."""
        self.checkpoint_seconds = 600.0

    def kill_slot(self, stage: int, partition: int) -> None:
        """Forget a slot with all that it holds, as kill -9 would."""
        del self.slots[stage, partition]

    # --- Engine

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        self.headers.append(header)
        self.before(header)
        messages: list[Any] = []
        frames: Frames = {}
        try:
            for task in tasks:
                messages += self._read(header, task, frames)
            for source_id, dataframe in dataframes.items():
                runner = self._new_reader(0, frames)
                messages += filter(None, read_dataframe(runner, header, source_id, 0, [dataframe.rows]))
            for stage in self.plan.stages[1:]:
                for partition in range(stage.parallelism):
                    messages.append(self._run_stage(header, stage.index, partition, frames))
        except HeadwaterError as error:
            raise failure_of(error, "the engine") from None
        self.after_stages(header)
        return messages

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        wakeup.wait(seconds)
        return False

    def checkpoint_completed(self, token: str) -> None:
        self.completed.append(token)

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        pass

    # --- stages

    def _read(self, header: EpochHeader, task: SourceTask, frames: Frames) -> list[Any]:
        source = next(source for source in self.plan.sources if source.id == task.source_id)
        runner = self._new_reader(task.subtask, frames)
        found = run_source_task(
            runner, task, source.source, source.name, header.attempt, header.now_ms, header.batch_records
        )
        return [message for message in found if message is not None]

    def _new_reader(self, subtask: int, frames: Frames) -> StageRunner:
        runner = StageRunner(self.plan, 0, RunnerIdentity("job", subtask), _into(frames))
        runner.open()
        return runner

    def _run_stage(self, header: EpochHeader, stage: int, partition: int, frames: Frames) -> PartitionAck:
        place = Place(stage, partition)
        collected = StageInput(stage)
        for frame in frames.pop(place, []):
            collected.add(frame)
        watermarks = header.watermarks.get(place, {})
        floors = header.floors(self.plan.stages[stage], partition)
        if self.plan.stages[stage].needs_slot:
            return self._in_slot(header, place, collected, floors, frames)
        runner = StageRunner(self.plan, stage, RunnerIdentity("job", partition), _into(frames))
        runner.open()
        runner.begin_epoch(header.attempt.epoch, header.attempt.id, header.now_ms, watermarks)
        for _ in run_steps(runner, collected.steps(floors), header.attempt.epoch):
            pass
        return PartitionAck(place, runner.finish_epoch(header.now_ms))

    def _in_slot(
        self, header: EpochHeader, place: Place, collected: StageInput, floors: dict[int, int], frames: Frames
    ) -> PartitionAck:
        slot = self.slots.get(place)
        if slot is None:
            address = SlotAddress(*place, "here", 0, "", os.getpid(), "one")
            slot = self.slots[place] = Slot(
                self.plan, "job", address, self._layout, self._background, checkpoint_seconds=self.checkpoint_seconds
            )
        try:
            return slot.run(header.begin_for(place), _into(frames), collected.steps(floors))
        except Exception:
            slot.abort()
            raise


def _into(frames: Frames) -> Callable[[int, bytes], None]:
    def emit(target: int, frame: bytes) -> None:
        frames.setdefault((decode_header(frame).stage, target), []).append(frame)

    return emit
