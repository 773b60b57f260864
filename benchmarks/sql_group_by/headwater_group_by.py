"""headwater: `SELECT k, COUNT(*), SUM(v) GROUP BY k` over made rows into nowhere.

Heap state, a checkpoint every second. Keys are integers at random. Start-up is left out: a thousand rows are counted
twice first, in the same Spark, and the time of the second run is subtracted.
"""

from __future__ import annotations

import time

from benchmarks.harness.cpu import CpuWatch, mark_processes
from benchmarks.workload import arguments, report
from headwater.table import EnvironmentSettings, TableEnvironment

WARM_ROWS = 1_000


def run(rows: int, keys: int, parallelism: int) -> float:
    """Seconds from the start of the job to its end."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "parallelism.default": str(parallelism),
        "execution.checkpointing.interval": "1 s",
        "headwater.master": f"local[{parallelism}]",
    }.items():
        environment.get_config().set(key, value)
    environment.execute_sql(
        "CREATE TABLE numbers (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0',"
        f" 'number-of-rows' = '{rows}', 'fields.k.min' = '0', 'fields.k.max' = '{keys - 1}',"
        " 'fields.v.min' = '0', 'fields.v.max' = '1000000')"
    )
    environment.execute_sql("CREATE TABLE nowhere (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole')")
    started = time.monotonic()
    environment.execute_sql("INSERT INTO nowhere SELECT k, COUNT(*), SUM(v) FROM numbers GROUP BY k").wait()
    return time.monotonic() - started


def main() -> None:
    options = arguments(records=20_000_000, keys=1_000_000, parallelism=2)
    mark = mark_processes()
    for _ in range(2):
        start_s = run(WARM_ROWS, options.keys, options.parallelism)
    with CpuWatch(mark) as watch:
        seconds = max(run(options.records, options.keys, options.parallelism) - start_s, 1e-3)
    report(
        records=options.records,
        seconds=seconds,
        rate=options.records / seconds,
        start_s=start_s,
        cpu_us=watch.seconds / options.records * 1e6,
    )


if __name__ == "__main__":
    main()
