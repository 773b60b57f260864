"""headwater: Nexmark's queries (`--query q0,q1`) over CSV files into nowhere. Heap state, a checkpoint every second.

Start-up is left out: a query runs on a thousand events twice, in the same Spark, and the time of the second run is
subtracted, its processor time too.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.harness.cpu import CpuWatch, mark_processes
from benchmarks.nexmark.inputs import WARM_EVENTS, csv_files
from benchmarks.nexmark.queries import query as text_of
from benchmarks.nexmark.queries import tables
from benchmarks.workload import arguments, report
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


def main() -> None:
    options = arguments(records=1_000_000, parallelism=2, query="q0")
    mark = mark_processes()
    warm, folder = (csv_files(sys.executable, n, options.parallelism) for n in (WARM_EVENTS, options.records))
    for name in options.query.split(","):
        for _ in range(2):
            with CpuWatch(mark) as start:
                start_s = run(warm, name, options.parallelism)
        with CpuWatch(mark) as watch:
            seconds = max(run(folder, name, options.parallelism) - start_s, 1e-3)
        report(
            query=name,
            records=options.records,
            seconds=seconds,
            rate=options.records / seconds,
            start_s=start_s,
            cpu_us=(watch.seconds - start.seconds) / options.records * 1e6,
        )


if __name__ == "__main__":
    main()
