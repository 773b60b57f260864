"""What bad programs and bad data get: an error that says what, where and what to do."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.common import Types
from headwater.common.errors import (
    ConfigurationError,
    InvalidKeyError,
    PlanError,
    SerializationError,
    TypeMismatchError,
    UserCodeError,
)
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from tests.spark.harness import JobRunner, epochs_of

ROOT = Path(__file__).resolve().parents[2]


def halve(number: int) -> float:
    return 100 / number


class Summed(KeyedProcessFunction):
    def __init__(self, fails_at: int | None) -> None:
        self.fails_at = fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        if value == self.fails_at:
            raise ValueError(f"cannot stand {value}")
        self.total.update((self.total.value() or 0) + value)
        yield self.total.value()


def test_an_error_of_the_user_names_operator_record_epoch_and_line(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([5, 2, 0, 1]).map(halve).name("halving")

    with pytest.raises(UserCodeError) as raised:
        run_job(build, 1, **epochs_of(2))
    error = raised.value
    assert (error.operator_name, error.record_repr, error.epoch) == ("halving", "0", 1)
    text = str(error)
    assert "return 100 / number" in text and "ZeroDivisionError" in text and __file__ in text.replace("/./", "/")
    assert "py4j" not in text and "java" not in text.lower() and "headwater/operators" not in text


def test_after_an_error_the_checkpoint_is_usable_with_corrected_code(run_job: JobRunner) -> None:
    checkpoints = run_job.checkpoint_dir()
    numbers = list(range(1, 41))

    def build(env: StreamExecutionEnvironment, fails_at: int | None) -> Any:
        return env.from_collection(numbers).key_by(lambda n: n % 2).process(Summed(fails_at)).uid("sums")

    env = run_job.environment(2, checkpoints, **epochs_of(10))
    got = []
    with (
        build(env, 25).execute_and_collect() as results,
        pytest.raises(UserCodeError, match=r"cannot stand 25") as raised,
    ):
        for record in results:
            got.append(record)
    assert raised.value.epoch == 2 and raised.value.record_repr == "25"
    assert len(got) == 20, "two epochs were complete, and nothing of the third may be seen"
    latest = ManifestStore(CheckpointLayout(checkpoints)).latest()
    assert latest is not None and latest.epoch == 1

    rest = run_job(lambda env: build(env, None), 2, checkpoints, **epochs_of(10))
    expected: Counter[int] = Counter()
    sums = [0, 0]
    for number in numbers:
        sums[number % 2] += number
        if number > 20:
            expected[sums[number % 2]] += 1
    assert Counter(rest) == expected


def test_an_error_in_a_timer_tells_which(run_job: JobRunner) -> None:
    class Late(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_event_time_timer(77)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            raise RuntimeError("out of time")

    with pytest.raises(UserCodeError, match="out of time") as raised:
        run_job(lambda env: env.from_collection(["a"]).key_by(lambda v: v).process(Late()))
    assert "timer at 77" in raised.value.record_repr and "'a'" in raised.value.record_repr


def test_an_unpicklable_function_is_refused_before_spark_runs_it(run_job: JobRunner) -> None:
    lock = threading.Lock()
    env = run_job.environment(1)
    env.from_collection([1]).map(lambda n: lock.locked()).name("locking").print()
    with pytest.raises(SerializationError) as raised:
        env.execute()
    assert "locking" in str(raised.value) and "lock" in str(raised.value)


def test_an_unpicklable_record_between_operators(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1]).map(lambda n: (n, threading.Lock())).rebalance().map(str).name("next")

    with pytest.raises(SerializationError) as raised:
        run_job(build)
    assert "'next'" in str(raised.value) and "lock" in str(raised.value)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_that_does_not_fit_its_type_leaves_a_usable_checkpoint(
    run_job: JobRunner, tmp_path: Path, backend: str
) -> None:
    class Last(KeyedProcessFunction):
        def __init__(self, as_text: bool) -> None:
            self.as_text = as_text

        def open(self, runtime_context: RuntimeContext) -> None:
            self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
            before = self.last.value()
            self.last.update(str(value) if self.as_text and value == 3 else value)
            yield before, value

    def build(as_text: bool) -> Any:
        return lambda env: env.from_collection([1, 2, 3]).key_by(lambda v: 0).process(Last(as_text)).uid("last")

    settings = {"checkpoint_dir": tmp_path / "checkpoints", "state.backend.type": backend, **epochs_of(1)}
    with pytest.raises(TypeMismatchError) as raised:
        run_job(build(True), 1, **settings)
    text = str(raised.value)
    assert "epoch 2: state 'last' of key 0 does not fit its declared type" in text
    assert "expected LONG, found str '3'" in text
    assert run_job(build(False), 1, **settings)[-1] == (2, 3)


def test_an_unpicklable_state_value_names_operator_and_state(run_job: JobRunner) -> None:
    class Keeps(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.kept = runtime_context.get_state(ValueStateDescriptor("the kept one"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            self.kept.update(threading.Lock())
            yield value

    with pytest.raises(SerializationError) as raised:
        run_job(lambda env: env.from_collection([1]).key_by(lambda v: v).process(Keeps()).name("keeper"))
    assert str(raised.value).startswith("state 'the kept one' of operator 'keeper' (keyed-process-")


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(("key", "says"), [(float("nan"), "nan"), ([1j, float("nan")], "nan")])
def test_bad_keys(run_job: JobRunner, key: Any, says: str, parallelism: int) -> None:
    with pytest.raises(InvalidKeyError, match=says):
        run_job(lambda env: env.from_collection([(key, 1)]).key_by(lambda pair: pair[0]).sum(1), parallelism)


def test_a_record_that_does_not_fit_its_declared_type(run_job: JobRunner) -> None:
    declared = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([("ann", 3), ("bob", "five")]).map(lambda pair: pair, declared)

    with pytest.raises(TypeMismatchError) as raised:
        run_job(build)
    text = str(raised.value)
    assert "age" in text and "INT" in text.upper() and "'five'" in text
    with pytest.raises(TypeMismatchError, match="item 1"):
        run_job.environment(1).from_collection([1, "x"], Types.INT())


@pytest.mark.parametrize("where", ["a Python worker", "a slot"])
def test_a_program_that_cannot_be_loaded_elsewhere_fails_once_and_at_once(
    run_job: JobRunner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    where: str,
) -> None:
    """Its module imports another one, which only the driver has; or all but the slots."""
    module = f"only_here_{where[-4:]}"
    in_slot = "open('/proc/self/comm').read().strip() == 'headwater-slot'"
    elsewhere = in_slot if where == "a slot" else f"os.getpid() != {os.getpid()}"
    (tmp_path / f"{module}.py").write_text(
        f"import os\nif {elsewhere}:\n    import nowhere_else\n\ndef add_one(number):\n    return number + 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    add_one = importlib.import_module(module).add_one

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 2, 3]).map(add_one).key_by(lambda n: n % 2).process(Summed(None))

    with pytest.raises(SerializationError, match=rf"(?s)cannot be loaded in {where}.*No module named 'nowhere_else'"):
        run_job(build, 2, **{"python.files": str(tmp_path / f"{module}.py")})
    assert "trying again" not in caplog.text


def test_bad_jobs_are_refused(run_job: JobRunner) -> None:
    with pytest.raises(PlanError):
        run_job.environment(1).execute()
    env = run_job.environment(1)
    env.from_collection([1]).map(lambda n: n)
    with pytest.raises(PlanError, match="sink"):
        env.execute()
    env = run_job.environment(1)
    stream = env.from_collection([1]).map(lambda n: n).uid("twin")
    stream.map(lambda n: n).uid("twin").print()
    with pytest.raises(PlanError, match="twin"):
        env.execute()
    with pytest.raises(ConfigurationError, match=r"headwater\.epoch\.duration"):
        run_job(lambda env: env.from_collection([1]), 1, **{"headwater.epoch.duration": "soon"})


def test_an_unknown_setting_is_a_warning_with_the_nearest_known_one(run_job: JobRunner) -> None:
    with pytest.warns(UserWarning, match=r"headwater\.epoch\.duration"):
        run_job(lambda env: env.from_collection([1]), 1, **{"headwater.epoch.duraton": 100})


def test_a_failing_source_names_itself(run_job: JobRunner) -> None:
    def numbers() -> Any:
        yield 1
        raise OSError("the feed is gone")

    with pytest.raises(UserCodeError, match="the feed is gone") as raised:
        run_job(lambda env: env.add_source(numbers, "feed"))
    assert raised.value.operator_name == "feed"


MAIN_PROGRAM = """
import sys
from dataclasses import dataclass

