"""Plans of test jobs, and the in-process engine as tests use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common import Configuration
from headwater.common.ids import Place
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.graph.plan import JobPlan
from headwater.runtime.background import THREADS, Background
from headwater.runtime.epoch.messages import Ack, EpochHeader, SourceTask
from headwater.runtime.local import engine as local
from headwater.testing import CollectingSink

Build = Callable[[StreamExecutionEnvironment], DataStream]


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


class InProcessEngine(local.InProcessEngine):
    """The in-process engine, with what tests look at and do."""

    def __init__(self, plan: JobPlan, layout: CheckpointLayout | None, background: Background = THREADS) -> None:
        super().__init__(plan, layout, background)
        self.headers: list[EpochHeader] = []
        self.cancelled = False
        self.completed: list[str] = []
        """Tokens of complete checkpoints."""

    def kill_slot(self, stage: int, partition: int) -> None:
        self.slots.kill(Place(stage, partition))

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]:
        self.headers.append(header)
        return super().run(header, tasks, dataframes)

    def checkpoint_completed(self, token: str) -> None:
        self.completed.append(token)
        super().checkpoint_completed(token)

    def cancel(self) -> None:
        self.cancelled = True
