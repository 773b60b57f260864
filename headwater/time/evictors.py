"""Evictors remove elements from a window before or after its function sees them. PyFlink has none; names as in Java."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from headwater.common.errors import ConfigurationError, TypeMismatchError, short_repr
from headwater.common.time import DurationLike, to_millis
from headwater.metrics import MetricGroup


class TimestampedValue(NamedTuple):
    """An element of a window and its timestamp; None where the stream has none."""

    value: Any
    timestamp: int | None


class Evictor(ABC):
    """Removes elements from a window that fires. A window with an evictor keeps all its elements."""

    class EvictorContext(ABC):
        """What an evictor may ask. Valid only during the call it is handed to."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The epoch's processing time."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """The operator's metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The operator's watermark."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        """Remove from `elements`, in place, what the window's function must not see. Called when the window fires.

        `elements` are in order of arrival; `size` is their number. What is removed is gone from the window for good.
        """

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        """Remove from `elements`, in place, what must not be there when the window fires again. Called after the
        function."""


class _OneSided(Evictor):
    """Evicts either before or after the function."""

    def __init__(self, do_evict_after: bool) -> None:
        self.do_evict_after = do_evict_after

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        if not self.do_evict_after:
            self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, ctx: Evictor.EvictorContext
    ) -> None:
        if self.do_evict_after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None: ...


class CountEvictor(_OneSided):
    """Keeps the last `max_count` elements."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        if not isinstance(max_count, int) or isinstance(max_count, bool) or max_count < 0:
            raise ConfigurationError(f"CountEvictor expects a whole number of elements to keep, found {max_count!r}")
        self.max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: max(len(elements) - self.max_count, 0)]


class TimeEvictor(_OneSided):
    """Keeps the elements of the last `window_size`, counted back from the greatest timestamp in the window.

    Elements without a timestamp stay.
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.window_size_ms = to_millis(window_size, "TimeEvictor: window_size", minimum=0)

    @staticmethod
    def of(window_size: DurationLike, do_evict_after: bool = False) -> TimeEvictor:
        return TimeEvictor(to_millis(window_size, "TimeEvictor: window_size", minimum=0), do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        latest = max((element.timestamp for element in elements if element.timestamp is not None), default=None)
        if latest is None:
            return
        keep_after = latest - self.window_size_ms
        elements[:] = [each for each in elements if each.timestamp is None or each.timestamp > keep_after]


class DeltaFunction(ABC):
    """Measures how far apart two elements are."""

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """The distance from the old element to the new one."""


Delta = DeltaFunction | Callable[[Any, Any], float]


def delta_method(owner: str, delta_function: Any) -> Callable[[Any, Any], float]:
    """Return `delta_function` as a callable. Raises if it is not one."""
    method = getattr(delta_function, "get_delta", delta_function)
    if isinstance(delta_function, type) or not callable(method):
        raise TypeMismatchError(
            f"{owner} expects a DeltaFunction or a function of two elements, found {short_repr(delta_function)}"
        )
    return method  # type: ignore[no-any-return]


class DeltaEvictor(_OneSided):
    """Keeps the elements whose distance to the last one is less than `threshold`."""

    def __init__(self, threshold: float, delta_function: Delta, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.threshold = threshold
        self._delta = delta_method("DeltaEvictor", delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Delta, do_evict_after: bool = False) -> DeltaEvictor:
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        last = elements[-1].value if elements else None
        elements[:] = [each for each in elements if self._delta(each.value, last) < self.threshold]
