"""Sinks without two phases: one calls a function per record, one drops all records."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, UserCodeError

__all__ = ["DiscardSink", "FunctionSink", "SinkContext"]


class SinkContext:
    """What a sink function may ask about the record it gets."""

    def __init__(self) -> None:
        self._timestamp: int | None = None

    def timestamp(self) -> int | None:
        """The record's event timestamp in milliseconds, if it has one."""
        return self._timestamp


class FunctionSink(Sink):
    """Calls `function` for every record, while the epoch is still under way: **at least once**.

    An epoch that fails is replayed and calls the function again for the same records. A function that writes to the
    outside should therefore be idempotent; a sink that must be exactly once implements `Sink` itself.

    `function` is a callable, or an object with `invoke(value)` or `invoke(value, context)`, and optionally `open` and
    `close`, which are called once per partition and epoch attempt.
    """

    def __init__(self, function: Any) -> None:
        if not callable(function) and not callable(getattr(function, "invoke", None)):
            raise ConfigurationError(
                f"add_sink got {function!r}; expected a callable that takes a record, or a SinkFunction with invoke()"
            )
        self.function = function

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _FunctionWriter(self.function, context)

    def create_committer(self) -> Committer:
        return _NothingToCommit()


class _FunctionWriter(SinkWriter):
    def __init__(self, function: Any, context: WriterContext) -> None:
        self._function = function
        self._context = context
        self._invoke: Callable[..., Any] = getattr(function, "invoke", function)
        self._takes_context = hasattr(function, "invoke") and _positional_parameters(self._invoke) >= 2
        self._life_cycle("open", context)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        invoke, value = self._invoke, None
        try:
            if not self._takes_context:
                for value in values:
                    invoke(value)
                return
            sink_context = SinkContext()
            for index, value in enumerate(values):
                sink_context._timestamp = timestamps[index] if timestamps is not None else None
                invoke(value, sink_context)
        except Exception as error:
            where = self._context
            raise UserCodeError.from_exception(error, where.operator_name, value, where.epoch) from error

    def prepare_commit(self) -> list[Any]:
        return []

    def close(self) -> None:
        self._life_cycle("close")

    def _life_cycle(self, name: str, *arguments: Any) -> None:
        method = getattr(self._function, name, None)
        if callable(method) and not inspect.isfunction(self._function):
            method(*arguments[: _positional_parameters(method)])


class DiscardSink(Sink):
    """Takes every record and forgets it."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _DiscardWriter()

    def create_committer(self) -> Committer:
        return _NothingToCommit()


class _DiscardWriter(SinkWriter):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        pass

    def prepare_commit(self) -> list[Any]:
        return []


class _NothingToCommit(Committer):
    def commit(self, committables: list[Any]) -> None:
        pass


def _positional_parameters(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1  # a builtin such as list.append
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return 9
    return sum(
        parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )
