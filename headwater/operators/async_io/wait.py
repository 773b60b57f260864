"""Calls a service for each record, with many requests at once.

This is the one exception from law 5 (operators do no I/O, read no clock): the user's function does I/O on purpose. An
epoch is still a function of its input (law 2), because no request outlives the batch of its record: at the barrier no
request is in flight, so none must be persisted. A crash repeats the requests of the epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.operators.async_io.retry import NO_RETRY_STRATEGY, AsyncRetryStrategy
from headwater.operators.functions.asynchronous import AsyncFunction
from headwater.operators.results import Results
from headwater.operators.user_function import UserFunctionOperator
from headwater.state.copying import captured


@dataclass(frozen=True)
class AsyncSettings:
    """The settings that the user gave to `AsyncDataStream`."""

    timeout_ms: int
    """Time limit for a request with all its retries; 0: none."""
    capacity: int
    """How many requests may run at once, per partition."""
    ordered: bool
    retry_strategy: AsyncRetryStrategy = NO_RETRY_STRATEGY


class _Failed(Exception):
    """Carries the user's exception, and the record, out of the event loop."""

    def __init__(self, error: Exception, record: Any) -> None:
        super().__init__()
        self.error = error
        self.record = record


class AsyncWaitOperator(UserFunctionOperator):
    """Runs an `AsyncFunction` in an event loop of its own, on the operator's thread.

    Results of a batch are emitted together: in the order of the records, or in the order in which requests ended. Each
    has its record's timestamp. Watermarks do not overtake records: all requests have ended when a watermark comes.
    """

    def __init__(self, settings: AsyncSettings, function: AsyncFunction) -> None:
        super().__init__(function)
        self._settings = settings
        self._invoke = function.async_invoke
        self._timeout = function.timeout
        predicate = settings.retry_strategy.get_retry_predicate()
        self._retry_result = predicate.result_predicate()
        self._retry_exception = predicate.exception_predicate()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        self._loop = asyncio.new_event_loop()
        super().open()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._close_loop()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        assert self._loop is not None
        try:
            done = self._loop.run_until_complete(self._request_all(values))
        except _Failed as failed:
            raise self.user_error(failed.error, failed.record) from failed.error
        if self._settings.ordered:
            done.sort(key=lambda item: item[0])
        results = Results(stamped=timestamps is not None)
        for index, produced in done:
            results.take(produced, None if timestamps is None else timestamps[index])
        results.emit(self.output)

    async def _request_all(self, values: list[Any]) -> list[tuple[int, list[Any]]]:
        """Return (position of the record, its results) in the order in which requests ended. A failure cancels all."""
        numbered = iter(enumerate(values))
        done: list[tuple[int, list[Any]]] = []

        async def work() -> None:
            for index, value in numbered:
                # Captured here: other requests go on before the results are emitted.
                done.append((index, list(map(captured, await self._request(value)))))

        workers = [asyncio.ensure_future(work()) for _ in range(min(self._settings.capacity, len(values)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return done

    async def _request(self, value: Any) -> list[Any]:
        timeout_ms = self._settings.timeout_ms
        try:
            if timeout_ms <= 0:
                return await self._attempt_until_done(value)
            # Not asyncio.timeout: it cannot be told apart from a TimeoutError of the user's code.
            attempts = asyncio.ensure_future(self._attempt_until_done(value))
            try:
                finished, _ = await asyncio.wait((attempts,), timeout=timeout_ms / 1000)
                if finished:
                    return attempts.result()
            finally:
                attempts.cancel()
            return self._checked(self._timeout(value), "timeout")
        except Exception as error:
            raise _Failed(error, value) from error

    async def _attempt_until_done(self, value: Any) -> list[Any]:
        strategy, attempt = self._settings.retry_strategy, 1
        while True:
            try:
                results = self._checked(await self._invoke(value), "async_invoke")
                again = self._retry_result is not None and self._retry_result(results)
                if not again or not strategy.can_retry(attempt):
                    return results
            except Exception as error:
                if self._retry_exception is None or not self._retry_exception(error) or not strategy.can_retry(attempt):
                    raise
            await asyncio.sleep(strategy.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    def _checked(self, results: Any, method: str) -> list[Any]:
        if isinstance(results, list):
            return results
        if isinstance(results, Iterable) and not isinstance(results, str | bytes):
            return list(results)
        raise TypeMismatchError(
            f"{method}() of {type(self.function).__name__} must return a list of results, found {short_repr(results)}; "
            "return [] for none and [result] for one"
        )

    def _close_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
