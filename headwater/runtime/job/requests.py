"""What people ask of a running job: savepoints, an end, another parallelism. Served between two epochs."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from headwater.checkpoint.savepoint.savepoint import Where
from headwater.graph.plan import JobPlan


@dataclass
class SavepointRequest:
    """Copy the next checkpoint that is cut to `target`."""

    target: Where
    stop: bool = False
    """End the job with that checkpoint."""
    drain: bool = False
    """With `stop`: tell every operator first that its input has ended, so that all windows and timers fire."""
    path: Future[str] = field(default_factory=Future)
    """Where the savepoint is, when it is there."""


@dataclass
class RescaleRequest:
    """Go on with another parallelism wherever the program does not set one."""

    parallelism: int
    plan: JobPlan | None = None
    """The program's plan at that parallelism."""
    done: Future[float] = field(default_factory=Future)
    """How many seconds the job stood still, when it goes on; 0 if it has that parallelism already."""


Request = SavepointRequest | RescaleRequest
