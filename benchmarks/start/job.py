"""A ten-record job, twice in one process. The harness takes the time from `python job.py` to its last line."""

from __future__ import annotations

import time

from benchmarks.workload import arguments, report
from headwater.common import Types
from headwater.datastream import StreamExecutionEnvironment


def run_once(env: StreamExecutionEnvironment) -> None:
    env.from_collection(list(range(10)), Types.LONG()).map(lambda i: i * i, output_type=Types.LONG()).print()
    env.execute("ten_records")


def main() -> None:
    options = arguments(executions=1)
    env = StreamExecutionEnvironment.get_execution_environment()
    seconds: list[float] = []
    for _ in range(options.executions):
        started = time.perf_counter()
        run_once(env)
        seconds.append(time.perf_counter() - started)
    report(first_execute_s=seconds[0], second_execute_s=seconds[-1], executions=options.executions)


if __name__ == "__main__":
    main()
