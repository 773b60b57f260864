"""Runs parity programs on PyFlink, one after another in one process: a start of PyFlink takes ten seconds.

Called by `scripts/parity_record.py` with the Python of an environment that has PyFlink. Standard output must be a file
opened for appending: the JVM, which prints what `print()` sinks are given, shares it. Marks tell the programs apart.
"""

from __future__ import annotations

import logging
import os
import runpy
import sys
import traceback
from pathlib import Path

os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.datastream import StreamExecutionEnvironment

MARK = "=== parity:"


def mark(*words: str) -> None:
    sys.stdout.flush()
    os.write(1, f"{MARK} {' '.join(words)}\n".encode())


def with_parallelism_one() -> None:
    """Records are taken with parallelism 1: there the order of arrival is that of the collection."""
    original = StreamExecutionEnvironment.get_execution_environment

    def get_execution_environment(configuration=None):  # type: ignore[no-untyped-def]
        environment = original(configuration) if configuration is not None else original()
        environment.set_parallelism(1)
        environment.set_python_executable(sys.executable)
        return environment

    StreamExecutionEnvironment.get_execution_environment = staticmethod(get_execution_environment)


def main(programs: list[str]) -> None:
    logging.disable()  # examples send PyFlink's own log to standard output
    with_parallelism_one()
    for program in programs:
        mark("begin", Path(program).stem)
        try:
            runpy.run_path(program, run_name="__main__")
        except BaseException:
            traceback.print_exc()
            mark("failed", Path(program).stem)
        else:
            mark("done", Path(program).stem)


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # not waiting for the gateway: the parent has all it needs
