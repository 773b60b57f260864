"""Joins records of two keyed streams whose timestamps are close: `left + lower <= right <= left + upper`.

Each side buffers its records as long as a partner may come, by event time: a left record until the watermark has passed
its timestamp + upper, a right one until it has passed its timestamp - lower. So memory is bounded by the interval.

Whether two records match depends on key and timestamps alone. Hence an outer join need not remember for each record
whether it found a partner, but only for each timestamp of a key.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from headwater.common.errors import PlanError, TimestampError, short_repr
from headwater.common.ids import MIN_WATERMARK
from headwater.operators.base import OperatorContext, Output
from headwater.operators.functions_join import ProcessJoinFunction
from headwater.operators.process import MAX_RESULTS_HELD
from headwater.operators.side_outputs import emit_results
from headwater.operators.user_function import KeyedOperator, method_of
from headwater.state.descriptors import MapStateDescriptor
from headwater.state.heap_map import HeapMapState
from headwater.state.keyed_backend import KeyedStateBackend

LEFT = 0
RIGHT = 1
_NAMES = ("left", "right")

_TIMERS_PER_INTERVAL = 8
"""An inner join cleans up a key at most so often per interval: one timer for many records, for 1/8 more memory."""

_SCAN_LIMIT = 24
"""Up to so many timestamps of a key are gone through; beyond, they are kept sorted and searched."""


@dataclass(frozen=True)
class IntervalJoinSettings:
    """What `interval_join(...)` and the methods behind it said. Bounds are inclusive, in milliseconds."""

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
                "that no two records could ever match; swap them"
            )


class _Side:
    """The buffer of one side. All methods are about the backend's current key."""

    def __init__(self, backend: KeyedStateBackend, index: int, retention_ms: int, outer: bool) -> None:
        name = _NAMES[index]
        self.index = index
        self._backend = backend
        # {timestamp: values}. `peek` is for looking only and copies nothing; records are never changed in here.
        self._buffer = cast(HeapMapState, backend.get_state(MapStateDescriptor(f"{name}-buffer")))
        self._unmatched: HeapMapState | None = None  # {timestamp: True}
        if outer:
            self._unmatched = cast(HeapMapState, backend.get_state(MapStateDescriptor(f"{name}-unmatched")))
        self._retention_ms = retention_ms
        # An outer join must say in time that nobody came; for an inner one nobody sees when memory is given back.
        self._step_ms = 1 if outer else max(1, retention_ms // _TIMERS_PER_INTERVAL)
        self._sorted: dict[Any, list[int]] = {}  # {key: its timestamps}: derived from the buffer, for long ones only

    @property
    def outer(self) -> bool:
        return self._unmatched is not None

    def add(self, timestamp: int, value: Any, matched: bool) -> None:
        """Keep a record until no partner can come any more."""
        same_time = self._buffer.peek().get(timestamp)
        if same_time is None:
            self._buffer.put(timestamp, (value,))
            step = self._step_ms
            due = -(-(timestamp + self._retention_ms + 1) // step) * step
            key = self._backend.current_key
            self._backend.event_timers.register(due, key, self.index)
            if key in self._sorted:
                insort(self._sorted[key], timestamp)
            if self._unmatched is not None and not matched:
                self._unmatched.put(timestamp, True)
        else:
            self._buffer.put(timestamp, (*same_time, value))

    def between(self, earliest: int, latest: int) -> list[tuple[int, tuple[Any, ...]]]:
        """(timestamp, values) of what is buffered between the two, in the order of time. From now on it is matched."""
        buffered = self._buffer.peek()
        if len(buffered) <= _SCAN_LIMIT:
            found = [item for item in buffered.items() if earliest <= item[0] <= latest]
            if len(found) > 1:
                found.sort(key=_timestamp_of)
        else:
            timestamps = self._sorted_timestamps(buffered)
            first, end = bisect_left(timestamps, earliest), bisect_right(timestamps, latest)
            found = [(timestamp, buffered[timestamp]) for timestamp in timestamps[first:end]]
        if found and self._unmatched is not None:
            for timestamp, _ in found:
                self._unmatched.remove(timestamp)
        return found

    def expire(self, due: int) -> list[tuple[int, tuple[Any, ...]]]:
        """Forget what nobody can match any more at event time `due`; returns what never had a partner, by timestamp."""
        last = due - self._retention_ms - 1
        buffered = self._buffer.peek()
        expired = [last] if self._step_ms == 1 else [timestamp for timestamp in buffered if timestamp <= last]
        alone: list[tuple[int, tuple[Any, ...]]] = []
        for timestamp in expired:
            if timestamp not in buffered:
                continue
            if self._unmatched is not None and self._unmatched.contains(timestamp):
                alone.append((timestamp, buffered[timestamp]))
                self._unmatched.remove(timestamp)
            self._buffer.remove(timestamp)
        self._shrink_sorted(expired)
        return alone

    def forget_derived(self) -> None:
        """State was rolled back."""
        self._sorted.clear()

    def _sorted_timestamps(self, buffered: Iterable[int]) -> list[int]:
        key = self._backend.current_key
        timestamps = self._sorted.get(key)
        if timestamps is None:
            timestamps = self._sorted[key] = sorted(buffered)
        return timestamps

    def _shrink_sorted(self, expired: list[int]) -> None:
        key = self._backend.current_key
        timestamps = self._sorted.get(key)
        if timestamps is None or not expired:
            return
        # What expires is always at the front: retention is the same for all.
        del timestamps[: bisect_right(timestamps, max(expired))]
        if len(timestamps) <= _SCAN_LIMIT:
            del self._sorted[key]


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

    A result has the later timestamp of its pair. A record that is left alone in an outer join is handed over, with None
    for the other one, when the watermark has passed the last moment for a partner, and its results have that time.
    A late record (its timestamp is behind the watermark) is dropped, or goes to the side output for late ones.
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
        self._sides = (
            _Side(self._backend, LEFT, max(upper, 0), self._settings.left_outer),
            _Side(self._backend, RIGHT, max(-lower, 0), self._settings.right_outer),
        )
        super().open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if timestamps is None:
            raise self._no_timestamp(values[0])
        self.key_of = key_of = self.keys_of[input_index]
        own, other = self._sides[input_index], self._sides[1 - input_index]
        lower, upper = self._settings.lower_ms, self._settings.upper_ms
        earliest, latest = (lower, upper) if input_index == LEFT else (-upper, -lower)
        pair = self._pair_left if input_index == LEFT else self._pair_right
        watermark, backend = self.context.watermark, self._backend
        late: list[Any] = []
        late_timestamps: list[int | None] = []
        results: list[Any] = []
        result_timestamps: list[int | None] = []
        position = iter(values)
        try:
            for value, timestamp in zip(position, timestamps, strict=True):
                if timestamp is None:
                    raise self._no_timestamp(value)
                if timestamp < watermark and watermark != MIN_WATERMARK:
                    late.append(value)
                    late_timestamps.append(timestamp)
                    continue
                backend.current_key = key_of(value)
                partners = other.between(timestamp + earliest, timestamp + latest)
                if partners:
                    pair(value, timestamp, partners, results, result_timestamps)
                own.add(timestamp, value, bool(partners))
        except TimestampError:
            raise
        except Exception as error:
            raise self.failure(error, values, position) from error
        emit_results(self.output, results, result_timestamps)
        tag = self._late_tags[input_index]
        if late and tag is not None:
            self.output.emit_side(tag, late, late_timestamps)

    def process_watermark(self, watermark: int) -> None:
        backend, ctx, sides = self._backend, self._ctx, self._sides
        self.context.watermark = watermark
        results: list[Any] = []
        result_timestamps: list[int | None] = []
        for due, key, side in backend.event_timers.pop_due(watermark):
            backend.current_key = key
            for timestamp, values in sides[side].expire(due):
                ctx.left_timestamp, ctx.right_timestamp = (timestamp, None) if side == LEFT else (None, timestamp)
                ctx.result_timestamp = due
                for value in values:
                    left, right = (value, None) if side == LEFT else (None, value)
                    try:
                        results.extend(self._process(left, right, ctx) or ())
                    except Exception as error:
                        raise self.user_error(error, value) from error
                    result_timestamps += [due] * (len(results) - len(result_timestamps))
            if len(results) >= MAX_RESULTS_HELD:
                emit_results(self.output, results, result_timestamps)
                results, result_timestamps = [], []
        emit_results(self.output, results, result_timestamps)
        super().process_watermark(watermark)

    def abort_epoch(self) -> None:
        super().abort_epoch()
        for side in self._sides:
            side.forget_derived()

    def _pair_left(
        self,
        value: Any,
        timestamp: int,
        partners: list[tuple[int, tuple[Any, ...]]],
        results: list[Any],
        result_timestamps: list[int | None],
    ) -> None:
        """Hand a left record and its partners to the function."""
        process, ctx = self._process, self._ctx
        ctx.left_timestamp = timestamp
        for partner_timestamp, rights in partners:
            ctx.right_timestamp = partner_timestamp
            ctx.result_timestamp = later = max(timestamp, partner_timestamp)
            for right in rights:
                if produced := process(value, right, ctx):
                    results.extend(produced)
            result_timestamps += [later] * (len(results) - len(result_timestamps))

    def _pair_right(
        self,
        value: Any,
        timestamp: int,
        partners: list[tuple[int, tuple[Any, ...]]],
        results: list[Any],
        result_timestamps: list[int | None],
    ) -> None:
        """Hand a right record and its partners to the function."""
        process, ctx = self._process, self._ctx
        ctx.right_timestamp = timestamp
        for partner_timestamp, lefts in partners:
            ctx.left_timestamp = partner_timestamp
            ctx.result_timestamp = later = max(timestamp, partner_timestamp)
            for left in lefts:
                if produced := process(left, value, ctx):
                    results.extend(produced)
            result_timestamps += [later] * (len(results) - len(result_timestamps))

    def _no_timestamp(self, value: Any) -> TimestampError:
        return TimestampError(
            f"operator '{self.context.name}' joins by event time, but record {short_repr(value)} has no timestamp; "
            "call assign_timestamps_and_watermarks(...) on both streams before interval_join(...)"
        )


def _timestamp_of(item: tuple[int, Any]) -> int:
    return item[0]
