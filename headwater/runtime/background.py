"""Runs work in the background: uploads, manifests, copies of checkpoints.

The implementation of `Background` decides what runs at the same time, and in which order. In production it uses
threads; the simulator in tests/chaos runs the work in a seeded order instead.
"""

from __future__ import annotations

import os
import queue
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
    """A thread for each queue, and one for each piece of work that is under way. Those that are done wait for more."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[Callable[[], None]]] = []
        """The inboxes of threads that have nothing to do. The one that was busy last is last."""
        os.register_at_fork(after_in_child=self._idle.clear)  # a forked process has none of these threads

    def start(self, name: str, work: Callable[[], _T]) -> Future[_T]:
        future: Future[_T] = Future()

        def run() -> None:
            threading.current_thread().name = name
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        try:
            self._idle.pop().put(run)
        except IndexError:
            inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
            inbox.put(run)
            threading.Thread(target=self._serve, args=(inbox,), daemon=True).start()
        return future

    def _serve(self, inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
        while True:
            inbox.get()()
            self._idle.append(inbox)

    def queue(self, name: str) -> Executor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)


THREADS = Threads()
