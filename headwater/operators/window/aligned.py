"""Tumbling and sliding windows with their default trigger: the same windows for all keys, so they need no timers.

Records are added to panes a batch at a time, and a window fires for all its keys at once. That is several times faster
than one timer per key and window (`docs/decisions/0004-windows-without-timers.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from headwater.common.ids import MAX_WATERMARK
from headwater.operators.user_function import SURE_KEYS, captured_key, last_given, method_of
from headwater.operators.window.base import MAX_RESULTS_HELD, PANES, FiredWindow, WindowOperatorBase
from headwater.operators.window.settings import Aggregated, Buffered, Reduced, WindowSettings
from headwater.state.copying import captured, is_immutable, protective_copy
from headwater.state.keyed_backend import NO_KEY
from headwater.state.panes import FoldedPanes, Panes
from headwater.time.assigners_aligned import AlignedWindows
from headwater.time.windows import TimeWindow

AddToPanes = Callable[[Iterable[Any], Iterable[int], Iterable[Any]], None]
"""(keys, namespaces, values)"""


class AlignedWindowOperator(WindowOperatorBase):
    """A pane is a window: a record is added to each window that it belongs to.

    A window fires when the watermark reaches its end. It stays until its allowed lateness is over, and fires again for
    each record until then.
    """

    state_name = PANES

    def __init__(self, key_selector: Any, settings: WindowSettings) -> None:
        super().__init__(key_selector, settings)
        assigner = settings.assigner
        assert isinstance(assigner, AlignedWindows)
        self._size = assigner.size_ms
        self._slide = assigner.slide_ms
        self._offset = assigner.offset_ms
        self._lateness = settings.allowed_lateness_ms if self._event_time else 0
        self._overlap = -(-self._size // self._slide)
        """How many windows a record belongs to at most; 1 if windows do not overlap."""
        self._result_of: Callable[[Any], Any] | None = None

    def open(self) -> None:
        self._panes, self._add = self._open_panes()
        self._backend.describe_panes(self.state_name, self._pane_ms, self._result_of)
        if self.settings.whole_panes:
            self._backend.keep_readable()
        super().open()

    @property
    def _pane_ms(self) -> int:
        """How long a pane is."""
        return self._size

    def _open_panes(self) -> tuple[Panes, AddToPanes]:
        contents = self.settings.contents
        if isinstance(contents, Buffered):
            elements = self._backend.get_element_panes(self.state_name)
            return elements, elements.append
        panes = self._backend.get_folded_panes(self.state_name)
        if isinstance(contents, Reduced):
            return panes, _reducing(panes, method_of(contents.function, "reduce", "reduce"))
        self._result_of = contents.function.get_result
        return panes, _aggregating(panes, contents)

    # -- records ------------------------------------------------------------------------------------------------------

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        keys = self._keys_of(values)
        if self._event_time:
            self._check_timestamps(values, timestamps)
            self._add_by_event_time(keys, values, timestamps)  # type: ignore[arg-type]
        else:
            self._add_by_processing_time(keys, values)

    def _keys_of(self, values: list[Any]) -> list[Any]:
        position = iter(values)
        try:
            keys = list(map(self.key_of, position))
        except Exception as error:
            raise self.failure(error, values, position) from error
        if not SURE_KEYS.issuperset(map(type, keys)):
            position = iter(values)
            try:
                keys = [captured_key(key) for key, _ in zip(keys, position, strict=True)]
            except Exception as error:
                raise self.failure(error, values, position) from error
        return keys

    def _add_by_processing_time(self, keys: list[Any], values: list[Any]) -> None:
        now = self.context.processing_time_ms
        last = now - (now - self._offset) % self._slide
        for start, own_values in zip(range(last, now - self._size, -self._slide), _per_window(values), strict=False):
            self._add_all(keys, repeat(start), own_values)

    def _add_by_event_time(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        slide, offset = self._slide, self._offset
        starts = [timestamp - (timestamp - offset) % slide for timestamp in timestamps]
        ended, fired = self._ended_and_fired(self.context.watermark)
        if self._overlap == 1 and self._size == slide and min(starts, default=fired + 1) > fired:
            self._add_all(keys, starts, values)  # tumbling windows, nothing late
            return
        keys, values, timestamps, starts = self._without_late(keys, values, timestamps, starts, ended)
        own_values = _per_window(values) if self._overlap > 1 else repeat(values)
        for start, members in self._by_window(timestamps, starts).items():
            if start > ended:
                self._add_to_window(start, members, keys, next(own_values), None if start > fired else timestamps)
        self._emit_results()

    def _ended_and_fired(self, watermark: int) -> tuple[int, int]:
        """Return (last start of the windows that are over, last start of the windows that have fired)."""
        fired = watermark - self._size + 1
        return fired - self._lateness, fired

    def _without_late(
        self, keys: list[Any], values: list[Any], timestamps: list[int], starts: list[int], ended: int
    ) -> tuple[list[Any], list[Any], list[int], list[int]]:
        """Return the records that belong to a window that is not over. Late records are dropped or emitted apart."""
        size, late_up_to = self._size, self.context.watermark - self._lateness
        if self._slide <= size and min(starts, default=ended + 1) > ended:
            return keys, values, timestamps, starts
        late = [
            (value, timestamp)
            for value, timestamp, start in zip(values, timestamps, starts, strict=True)
            # The latest window decides. A record in a gap between windows is late only if its timestamp is.
            if timestamp <= late_up_to and (start <= ended or timestamp >= start + size)
        ]
        taken = [
            row
            for row in zip(keys, values, timestamps, starts, strict=True)
            if row[3] > ended and row[2] < row[3] + size
        ]
        self._late([value for value, _ in late], [timestamp for _, timestamp in late])
        return tuple(map(list, zip(*taken, strict=True))) if taken else ([], [], [], [])  # type: ignore[return-value]

    def _by_window(self, timestamps: list[int], starts: list[int]) -> dict[int, list[int]]:
        """Return {start of a window: positions of its records, in order}. `starts` has each record's latest window."""
        size, slide = self._size, self._slide
        found: dict[int, list[int]] = {}
        for position, (timestamp, last) in enumerate(zip(timestamps, starts, strict=True)):
            for start in range(last, timestamp - size, -slide):
                members = found.get(start)
                if members is None:
                    found[start] = [position]
                else:
                    members.append(position)
        return found

    def _add_to_window(
        self, start: int, members: list[int], keys: list[Any], values: list[Any], timestamps: list[int] | None
    ) -> None:
        """Add the records at positions `members`. With `timestamps`: the window has fired, and fires again for each."""
        if timestamps is not None:
            for position in members:
                self._add_all([keys[position]], (start,), [values[position]])
                self._fire_again(keys[position], start, timestamps[position], values[position])
        elif len(members) == len(keys):
            self._add_all(keys, repeat(start), values)
        else:
            self._add_all(
                [keys[position] for position in members], repeat(start), [values[position] for position in members]
            )

    def _add_all(self, keys: list[Any], namespaces: Iterable[int], values: list[Any]) -> None:
        position = iter(values)
        self._backend.current_key = NO_KEY  # the folding function must not see the state of a key
        try:
            self._add(keys, namespaces, position)
        except Exception as error:
            self._backend.current_key = last_given(keys, position)  # `user_error` checks if the key is bad
            raise self.failure(error, values, position) from error

    def _fire_again(self, key: Any, start: int, timestamp: int, record: Any) -> None:
        """Fire again for a late record that was added to a window that has fired and is not over."""
        self._backend.current_key = key
        try:
            self._evaluate_pane(key, start, protective_copy(self._panes.peek(start)[key]), timestamp)
        except Exception as error:
            raise self.user_error(error, record) from error

    # -- time ---------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        # As in Flink, the functions already see the new watermark while the windows that it ends are evaluated.
        reached, self.context.watermark = self.context.watermark, watermark
        if self._event_time:
            self._end_windows(reached, watermark)
        super().process_watermark(watermark)

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        if not self._event_time:
            self._end_windows(None, now_ms)

    def next_processing_timer(self) -> int | None:
        first = None if self._event_time else min(self._panes.namespaces(), default=None)
        return None if first is None else first + self._size - 1

    def next_event_timer(self) -> int | None:
        fired = self.context.watermark if self._lateness else None  # with lateness, a window stays after it has fired
        ends = (start + self._size - 1 for start in self._panes.namespaces()) if self._event_time else ()
        return min((end for end in ends if fired is None or end > fired), default=None)

    def end_of_input(self) -> None:
        """STREAMING drops the processing-time windows that are open, as Flink does; BATCH fires them."""
        if self.context.batch_mode and not self._event_time:
            self._end_windows(None, MAX_WATERMARK)

    def _end_windows(self, reached: int | None, time: int) -> None:
        """Fire windows that are due, and end windows that are over. The clock went from `reached` to `time`.

        `reached` None: no existing window has fired, because windows end when they fire.
        """
        panes, last_of = self._panes, self._size - 1
        first = min(panes.namespaces(), default=None)
        if first is None or first + last_of > time:
            return
        for start in sorted(start for start in panes.namespaces() if start + last_of <= time):
            end = start + last_of
            over = end + self._lateness <= time
            if self._lateness == 0 or reached is None or end > reached:
                self._fire_window(start, end, over, reached)
            elif over and self._clear_function is None:
                panes.drop(start)
            elif over:
                self._clear_keys(start, panes.take(start)[0])
        self._emit_results()

    def _fire_window(self, start: int, end: int, over: bool, reached: int | None) -> None:
        """Evaluate the window for all its keys."""
        if over:
            keys, values = self._panes.take(start)
        else:
            pane = self._panes.peek(start)
            keys, values = list(pane), [protective_copy(value) for value in pane.values()]
        if reached is not None:
            # State expires by this clock: it must not pass windows that are not evaluated yet.
            self._backend.watermark = max(end, reached)
        if self._evaluate is None:
            self._emit_values(keys, values, start, end)
            return
        backend = self._backend
        for key, value in zip(keys, values, strict=True):
            backend.current_key = key
            try:
                self._evaluate_pane(key, start, value, end)
            except Exception as error:
                raise self.user_error(error, FiredWindow(self._window(start), key)) from error
            if len(self._results.values) >= MAX_RESULTS_HELD:
                self._emit_results()
        if over:
            self._clear_keys(start, keys)

    def _emit_values(self, keys: list[Any], values: list[Any], start: int, end: int) -> None:
        """The common case of `_evaluate_pane`: there is no window function, the values themselves are the results."""
        position = iter(values)
        results: Iterable[Any] = position
        if (result_of := self._result_of) is not None:
            results = (result_of(value) for value in position)
        try:  # None: reduced, or aggregated, to nothing
            self._results.take((result for result in results if result is not None), end)
        except Exception as error:
            raise self.user_error(error, FiredWindow(self._window(start), last_given(keys, position))) from error
        if len(self._results.values) >= MAX_RESULTS_HELD:
            self._emit_results()

    def _evaluate_pane(self, key: Any, start: int, value: Any, timestamp: int) -> None:
        """Evaluate one window of one key. The caller must not use `value` afterwards."""
        if self._result_of is not None:
            value = self._result_of(value)
        elements = value if isinstance(self.settings.contents, Buffered) else [] if value is None else [value]
        if self._evaluate is None:
            self._add_results(elements, timestamp)
        elif elements:
            self._backend.current_namespace = start
            self._add_results(self._evaluate(captured(key), self._window(start), elements), timestamp)

    def _clear_keys(self, start: int, keys: Iterable[Any]) -> None:
        if self._clear_function is None:
            return
        window = self._window(start)
        for key in keys:
            self._backend.current_key = key
            try:
                self._call_clear(window, start)
            except Exception as error:
                raise self.user_error(error, FiredWindow(window, key)) from error

    def _window(self, start: int) -> TimeWindow:
        return TimeWindow(start, start + self._size)


def _reducing(panes: FoldedPanes, reduce: Callable[[Any, Any], Any]) -> AddToPanes:
    def add(keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any]) -> None:
        panes.reduce(keys, namespaces, values, reduce)

    return add


def _aggregating(panes: FoldedPanes, contents: Aggregated) -> AddToPanes:
    create, add_value = contents.function.create_accumulator, contents.function.add

    def add(keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any]) -> None:
        panes.aggregate(keys, namespaces, values, create, add_value)

    return add


def _per_window(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the values for one window after the other. Windows share no mutable value."""
    shared = all(map(is_immutable, values))
    while True:
        yield values if shared else [protective_copy(value) for value in values]
