"""Matches a pattern on a keyed stream, in event time or in processing time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.common.errors import (
    HeadwaterError,
    PatternError,
    StateError,
    TimestampError,
    UserCodeError,
    short_repr,
)
from headwater.common.ids import MIN_WATERMARK
from headwater.common.output_tag import OutputTag
from headwater.operators.base import OperatorContext, Output
from headwater.operators.cep.functions import PatternProcessFunction
from headwater.operators.cep.matcher import NEVER, ConditionFailed, Found, Matcher, MatcherStates
from headwater.operators.cep.nfa import compile_pattern
from headwater.operators.cep.steps import PatternSteps
from headwater.operators.cep.waiting_events import STATE, WaitingEvents
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.process import MAX_RESULTS_HELD
from headwater.operators.results import Results
from headwater.operators.user_function import SURE_KEYS, KeyedOperator, captured_key
from headwater.operators.window.base import LATE_RECORDS_DROPPED
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor

RUNS, ENTRIES, EVENTS = "cep-runs", "cep-entries", "cep-events"


@dataclass(frozen=True)
class CepSettings:
    """What `PatternStream` was told."""

    event_time: bool = True
    comparator: Any = None
    """A function of two events, negative if the first comes first; for events of one timestamp."""
    late_tag: str | None = None


class _Context(PatternProcessFunction.Context):
    """The one context object of an operator."""

    now = 0

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self.side: list[tuple[OutputTag, Any]] = []

    def timestamp(self) -> int:
        return self.now

    def current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def output(self, output_tag: OutputTag, value: Any) -> None:
        self.side.append((output_tag, value))


class KeyedEventsOperator(KeyedOperator):
    """Hands the events of each key to `_handle`, in the order of time; and looks after late events, timers, errors."""

    def __init__(self, key_selector: Any, function: Any, settings: CepSettings) -> None:
        super().__init__(key_selector, function)
        self._settings = settings
        self._process_timed_out = getattr(function, "process_timed_out_match", None)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._ctx = _Context(context)

    def open(self) -> None:
        backend = self._backend
        state = backend.get_state(MapStateDescriptor(STATE))
        compare = getattr(self._settings.comparator, "compare", self._settings.comparator)
        self._waiting = WaitingEvents(backend, state, self._use_key_of, compare)
        self._rollbacks = backend.rollbacks
        self._timers = backend.event_timers if self._settings.event_time else backend.processing_timers
        self._next_due = self._first_timer()
        self._late_dropped = RuntimeContext(self.context).get_metrics_group().counter(LATE_RECORDS_DROPPED)
        super().open()

    # -- for subclasses -----------------------------------------------------------------------------------------------

    def _handle(self, event: Any, timestamp: int, results: Results) -> None:
        """Process an event. Its key is the current one."""
        raise NotImplementedError

    def _time_is_over(self, namespace: Any, timestamp: int, results: Results) -> None:
        """A timer of the current key fired; time has reached `timestamp`."""
        raise NotImplementedError

    def _schedule(self, before: int, after: int, namespace: Any = None) -> None:
        """`_time_is_over` of the current key is to be called at `after`, no longer at `before` (NEVER: not at all)."""
        key = self._backend.current_key
        if before != NEVER:
            self._timers.delete(before, key, namespace)
        if after != NEVER:
            self._timers.register(after, key, namespace)
            if after < self._next_due:
                self._next_due = after

    def _derive(self) -> None:
        """State was rolled back: derive anew what depends on it."""

    # -- events -------------------------------------------------------------------------------------------------------

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self._follow_rollbacks()
        if self._settings.event_time:
            self._wait(values, timestamps)
        elif self._settings.comparator is not None:
            self._waiting.add([self.context.processing_time_ms] * len(values), values)
        else:
            now = self.context.processing_time_ms
            self._handle_all([(now, value) for value in values])

    def _wait(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        if timestamps is None or None in timestamps:
            stamps = timestamps or [None]
            raise TimestampError(
                f"operator '{self.context.name}' matches by event time, but record "
                f"{short_repr(values[stamps.index(None)])} has no timestamp; call "
                "assign_timestamps_and_watermarks(...) before, or in_processing_time() on the pattern stream"
            )
        watermark = self.context.watermark
        stamped: Any = timestamps
        if watermark == MIN_WATERMARK or min(stamped) > watermark:
            self._waiting.add(stamped, values)
            return
        late = [index for index, timestamp in enumerate(stamped) if timestamp <= watermark]
        tag = self._settings.late_tag
        if tag is None:
            self._late_dropped.inc(len(late))
        else:
            self.output.emit_side(tag, [values[index] for index in late], [stamped[index] for index in late])
        early = [index for index, timestamp in enumerate(stamped) if timestamp > watermark]
        self._waiting.add([stamped[index] for index in early], [values[index] for index in early])

    def process_watermark(self, watermark: int) -> None:
        self._follow_rollbacks()
        if self._settings.event_time:
            self._advance(watermark)
        super().process_watermark(watermark)

    def _advance(self, watermark: int) -> None:
        """Event time is now `watermark`: handle what it has reached."""
        self.context.watermark = self._backend.watermark = watermark
        self._handle_all(self._waiting.due(watermark))
        self._fire(watermark)

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        if not self._settings.event_time:
            self._follow_rollbacks()
            self._handle_all(self._waiting.due(now_ms))
            self._fire(now_ms)

    def next_processing_timer(self) -> int | None:
        return self._backend.processing_timers.peek()

    def prepare_commit(self) -> list[Any]:
        self._follow_rollbacks()
        self._waiting.store()
        return super().prepare_commit()

    def _handle_all(self, events: Sequence[tuple[Any, ...]]) -> None:
        """Handle (timestamp, ..., event)s, in order; and first, for each, what other keys have to do until then."""
        if not events:
            return
        results = Results(stamped=self._settings.event_time)
        key_of, backend, handle, sure = self.key_of, self._backend, self._handle, SURE_KEYS
        value: Any = None
        try:
            for item in events:
                value = item[-1]
                if item[0] >= self._next_due:
                    results.emit(self.output)
                    results = Results(stamped=self._settings.event_time)
                    self._fire(item[0])
                backend.current_key = key = key_of(value)
                if type(key) not in sure:
                    backend.current_key = captured_key(key)
                handle(value, item[0], results)
                if len(results.values) >= MAX_RESULTS_HELD:
                    results.emit(self.output)
                    results = Results(stamped=self._settings.event_time)
        except Exception as error:
            raise self.user_error(error, value) from error
        results.emit(self.output)

    def _fire(self, up_to: int) -> None:
        if self._next_due > up_to:
            return
        timers = self._timers
        results = Results(stamped=self._settings.event_time)
        for timestamp, key, namespace in timers.pop_due(up_to):
            self._backend.current_key = key
            try:
                self._time_is_over(namespace, timestamp, results)
            except Exception as error:
                raise self.user_error(error, f"<end of time at {timestamp} of key {key!r}>") from error
            if len(results.values) >= MAX_RESULTS_HELD:
                results.emit(self.output)
                results = Results(stamped=self._settings.event_time)
        self._next_due = self._first_timer()
        results.emit(self.output)

    def _report(self, found: Sequence[Found], results: Results) -> None:
        """Hand matches to the function."""
        ctx = self._ctx
        for match, timestamp, timed_out in found:
            process = self._process_timed_out if timed_out else self.function.process_match
            if process is None:
                continue
            ctx.now = timestamp
            produced = process(match, ctx)
            if produced is not None:
                results.take(produced, timestamp)
            if ctx.side:
                results.take(ctx.side, timestamp)
                ctx.side = []

    def _first_timer(self) -> int:
        first = self._timers.peek()
        return NEVER if first is None else first

    def _use_key_of(self, value: Any) -> None:
        self._backend.current_key = key = self.key_of(value)
        if type(key) not in SURE_KEYS:
            self._backend.current_key = captured_key(key)

    def _follow_rollbacks(self) -> None:
        if self._rollbacks != self._backend.rollbacks:
            self._rollbacks = self._backend.rollbacks
            self._waiting.derive()
            self._next_due = self._first_timer()
            self._derive()

    def user_error(self, error: BaseException, record: Any) -> HeadwaterError:
        if isinstance(error, PatternError | StateError | UserCodeError):
            return error
        if isinstance(error, ConditionFailed) and error.__cause__ is not None:
            error.__cause__.add_note(f"raised by a condition of step '{error.step}'")
            return super().user_error(error.__cause__, record)
        return super().user_error(error, record)


class CepOperator(KeyedEventsOperator):
    """Runs a `PatternProcessFunction` on the matches of one pattern."""

    def __init__(self, key_selector: Any, pattern: PatternSteps, function: Any, settings: CepSettings) -> None:
        super().__init__(key_selector, function, settings)
        self._pattern = pattern

    def open(self) -> None:
        backend = self._backend
        states = MatcherStates(
            backend.get_state(ValueStateDescriptor(RUNS)),
            backend.get_state(MapStateDescriptor(ENTRIES)),
            backend.get_state(MapStateDescriptor(EVENTS)),
        )
        context = self.context
        self._matcher = Matcher(
            compile_pattern(self._pattern), states, self._schedule, lambda: context.processing_time_ms
        )
        super().open()

    def _handle(self, event: Any, timestamp: int, results: Results) -> None:
        if found := self._matcher.process(event, timestamp):
            self._report(found, results)

    def _time_is_over(self, namespace: Any, timestamp: int, results: Results) -> None:
        if found := self._matcher.expire(timestamp):
            self._report(found, results)
