"""A whole job in this process, from the decision where to start to its last commit. It can be killed at named steps."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common import Configuration
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import CollectingSink, in_process
from tests.chaos.simulator.jobs import ScriptedSplits

SPLITS = {f"split-{split}": [split * 100 + number for number in range(2 * split + 1)] for split in range(10)}
KEYS = 7
EPOCH_RECORDS = 10
"""A job takes about a dozen epochs, and splits end all the time."""


class Number(KeyedProcessFunction):
    """Numbers what it sees of a key: what is lost or applied twice shows in every record after it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield ctx.get_current_key(), number


def expected() -> Counter[Any]:
    seen = Counter(value % KEYS for values in SPLITS.values() for value in values)
    return Counter((key, number) for key, count in seen.items() for number in range(1, count + 1))


@dataclass(frozen=True)
class Setting:
    """Where and how a job runs."""

    root: Path
    parallelism: int = 2
    savepoint: str = ""
    backend: str = "hashmap"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def sink(self) -> CollectingSink:
        return CollectingSink(str(self.root / "out"))

    def output(self) -> Counter[Any]:
        return Counter(self.sink.results())


@dataclass
class Run:
    """One start of the job. `kills` at a step of an epoch: ("begin", 3), ("manifest-written", 5), ..."""

    setting: Setting
    kills: tuple[str, int] | None = None
    savepoint_at: int | None = None
    """The epoch before which a savepoint is asked for. It comes to be in `root / "savepoint"`."""

    def live(self) -> None:
        """To the end of the job, or raise JobCrashed, or what stops it."""
        savepoints = self.setting.root / "savepoints"
        with _short_lived(), in_process(self.setting.checkpoints, epoch_records=EPOCH_RECORDS) as here:
            if self.kills is not None:
                here.crash_job(at=self.kills[0], epoch=self.kills[1])
            if self.savepoint_at is not None:
                here.call(lambda job: job.trigger_savepoint(str(savepoints)), epoch=self.savepoint_at)
            try:
                self._execute()
            finally:
                if here.jobs:
                    self.start = here.jobs[0]._start
                for savepoint in savepoints.glob("savepoint-*"):
                    savepoint.rename(self.setting.root / "savepoint")

    def _execute(self) -> None:
        setting = self.setting
        configuration: dict[str, Any] = {
            "execution.checkpointing.num-retained": 2,
            "headwater.log-level": "OFF",
            "restart-strategy.type": "none",
            "state.backend.type": setting.backend,
            "state.backend.rocksdb.localdir": str(setting.root / "local"),
            "state.backend.rocksdb.memory.fixed-per-slot": "8 mb",
        }
        if setting.savepoint:
            configuration["execution.state-recovery.path"] = setting.savepoint
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(configuration))
        env.set_parallelism(setting.parallelism)
        stream = env.from_source(ScriptedSplits(SPLITS), None, "numbers").uid("numbers")
        stream.key_by(lambda n: n % KEYS).process(Number()).uid("number").sink_to(setting.sink).uid("sink")
        env.execute("job")


def _full_snapshot_is_due(chain: Sequence[SnapshotRef]) -> bool:
    """Often: jobs are short."""
    return sum(ref.kind == "delta" for ref in chain) >= 3


@contextlib.contextmanager
def _short_lived() -> Iterator[None]:
    with (
        mock.patch("headwater.runtime.slot.slot.full_snapshot_is_due", _full_snapshot_is_due),
        mock.patch("headwater.checkpoint.finished_splits.RECENT_LIMIT", 2),
        mock.patch("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 2),
    ):
        yield
