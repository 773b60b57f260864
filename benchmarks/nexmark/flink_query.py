"""Flink SQL in the JVM, no Python in it: Nexmark's queries (`--query q0,q1`) over the same CSV files into nowhere.

Hashmap state, a checkpoint every second. The files are made by the Python that has headwater (`--maker`). The function
of q14 is written with functions of Flink, so that no Python is needed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.nexmark.inputs import ROOT
from benchmarks.nexmark.measure import measure
from benchmarks.nexmark.queries import query, tables

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


if __name__ == "__main__":
    measure(run, str(ROOT / ".venv" / "bin" / "python"))
    os._exit(0)
