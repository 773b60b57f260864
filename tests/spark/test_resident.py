"""The resident engine on Spark: the same output, errors and requests as with shuffles, and a good neighbour."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from headwater.common import Duration, JobClient, JobStatus, Time, WatermarkStrategy
from headwater.common.errors import UserCodeError
from headwater.datastream import (
    BroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import MapStateDescriptor, ValueStateDescriptor
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.runtime.slot.slot import Slot
from headwater.runtime.spark import engines
from headwater.runtime.spark.epoch_job import SparkEngine
from headwater.runtime.spark.resident.engine import ResidentEngine
from headwater.testing import CollectingSink
from tests.spark.harness import JobRunner, epochs_of, progress
from tests.spark.tail_source import TailSource, append
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "headwater.epoch.engine"
RESIDENT = {ENGINE: "resident"}
AT_ONCE_S = 20
"""What is asked of an idle job happens at once; the machine may be busy."""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """{engine: attempts that completed}"""
    found: Counter[str] = Counter()

    def counted(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            acks = run(*arguments)
            found[name] += 1
            return acks

        return wrapper

    monkeypatch.setattr(ResidentEngine, "run", counted("resident", ResidentEngine.run))
    monkeypatch.setattr(SparkEngine, "run", counted("shuffle", SparkEngine.run))
    return found


# --- the same output

RULES = MapStateDescriptor("rules")
ODD = OutputTag("odd")
KEYS = 7
NUMBERS = 300


class CountPerKey(KeyedProcessFunction):
    """Numbers the records of a key, and once per key a timer fires."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + 1)
        yield "count", ctx.get_current_key(), count

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "timer", ctx.get_current_key()


