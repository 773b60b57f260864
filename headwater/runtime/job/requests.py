"""Requests to a running job: savepoint, stop, rescale. The coordinator serves them between two epochs."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from headwater.checkpoint.savepoint.savepoint import Where
from headwater.checkpoint.storage.base import StorageSpec
from headwater.graph.plan import JobPlan


@dataclass
class SavepointRequest:
    """Copy the next checkpoint to `target`."""

    target: Where
    stop: bool = False
    """End the job with that checkpoint."""
    drain: bool = False
    """With `stop`: tell every operator first that its input has ended, so that all windows and timers fire."""
    path: Future[str] = field(default_factory=Future)
    """Where the savepoint is, when it is there."""
    since_ms: float = 0.0
    """When the job began to serve it."""

    @property
    def where(self) -> str:
        return f"savepoint {self.target.url if isinstance(self.target, StorageSpec) else self.target}"

    def succeed(self, path: str) -> bool:
        """Tell whoever asked where it is. False: they were told already that it was given up."""
        with contextlib.suppress(InvalidStateError):
            self.path.set_result(path)
            return True
        return False

    def fail(self, error: Exception) -> None:
        """Tell whoever asked why it is not there, unless they were told before."""
        with contextlib.suppress(InvalidStateError):
            self.path.set_exception(error)


@dataclass
class RescaleRequest:
    """Change the parallelism of all operators for which the program does not set one."""

    parallelism: int
    plan: JobPlan | None = None
    """The program's plan at that parallelism."""
    done: Future[float] = field(default_factory=Future)
    """How many seconds the job stood still, when it goes on; 0 if it has that parallelism already."""
    since_ms: float = 0.0
    """When the job began to serve it."""

    where = "the checkpoint to rescale from"

    def fail(self, error: Exception) -> None:
        """Tell whoever asked why the parallelism is what it was."""
        self.done.set_exception(error)


Request = SavepointRequest | RescaleRequest
