"""Triggers with state: the number of elements, the next time to fire, or the element that fired last."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.common.time import DurationLike, to_millis
from headwater.common.typeinfo import Types
from headwater.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from headwater.time.evictors import Delta, delta_method
from headwater.time.triggers import Trigger, TriggerResult
from headwater.time.windows import TimeWindow


class CountTrigger(Trigger[Any, Any]):
    """Fires after every `window_size` elements."""

    def __init__(self, window_size: int) -> None:
        if not isinstance(window_size, int) or isinstance(window_size, bool) or window_size < 1:
            raise ConfigurationError(f"CountTrigger expects a whole number of at least 1, found {window_size!r}")
        self.window_size = window_size
        self._count = ReducingStateDescriptor("count", _sum, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count).clear()


class _ContinuousTrigger(Trigger[Any, TimeWindow]):
    """Fires every `interval` milliseconds, at times that are multiples of it: early results of a window."""

    def __init__(self, interval: int) -> None:
        self.interval = to_millis(interval, f"{type(self).__name__}: interval", minimum=1)
        self._next_fire = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def can_merge(self) -> bool:
        return True

    def _first_fire(self, now: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> int | None:
        """Set the first time to fire, unless it is set already. Return it if it was set now, otherwise None."""
        state = ctx.get_partitioned_state(self._next_fire)
        if state.get() is not None:
            return None
        return self._fire_next(now - now % self.interval, window, state)

    def _fire_next(self, last: int, window: TimeWindow, state: Any) -> int:
        following, end = last + self.interval, window.max_timestamp()
        if last < end < following:  # an event-time window that fires by processing time may have ended long ago
            following = end
        state.add(following)
        return following

    def _fires_now(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> int | None:
        """If the window fires at `time`, set the next time and return it; otherwise return None."""
        state = ctx.get_partitioned_state(self._next_fire)
        if state.get() != time:
            return None
        state.clear()
        return self._fire_next(time, window, state)

    def _merged(self, ctx: Trigger.OnMergeContext) -> int | None:
        ctx.merge_partitioned_state(self._next_fire)
        following: int | None = ctx.get_partitioned_state(self._next_fire).get()
        return following

    def _cleared(self, ctx: Trigger.TriggerContext) -> int | None:
        state = ctx.get_partitioned_state(self._next_fire)
        was_set: int | None = state.get()
        if was_set is not None:
            state.clear()
        return was_set


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Early results of a window every `interval` of event time, and its last one at the end."""

    @staticmethod
    def of(interval: DurationLike) -> ContinuousEventTimeTrigger:
        return ContinuousEventTimeTrigger(to_millis(interval, "ContinuousEventTimeTrigger: interval", minimum=1))

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        if (first := self._first_fire(timestamp, window, ctx)) is not None:
            ctx.register_event_time_timer(first)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        if (following := self._fires_now(time, window, ctx)) is None:
            return TriggerResult.CONTINUE
        ctx.register_event_time_timer(following)
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if (following := self._merged(ctx)) is not None:
            ctx.register_event_time_timer(following)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        if (was_set := self._cleared(ctx)) is not None:
            ctx.delete_event_time_timer(was_set)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Results of a window every `interval` of processing time."""

    @staticmethod
    def of(interval: DurationLike) -> ContinuousProcessingTimeTrigger:
        return ContinuousProcessingTimeTrigger(
            to_millis(interval, "ContinuousProcessingTimeTrigger: interval", minimum=1)
        )

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if (first := self._first_fire(ctx.get_current_processing_time(), window, ctx)) is not None:
            ctx.register_processing_time_timer(first)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        if (following := self._fires_now(time, window, ctx)) is None:
            return TriggerResult.CONTINUE
        ctx.register_processing_time_timer(following)
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if (following := self._merged(ctx)) is not None:
            ctx.register_processing_time_timer(following)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        if (was_set := self._cleared(ctx)) is not None:
            ctx.delete_processing_time_timer(was_set)


class DeltaTrigger(Trigger[Any, Any]):
    """Fires when an element is further than `threshold` from the one that fired last (at first: the first one).

    Flink's Java trigger of this name; PyFlink lacks it.
    """

    def __init__(self, threshold: float, delta_function: Delta) -> None:
        self.threshold = threshold
        self._delta = delta_method("DeltaTrigger", delta_function)
        self._last = ValueStateDescriptor("last-element")

    @staticmethod
    def of(threshold: float, delta_function: Delta) -> DeltaTrigger:
        return DeltaTrigger(threshold, delta_function)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        state = ctx.get_partitioned_state(self._last)
        last = state.value()
        if last is None:
            state.update((element,))  # wrapped: an element may be None
            return TriggerResult.CONTINUE
        if self._delta(last[0], element) > self.threshold:
            state.update((element,))
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        raise AssertionError("DeltaTrigger cannot merge")

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()


def _sum(one: int, other: int) -> int:
    return one + other
