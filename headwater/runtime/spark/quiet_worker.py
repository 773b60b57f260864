"""Keeps PySpark's Python workers quiet when Spark is gone before their last flush.

A job that is over lets the JVM end at once. A worker that is just then writing its last four bytes finds the pipe
broken, and PySpark's daemon, of which it is a fork, shows a traceback: below the user's own error, and about nothing.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType, SimpleNamespace


def leave_quietly(main: ModuleType) -> None:
    """Let the daemon whose fork this process is say nothing about a JVM that left; any other error is shown as ever.

    `main` is the process's `__main__`. Where that is not PySpark's daemon, nothing is done.
    """
    if getattr(main.__spec__, "name", None) == "pyspark.daemon":
        vars(main)["traceback"] = SimpleNamespace(**{**vars(traceback), "print_exc": _print_unless_spark_left})


def _print_unless_spark_left() -> None:
    if not isinstance(sys.exception(), (BrokenPipeError, ConnectionResetError)):
        traceback.print_exc()
