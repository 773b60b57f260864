"""The general window operator: for any assigner, trigger and evictor, and for windows that merge.

Each key and window has its own timers: those that the trigger sets, and one that ends the window. Windows that are the
same for all keys have a faster operator: `aligned.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce as fold
from itertools import repeat
from typing import Any

from headwater.common.errors import StateError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.operators.base import OperatorContext, Output
from headwater.operators.user_function import method_of
from headwater.operators.window.base import CONTENTS, MAX_RESULTS_HELD, FiredWindow, WindowOperatorBase
from headwater.operators.window.contexts import AssignerView, TriggerView
from headwater.operators.window.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from headwater.operators.window.merging import MergingWindows
from headwater.operators.window.settings import Aggregated, Buffered, Reduced, WindowSettings
from headwater.operators.window.triggers import CountTrigger
from headwater.state.copying import captured, protective_copy
from headwater.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.merging import merge_namespaces
from headwater.state.timers import TimerQueue
from headwater.time.assigners import MergingWindowAssigner
from headwater.time.evictors import TimestampedValue
from headwater.time.triggers import PurgingTrigger, Trigger, TriggerResult
from headwater.time.windows import namespace_of, window_of

MERGING_WINDOWS = "merging-window-set"


class WindowOperator(WindowOperatorBase):
    """Runs any window operation, one record and one window at a time."""

    state_name = CONTENTS

    def __init__(self, key_selector: Any, settings: WindowSettings) -> None:
        super().__init__(key_selector, settings)
        self._assigner = settings.assigner
        self._trigger = settings.trigger
        self._evictor = settings.evictor
        self._lateness = settings.allowed_lateness_ms
        self._elements_are_kept = isinstance(settings.contents, Buffered) or settings.evictor is not None
        self._ends_when_it_fires = _counts_to_its_size(settings)
        self._merging: MergingWindows | None = None

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._assigner_view = AssignerView(context)
        self._trigger_view = TriggerView(context, self._backend)

    def open(self) -> None:
        self._contents: Any = self._backend.get_namespaced_state(self._contents_descriptor())
        if isinstance(self._assigner, MergingWindowAssigner):
            windows = self._backend.get_state(ValueStateDescriptor(MERGING_WINDOWS))
            self._merging = MergingWindows(self._assigner, windows)
        super().open()

    def _contents_descriptor(self) -> StateDescriptor:
        contents = self.settings.contents
        if self._elements_are_kept or isinstance(contents, Buffered):
            return ListStateDescriptor(CONTENTS)
        if isinstance(contents, Reduced):
            return ReducingStateDescriptor(CONTENTS, contents.function)
        return AggregatingStateDescriptor(CONTENTS, contents.function)

    # -- records ------------------------------------------------------------------------------------------------------

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if self._event_time:
            self._check_timestamps(values, timestamps)
        assign, view = self._assigner.assign_windows, self._assigner_view
        times: Iterable[int | None] = repeat(None) if timestamps is None else timestamps
        add = self._add_to_window if self._merging is None else self._add_to_merging_window
        late: list[Any] = []
        late_timestamps: list[int | None] = []
        position = iter(values)
        try:
            for value, timestamp in zip(self.keyed(position), times):  # noqa: B905 - `times` may be endless
                time = MIN_WATERMARK if timestamp is None else timestamp
                if self._merging is not None:
                    self._merging.load()
                taken = False
                for window in assign(value, time, view):
                    if add(window, value, timestamp, time):
                        taken = True
                if self._merging is not None:
                    self._merging.store()
                if not taken and self._event_time and time + self._lateness <= self.context.watermark:
                    late.append(value)
                    late_timestamps.append(timestamp)
        except Exception as error:
            raise self.failure(error, values, position) from error
        self._late(late, late_timestamps)
        self._emit_results()

    def _add_to_window(self, window: Any, value: Any, timestamp: int | None, time: int) -> bool:
        """Add the record to a window. Return False if the window has ended."""
        if self._is_late(window):
            return False
        namespace = namespace_of(window)
        self._add(window, namespace, namespace, value, timestamp, time)
        return True

    def _add_to_merging_window(self, window: Any, value: Any, timestamp: int | None, time: int) -> bool:
        assert self._merging is not None
        window = self._merging.add(window, self._on_merge)
        namespace = namespace_of(window)
        if self._is_late(window):
            self._merging.retire(namespace)
            return False
        self._add(window, namespace, self._merging.content_of(namespace), value, timestamp, time)
        return True

    def _add(self, window: Any, namespace: Any, place: Any, value: Any, timestamp: int | None, time: int) -> None:
        """Add the record to an open window. `place` is the namespace of the window's content."""
        self._backend.current_namespace = place
        self._contents.add(value if self._evictor is None else (value, timestamp))
        self._trigger_view.namespace = namespace
        result = self._trigger.on_element(value, time, window, self._trigger_view)
        self._obey(result, window, namespace, place, timestamp)
        if self._ends_when_it_fires and result.is_fire():
            self._end_window(window, namespace, place)
            return
        self._set_end_timer(window, namespace)

    def _on_merge(self, merged: Any, old: list[Any], place: Any, others: list[Any]) -> None:
        """The windows `old` of the current key have become `merged`, whose content will be at `place`."""
        if self._is_late(merged):
            raise StateError(
                f"{self._assigner!r} merged windows into {merged!r}, which ended before the watermark "
                f"{self.context.watermark}; merging must not make a window end earlier"
            )
        view, namespace = self._trigger_view, namespace_of(merged)
        view.namespace = namespace
        view.merged_namespaces = old
        self._trigger.on_merge(merged, view)
        for old_namespace in old:
            if old_namespace != namespace:
                window = window_of(old_namespace)
                view.namespace = old_namespace
                self._trigger.clear(window, view)
                self._delete_end_timer(window, old_namespace)
        merge_namespaces(self._backend, self._contents, place, others)

    # -- timers -------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        # As in Flink, the functions already see the new watermark while the windows that it ends are evaluated.
        reached, self.context.watermark = self.context.watermark, watermark
        self._fire(self._backend.event_timers, watermark, self._trigger.on_event_time, self._event_time, reached)
        super().process_watermark(watermark)

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        self._fire(
            self._backend.processing_timers, now_ms, self._trigger.on_processing_time, not self._event_time, None
        )

    def next_processing_timer(self) -> int | None:
        return self._backend.processing_timers.peek()

    def end_of_input(self) -> None:
        """STREAMING drops the processing-time timers that are left, as Flink does; BATCH fires them."""
        if self.context.batch_mode:
            timers, on_timer = self._backend.processing_timers, self._trigger.on_processing_time
            self._fire(timers, MAX_WATERMARK, on_timer, not self._event_time, None)

    def _fire(self, timers: TimerQueue, up_to: int, on_timer: Any, ends_windows: bool, reached: int | None) -> None:
        """Call the trigger for all timers that are due. `ends_windows`: windows end by this clock."""
        first = timers.peek()
        if first is None or first > up_to:
            return
        backend = self._backend
        for timestamp, key, namespace in timers.pop_due(up_to):
            backend.current_key = key
            if reached is not None:
                # State expires by this clock: it must not pass timers that have not fired yet.
                backend.watermark = max(timestamp, reached)
            window = window_of(namespace)
            try:
                self._on_timer(timestamp, window, namespace, on_timer, ends_windows)
            except Exception as error:
                raise self.user_error(error, FiredWindow(window, key)) from error
            if len(self._results.values) >= MAX_RESULTS_HELD:
                self._emit_results()
        self._emit_results()

    def _on_timer(self, timestamp: int, window: Any, namespace: Any, on_timer: Any, ends_windows: bool) -> None:
        place = namespace
        if self._merging is not None:
            self._merging.load()
            if namespace not in self._merging:
                return  # a timer of a window that was merged away, which its trigger did not delete
            place = self._merging.content_of(namespace)
        self._trigger_view.namespace = namespace
        result = on_timer(timestamp, window, self._trigger_view)
        self._obey(result, window, namespace, place, timestamp)
        if ends_windows and timestamp == self._end_of(window):
            self._end_window(window, namespace, place)

    # -- windows ------------------------------------------------------------------------------------------------------

    def _obey(self, result: TriggerResult, window: Any, namespace: Any, place: Any, timestamp: int | None) -> None:
        """Do what the trigger decided: fire, purge, both or nothing."""
        if result is TriggerResult.CONTINUE:
            return
        if not isinstance(result, TriggerResult):
            raise TypeError(f"{type(self._trigger).__name__} returned {result!r}, expected a TriggerResult")
        if result.is_fire():
            self._evaluate_window(window, namespace, place, timestamp)
        if result.is_purge():
            self._backend.current_namespace = place
            self._contents.clear()

    def _evaluate_window(self, window: Any, namespace: Any, place: Any, timestamp: int | None) -> None:
        backend = self._backend
        backend.current_namespace = place
        found = self._contents.get()
        if found is None or (self._elements_are_kept and not found):
            return
        if self._evictor is not None:
            self._evaluate_evicting(window, namespace, place, found, timestamp)
            return
        elements = found if self._elements_are_kept else [found]
        self._evaluate_elements(window, namespace, elements, timestamp)

    def _evaluate_elements(self, window: Any, namespace: Any, elements: list[Any], timestamp: int | None) -> None:
        if self._evaluate is None:
            self._add_results(elements, timestamp)
            return
        self._backend.current_namespace = namespace
        self._add_results(self._evaluate(captured(self._backend.current_key), window, elements), timestamp)

    def _evaluate_evicting(
        self, window: Any, namespace: Any, place: Any, found: list[Any], timestamp: int | None
    ) -> None:
        assert self._evictor is not None
        elements = [TimestampedValue(*pair) for pair in found]
        self._trigger_view.namespace = namespace
        self._evictor.evict_before(elements, len(elements), window, self._trigger_view)
        values = self._folded([element.value for element in elements])
        if values is not None:
            self._evaluate_elements(window, namespace, values, timestamp)
        self._evictor.evict_after(elements, len(elements), window, self._trigger_view)
        if len(elements) != len(found):
            self._backend.current_namespace = place
            self._contents.update([tuple(element) for element in elements])

    def _folded(self, values: list[Any]) -> list[Any] | None:
        """Return the remaining elements of an evicted window, reduced or aggregated for its function.

        None: no elements remain, and there is nothing to reduce.
        """
        contents = self.settings.contents
        if isinstance(contents, Buffered):
            return values
        if not values:
            return None
        # Copy: the elements stay in the window, and the function may change its first argument.
        if isinstance(contents, Reduced):
            first = protective_copy(values[0])
            return [fold(method_of(contents.function, "reduce", "reduce"), values[1:], first)]
        return [_aggregate(contents, values)]

    def _end_window(self, window: Any, namespace: Any, place: Any) -> None:
        """Delete the window's content, and let its trigger and function clear what they keep for it."""
        self._backend.current_namespace = place
        self._contents.clear()
        self._trigger_view.namespace = namespace
        self._trigger.clear(window, self._trigger_view)
        self._call_clear(window, namespace)
        if self._merging is not None:
            self._merging.retire(namespace)
            self._merging.store()

    def _end_of(self, window: Any) -> int:
        """Return when the window ends, lateness included, on the clock of its assigner; MAX_WATERMARK: never."""
        end: int = window.max_timestamp() + (self._lateness if self._event_time else 0)
        return min(end, MAX_WATERMARK)

    def _is_late(self, window: Any) -> bool:
        return self._event_time and self._end_of(window) <= self.context.watermark

    def _set_end_timer(self, window: Any, namespace: Any) -> None:
        end = self._end_of(window)
        if end != MAX_WATERMARK:
            self._timers_of_windows().register(end, self._backend.current_key, namespace)

    def _delete_end_timer(self, window: Any, namespace: Any) -> None:
        self._timers_of_windows().delete(self._end_of(window), self._backend.current_key, namespace)

    def _timers_of_windows(self) -> TimerQueue:
        return self._backend.event_timers if self._event_time else self._backend.processing_timers


def _aggregate(contents: Aggregated, values: list[Any]) -> Any:
    function = contents.function
    return function.get_result(
        fold(lambda so_far, value: function.add(value, so_far), values, function.create_accumulator())
    )


def _counts_to_its_size(settings: WindowSettings) -> bool:
    """Return True for a count window that fires at its own size: it is complete then and gets no more elements."""
    assigner = settings.assigner
    trigger: Trigger[Any, Any] = settings.trigger
    if isinstance(trigger, PurgingTrigger):
        trigger = trigger.nested_trigger
    return (
        isinstance(assigner, CountTumblingWindowAssigner | CountSlidingWindowAssigner)
        and type(trigger) is CountTrigger
        and trigger.window_size == assigner.window_size
    )
