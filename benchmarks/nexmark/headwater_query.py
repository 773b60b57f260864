"""headwater: Nexmark's queries (`--query q0,q1`) over CSV files into nowhere. Heap state, a checkpoint every second."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.nexmark.measure import measure
from benchmarks.nexmark.queries import query as text_of
from benchmarks.nexmark.queries import tables
from headwater.table import EnvironmentSettings, TableEnvironment


def prepared(folder: Path, parallelism: int) -> TableEnvironment:
    """An environment with the tables over the files in `folder`."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "parallelism.default": str(parallelism),
        "execution.checkpointing.interval": "1 s",
        "headwater.master": f"local[{parallelism}]",
    }.items():
        environment.get_config().set(key, value)
    for statement in tables(str(folder)):
        environment.execute_sql(statement)
    environment.execute_sql(
        "CREATE TEMPORARY FUNCTION count_char AS 'benchmarks.nexmark.functions.count_char' LANGUAGE PYTHON"
    )
    return environment


def run(folder: Path, name: str, parallelism: int) -> float:
    """Seconds from the start of the job to its end."""
    environment = prepared(folder, parallelism)
    result = environment.sql_query(text_of(name))
    columns = ", ".join(f"`{each.name}` {each.type.sql()}" for each in result.get_schema().fields)
    environment.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    started = time.monotonic()
    environment.execute_sql(f"INSERT INTO nowhere {text_of(name)}").wait()
    return time.monotonic() - started


if __name__ == "__main__":
    measure(run, sys.executable)
