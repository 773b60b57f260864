"""An enum of pyflink.common that nothing reads: Flink removed its effect."""

from __future__ import annotations

from enum import Enum


class InputDependencyConstraint(Enum):
    """Which inputs must have data before a task is scheduled. Here, as in Flink 2, it has no effect."""

    ANY = 0
    ALL = 1
