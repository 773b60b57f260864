"""Requests to a running job: savepoint, stop, rescale. They are served between two epochs (`serving.py`)."""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from headwater.checkpoint.savepoint.savepoint import Where
from headwater.checkpoint.storage.base import StorageSpec
from headwater.common.errors import HeadwaterError
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


@dataclass
class CheckpointRequest:
    """Complete a checkpoint now, whenever the next one is due."""

    done: Future[int] = field(default_factory=Future)
    """The checkpoint's epoch, when it is complete."""
    since_ms: float = 0.0
    """When the job began to serve it."""

    where = "the checkpoint"

    def fail(self, error: Exception) -> None:
        """Tell whoever asked why there is none."""
        self.done.set_exception(error)


@dataclass
class ReplayRequest:
    """Put dead letters through again."""

    directory: str
    """Where their files are."""
    ids: list[str] | None = None
    """None: all that wait."""
    done: Future[dict[str, Any]] = field(default_factory=Future)
    """{"done": ids, "refused_again": {id: the new letter's}, "not_possible": {id: why}}, when that is committed."""
    since_ms: float = 0.0
    """When the job began to serve it."""

    where = "the checkpoint with the dead letters"

    def fail(self, error: Exception) -> None:
        """Tell whoever asked why it was not done, or not yet."""
        self.done.set_exception(error)


Request = SavepointRequest | RescaleRequest | CheckpointRequest | ReplayRequest


class RequestQueue:
    """Requests that are not served yet. Any thread may add one; the job's thread takes them."""

    def __init__(self) -> None:
        self._waiting: deque[Request] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: Request) -> None:
        self._waiting.append(request)
        if self._closed:
            self._refuse_all()

    def take(self) -> Request:
        return self._waiting.popleft()

    def put_back(self, request: Request) -> None:
        """Make a request that was taken, and not served, the next one."""
        self._waiting.appendleft(request)

    def close(self) -> None:
        """The job has ended: refuse what waits, and all that will come."""
        self._closed = True
        self._refuse_all()

    def _refuse_all(self) -> None:
        for request in [self._waiting.popleft() for _ in range(len(self._waiting))]:
            request.fail(HeadwaterError("the job ended before it got to this request"))
