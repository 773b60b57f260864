"""A whole job in this process, from the decision where to start to its last commit. It can be killed at named steps."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common import Configuration
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.epoch.restart_policy import NoRestart
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.launcher import _Job
from headwater.runtime.job.progress import JobProgress
from headwater.runtime.job.requests import SavepointRequest
from headwater.testing import CollectingSink
from tests.chaos.simulator.jobs import ScriptedSplits
from tests.unit.runtime.in_process_engine import InProcessEngine

SPLITS = {f"split-{split}": [split * 100 + number for number in range(2 * split + 1)] for split in range(10)}
KEYS = 7
EPOCH_RECORDS = 10
"""A job takes about a dozen epochs, and splits end all the time."""


class Killed(BaseException):
    """The process ends here."""


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
    """One start of the job. `kills` at a step of an epoch: ("before", 3), ("manifest-written", 5), ..."""

    setting: Setting
    kills: tuple[str, int] | None = None
    savepoints: dict[int, str] = field(default_factory=dict)
    """{epoch before which a savepoint is asked for: its path}"""

    def live(self) -> None:
        """To the end of the job, or raise Killed, or what stops it."""
        with _in_this_process(self._reached):
            job = _LocalJob(self)
            try:
                job.prepare()
                self.start = job._start
                job._run_plans(None)
                job._clean_up(None)
            finally:
                for engine in job.engines:
                    for slot in engine.slots.by_place.values():
                        slot.close()
                if hasattr(job, "_start"):
                    job._start.release()

    def before(self, header: EpochHeader, coordinator: Coordinator) -> None:
        self._reached("before", header.attempt.epoch)
        target = self.savepoints.pop(header.attempt.epoch, None)
        if target is not None:
            coordinator.ask(SavepointRequest(target))

    def _reached(self, step: str, epoch: int) -> None:
        if (step, epoch) == self.kills:
            raise Killed


class _LocalJob(_Job):
    """The launcher's job, as far as it is not about Spark, processes and threads."""

    def __init__(self, run: Run) -> None:
        self._run_of_it = run
        self.engines: list[InProcessEngine] = []
        setting = run.setting
        configuration: dict[str, Any] = {
            "execution.checkpointing.dir": str(setting.checkpoints),
            "execution.checkpointing.interval": "1 ms",
            "execution.checkpointing.num-retained": 2,
            "headwater.log-level": "OFF",
        }
        if setting.savepoint:
            configuration["execution.state-recovery.path"] = setting.savepoint
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict(
                {
                    "state.backend.type": setting.backend,
                    "state.backend.rocksdb.localdir": str(setting.root / "local"),
                    "state.backend.rocksdb.memory.fixed-per-slot": "8 mb",
                }
            )
        )
        env.set_parallelism(setting.parallelism)
        stream = env.from_source(ScriptedSplits(SPLITS), None, "numbers").uid("numbers")
        stream.key_by(lambda n: n % KEYS).process(Number()).uid("number").sink_to(setting.sink).uid("sink")
        plan, _ = env._plan("job")
        super().__init__(plan, Configuration.from_dict(configuration), None)

    def _new_coordinator(self, context: Any, progress: JobProgress) -> tuple[Coordinator, Engine]:
        start = self._start
        engine = InProcessEngine(self._plan, start.layout, INLINE)
        self.engines.append(engine)
        coordinator = Coordinator(
            self._plan, start.job_id, engine, start.store, NoRestart(),
            EpochSizer(10_000, EPOCH_RECORDS, EPOCH_RECORDS), 2, self._checkpoint_settings(), progress, INLINE,
        )  # fmt: skip
        engine.wait = lambda seconds, wakeup: True  # type: ignore[method-assign]
        engine.before = lambda header: self._run_of_it.before(header, coordinator)
        return coordinator, engine

    def _end_slots(self) -> None:
        pass


class _Inline:
    """Work beside an epoch is done when it is asked for."""

    def start(self, name: str, work: Callable[[], Any]) -> Future[Any]:
        return _done(work)

    def queue(self, name: str) -> Executor:
        return _InlineQueue()


class _InlineQueue(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return _done(lambda: fn(*args, **kwargs))


def _done(work: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(work())
    except Killed:
        raise
    except BaseException as error:
        future.set_exception(error)
    return future


INLINE = _Inline()


def _full_snapshot_is_due(chain: Sequence[SnapshotRef]) -> bool:
    """Often: jobs are short."""
    return sum(ref.kind == "delta" for ref in chain) >= 3


class _FullSnapshot:
    """Takes the place of `FullSnapshotChild`: no fork."""

    kind = "full"

    def __init__(self, name: str, ref: SnapshotRef) -> None:
        self.names = (name,)
        self._ref = ref

    @classmethod
    def start(cls, name: str, write: Callable[[], SnapshotRef]) -> _FullSnapshot:
        return cls(name, write())

    def done(self) -> bool:
        return True

    def result(self) -> SnapshotRef:
        return self._ref

    def kill(self) -> None:
        pass


@contextlib.contextmanager
def _in_this_process(reached: Callable[[str, int], None]) -> Iterator[None]:
    with (
        mock.patch("headwater.runtime.epoch.fault.hook", reached),
        mock.patch("headwater.runtime.slot.slot.full_snapshot_is_due", _full_snapshot_is_due),
        mock.patch("headwater.runtime.slot.slot.FullSnapshotChild", _FullSnapshot),
        mock.patch("headwater.checkpoint.finished_splits.RECENT_LIMIT", 2),
        mock.patch("headwater.state.rocksdb.value.WRITTEN_AT_ONCE", 2),
        mock.patch("headwater.runtime.slot.slot.gc", mock.Mock()),
    ):
        yield
