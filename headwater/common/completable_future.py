"""The result of work that is still under way."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class CompletableFuture(Generic[T]):
    """A `concurrent.futures.Future` under the names of pyflink.common.CompletableFuture; safe between threads.

    `await`ing it works too, in any running event loop.
    """

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def completed(value: R) -> CompletableFuture[R]:
        """A future that is done already."""
        future: CompletableFuture[R] = CompletableFuture()
        future.set_result(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture[Any]:
        """A future that has failed already."""
        future: CompletableFuture[Any] = CompletableFuture()
        future.set_exception(error)
        return future

    def cancel(self) -> bool:
        """Give up the result. Return False if it is there, or is being made."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        return self._future.cancelled()

    def done(self) -> bool:
        """Return True if there is a result, an error or a cancellation."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Raises the error of a failed future; TimeoutError after `timeout` seconds."""
        return self._future.result(timeout)

    def get(self, timeout: float | None = None) -> T:
        """The same as `result`, under Java's name."""
        return self._future.result(timeout)

    def exception(self) -> BaseException | None:
        """The error, if the future has failed; None if it has not (yet). Does not wait."""
        if not self._future.done():
            return None
        if self._future.cancelled():
            return CancelledError()
        return self._future.exception()

    def set_result(self, value: T) -> None:
        self._future.set_result(value)

    def set_exception(self, error: BaseException) -> None:
        self._future.set_exception(error)

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], Any]) -> None:
        """Call `callback(self)` when done, in the thread that completes the future; at once if it is done."""
        self._future.add_done_callback(lambda _: callback(self))

    def __await__(self) -> Generator[Any, None, T]:
        from asyncio import wrap_future  # here: asyncio is a quarter of a slot's imports, and slots await nothing

        return wrap_future(self._future).__await__()

    def __str__(self) -> str:
        if not self.done():
            state = "not completed"
        else:
            state = "completed" if self.exception() is None else "completed exceptionally"
        return f"CompletableFuture[{state}]"
