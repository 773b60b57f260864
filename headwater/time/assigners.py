"""Window assigners: to which windows an element belongs. Names as in `pyflink.datastream.window`.

Count windows are in `operators/window/count_assigners.py`, because they need state, which is a layer above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from headwater.common.serializer import TypeSerializer
from headwater.time.triggers import EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger, Trigger
from headwater.time.windows import GlobalWindow, GlobalWindowSerializer, TimeWindow, TimeWindowSerializer

T = TypeVar("T")
W = TypeVar("W")


class WindowAssigner(ABC, Generic[T, W]):
    """Says to which windows an element belongs. One object serves all keys of a partition."""

    class WindowAssignerContext(ABC):
        """What an assigner may ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The epoch's processing time."""

        @abstractmethod
        def get_runtime_context(self) -> Any:
            """The operator's `RuntimeContext`: state got from it belongs to the element's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of `element`; none is allowed. `timestamp` is `MIN_WATERMARK` where the stream has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger of windows for which none was chosen."""

    def get_window_serializer(self) -> TypeSerializer[Any] | None:
        """As in PyFlink. Windows are pickled here, so an assigner need not implement it."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """True if windows end by the watermark: then elements can be late."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows are merged as elements come: sessions."""

    class MergeCallback(ABC):
        """Receives the merges that `merge_windows` finds."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
            """Replace the windows `to_be_merged` by `merge_result`."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback) -> None:
        """Call `callback.merge` for each group of `windows` that belong together. A result must cover its group."""


class TimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """Base of all assigners of time windows, by event time or by processing time."""

    event_time: ClassVar[bool]

    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """Return the time of an element with this timestamp."""
        return timestamp if self.event_time else context.get_current_processing_time()

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger() if self.event_time else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[Any]:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return self.event_time


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """All elements of a key in one window that never ends. Needs a trigger to give results."""

    @staticmethod
    def create() -> GlobalWindows:
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return (GlobalWindow.get(),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[Any]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"
