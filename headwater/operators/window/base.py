"""The common base of all window operators: their functions' life cycle, evaluation, late records, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headwater.common.errors import StateError, TimestampError, short_repr
from headwater.operators.base import OperatorContext, Output
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.functions.window import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from headwater.operators.results import Results
from headwater.operators.user_function import KeyedOperator, NoRecord, has_life_cycle
from headwater.operators.window.contexts import FunctionView
from headwater.operators.window.settings import Buffered, WindowSettings

Evaluate = Callable[[Any, Any, list[Any]], Iterable[Any] | None]
"""(key, window, elements) -> results"""

LATE_RECORDS_DROPPED = "numLateRecordsDropped"
MAX_RESULTS_HELD = 4096
"""Emit results in batches of about this size: the last watermark of a job may end millions of windows at once."""

CONTENTS = "window-contents"
"""The state of windows with timers of their own."""
PANES = "window-panes"
"""The state of windows that are the same for all keys."""
SLICES = "window-slices"
"""The state of sliding windows that share slices."""
SESSIONS = "window-sessions"
"""The state of sessions, all of a key together."""


class FiredWindow:
    """Replaces the record in an error that the evaluation of a window raised."""

    def __init__(self, window: Any, key: Any) -> None:
        self._text = f"<{window!r} of key {short_repr(key)}>"

    def __repr__(self) -> str:
        return self._text


class WindowOperatorBase(KeyedOperator):
    """Evaluates windows, and collects their results until they are emitted.

    As in PyFlink, a result has the timestamp of the timer or late record that made its window fire.
    """

    state_name: str

    def __init__(self, key_selector: Any, settings: WindowSettings) -> None:
        self.settings = settings
        contents = settings.contents
        folding = None if isinstance(contents, Buffered) else contents.function
        super().__init__(key_selector, folding if settings.function is None else settings.function)
        self._folding_function = folding if settings.function is not None else None
        """Set only if there is a window function too: the base class opens and closes just one of the two."""
        self._event_time = settings.assigner.is_event_time()
        self._late_tag = settings.late_data_tag
        self._discard_results()

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._view = FunctionView(context, self._backend, self.settings.merging)
        self._evaluate = _evaluation(self.settings.function, self._view)
        self._clear_function = _clearing(self.settings.function)
        self._discard_results()

    def open(self) -> None:
        for other in (CONTENTS, PANES, SLICES, SESSIONS):
            if other != self.state_name and other in self._backend.state_names():
                raise StateError(
                    f"operator '{self.context.name}' keeps its windows as '{self.state_name}', but was restored with "
                    f"'{other}': its trigger, evictor, assigner or function is of another kind than when the state was "
                    f"written; put them back, or give the operator another uid to begin without that state"
                )
        self._late_dropped = RuntimeContext(self.context).get_metrics_group().counter(LATE_RECORDS_DROPPED)
        super().open()

    def abort_epoch(self) -> None:
        super().abort_epoch()
        self._backend.current_namespace = None
        self._discard_results()

    # -- functions ----------------------------------------------------------------------------------------------------

    def _open_function(self, *, restored: bool) -> None:
        if self._folding_function is not None and has_life_cycle(self._folding_function):
            try:
                self._folding_function.open(RuntimeContext(self.context, restored))
            except Exception as error:
                raise self.user_error(error, NoRecord("open()")) from error
        super()._open_function(restored=restored)

    def _close_function(self, *, suppress: bool) -> None:
        was_open = self._opened
        super()._close_function(suppress=suppress)
        if was_open and self._folding_function is not None and has_life_cycle(self._folding_function):
            try:
                self._folding_function.close()
            except Exception as error:
                if not suppress:
                    raise self.user_error(error, NoRecord("close()")) from error

    def _call_clear(self, window: Any, namespace: Any) -> None:
        """Call the function's `clear`: the window of the current key has ended."""
        if self._clear_function is not None:
            self._view.current_window = window
            self._backend.current_namespace = namespace
            self._clear_function(self._view)

    # -- records ------------------------------------------------------------------------------------------------------

    def _check_timestamps(self, values: Sequence[Any], timestamps: list[int | None] | None) -> None:
        """Raise if a record has no timestamp: event-time windows need one."""
        if timestamps is None or None in timestamps:
            record = values[0] if timestamps is None else values[timestamps.index(None)]
            raise TimestampError(
                f"operator '{self.context.name}': {self.settings.assigner!r} needs event timestamps, but this record "
                f"has none: {short_repr(record)}; call assign_timestamps_and_watermarks(...) before, or use "
                f"processing-time windows"
            )

    def _late(self, values: list[Any], timestamps: list[int | None]) -> None:
        """Drop records that no window takes any more, or emit them to the side output for late records."""
        if not values:
            return
        if self._late_tag is not None:
            self.output.emit_side(self._late_tag.tag_id, values, timestamps)
        else:
            self._late_dropped.inc(len(values))

    # -- results ------------------------------------------------------------------------------------------------------

    def _add_results(self, produced: Iterable[Any] | None, timestamp: int | None) -> None:
        if produced is not None:
            self._results.take(produced, timestamp)

    def _emit_results(self) -> None:
        results = self._results
        if results.values:
            self._discard_results()
            if results.timestamps is not None and results.timestamps.count(None) == len(results.timestamps):
                results.timestamps = None
            results.emit(self.output)

    def _discard_results(self) -> None:
        self._results = Results(stamped=True)


def _evaluation(function: Any, view: FunctionView) -> Evaluate | None:
    """Return how to call `function`; None if there is none."""
    if function is None:
        return None
    if isinstance(function, WindowFunction):
        return function.apply
    if isinstance(function, AllWindowFunction):
        apply_all = function.apply
        return lambda key, window, elements: apply_all(window, elements)
    process = function.process
    if isinstance(function, ProcessAllWindowFunction):

        def evaluate_all(key: Any, window: Any, elements: list[Any]) -> Iterable[Any] | None:
            view.current_window = window
            return process(view, elements)  # type: ignore[no-any-return]

        return evaluate_all

    def evaluate(key: Any, window: Any, elements: list[Any]) -> Iterable[Any] | None:
        view.current_window = window
        return process(key, view, elements)  # type: ignore[no-any-return]

    return evaluate


def _clearing(function: Any) -> Callable[[FunctionView], None] | None:
    """Return the function's `clear`, if it overrides it."""
    for base in (ProcessWindowFunction, ProcessAllWindowFunction):
        if isinstance(function, base) and type(function).clear is not base.clear:
            return function.clear
    return None
