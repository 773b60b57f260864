"""headwater: one of Nexmark's queries over CSV files into nowhere. Heap state, a checkpoint every second.

Start-up is left out: the query runs on a thousand events twice, in the same Spark, and the time of the second run is
subtracted.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.harness.cpu import CpuWatch, mark_processes
from benchmarks.nexmark.__main__ import write
from benchmarks.nexmark.generator import Nexmark
from benchmarks.nexmark.queries import query, tables
from benchmarks.workload import arguments, report
from headwater.table import EnvironmentSettings, TableEnvironment

WARM_EVENTS = 1_000


def run(folder: Path, name: str, parallelism: int) -> float:
    """Seconds from the start of the job to its end."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "parallelism.default": str(parallelism),
        "execution.checkpointing.interval": "1 s",
        "headwater.master": f"local[{parallelism}]",
    }.items():
        environment.get_config().set(key, value)
    for statement in tables(str(folder)):
        environment.execute_sql(statement)
    result = environment.sql_query(query(name))
    columns = ", ".join(f"`{each.name}` {each.type.sql()}" for each in result.get_schema().fields)
    environment.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    started = time.monotonic()
    environment.execute_sql(f"INSERT INTO nowhere {query(name)}").wait()
    return time.monotonic() - started


def main() -> None:
    options = arguments(records=1_000_000, parallelism=2, query="q0")
    mark = mark_processes()
    with tempfile.TemporaryDirectory() as folder:
        for part, events in (("warm", WARM_EVENTS), ("all", options.records)):
            write(Path(folder, part), events, options.parallelism, "csv", Nexmark())
        for _ in range(2):
            start_s = run(Path(folder, "warm"), options.query, options.parallelism)
        with CpuWatch(mark) as watch:
            seconds = max(run(Path(folder, "all"), options.query, options.parallelism) - start_s, 1e-3)
    report(
        records=options.records,
        seconds=seconds,
        rate=options.records / seconds,
        start_s=start_s,
        cpu_us=watch.seconds / options.records * 1e6,
    )


if __name__ == "__main__":
    main()
