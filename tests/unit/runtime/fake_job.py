"""A job that only remembers what it was asked for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

from headwater.common.completable_future import CompletableFuture
from headwater.common.errors import ConfigurationError
from headwater.common.job_status import JobStatus


class FakeJob:
    """Remembers what it was asked for. Futures are completed by the test."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.path: CompletableFuture[str] = CompletableFuture()
        self.seconds: CompletableFuture[float] = CompletableFuture()
        self.cancelling = threading.Event()
        self.epochs: Iterator[int] = itertools.repeat(7)
        self.statistics: list[dict[str, Any]] = []

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus.RUNNING)

    def progress(self) -> dict[str, Any]:
        return {"epoch": next(self.epochs), "records_per_second": 1234.5}

    def checkpoints(self) -> list[dict[str, Any]]:
        return self.statistics

    def describe(self) -> dict[str, Any]:
        return {"job_id": "abc123", "status": "RUNNING"}

    def exceptions(self) -> dict[str, Any]:
        return {"entries": [], "truncated": False}

    def checkpoint(self, epoch: object) -> dict[str, Any]:
        return next(each for each in self.statistics if each["epoch"] == epoch)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        if savepoint_directory is None:
            raise ConfigurationError("no directory was given for the savepoint")
        self.asked.append(("savepoint", savepoint_directory))
        return self.path

    def ask_to_stop(self, drain: bool, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        self.asked.append(("stop", drain, savepoint_directory))
        return self.path

    def trigger_checkpoint(self) -> CompletableFuture[int]:
        self.asked.append(("checkpoint",))
        return CompletableFuture.completed(8)

    def rescale(self, parallelism: int) -> CompletableFuture[float]:
        self.asked.append(("rescale", parallelism))
        return self.seconds

    def cancel(self) -> CompletableFuture[None]:
        self.cancelling.set()
        return CompletableFuture()
