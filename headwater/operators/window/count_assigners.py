"""Count windows: the number of earlier elements of its key decides an element's window. Numbered as in PyFlink."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.common.serializer import TypeSerializer
from headwater.common.typeinfo import Types
from headwater.operators.window.triggers import CountTrigger
from headwater.state.descriptors import ValueStateDescriptor
from headwater.time.assigners import WindowAssigner
from headwater.time.triggers import Trigger
from headwater.time.windows import CountWindow, CountWindowSerializer


class _CountWindows(WindowAssigner[Any, CountWindow]):
    """Windows of `window_size` elements of a key."""

    def __init__(self, window_size: int, state_name: str) -> None:
        self.window_size = _elements(type(self), "size", window_size)
        self._count = ValueStateDescriptor(state_name, Types.LONG())

    def _number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """Count the element, and return how many elements of its key came before it."""
        state = context.get_runtime_context().get_state(self._count)
        number: int = state.value() or 0
        state.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return CountTrigger(self.window_size)

    def get_window_serializer(self) -> TypeSerializer[Any]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """Windows of `window_size` elements, one after the other."""

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, "tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        return (CountWindow(self._number(context) // self.window_size),)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(_CountWindows):
    """Windows of `window_size` elements. A window begins every `window_slide` elements."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size, "slide-count-assigner")
        self.window_slide = _elements(type(self), "slide", window_slide)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = self._number(context)
        last = number // self.window_slide
        first = max((number - self.window_size) // self.window_slide + 1, 0)
        return [CountWindow(window) for window in range(last, first - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


def _elements(cls: type, name: str, number: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ConfigurationError(f"{cls.__name__}: the {name} must be a whole number of at least 1, found {number!r}")
    return number
