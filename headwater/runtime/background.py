"""Where work goes on beside the thread that asked for it: uploads, manifests, copies of checkpoints.

A seam: what runs beside what, and in which order, is up to whoever implements `Background`. In production these are
threads; the simulator of tests/chaos puts one seeded order in their place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Background(Protocol):
    """Starts work. The futures that it returns are waited for with `result` only."""

    def start(self, name: str, work: Callable[[], _T]) -> Future[_T]:
        """Begin `work` now, beside everything else. It does not keep the process alive."""
        ...

    def queue(self, name: str) -> Executor:
        """Runs what it is given one after the other."""
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
