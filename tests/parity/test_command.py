"""`headwater run` as a user calls it: a process of its own, with Spark, workers and slots."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

COUNTING = """
from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, MapFunction
from pyflink.datastream.state import ValueStateDescriptor


class Reading:
    def __init__(self, sensor, value):
        self.sensor, self.value = sensor, value


class Parse(MapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_metrics_group().counter("seen")

    def map(self, line):
        self.seen.inc()
        sensor, value = line.split(",")
        return Reading(sensor, int(value))


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        self.sizes = runtime_context.get_metrics_group().distribution("sizes")

    def process_element(self, reading, ctx):
        self.sizes.update(reading.value)
        before = self.last.value()
        count = Reading(reading.sensor, before.value + 1 if before else 1)
        self.last.update(count)
        yield count.sensor, count.value
"""

PROGRAM = """
import json
import sys

from counting import Count, Parse
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
results = (
    env.from_collection(sys.argv[1:])
    .map(Parse()).uid("parse")
    .key_by(lambda reading: reading.sensor)
    .process(Count()).uid("count")
)
with results.execute_and_collect() as collected:
    for result in collected:
        print(result)
    metrics = collected.get_job_client().get_accumulators().result()["metrics"]
print(json.dumps(metrics))
"""


def start(tmp_path: Path, program: str, *words: str) -> subprocess.Popen[str]:
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "headwater", "run", "-m", "local[2]", str(path), *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_listen_to_ctrl_c,
    )


def _listen_to_ctrl_c() -> None:
    """A test run that was started in the background ignores Ctrl-C, and its children would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_modules_that_import_pyflink_work_in_workers_and_slots_and_metrics_come_back(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING, encoding="utf-8")
    process = start(tmp_path, PROGRAM, "-p", "2", "a,1", "b,2", "a,10", "c,5", "b,1")
    out, err = process.communicate()
    assert process.returncode == 0, err
    *lines, metrics = out.splitlines()
    assert sorted(lines) == ["('a', 1)", "('a', 2)", "('b', 1)", "('b', 2)", "('c', 1)"]
    measured = json.loads(metrics)
    assert sum(partition["seen"]["count"] for partition in measured["parse"].values()) == 5
    sizes = [partition["sizes"] for partition in measured["count"].values()]
    assert sum(each["count"] for each in sizes) == 5 and sum(each["sum"] for each in sizes) == 19
    assert set(measured["count"]) == {"0", "1"}


def test_a_function_that_raises_is_code_1_with_its_traceback_first(tmp_path: Path) -> None:
    program = """
from pyflink.datastream import StreamExecutionEnvironment

def invert(x):
    return 1 // x

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([2, 1, 0]).map(invert).name("invert").print()
env.execute()
"""
    process = start(tmp_path, program)
    _, err = process.communicate()
    assert process.returncode == 1
    lines = err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "in invert" in lines[1]
    assert lines[-1] == (
        "headwater: job failed: operator 'invert', epoch 0, record 0: "
        "ZeroDivisionError('integer division or modulo by zero')"
    )


def test_ctrl_c_is_code_130(tmp_path: Path) -> None:
    program = """
import os

from pyflink.datastream import StreamExecutionEnvironment


def slowly():
    number = 0
    while True:
        yield number
        number += 1


env = StreamExecutionEnvironment.get_execution_environment()
env.add_source(slowly).filter(lambda x: x % 1000 == 0).print()
env.execute()
"""
    process = start(tmp_path, program, "-D", "headwater.epoch.max-records=5000")
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        deadline = time.monotonic() + 120
        while not process.stdout.readline():  # the job runs once it prints
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        os.set_blocking(process.stdout.fileno(), True)
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "headwater: interrupted"
