"""What users implement for the broadcast state pattern. Pure interfaces, as in `pyflink.datastream.functions`.

Every partition sees every record of the broadcast stream, and keeps what it needs in broadcast state. The function must
do the same in each partition: it must not use the partition number, random numbers or the clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headwater.operators.functions.plain import Function

if TYPE_CHECKING:
    from headwater.operators.functions.time_domain import TimeDomain
    from headwater.operators.functions.timer_service import TimerService
    from headwater.state.api import BroadcastState, ReadOnlyBroadcastState
    from headwater.state.descriptors import MapStateDescriptor, StateDescriptor


class BaseBroadcastProcessFunction(Function):
    """The common base of both kinds: the contexts."""

    class BaseContext(ABC):
        """Valid only during the call it is handed to: the object is reused for the next record."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The timestamp of the record, or of the timer that fires; None if the stream has no timestamps."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The epoch's processing time."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The operator's watermark: the smaller one of the two streams' watermarks."""

    class Context(BaseContext):
        """What `process_broadcast_element` gets."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """One of the states that were given to `broadcast(...)`."""

    class ReadOnlyContext(BaseContext):
        """What `process_element` gets."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """One of the states that were given to `broadcast(...)`; its values must not be changed."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """For a stream without keys that is connected with a broadcast one."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What `process_broadcast_element` gets."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What `process_element` gets."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Process a record of the other stream: yield results, and `output_tag, result` for a side output."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Process a record of the broadcast stream. What is yielded is emitted by every partition."""


class KeyedStateFunction(ABC):
    """For `apply_to_keyed_state`, which accepts a plain function `(key, state)` too."""

    @abstractmethod
    def process(self, key: Any, state: Any) -> None:
        """Look at, or change, the state of one key."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """For a keyed stream that is connected with a broadcast one. It also has keyed state and timers."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What `process_broadcast_element` gets. There is no current key: it can only reach the state of all keys."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None] | KeyedStateFunction
        ) -> None:
            """Call `function(key, state)` for each key of this partition that has an entry in that state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What `process_element` gets."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The clocks, and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record, or of the timer that fires."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """What `on_timer` gets."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Process a record of the keyed stream: yield results, and `output_tag, result` for a side output."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Process a record of the broadcast stream. What is yielded is emitted by every partition."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """A timer of the current key is due. Results get the timer's timestamp."""
        return None
