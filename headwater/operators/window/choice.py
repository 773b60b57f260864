"""Chooses the operator for a window operation, when the job is planned."""

from __future__ import annotations

from typing import Any

from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.base import WindowOperatorBase
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sessions import SessionWindowOperator
from headwater.operators.window.settings import Aggregated, WindowSettings
from headwater.operators.window.sliced import SlicedWindowOperator, can_merge
from headwater.operators.window.triggers import ContinuousEventTimeTrigger, CountTrigger, DeltaTrigger
from headwater.time.assigners_aligned import (
    AlignedWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from headwater.time.assigners_session import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from headwater.time.triggers import EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger, PurgingTrigger, Trigger

_ALIGNED = (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
)
_SESSIONS = (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)
_NO_PROCESSING_TIME = (EventTimeTrigger, ContinuousEventTimeTrigger, CountTrigger, DeltaTrigger, NeverTrigger)


def make_window_operator(key_selector: Any, settings: WindowSettings) -> WindowOperatorBase:
    """Return the operator for `settings`. Compares exact classes: a subclass may behave differently."""
    return operator_class(settings)(key_selector, settings)


def operator_class(settings: WindowSettings) -> type[WindowOperatorBase]:
    assigner = settings.assigner
    if settings.evictor is not None or not _is_default_trigger(settings):
        return WindowOperator
    if type(assigner) in _SESSIONS:
        return SessionWindowOperator
    if not isinstance(assigner, AlignedWindows) or type(assigner) not in _ALIGNED:
        return WindowOperator
    overlapping = assigner.size_ms > assigner.slide_ms
    if assigner.event_time and overlapping and isinstance(settings.contents, Aggregated) and not settings.whole_panes:
        return SlicedWindowOperator if can_merge(settings.contents.function) else AlignedWindowOperator
    return AlignedWindowOperator


def uses_processing_time(settings: WindowSettings) -> bool:
    """Return True if processing time must pass for the operator even without data."""
    return not settings.assigner.is_event_time() or type(_unwrapped(settings.trigger)) not in _NO_PROCESSING_TIME


def _is_default_trigger(settings: WindowSettings) -> bool:
    """Return True if windows fire only at their end and for allowed late records."""
    trigger = settings.trigger
    if not settings.assigner.is_event_time():
        return type(_unwrapped(trigger)) is ProcessingTimeTrigger
    if settings.allowed_lateness_ms == 0:
        trigger = _unwrapped(trigger)  # a window that ends when it fires has nothing left to purge
    return type(trigger) is EventTimeTrigger


def _unwrapped(trigger: Trigger[Any, Any]) -> Trigger[Any, Any]:
    return trigger.nested_trigger if isinstance(trigger, PurgingTrigger) else trigger
