"""A job on a SparkSession that the program made itself does not bring Spark's noise into the program's output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys, time
from pyspark.sql import SparkSession
from headwater.common import Configuration
from headwater.datastream import StreamExecutionEnvironment

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print("spark is up", file=sys.stderr, flush=True)
directory = sys.argv[1]
conf = Configuration.from_dict({"execution.checkpointing.dir": directory + "/checkpoints"})
env = StreamExecutionEnvironment.get_execution_environment(conf).set_parallelism(1)
ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()

def slowly(row):
    time.sleep(0.7)  # long enough for a progress bar, which appears after half a second
    return row["value"]

env.from_dataframe(ticks).map(slowly).print()
client = env.execute_async("ticks")
deadline = time.monotonic() + 90
while client.progress()["epoch"] < 2 and time.monotonic() < deadline:
    time.sleep(0.1)
print("stopped:", bool(client.stop_with_savepoint(False, directory + "/saved").result(60)))
print("the job is over", file=sys.stderr, flush=True)
spark.stop()
"""


@pytest.mark.timeout(300)
def test_a_streaming_job_that_is_stopped_says_nothing_in_java(tmp_path: Path) -> None:
    program = tmp_path / "ticks.py"
    program.write_text(PROGRAM, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=270,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    # What Spark says while it starts is the program's own affair.
    _, _, said = ended.stderr.partition("spark is up\n")
    said, over, afterwards = said.partition("the job is over\n")
    assert over and said.strip() == ""
    assert "Exception" not in afterwards, "the job was still at work when the program stopped Spark"
    *numbers, last = ended.stdout.splitlines()
    assert last == "stopped: True"
    assert sorted(map(int, numbers)) == list(range(len(numbers))) and numbers
