"""The limit: a loop that makes and searches the lines, on one core."""

from __future__ import annotations

import time

from benchmarks.workload import GREP_NEEDLE, arguments, log_line, report


def main() -> None:
    options = arguments(records=3_000_000)
    found = 0
    started = time.perf_counter()
    for i in range(options.records):
        if GREP_NEEDLE in log_line(i):
            found += 1
    seconds = time.perf_counter() - started
    report(records=options.records, seconds=seconds, rate=options.records / seconds, outputs=found)


if __name__ == "__main__":
    main()
