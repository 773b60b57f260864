"""Asks a service for each record of a stream, with many requests under way at once."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.common.errors import PlanError, TypeMismatchError, short_repr
from headwater.common.time import DurationLike, to_millis
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.data_stream import DataStream
from headwater.datastream.function_check import checked_function_class
from headwater.datastream.operator_settings import positive
from headwater.operators.async_io.retry import NO_RETRY_STRATEGY, AsyncRetryStrategy
from headwater.operators.functions.asynchronous import AsyncFunction

if TYPE_CHECKING:
    from headwater.operators.async_io.wait import AsyncSettings


class AsyncDataStream:
    """Applies an `AsyncFunction` to a stream.

    `timeout` is for a request with all its retries (0: none); what takes longer goes to `AsyncFunction.timeout`, which
    fails the job unless it is overridden. `capacity` is how many requests one partition has under way.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: DurationLike,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order in which requests are done; never across a watermark."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: DurationLike,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """As `unordered_wait`; requests are tried again as `async_retry_strategy` says."""
        settings = _settings(timeout, capacity, async_retry_strategy, ordered=False)
        return _add(data_stream, "unordered_wait", async_function, settings, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: DurationLike,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order of the records."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: DurationLike,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """As `ordered_wait`; requests are tried again as `async_retry_strategy` says."""
        settings = _settings(timeout, capacity, async_retry_strategy, ordered=True)
        return _add(data_stream, "ordered_wait", async_function, settings, output_type)


def _settings(timeout: DurationLike, capacity: int, strategy: Any, *, ordered: bool) -> AsyncSettings:
    if not isinstance(strategy, AsyncRetryStrategy):
        raise TypeMismatchError(f"expected an AsyncRetryStrategy, found {short_repr(strategy)}")
    if strategy.get_retry_predicate() is None:
        raise PlanError(f"{type(strategy).__name__}.get_retry_predicate() returned None; it must say what to retry")
    timeout_ms = to_millis(timeout, "timeout")
    if timeout_ms == 0 and strategy is not NO_RETRY_STRATEGY:
        raise PlanError("requests with retries need a timeout above zero, or one could be tried for ever")
    from headwater.operators.async_io.wait import AsyncSettings  # with asyncio, which other jobs need not wait for

    return AsyncSettings(timeout_ms, positive("capacity of an async wait", capacity), ordered, strategy)


def _add(
    stream: DataStream, method: str, function: Any, settings: AsyncSettings, output_type: TypeInformation | None
) -> DataStream:
    if not isinstance(stream, DataStream):
        raise TypeMismatchError(f"{method}() expects a stream, found {short_repr(stream)}")
    checked_function_class(method, function, AsyncFunction)
    if not inspect.iscoroutinefunction(function.async_invoke):
        raise TypeMismatchError(f"{method}(): {type(function).__name__}.async_invoke must be declared as 'async def'")
    from headwater.operators.async_io.wait import AsyncWaitOperator

    factory = partial(AsyncWaitOperator, settings, function)
    return stream._add("async wait", "async wait operator", factory, function, output_type)
