"""The only way from the API to the runtime.

This layer must not import the runtime, which is above it and loads Spark. So the launcher is imported when the first
job is executed: the only upward import in the package. The layer test allows it for this file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Protocol, cast

from headwater.common.configuration import Configuration
from headwater.common.job_client import JobClient
from headwater.graph.plan import JobPlan


class Executor(Protocol):
    """What runs jobs."""

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Callable[[int], JobPlan]) -> JobClient:
        """Start the job and return a handle on it. `replan` plans it anew for another default parallelism."""
        ...


_executor: Executor | None = None


def get_executor() -> Executor:
    """Return the executor that `execute()` uses: the runtime's launcher, unless another was set."""
    if _executor is not None:
        return _executor
    return cast(Executor, importlib.import_module("headwater.runtime.job.launcher"))


def current() -> Executor | None:
    """Return the executor that was set; None: the runtime."""
    return _executor


def set_executor(executor: Executor | None) -> None:
    """Set another executor (for tests, and tools that only need the plan); None: the runtime again."""
    global _executor
    _executor = executor
