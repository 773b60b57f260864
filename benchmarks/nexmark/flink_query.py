"""Flink SQL in the JVM, no Python in it: Nexmark's queries (`--query q0,q1`) over the same CSV files into nowhere.

Hashmap state, a checkpoint every second. Start-up is left out: a query runs on a thousand events twice, and the time of
the second run is subtracted, its processor time too. The files are made by the Python that has headwater (`--maker`).
The function of q14 is written with functions of Flink, so that no Python is needed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.harness.cpu import CpuWatch, mark_processes
from benchmarks.nexmark.inputs import ROOT, WARM_EVENTS, csv_files
from benchmarks.nexmark.queries import query, tables
from benchmarks.workload import arguments, report

COUNT_CHAR = "CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))"


def text_of(name: str) -> str:
    return query(name).replace("count_char(extra, 'c')", COUNT_CHAR)


def prepared(folder: Path, parallelism: int) -> TableEnvironment:
    """An environment with the tables over the files in `folder`."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "parallelism.default": str(parallelism),
        "execution.checkpointing.interval": "1 s",
        "taskmanager.numberOfTaskSlots": str(parallelism),
    }.items():
        environment.get_config().set(key, value)
    for statement in tables(str(folder), "file://"):
        environment.execute_sql(statement)
    return environment


def run(folder: Path, name: str, parallelism: int) -> float:
    environment = prepared(folder, parallelism)
    fields = environment.sql_query(text_of(name))._j_table.getResolvedSchema().getColumns()
    columns = ", ".join(f"`{c.getName()}` {c.getDataType().getLogicalType().asSerializableString()}" for c in fields)
    columns = columns.replace(" *ROWTIME*", "").replace(" *PROCTIME*", "")
    environment.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    started = time.monotonic()
    environment.execute_sql(f"INSERT INTO nowhere {text_of(name)}").wait()
    return time.monotonic() - started


def main() -> None:
    options = arguments(records=1_000_000, parallelism=2, query="q0", maker=str(ROOT / ".venv" / "bin" / "python"))
    mark = mark_processes()
    warm, folder = (csv_files(options.maker, n, options.parallelism) for n in (WARM_EVENTS, options.records))
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
    os._exit(0)
