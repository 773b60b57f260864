"""Whole programs in this process: what they give, what they leave behind, how time passes, what they cannot do."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration, Encoder, Row, Time, Types, WatermarkStrategy
from headwater.common.errors import ConfigurationError, PlanError, SerializationError, UserCodeError
from headwater.common.job_client import JobClient
from headwater.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink
from headwater.datastream.executor import get_executor
from headwater.datastream.state import ValueStateDescriptor
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.runtime.job import launcher
from headwater.runtime.local.job import InProcessJob
from headwater.testing import (
    CollectingSink,
    JobCrashed,
    ManualClock,
    ScriptSource,
    assert_same_records,
    in_process,
)
from tests.unit.runtime.in_process_engine import FakeDataFrame
from tests.unit.testing.programs import count_words, counted


@pytest.fixture
def sink(tmp_path: Path) -> CollectingSink:
    return CollectingSink(str(tmp_path / "out"))


def test_the_program_of_the_readme(sink: CollectingSink) -> None:
    started = time.perf_counter()
    with in_process() as here:
        result = count_words(sink).execute("count words")
    assert_same_records(sink.results(), counted())
    assert time.perf_counter() - started < 5, "six seconds of its time must not be six seconds of ours"
    assert here.jobs[0].client.progress()["epoch"] > 3
    assert result.get_net_runtime() >= 0


class StoresALock(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.lock = runtime_context.get_state(ValueStateDescriptor("lock"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.lock.update(threading.Lock())
        yield value


def test_an_error_about_state_names_the_operator_as_the_program_does() -> None:
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1]).key_by(lambda n: n).process(StoresALock()).name("locks").print()
        with pytest.raises(SerializationError, match=r"state 'lock' of operator 'locks' \(.*cannot be pickled"):
            env.execute()


def test_print_and_execute_and_collect(capsys: pytest.CaptureFixture[str]) -> None:
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        env.from_collection([1, 2, 3]).map(lambda number: number * 2).print()
        env.execute()
        assert capsys.readouterr().out == "2\n4\n6\n"
        doubled = env.from_collection([1, 2, 3]).map(lambda number: number * 2)
        with doubled.execute_and_collect() as results:
            assert list(results) == [2, 4, 6]


def test_files(tmp_path: Path) -> None:
    with in_process(epoch_records=10):
        env = StreamExecutionEnvironment.get_execution_environment()
        files = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
        env.from_collection([str(number) for number in range(50)], Types.STRING()).sink_to(files)
        env.execute()
    lines = [line for part in (tmp_path / "out").rglob("*") if part.is_file() for line in part.read_text().split()]
    assert_same_records(lines, map(str, range(50)))


def test_event_time_windows_and_side_outputs(sink: CollectingSink, tmp_path: Path) -> None:
    others = CollectingSink(str(tmp_path / "others"))
    odd = OutputTag("odd", Types.LONG())

    class Sort(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            if value[1] % 2:
                yield odd, value[1]
            else:
                yield value

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1] * 1000)
    with in_process(epoch_records=4):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        pairs = env.from_collection([("a", second) for second in range(20)]).assign_timestamps_and_watermarks(strategy)
        sorted_ = pairs.process(Sort())
        windows = sorted_.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(10)))
        windows.reduce(lambda left, right: ("a", left[1] + right[1])).sink_to(sink)
        sorted_.get_side_output(odd).sink_to(others)
        env.execute()
    assert_same_records(sink.results(), [("a", 0 + 2 + 4 + 6 + 8), ("a", 10 + 12 + 14 + 16 + 18)])
    assert_same_records(others.results(), range(1, 20, 2))


class Reminder(KeyedProcessFunction):
    """An hour after a record."""

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 3_600_000)
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), timestamp


def test_an_hour_of_processing_time_takes_none() -> None:
    clock = ManualClock(1_000_000)
    with in_process(clock=clock) as here:
        assert here.clock is clock
        env = StreamExecutionEnvironment.get_execution_environment()
        words = env.from_source(ScriptSource(["roof"], bounded=False), WatermarkStrategy.no_watermarks(), "words")
        (reminder,) = words.key_by(lambda word: word).process(Reminder()).execute_and_collect(limit=1)
    assert reminder[0] == "roof"
    assert 4_600_000 <= reminder[1] <= 4_601_000
    assert clock.now_ms >= reminder[1]


def test_a_savepoint_in_the_middle_and_another_parallelism(sink: CollectingSink, tmp_path: Path) -> None:
    asked: list[Any] = []

    def stop(job: JobClient) -> None:
        asked.append(job.stop_with_savepoint(False, str(tmp_path / "savepoints")))

    with in_process(epoch_records=5) as here:
        here.call(stop, epoch=2)
        count_words(sink).execute()
        savepoint = asked[0].result(10)
        assert len(sink.results()) < 24
        env = count_words(sink, parallelism=3)
        env.configure(Configuration.from_dict({"execution.state-recovery.path": savepoint}))
        env.execute("another job")
    assert_same_records(sink.results(), counted())


def test_what_is_asked_during_a_rescale_is_done_after_it(sink: CollectingSink, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    end_slots = InProcessJob._end_slots

    def asking(job: InProcessJob) -> None:
        end_slots(job)
        if len(asked) == 1:
            asked.append(job.client.trigger_checkpoint())

    monkeypatch.setattr(InProcessJob, "_end_slots", asking)
    with in_process() as here:
        here.call(lambda job: asked.append(job.rescale(3)), epoch=2)
        count_words(sink).execute()
    assert_same_records(sink.results(), counted())
    assert asked[0].result(1) >= 0 and asked[1].result(1) > 2


def test_a_rescale_while_the_job_runs(sink: CollectingSink) -> None:
    asked: list[Any] = []
    with in_process(epoch_records=3) as here:
        here.call(lambda job: asked.append(job.rescale(3)), epoch=2)
        count_words(sink).execute()
    assert asked[0].result(0) > 0
    coordinator = here.jobs[0].client._coordinator
    assert coordinator is not None and {address.partition for address in coordinator.slots()} == {0, 1, 2}
    assert_same_records(sink.results(), counted())


def test_a_directory_is_kept_and_the_job_goes_on_in_another_block(sink: CollectingSink, tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    with in_process(checkpoints, epoch_records=5) as here, pytest.raises(JobCrashed):
        here.crash_job(epoch=2)
        count_words(sink).execute()
    assert 0 < len(sink.results()) < 24
    for _ in range(2):  # the second time there is nothing left to do
        with in_process(checkpoints, epoch_records=5):
            count_words(sink).execute()
        assert_same_records(sink.results(), counted())


def test_a_block_leaves_everything_as_it_was(sink: CollectingSink) -> None:
    def surroundings() -> list[Any]:
        return [get_executor(), threading.active_count(), gc.isenabled(), gc.get_freeze_count()]

    before = surroundings()
    with in_process() as here:
        for _ in range(2):  # a job that has finished does not stand in the way of the next one with its name
            count_words(sink).execute()
        assert os.path.isdir(here._scratch)
    assert not os.path.exists(here._scratch)
    assert surroundings() == before
    assert_same_records(sink.results(), counted() * 2)


def test_a_job_that_still_runs_ends_with_the_block() -> None:
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_source(ScriptSource([1], bounded=False), WatermarkStrategy.no_watermarks(), "script").print()
        job = env.execute_async()
    assert job.get_job_status().result().name == "CANCELED"


def test_many_epochs_make_full_snapshots_without_a_fork(
    sink: CollectingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was forked"))
    monkeypatch.setattr("headwater.runtime.slot.full_snapshot.MAX_DELTAS", 5)
    with in_process(tmp_path / "checkpoints", epoch_records=2) as here:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection(list(range(200))).key_by(lambda n: n % 2).reduce(lambda a, b: a + b).sink_to(sink)
        here.crash_job(epoch=90)
        with pytest.raises(JobCrashed):
            env.execute("sum")
        assert list((tmp_path / "checkpoints" / "snapshots").glob("*full*"))
        env.from_collection(list(range(200))).key_by(lambda n: n % 2).reduce(lambda a, b: a + b).sink_to(sink)
        env.execute("sum")
    assert len(sink.results()) == 200 and max(sink.results()) == sum(range(1, 200, 2))


def test_an_error_of_the_program_is_the_users(sink: CollectingSink) -> None:
    with in_process(), pytest.raises(UserCodeError, match="ZeroDivisionError"):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1, 0]).map(lambda number: 1 // number).sink_to(sink)
        env.execute()


def test_a_dataframe_is_refused_at_once() -> None:
    with in_process(), pytest.raises(PlanError, match=r"'readings' is a Spark DataFrame.*from_collection"):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_dataframe(FakeDataFrame([Row(1)]), source_name="readings").print()
        env.execute()


def test_the_setting_runs_a_job_in_process_in_real_time(sink: CollectingSink) -> None:
    started = time.monotonic()
    settings = {"headwater.master": "in-process", "headwater.epoch.duration": "50 ms"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    numbers = DataGeneratorSource(lambda i: i, count=6, rate_per_second=20)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").sink_to(sink)
    env.execute()
    assert_same_records(sink.results(), range(6))
    assert time.monotonic() - started > 0.2, "its rate is 20 records per second"
    assert not launcher._running


def test_bad_settings_say_what_is_expected() -> None:
    with pytest.raises(ConfigurationError, match=r"epoch_records=0\): expected 1 or more"), in_process(epoch_records=0):
        pass
    with in_process() as here:
        with pytest.raises(ConfigurationError, match="expected one of begin, chunk-received"):
            here.crash_job(epoch=1, at="lunch")
        with pytest.raises(ConfigurationError, match="the first epoch is 0"):
            here.crash_job(epoch=-1)
        with pytest.raises(ConfigurationError, match="the attempt is over by then"):
            here.fail_attempt(epoch=1, at="sink-committed")


def test_operators_of_one_stage_may_differ_in_parallelism(sink: CollectingSink) -> None:
    with in_process(epoch_records=2):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(3)
        numbers = env.from_collection(list(range(12)))
        narrow = numbers.key_by(lambda number: number).process(Tagged("narrow")).set_parallelism(1)
        wide = numbers.key_by(lambda number: number % 5).process(Tagged("wide"))
        narrow.union(wide).sink_to(sink)
        env.execute()
    assert_same_records(sink.results(), [(tag, number) for tag in ("narrow", "wide") for number in range(12)])


class Tagged(KeyedProcessFunction):
    def __init__(self, tag: str) -> None:
        self.tag = tag

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        yield self.tag, value
