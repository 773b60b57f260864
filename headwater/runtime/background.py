"""Runs work in the background: uploads, manifests, copies of checkpoints.

The implementation of `Background` decides what runs at the same time, and in which order. In production it uses
threads; the simulator in tests/chaos runs the work in a seeded order instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Background(Protocol):
    """Starts work. Callers wait for the returned futures with `result` only."""

    def start(self, name: str, work: Callable[[], _T]) -> Future[_T]:
        """Start `work` now, in the background. It does not keep the process alive."""
        ...

    def queue(self, name: str) -> Executor:
        """Return an executor that runs its work one after the other."""
        ...


class Threads:
    """A thread for each piece of work, or for each queue."""

    def start(self, name: str, work: Callable[[], _T]) -> Future[_T]:
        future: Future[_T] = Future()

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, name=name, daemon=True).start()
        return future

    def queue(self, name: str) -> Executor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)


THREADS = Threads()
