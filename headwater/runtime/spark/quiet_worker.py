"""Keeps PySpark's Python workers quiet when the JVM ends before their last flush.

When a job is over, the JVM ends at once. A worker that is just writing its last four bytes finds the pipe broken, and
PySpark's daemon code in it prints a traceback: below the user's own error, and of no use.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType, SimpleNamespace


def leave_quietly(main: ModuleType) -> None:
    """Suppress the traceback about a JVM that has ended; other errors are still printed.

    `main` is the process's `__main__`. Does nothing if that is not PySpark's daemon.
    """
    if getattr(main.__spec__, "name", None) == "pyspark.daemon":
        vars(main)["traceback"] = SimpleNamespace(**{**vars(traceback), "print_exc": _print_unless_spark_left})


def _print_unless_spark_left() -> None:
    if not isinstance(sys.exception(), (BrokenPipeError, ConnectionResetError)):
        traceback.print_exc()
