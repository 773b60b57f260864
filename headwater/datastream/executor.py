"""The one door from the API to the runtime.

This layer must not import the runtime, which sits above it and brings Spark along. The launcher is looked up when the
first job is executed: the only import upward in the package, and the layer test knows it by this file's name.
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
    """What `execute()` hands its plan to: the runtime's launcher, unless another was set."""
    if _executor is not None:
        return _executor
    return cast(Executor, importlib.import_module("headwater.runtime.job.launcher"))


def set_executor(executor: Executor | None) -> None:
    """Send jobs elsewhere (tests, tools that only want the plan); None goes back to the runtime."""
    global _executor
    _executor = executor
