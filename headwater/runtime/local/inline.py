"""Does background work at once, in the thread that asks for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from headwater.runtime.local.killed import Killed

_T = TypeVar("_T")


class Inline:
    """Implements `runtime.background.Background`: the work is done, or has failed, when the call returns."""

    def start(self, name: str, work: Callable[[], _T]) -> Future[_T]:
        return _done(work)

    def queue(self, name: str) -> Executor:
        return _InlineQueue()


class _InlineQueue(Executor):
    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        return _done(lambda: fn(*args, **kwargs))


def _done(work: Callable[[], _T]) -> Future[_T]:
    future: Future[_T] = Future()
    try:
        future.set_result(work())
    except Killed:
        raise
    except BaseException as error:
        future.set_exception(error)
    return future


INLINE = Inline()
