"""What users implement to evaluate a window. Names and signatures of `pyflink.datastream.functions`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headwater.operators.functions.plain import Function

if TYPE_CHECKING:
    from headwater.state.api import AggregatingState, ListState, MapState, ReducingState, ValueState
    from headwater.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        ValueStateDescriptor,
    )

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class KeyedStateStore(ABC):
    """Gives states of the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """One list."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """One map."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """One value, reduced from all that were added."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """One accumulator."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield, or return, the results. `inputs` is one value if the window reduces or aggregates."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that is not keyed."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield, or return, the results. `inputs` is one value if the window reduces or aggregates."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key with a context: clocks, and state of the window and of the key."""

    class Context(ABC, Generic[W2]):
        """Valid only during the call it is handed to."""

        @abstractmethod
        def window(self) -> W2:
            """The window that is evaluated."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The epoch's processing time."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The operator's watermark."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this key and window. Clear it in `clear`: nobody else does. Not for session windows."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of this key, shared by its windows."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield, or return, the results. `elements` is one value if the window reduces or aggregates.

        Called whenever the window fires, which may be several times.
        """

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """The window ends, after its allowed lateness: clear its `window_state`."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that is not keyed, with a context."""

    class Context(ABC, Generic[W2]):
        """Valid only during the call it is handed to."""

        @abstractmethod
        def window(self) -> W2:
            """The window that is evaluated."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this window. Clear it in `clear`: nobody else does. Not for session windows."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State that all windows share."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield, or return, the results. `elements` is one value if the window reduces or aggregates."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """The window ends, after its allowed lateness: clear its `window_state`."""


class PlainWindowFunction(WindowFunction[Any, Any, Any, Any]):
    """A function `(key, window, inputs)` as a WindowFunction."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        return self._function(key, window, inputs)  # type: ignore[no-any-return]


class PlainAllWindowFunction(AllWindowFunction[Any, Any, Any]):
    """A function `(window, inputs)` as an AllWindowFunction."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        return self._function(window, inputs)  # type: ignore[no-any-return]


class PlainProcessWindowFunction(ProcessWindowFunction[Any, Any, Any, Any]):
    """A function `(key, context, elements)` as a ProcessWindowFunction."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return self._function(key, context, elements)  # type: ignore[no-any-return]


class PlainProcessAllWindowFunction(ProcessAllWindowFunction[Any, Any, Any]):
    """A function `(context, elements)` as a ProcessAllWindowFunction."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return self._function(context, elements)  # type: ignore[no-any-return]
