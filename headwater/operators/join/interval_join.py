"""Joins records of two keyed streams whose timestamps are close: `left + lower <= right <= left + upper`.

Each side keeps its records while a partner may come: a left record until the watermark has passed its timestamp +
upper, a right record until it has passed its timestamp - lower. So the interval bounds the memory.

Whether two records match depends only on key and timestamps. So an outer join remembers for each timestamp of a key,
not for each record, whether there was a partner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.common.errors import PlanError, TimestampError, short_repr
from headwater.common.ids import MIN_WATERMARK
from headwater.operators.base import OperatorContext, Output
from headwater.operators.functions.join import ProcessJoinFunction
from headwater.operators.join.interval_buffer import IntervalBuffer, Kept
from headwater.operators.process import MAX_RESULTS_HELD
from headwater.operators.results import Results
from headwater.operators.user_function import SURE_KEYS, KeyedOperator, captured_key, method_of

LEFT = 0
RIGHT = 1

_STEPS_PER_INTERVAL = 4
"""How often per interval an inner join frees memory. It then frees much at once, but needs a quarter more memory."""


@dataclass(frozen=True)
class IntervalJoinSettings:
    """The settings of `interval_join(...)` and the methods after it. Bounds are inclusive, in milliseconds."""

    lower_ms: int
    upper_ms: int
    left_outer: bool = False
    right_outer: bool = False
    left_late_tag: str | None = None
    right_late_tag: str | None = None

    def __post_init__(self) -> None:
        if self.lower_ms > self.upper_ms:
            raise PlanError(
                f"interval join: the lower bound, {self.lower_ms} ms, is above the upper bound, {self.upper_ms} ms, so "
                "that no two records could ever match; swap them, or make an exclusive bound inclusive"
            )


class _Context(ProcessJoinFunction.Context):
    """The one context object of an operator."""

    left_timestamp: int | None = None
    right_timestamp: int | None = None
    result_timestamp = 0

    def get_left_timestamp(self) -> int | None:
        return self.left_timestamp

    def get_right_timestamp(self) -> int | None:
        return self.right_timestamp

    def get_timestamp(self) -> int:
        return self.result_timestamp


class IntervalJoinOperator(KeyedOperator):
    """Runs a `ProcessJoinFunction`, or a function of (left, right, context).

    A result has the later timestamp of its pair. In an outer join, the function gets a record without a partner, and
    None for the other side, when the watermark has passed the last possible partner; the results have that time.
    A late record (its timestamp is behind the watermark) is dropped, or goes to the side output for late records.
    """

    def __init__(self, key_selector1: Any, key_selector2: Any, settings: IntervalJoinSettings, function: Any) -> None:
        super().__init__(key_selector1, function)
        self.keys_of = (self.key_of, method_of(key_selector2, "get_key", "key_by"))
        self._settings = settings
        self._process = method_of(function, "process_element", "process")
        self._late_tags = (settings.left_late_tag, settings.right_late_tag)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._ctx = _Context()

    def open(self) -> None:
        lower, upper = self._settings.lower_ms, self._settings.upper_ms
        step = max(1, (upper - lower) // _STEPS_PER_INTERVAL)
        self._sides = (
            IntervalBuffer(self._backend, LEFT, max(upper, 0), step, self._settings.left_outer),
            IntervalBuffer(self._backend, RIGHT, max(-lower, 0), step, self._settings.right_outer),
        )
        self._rollbacks = self._backend.rollbacks
        super().open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if timestamps is None:
            raise self._no_timestamp(values[0])
        self._follow_rollbacks()
        self.key_of = key_of = self.keys_of[input_index]
        own, other = self._sides[input_index], self._sides[1 - input_index]
        lower, upper = self._settings.lower_ms, self._settings.upper_ms
        earliest, latest = (lower, upper) if input_index == LEFT else (-upper, -lower)
        pair = self._pair_left if input_index == LEFT else self._pair_right
        watermark, backend = self.context.watermark, self._backend
        late: list[Any] = []
        late_timestamps: list[int | None] = []
        results = Results(stamped=True)
        position = iter(values)
        try:
            for value, timestamp in zip(position, timestamps, strict=True):
                if timestamp is None:
                    raise self._no_timestamp(value)
                if timestamp < watermark and watermark != MIN_WATERMARK:
                    late.append(value)
                    late_timestamps.append(timestamp)
                    continue
                backend.current_key = key = key_of(value)
                if type(key) not in SURE_KEYS:
                    backend.current_key = key = captured_key(key)
                partners = other.between(key, timestamp + earliest, timestamp + latest)
                if partners:
                    pair(value, timestamp, partners, results)
                own.add(key, timestamp, value, bool(partners))
        except TimestampError:
            raise
        except Exception as error:
            raise self.failure(error, values, position) from error
        results.emit(self.output)
        tag = self._late_tags[input_index]
        if late and tag is not None:
            self.output.emit_side(tag, late, late_timestamps)

    def process_watermark(self, watermark: int) -> None:
        self._follow_rollbacks()
        self.context.watermark = watermark
        for side in self._sides:
            if not side.outer:
                side.forget(watermark)
        self._hand_over_who_stayed_alone(watermark)
        super().process_watermark(watermark)

    def _hand_over_who_stayed_alone(self, watermark: int) -> None:
        backend, ctx = self._backend, self._ctx
        results = Results(stamped=True)
        for due, key, side in backend.event_timers.pop_due(watermark):
            backend.current_key = key
            alone = self._sides[side].expire(key, due)
            if alone is None:
                continue
            timestamp, values = alone
            ctx.left_timestamp, ctx.right_timestamp = (timestamp, None) if side == LEFT else (None, timestamp)
            ctx.result_timestamp = due
            for value in values:
                left, right = (value, None) if side == LEFT else (None, value)
                try:
                    results.take(self._process(left, right, ctx) or (), due)
                except Exception as error:
                    raise self.user_error(error, value) from error
            if len(results.values) >= MAX_RESULTS_HELD:
                results.emit(self.output)
                results = Results(stamped=True)
        results.emit(self.output)

    def _follow_rollbacks(self) -> None:
        if self._rollbacks != self._backend.rollbacks:
            self._rollbacks = self._backend.rollbacks
            for side in self._sides:
                side.derive()

    def _pair_left(self, value: Any, timestamp: int, partners: list[Kept], results: Results) -> None:
        """Hand a left record and its partners to the function."""
        process, ctx = self._process, self._ctx
        ctx.left_timestamp = timestamp
        for partner_timestamp, rights in partners:
            ctx.right_timestamp = partner_timestamp
            ctx.result_timestamp = later = max(timestamp, partner_timestamp)
            for right in rights:
                if produced := process(value, right, ctx):
                    results.take(produced, later)

    def _pair_right(self, value: Any, timestamp: int, partners: list[Kept], results: Results) -> None:
        """Hand a right record and its partners to the function."""
        process, ctx = self._process, self._ctx
        ctx.right_timestamp = timestamp
        for partner_timestamp, lefts in partners:
            ctx.left_timestamp = partner_timestamp
            ctx.result_timestamp = later = max(timestamp, partner_timestamp)
            for left in lefts:
                if produced := process(left, value, ctx):
                    results.take(produced, later)

    def _no_timestamp(self, value: Any) -> TimestampError:
        return TimestampError(
            f"operator '{self.context.name}' joins by event time, but record {short_repr(value)} has no timestamp; "
            "call assign_timestamps_and_watermarks(...) on both streams before interval_join(...)"
        )
