"""What both contenders do with their `run`: report how long each query (`--query q0,q1`) takes, and its processor time.

Start-up is left out: a query runs on a thousand events twice, and what the second run takes is subtracted. The standard
library and `benchmarks` only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.cpu import CpuWatch, mark_processes
from benchmarks.nexmark.inputs import csv_files
from benchmarks.workload import arguments, report

WARM_EVENTS = 1_000


def measure(run: Callable[[Path, str, int], float], maker: str) -> None:
    """`run(folder, query, parallelism)` returns seconds. `maker`: the Python that makes the files, unless `--maker`."""
    options = arguments(records=1_000_000, parallelism=2, query="q0", maker=maker)
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
