"""The program in README.md as a test: built, run in process, and its output compared. Modules are loaded before."""

from __future__ import annotations

import contextlib
import io
import re
import statistics
import time
from pathlib import Path

from benchmarks.workload import arguments, report
from headwater.common import WatermarkStrategy as WatermarkStrategy
from headwater.datastream.connectors.data_generator import DataGeneratorSource as DataGeneratorSource
from headwater.testing import assert_same_records, in_process

ROOT = Path(__file__).resolve().parents[2]


def run_test(program: str, expected: list[str]) -> float:
    """Return how many seconds the test took."""
    started = time.perf_counter()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), in_process():
        exec(compile(program, "count.py", "exec"), {"__name__": "count"})
    assert_same_records(printed.getvalue().splitlines(), expected)
    return time.perf_counter() - started


def main() -> None:
    runs = arguments(runs=20).runs
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    output = re.search(r"<!-- output: begin .*?```\n(.*?)```", readme, re.DOTALL)
    assert program is not None and output is not None
    expected = output[1].splitlines()
    cpu = time.process_time()
    seconds = [run_test(program[1], expected) for _ in range(runs)]
    report(
        first_ms=seconds[0] * 1000,
        median_ms=statistics.median(seconds) * 1000,
        cpu_ms=(time.process_time() - cpu) * 1000 / runs,
        records=len(expected),
    )


if __name__ == "__main__":
    main()