from headwater.common import Configuration
from headwater.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor


@dataclass(frozen=True)
class Payment:
    card: str
    amount: int


@dataclass
class Total:
    last: Payment
    amount: int = 0


class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value, ctx):
        assert isinstance(value, Payment)
        total = self.total.value() or Total(value)
        assert isinstance(total, Total) and isinstance(total.last, Payment)
        total.amount += value.amount
        total.last = value
        self.total.update(total)
        yield total.amount, value


env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({
    "headwater.master": "local[2]", "headwater.epoch.min-records": 4, "headwater.epoch.max-records": 4,
    "execution.checkpointing.dir": sys.argv[1]}))
env.set_parallelism(2)
payments = [Payment("a" if n % 2 else "b", n) for n in range(10)]
summed = env.from_collection(payments).key_by(lambda payment: payment.card).process(Sum())
with summed.execute_and_collect() as results:
    for total, payment in results:
        assert type(payment) is Payment
        print(payment.card, total)
"""


def test_classes_of_the_script_itself_as_records_and_state(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(MAIN_PROGRAM)
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "checkpoints")],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    expected: Counter[str] = Counter()
    totals = {"a": 0, "b": 0}
    for number in range(10):
        card = "a" if number % 2 else "b"
        totals[card] += number
        expected[f"{card} {totals[card]}"] += 1
    assert Counter(ended.stdout.splitlines()) == expected
