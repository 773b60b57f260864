"""Sliding windows that share slices.

Time is cut into slices, so that each window consists of whole slices. For windows of an hour that begin every minute,
a slice is a minute. A record is added to one slice instead of sixty windows; a window that fires merges its slices. The
aggregate function must be able to merge.
"""

from __future__ import annotations

import dis
import inspect
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import gcd
from typing import Any

from headwater.common.ids import MAX_WATERMARK
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.base import MAX_RESULTS_HELD, SLICES, FiredWindow
from headwater.operators.window.blocks import MergeFailed, SliceBlocks, merge_parts
from headwater.operators.window.settings import Aggregated, WindowSettings
from headwater.state.copying import captured, protective_copy

_FIRE, _END = 0, 1


class SlicedWindowOperator(AlignedWindowOperator):
    """A pane is a slice. Windows are not stored: the watermark tells which windows have fired.

    A slice lives as long as the last window that contains it. Slices are merged in the order of time.
    """

    state_name = SLICES

    def __init__(self, key_selector: Any, settings: WindowSettings) -> None:
        super().__init__(key_selector, settings)
        assert isinstance(settings.contents, Aggregated) and self._event_time
        self._slice = gcd(self._size, self._slide)
        self._merge = settings.contents.function.merge

    @property
    def _pane_ms(self) -> int:
        return self._slice

    def open(self) -> None:
        super().open()
        self._blocks = SliceBlocks(self._panes, self._slice, self._size, self._offset, self._merge)
        self._rollbacks = self._backend.rollbacks

    def _add_by_event_time(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        slide, offset, length = self._slide, self._offset, self._slice
        starts = [timestamp - (timestamp - offset) % slide for timestamp in timestamps]
        ended, fired = self._ended_and_fired(self.context.watermark)
        keys, values, timestamps, starts = self._without_late(keys, values, timestamps, starts, ended)
        if not keys:
            return
        slices = [timestamp - (timestamp - offset) % length for timestamp in timestamps]
        self._follow_rollbacks()
        self._blocks.changed(slices)
        if not self._lateness or min(timestamps) - self._size >= fired:
            self._add_all(keys, slices, values)
            return
        # A record in a window that has fired makes it fire again, with all records up to this one.
        for key, value, timestamp, last, begin in zip(keys, values, timestamps, starts, slices, strict=True):
            self._add_all([key], [begin], [value])
            for start in range(last, timestamp - self._size, -self._slide):
                if ended < start <= fired:
                    self._fire_late(key, value, timestamp, start)
        self._emit_results()

    def _fire_late(self, key: Any, record: Any, timestamp: int, start: int) -> None:
        self._backend.current_key = key
        try:
            self._evaluate_pane(key, start, self._merged_of(key, start), timestamp)
        except Exception as error:
            raise self.user_error(error, record) from error

    def _end_windows(self, reached: int | None, time: int) -> None:
        assert reached is not None
        self._follow_rollbacks()
        slices = sorted(self._panes.namespaces())
        if not slices or self._first_start(slices[0]) + self._size - 1 > time:
            return
        steps = [(start + self._size - 1, _FIRE, start) for start in self._starts(slices, reached, time)]
        if self._clear_function is not None:
            lateness = self._lateness
            steps += [
                (start + self._size - 1 + lateness, _END, start)
                for start in self._starts(slices, reached - lateness, time - lateness)
            ]
            steps.sort()
        for _, step, start in steps:
            if step == _FIRE:
                self._fire_slices(start, slices, reached)
            else:
                self._clear_keys(start, self._keys_in(start, slices))
        self._emit_results()
        for begin in slices:
            if self._last_start(begin) + self._size - 1 + self._lateness > time:
                break
            self._panes.drop(begin)
            self._blocks.changed((begin,))

    def next_event_timer(self) -> int | None:
        slices = sorted(self._panes.namespaces())
        first = next(self._starts(slices, self.context.watermark, MAX_WATERMARK), None) if slices else None
        return None if first is None else first + self._size - 1

    def _follow_rollbacks(self) -> None:
        if self._rollbacks != self._backend.rollbacks:
            self._rollbacks = self._backend.rollbacks
            self._blocks.clear()

    def _fire_slices(self, start: int, slices: list[int], reached: int) -> None:
        end = start + self._size - 1
        self._backend.watermark = max(end, reached)
        merged = self._merged(start, slices)
        if self._evaluate is None:
            self._emit_values(list(merged), list(merged.values()), start, end)
            return
        for key, value in merged.items():
            self._backend.current_key = key
            try:
                self._evaluate_pane(key, start, value, end)
            except Exception as error:
                raise self.user_error(error, FiredWindow(self._window(start), key)) from error
            if len(self._results.values) >= MAX_RESULTS_HELD:
                self._emit_results()

    # -- merging ------------------------------------------------------------------------------------------------------

    def _merged(self, start: int, slices: list[int]) -> dict[Any, Any]:
        """Return {key: accumulator of the window}. The slices stay unchanged: other windows need them."""
        try:
            return merge_parts(self._merge, self._blocks.parts(start, self._within(start, slices)))
        except MergeFailed as failed:
            cause = failed.__cause__
            assert isinstance(cause, Exception)
            raise self.user_error(cause, FiredWindow(self._window(start), failed.key)) from cause

    def _merged_of(self, key: Any, start: int) -> Any:
        merged = None
        for begin in range(start, start + self._size, self._slice):
            value = self._panes.peek(begin).get(key)
            if value is not None:
                own = protective_copy(value)
                merged = own if merged is None else captured(self._merge(merged, own))
        return merged

    def _keys_in(self, start: int, slices: list[int]) -> Iterable[Any]:
        return dict.fromkeys(key for begin in self._within(start, slices) for key in self._panes.peek(begin))

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def _within(self, start: int, slices: list[int]) -> list[int]:
        return slices[bisect_left(slices, start) : bisect_left(slices, start + self._size)]

    def _last_start(self, begin: int) -> int:
        """Return the start of the last window that contains the slice."""
        return begin - (begin - self._offset) % self._slide

    def _first_start(self, begin: int) -> int:
        """Return the start of the first window that contains the slice."""
        start = self._last_start(begin) - (self._overlap - 1) * self._slide
        return start if start + self._size > begin else start + self._slide

    def _starts(self, slices: list[int], after: int, up_to: int) -> Iterator[int]:
        """Yield, in order, the windows with a slice whose last millisecond is > `after` and <= `up_to`."""
        earliest = after - self._size + 2
        start = max(self._first_start(slices[0]), earliest + (self._offset - earliest) % self._slide)
        while start + self._size - 1 <= up_to:
            index = bisect_left(slices, start)
            if index == len(slices):
                return
            if slices[index] < start + self._size:
                yield start
                start += self._slide
            else:
                start = max(start + self._slide, self._first_start(slices[index]))


def can_merge(aggregate_function: Any) -> bool:
    """Return True if the function's `merge` is a real one: it reads both of its arguments.

    Flink requires `merge` but calls it for session windows only, so programs have stubs there: `pass`, a `raise`, or
    `return acc_a`. None of these reads both.
    """
    merge = getattr(aggregate_function, "merge", None)
    code = getattr(inspect.unwrap(merge), "__code__", None) if callable(merge) else None
    if code is None:
        return False
    try:
        arguments = set(inspect.signature(merge).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    read: set[Any] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("LOAD"):
            read.update(instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,))
    return len(arguments) == 2 and arguments <= read
