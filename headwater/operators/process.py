"""process: the user's function sees timestamps and clocks, and on a keyed stream state and timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.operators.base import OperatorContext, Output
from headwater.operators.functions.plain import KeyedProcessFunction, ProcessFunction
from headwater.operators.functions.time_domain import TimeDomain
from headwater.operators.functions.timer_service import KeyedTimerService, TimerService, UnkeyedTimerService
from headwater.operators.results import Results
from headwater.operators.user_function import (
    SURE_KEYS,
    KeyedOperator,
    UserFunctionOperator,
    captured_key,
    method_of,
)
from headwater.state.copying import captured
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.timers import TimerQueue

Timestamps = list[int | None] | None

MAX_RESULTS_HELD = 4096
"""Emit results of timers in batches of about this size: the last watermark of a job may fire millions at once."""


class _UnkeyedContext(ProcessFunction.Context):
    """The context of an operator, one object for all calls. Only `current_timestamp` changes from record to record."""

    def __init__(self, timer_service: TimerService) -> None:
        self._timer_service = timer_service
        self.current_timestamp: int | None = None

    def timer_service(self) -> TimerService:
        return self._timer_service

    def timestamp(self) -> int | None:
        return self.current_timestamp


class _KeyedContext(KeyedProcessFunction.OnTimerContext):
    """The context of a keyed operator, one object for records and timers. It reads the key from the backend."""

    def __init__(self, backend: KeyedStateBackend, timer_service: TimerService) -> None:
        self._backend = backend
        self._timer_service = timer_service
        self.current_timestamp: int | None = None
        self.current_domain = TimeDomain.EVENT_TIME

    def get_current_key(self) -> Any:
        return captured(self._backend.current_key)

    def timer_service(self) -> TimerService:
        return self._timer_service

    def timestamp(self) -> int | None:
        return self.current_timestamp

    def time_domain(self) -> TimeDomain:
        return self.current_domain


class _FiredTimer:
    """Replaces the record in an error that `on_timer` raised."""

    def __init__(self, timestamp: int, key: Any, domain: TimeDomain) -> None:
        self._text = f"<timer at {timestamp} ({domain.name}) of key {key!r}>"

    def __repr__(self) -> str:
        return self._text


class ProcessOperator(UserFunctionOperator):
    """Runs a `ProcessFunction`, or a function of (value, context)."""

    def __init__(self, function: Any, method: str = "process_element") -> None:
        super().__init__(function)
        self._process = method_of(function, method, "process")

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._ctx = _UnkeyedContext(UnkeyedTimerService(context))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        results = Results(stamped=timestamps is not None)
        position = iter(values)
        try:
            results.take_batch(self._processed(position, timestamps, results.timestamps))
        except Exception as error:
            raise self.failure(error, values, position) from error
        results.emit(self.output)

    def _processed(self, values: Iterable[Any], timestamps: Timestamps, stamps: Timestamps) -> Iterator[Any]:
        """Yield what the function produces for each record, and append the record's timestamp to `stamps` each time."""
        process, ctx = self._process, self._ctx
        if timestamps is None or stamps is None:
            ctx.current_timestamp = None
            for value in values:
                # Not `yield from`: its error for what is not iterable is another one.
                for result in process(value, ctx) or ():
                    yield result
            return
        stamp = stamps.append
        for value, timestamp in zip(values, timestamps, strict=True):
            ctx.current_timestamp = timestamp
            for result in process(value, ctx) or ():
                stamp(timestamp)
                yield result


class KeyedProcessOperator(KeyedOperator):
    """Runs a `KeyedProcessFunction`.

    Results of a record have its timestamp, results of a timer the timer's. Event-time timers fire in the order of their
    timestamps when the watermark passes them. Their results are emitted before the watermark.
    """

    def __init__(self, key_selector: Any, function: Any, method: str = "process_element") -> None:
        super().__init__(key_selector, function)
        self._process = method_of(function, method, "process")
        self._on_timer = getattr(function, "on_timer", None)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._ctx = _KeyedContext(self._backend, KeyedTimerService(context, self._backend))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        results = Results(stamped=timestamps is not None)
        position = iter(values)
        try:
            results.take_batch(self._processed(position, timestamps, results.timestamps))
        except Exception as error:
            raise self.failure(error, values, position) from error
        results.emit(self.output)

    def _processed(self, values: Iterable[Any], timestamps: Timestamps, stamps: Timestamps) -> Iterator[Any]:
        """Yield what the function produces for each record, and append the record's timestamp to `stamps` each time."""
        process, key_of, backend, ctx = self._process, self.key_of, self._backend, self._ctx
        if timestamps is None or stamps is None:
            ctx.current_timestamp = None
            for value in values:
                backend.current_key = key = key_of(value)
                if type(key) not in SURE_KEYS:
                    backend.current_key = captured_key(key)
                # Not `yield from`: its error for what is not iterable is another one.
                for result in process(value, ctx) or ():
                    yield result
            return
        stamp = stamps.append
        for value, timestamp in zip(values, timestamps, strict=True):
            backend.current_key = key = key_of(value)
            if type(key) not in SURE_KEYS:
                backend.current_key = captured_key(key)
            ctx.current_timestamp = timestamp
            for result in process(value, ctx) or ():
                stamp(timestamp)
                yield result

    def process_watermark(self, watermark: int) -> None:
        # As in Flink, the function already sees the new watermark while the timers that it makes due fire.
        reached, self.context.watermark = self.context.watermark, watermark
        self._fire(self._backend.event_timers, watermark, TimeDomain.EVENT_TIME, reached)
        super().process_watermark(watermark)

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        self._fire(self._backend.processing_timers, now_ms, TimeDomain.PROCESSING_TIME)

    def next_processing_timer(self) -> int | None:
        return self._backend.processing_timers.peek()

    def end_of_input(self) -> None:
        """STREAMING drops the processing-time timers that are left, as Flink does; BATCH fires them."""
        if self.context.batch_mode:
            self._fire(self._backend.processing_timers, MAX_WATERMARK, TimeDomain.PROCESSING_TIME)

    def _fire(self, timers: TimerQueue, up_to: int, domain: TimeDomain, reached: int = MIN_WATERMARK) -> None:
        """Call `on_timer` for all timers up to `up_to`. `reached` is the watermark before."""
        first = timers.peek()
        if first is None or first > up_to:
            return
        on_timer, backend, ctx = self._on_timer, self._backend, self._ctx
        event_time = domain is TimeDomain.EVENT_TIME
        results = Results(stamped=True)
        ctx.current_domain = domain
        for timestamp, key, _namespace in timers.pop_due(up_to):
            if on_timer is None:
                continue
            backend.current_key = key
            ctx.current_timestamp = timestamp
            if event_time:
                # State expires by this clock: it must not pass timers that have not fired yet.
                backend.watermark = max(timestamp, reached)
            try:
                if produced := on_timer(timestamp, ctx):
                    results.take(produced, timestamp)
            except Exception as error:
                raise self.user_error(error, _FiredTimer(timestamp, key, domain)) from error
            if len(results.values) >= MAX_RESULTS_HELD:
                results.emit(self.output)
                results = Results(stamped=True)
        results.emit(self.output)
