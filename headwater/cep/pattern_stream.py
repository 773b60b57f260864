"""`CEP.pattern(stream, pattern)`: a stream and the pattern that is looked for in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from headwater.cep.pattern import Pattern
from headwater.common.callables import accepts
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.output_tag import OutputTag
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.data_stream import DataStream, KeyedStream
from headwater.datastream.function_check import check_no_generator, checked_function
from headwater.operators.cep.functions import (
    PatternFlatSelectFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
)
from headwater.operators.cep.operator import CepOperator, CepSettings


class PatternStream:
    """Each setter returns a new object. On a stream that is not keyed, one partition does all the work."""

    def __init__(self, stream: DataStream, pattern: Pattern, settings: CepSettings | None = None) -> None:
        """Not for users: call `CEP.pattern`."""
        self._stream = stream
        self._pattern = pattern
        self._steps = pattern.steps()
        self._settings = CepSettings() if settings is None else settings

    def in_event_time(self) -> PatternStream:
        """Match by the events' timestamps: an event waits until the watermark has reached it. This is the default."""
        return self._with(event_time=True)

    def in_processing_time(self) -> PatternStream:
        """Match in the order of arrival; time is the epoch's processing time."""
        return self._with(event_time=False)

    def with_comparator(self, comparator: Callable[[Any, Any], int]) -> PatternStream:
        """Order events of one timestamp: `comparator(a, b)` is negative if `a` comes first."""
        if not accepts(getattr(comparator, "compare", comparator), 2):
            raise TypeMismatchError(f"with_comparator() expects a function of two events, found {comparator!r}")
        return self._with(comparator=comparator)

    def side_output_late_data(self, late_data_output_tag: OutputTag) -> PatternStream:
        """Send events that the watermark has passed to this side output instead of dropping them."""
        return self._with(late_tag=output_tag("side_output_late_data", late_data_output_tag).tag_id)

    def process(
        self,
        pattern_process_function: PatternProcessFunction | Callable[[Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Process each match. A plain function gets `(match, ctx)` and yields results.

        A `process_timed_out_match(match, ctx)` of the function gets the partial matches that run out of time.
        """
        function = checked_function("process", pattern_process_function, PatternProcessFunction)
        if not hasattr(function, "process_match"):
            function = _Plain(function)
        return self._add(function, output_type)

    def select(
        self,
        pattern_select_function: PatternSelectFunction | Callable[[Any], Any],
        output_type: TypeInformation | None = None,
        *,
        timed_out_tag: OutputTag | None = None,
        timeout_function: PatternTimeoutFunction | Callable[[Any, int], Any] | None = None,
    ) -> DataStream:
        """One result per match; and, under `timed_out_tag`, one per partial match that runs out of time."""
        function = checked_function("select", pattern_select_function, PatternSelectFunction)
        check_no_generator("select", function, "flat_select()")
        return self._selected(function, "select", output_type, timed_out_tag, timeout_function)

    def flat_select(
        self,
        pattern_flat_select_function: PatternFlatSelectFunction | Callable[[Any], Iterable[Any]],
        output_type: TypeInformation | None = None,
        *,
        timed_out_tag: OutputTag | None = None,
        timeout_function: PatternTimeoutFunction | Callable[[Any, int], Any] | None = None,
    ) -> DataStream:
        """Any number of results per match; and, under `timed_out_tag`, one per partial match out of time."""
        function = checked_function("flat_select", pattern_flat_select_function, PatternFlatSelectFunction)
        return self._selected(function, "flat_select", output_type, timed_out_tag, timeout_function)

    def _selected(
        self, function: Any, method: str, output_type: TypeInformation | None, tag: OutputTag | None, timeout: Any
    ) -> DataStream:
        if (tag is None) != (timeout is None):
            raise TypeMismatchError(f"{method}() needs both timed_out_tag and timeout_function, or none of them")
        if tag is None:
            return self._add(_Selecting(function, method), output_type)
        timeout = checked_function(method, timeout, PatternTimeoutFunction)
        return self._add(_SelectingTimeouts(function, method, output_tag(method, tag), timeout), output_type)

    def _add(self, function: PatternProcessFunction, output_type: TypeInformation | None) -> DataStream:
        keyed = keyed_stream(self._stream)
        return keyed._add(
            "pattern",
            "CEP",
            partial(CepOperator, keyed._key_selector, self._steps, function, self._settings),
            (function, self._steps),
            output_type,
            keyed=True,
            needs_ticks=not self._settings.event_time,
        )

    def _with(self, **changes: Any) -> PatternStream:
        return PatternStream(self._stream, self._pattern, replace(self._settings, **changes))


class _Plain(PatternProcessFunction):
    """`function(match, ctx)`."""

    def __init__(self, function: Any) -> None:
        # An attribute of the instance hides the method below: the operator then calls the function itself.
        self.process_match = function  # type: ignore[method-assign]

    def process_match(self, match: dict[str, list[Any]], ctx: PatternProcessFunction.Context) -> Iterable[Any] | None:
        raise AssertionError("hidden by the attribute")


class _Selecting(PatternProcessFunction):
    """For `select` and `flat_select`."""

    def __init__(self, function: Any, method: str) -> None:
        self._function = function
        self._call = getattr(function, method, function)
        self._flat = method == "flat_select"

    def open(self, runtime_context: Any) -> None:
        if hasattr(self._function, "open"):
            self._function.open(runtime_context)

    def close(self) -> None:
        if hasattr(self._function, "close"):
            self._function.close()

    def process_match(self, match: dict[str, list[Any]], ctx: PatternProcessFunction.Context) -> Iterable[Any] | None:
        result = self._call(match)
        if self._flat:
            return result  # type: ignore[no-any-return]
        return () if result is None else (result,)


class _SelectingTimeouts(_Selecting):
    def __init__(self, function: Any, method: str, tag: OutputTag, timeout: Any) -> None:
        super().__init__(function, method)
        self._tag = tag
        self._timeout = getattr(timeout, "timeout", timeout)

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: PatternProcessFunction.Context) -> None:
        ctx.output(self._tag, self._timeout(match, ctx.timestamp()))


def output_tag(method: str, tag: Any) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise TypeMismatchError(f"{method}() expects an OutputTag, found {short_repr(tag)}")
    return tag


def keyed_stream(stream: DataStream) -> KeyedStream:
    """`stream` if it is keyed; otherwise all its records have one key."""
    return stream if isinstance(stream, KeyedStream) else stream.key_by(_the_only_key)


def _the_only_key(record: Any) -> int:
    return 0