class Sides(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts"))

    def add(self, side: str, key: Any) -> Any:
        count = (self.counts.get(side) or 0) + 1
        self.counts.put(side, count)
        yield side, key, count

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self.add("left", ctx.get_current_key())

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self.add("right", ctx.get_current_key())


class ByRule(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield (*value, *sorted(ctx.get_broadcast_state(RULES)))

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(value, True)


class OddAside(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        if value % 2:
            yield ODD, value
        yield value


def everything(env: StreamExecutionEnvironment) -> Any:
    """All shapes of a plan in one job."""
    out_of_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    timed = out_of_order.with_timestamp_assigner(lambda number, _: number * 100)
    split = env.from_collection(range(NUMBERS)).assign_timestamps_and_watermarks(timed).process(OddAside())
    odd = split.get_side_output(ODD)
    both = split.union(env.from_collection(range(NUMBERS))).key_by(lambda n: n % KEYS)
    counted = both.process(CountPerKey()).rebalance().map(lambda line: line).key_by(lambda line: line[1])
    sides = odd.key_by(lambda n: n % KEYS).connect(counted).process(Sides())
    windows = split.key_by(lambda n: n % KEYS).window(TumblingEventTimeWindows.of(Time.seconds(3)))
    sums = windows.reduce(lambda a, b: a + b).map(lambda total: ("window", total))
    rules = env.from_collection(["a", "b"]).broadcast(RULES)
    return sides.union(sums, counted.map(lambda line: line)).connect(rules).process(ByRule())


def test_a_job_of_all_shapes_gives_the_same_output_on_both_engines(run_job: JobRunner, ran: Counter[str]) -> None:
    shuffled = Counter(run_job(everything, 2, **{ENGINE: "shuffle"}, **epochs_of(60)))
    assert ran["shuffle"] >= 5 and not ran["resident"]
    ran.clear()
    resident = Counter(run_job(everything, 2, **RESIDENT, **epochs_of(60)))
    assert ran["resident"] >= 5 and not ran["shuffle"]
    assert resident == shuffled
    kinds = Counter(line[0] for line in resident.elements())
    assert kinds["count"] == 2 * NUMBERS and kinds["left"] == NUMBERS // 2 and kinds["timer"] == KEYS
    assert kinds["window"] == 10 * KEYS and kinds["right"] == 2 * NUMBERS + KEYS


# --- errors


def halve(number: int) -> float:
    return 100 / number


@pytest.mark.parametrize("keyed", [False, True])
def test_an_error_of_the_user_comes_first_and_fails_the_job_at_once(
    keyed: bool, run_job: JobRunner, ran: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    """In stage 0 the resident task raises it; behind a `key_by`, a slot."""

    class Halve(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield halve(value)

    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection([5, 2, 0, 1])
        return (numbers.key_by(lambda n: 0).process(Halve()) if keyed else numbers.map(halve)).name("halving")

    with pytest.raises(UserCodeError) as raised:
        run_job(build, 1, **RESIDENT, **epochs_of(2))
    error, text = raised.value, str(raised.value)
    assert (error.operator_name, error.record_repr, error.epoch) == ("halving", "0", 1)
    assert "return 100 / number" in text and "ZeroDivisionError" in text
    assert "py4j" not in text and "java" not in text.lower() and "headwater/runtime" not in text
    assert ran == {"resident": 1} and "trying again" not in caplog.text


# --- an idle job whose sources can wait


class Idle:
    """A resident job that counts the lines of files, and has read all of them."""

    def __init__(self, run_job: JobRunner, tmp_path: Path, sources: int = 1, **conf: Any) -> None:
        self.directories = [tmp_path / f"in-{number}" for number in range(sources)]
        self.sink = CollectingSink(str(tmp_path / "out"))
        self.checkpoints = run_job.checkpoint_dir()
        self.note = tmp_path / "completed"
        env = run_job.environment(2, self.checkpoints, **{**RESIDENT, **conf})
        streams = []
        for number, directory in enumerate(self.directories):
            source = TailSource(directory)
            append(directory / "first", "x")
            streams.append(env.from_source(source, WatermarkStrategy.no_watermarks(), f"tail-{number}"))
        lines = streams[0].union(*streams[1:]) if sources > 1 else streams[0]
        lines.key_by(lambda line: line).process(CountLines(str(self.note))).uid("count").sink_to(self.sink)
        self.client: JobClient = env.execute_async("idle")
        self.fed = Counter({"x": sources})

    def __enter__(self) -> Idle:
        self.wait_for_output()
        self.settle()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.client.get_job_execution_result().done():
            self.client.cancel().result(60)

    def feed(self, *lines: str, source: int = 0, file: str = "first") -> None:
        append(self.directories[source] / file, *lines)
        self.fed.update(lines)

    def wait_for_output(self) -> None:
        expected = Counter((line, number) for line, count in self.fed.items() for number in range(1, count + 1))
        wait_until(lambda: self.ended() or Counter(self.sink.results()) == expected, f"{expected}")
        assert Counter(self.sink.results()) == expected

    def ended(self) -> bool:
        return self.client.get_job_execution_result().done()

    def epoch(self) -> int:
        number: int = progress(self.client)["epoch"]
        return number

    def settle(self) -> None:
        """Wait until no epoch has run for half a second."""
        last = [self.epoch(), time.monotonic()]

        def quiet() -> bool:
            if self.epoch() != last[0]:
                last[:] = [self.epoch(), time.monotonic()]
            return time.monotonic() - last[1] > 0.5

        wait_until(quiet, "the job to be idle")


class CountLines(KeyedProcessFunction):
    """Numbers equal lines. Its slot notes how many checkpoints it knows to be complete."""

    def __init__(self, note: str) -> None:
        self.note = note

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        complete, note = Slot._complete_checkpoint, self.note

        def noted(slot: Slot) -> None:
            complete(slot)
            append(Path(note), slot._durable)

        Slot._complete_checkpoint = noted  # type: ignore[method-assign]

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


@pytest.fixture
def idle(run_job: JobRunner, tmp_path: Path, ran: Counter[str]) -> Iterator[Idle]:
    with Idle(run_job, tmp_path) as job:
        yield job


@pytest.mark.parametrize("sources", [1, 2])
def test_input_wakes_a_job_that_runs_no_epoch_before(
    sources: int, run_job: JobRunner, tmp_path: Path, ran: Counter[str]
) -> None:
    with Idle(run_job, tmp_path, sources) as job:
        for number in range(sources):
            before = job.epoch()
            time.sleep(1.5)  # longer than one wait of the loop
            assert job.epoch() == before, "an idle job ran an epoch"
            job.feed("y", "y", source=number)
            job.wait_for_output()
            job.settle()
            assert before < job.epoch() <= before + 3
    assert not ran["shuffle"]


def test_a_file_that_comes_later_is_read(idle: Idle) -> None:
    """Nobody waits for it: the resident task has no reader of it."""
    idle.feed("new", file="second")
    idle.wait_for_output()


def test_slots_know_what_is_committed_without_another_epoch(idle: Idle) -> None:
    idle.feed("y")
    idle.wait_for_output()
    idle.settle()
    epoch = idle.epoch()
    wait_until(lambda: f"-{epoch}-" in idle.note.read_text(), "the slots to know of the last epoch", AT_ONCE_S)
    assert idle.epoch() == epoch


def test_a_resident_task_that_was_killed_while_idle_is_replaced(idle: Idle, ran: Counter[str]) -> None:
    kill_resident_task(idle.directories[0] / "first")
    idle.feed("y")
    idle.wait_for_output()
    assert not ran["shuffle"]


def kill_resident_task(file: Path) -> int:
    """The process that has a file of the source open."""
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and str(file) in [opened.path for opened in process.open_files()]:
                process.kill()
                return process.pid
        except psutil.Error:
            continue
    raise AssertionError("no process has the source's file open")


# --- requests


def test_cancel_of_an_idle_job(idle: Idle) -> None:
    idle.client.cancel().result(AT_ONCE_S)
    assert idle.client.get_job_status().result() is JobStatus.CANCELED


def test_savepoint_and_stop_of_an_idle_job(idle: Idle, run_job: JobRunner, tmp_path: Path) -> None:
    path = idle.client.trigger_savepoint(str(tmp_path / "savepoints")).result(AT_ONCE_S)
    assert Path(path).exists()
    idle.feed("y")
    idle.wait_for_output()
    stopped = idle.client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(AT_ONCE_S)
    assert Path(stopped).exists() and stopped != path
    idle.client.get_job_execution_result().result(AT_ONCE_S)
    assert idle.client.get_job_status().result() is JobStatus.FINISHED


def test_rescale_of_an_idle_job(idle: Idle) -> None:
    for parallelism in (1, 2):
        idle.client.rescale(parallelism).result(60)
        idle.feed("y", "z")
        idle.wait_for_output()
        assert len(progress(idle.client)["slots"]) == parallelism


# --- neighbours


def test_a_job_on_a_dataframe_runs_although_resident_is_set(run_job: JobRunner, ran: Counter[str]) -> None:
    frame = session().range(0, 100, 1, 3).selectExpr("id", "id % 7 as rest")

    def build(env: StreamExecutionEnvironment) -> Any:
        pairs = env.from_dataframe(frame).map(lambda row: (row.rest, row["id"]))
        return pairs.union(env.from_collection([(0, 1000)])).key_by(lambda pair: pair[0]).sum(1)

    found = run_job(build, 2, **RESIDENT)
    assert len(found) == 101 and max(found)[0] == 6
    assert max(total for key, total in found if key == 0) == sum(range(0, 100, 7)) + 1000
    assert ran["shuffle"] >= 1


def test_two_jobs_share_two_cores(run_job: JobRunner, tmp_path: Path, ran: Counter[str]) -> None:
    """The second one finds one core left, and that one is for everybody."""
    with Idle(run_job, tmp_path) as first:
        assert Counter(run_job(everything, 2, **RESIDENT, **epochs_of(100)))
        assert ran["shuffle"] >= 3
        first.feed("y")
        first.wait_for_output()


def session() -> SparkSession:
    return SparkSession.builder.master("local[2]").getOrCreate()


def test_an_idle_job_gives_its_core_to_whoever_waits_for_it(
    idle: Idle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "IDLE_SECONDS", 1.0)
    here = str(tmp_path)

    def meet(number: int) -> bool:
        """Two tasks that must run at the same time: on both cores."""
        open(f"{here}/task-{number}", "w").close()
        deadline = time.monotonic() + 60
        while not os.path.exists(f"{here}/task-{1 - number}"):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    assert session().sparkContext.parallelize([0, 1], 2).map(meet).collect() == [True, True]
    idle.feed("y")
    idle.wait_for_output()


ONE_CORE = """
import sys
from headwater.common import Configuration
from headwater.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({
    "headwater.master": "local[1]", "headwater.epoch.min-records": 10, "headwater.epoch.max-records": 10,
    "headwater.epoch.engine": sys.argv[2], "execution.checkpointing.dir": sys.argv[1]}))
pairs = env.from_collection([(n % 3, 1) for n in range(100)])
with pairs.key_by(lambda pair: pair[0]).sum(1).execute_and_collect() as results:
    print(sorted(results))
"""


@pytest.mark.parametrize("engine", ["auto", "resident"])
def test_one_core_is_enough(engine: str, tmp_path: Path) -> None:
    """There is none for a resident task then."""
    script = tmp_path / "program.py"
    script.write_text(ONE_CORE)
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "checkpoints"), engine],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    expected = sorted((key, number) for key, count in ((0, 34), (1, 33), (2, 33)) for number in range(1, count + 1))
    assert ended.stdout.strip() == str(expected)
