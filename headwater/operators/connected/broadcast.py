"""The broadcast state pattern: processes a stream, keyed or not, by rules that a broadcast stream brings.

Input 0 is the broadcast stream, input 1 the other one. The runner reads chunks of equal event time in the order of the
inputs, so within an epoch a rule comes before the records of the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.common.errors import StateError
from headwater.operators.base import OperatorContext, Output
from headwater.operators.functions.broadcast import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from headwater.operators.functions.time_domain import TimeDomain
from headwater.operators.functions.timer_service import KeyedTimerService, TimerService, UnkeyedTimerService
from headwater.operators.process import KeyedProcessOperator, ProcessOperator
from headwater.operators.results import Results
from headwater.operators.user_function import UserFunctionOperator, method_of
from headwater.state.api import BroadcastState, ReadOnlyBroadcastState
from headwater.state.copying import captured
from headwater.state.descriptors import MapStateDescriptor, StateDescriptor
from headwater.state.keyed_backend import NO_KEY, KeyedStateBackend

BROADCAST_INPUT = 0
OTHER_INPUT = 1


class _States:
    """The declared broadcast states of one operator partition, by name."""

    def __init__(self, context: OperatorContext, descriptors: Sequence[MapStateDescriptor]) -> None:
        backend = context.operator_backend
        if backend is None:
            raise StateError(f"operator '{context.name}' has broadcast state, but runs where none is kept")
        self._operator_name = context.name
        self._states = {item.name: backend.get_broadcast_state(item) for item in descriptors}
        self._views = {item.name: backend.get_read_only_broadcast_state(item) for item in descriptors}

    def state(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        try:
            return self._states[descriptor.name]
        except (KeyError, AttributeError):
            raise self._unknown(descriptor) from None

    def view(self, descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        try:
            return self._views[descriptor.name]
        except (KeyError, AttributeError):
            raise self._unknown(descriptor) from None

    def _unknown(self, descriptor: Any) -> StateError:
        name = getattr(descriptor, "name", repr(descriptor))
        return StateError(
            f"operator '{self._operator_name}' asked for broadcast state '{name}', but the stream was broadcast with "
            f"{', '.join(map(repr, self._states))}; pass its descriptor to broadcast(...), too"
        )


class _Clocks:
    """The part of the contexts that tells time."""

    def __init__(self, timer_service: TimerService) -> None:
        self._timer_service = timer_service
        self.current_timestamp: int | None = None

    def timestamp(self) -> int | None:
        return self.current_timestamp

    def current_processing_time(self) -> int:
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        return self._timer_service.current_watermark()


class _BroadcastContext(_Clocks, BroadcastProcessFunction.Context):
    """For `process_broadcast_element` on a stream without keys."""

    states: _States

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self.states.state(state_descriptor)


class _ReadOnlyContext(_Clocks, BroadcastProcessFunction.ReadOnlyContext):
    """For `process_element` on a stream without keys."""

    states: _States

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self.states.view(state_descriptor)


class _KeyedBroadcastContext(_Clocks, KeyedBroadcastProcessFunction.Context):
    """For `process_broadcast_element` on a keyed stream."""

    states: _States

    def __init__(self, backend: KeyedStateBackend, timer_service: TimerService) -> None:
        super().__init__(timer_service)
        self._backend = backend

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self.states.state(state_descriptor)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Any) -> None:
        process: Callable[[Any, Any], Any] = getattr(function, "process", function)
        backend = self._backend
        state = backend.get_state(state_descriptor)
        try:
            for key in backend.keys(state_descriptor.name):
                backend.current_key = key
                process(captured(key), state)
        finally:
            backend.current_key = NO_KEY


class _KeyedReadOnlyContext(_Clocks, KeyedBroadcastProcessFunction.OnTimerContext):
    """For `process_element` and `on_timer` on a keyed stream."""

    states: _States

    def __init__(self, backend: KeyedStateBackend, timer_service: TimerService) -> None:
        super().__init__(timer_service)
        self._backend = backend
        self.current_domain = TimeDomain.EVENT_TIME

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self.states.view(state_descriptor)

    def get_current_key(self) -> Any:
        return captured(self._backend.current_key)

    def timer_service(self) -> TimerService:
        return self._timer_service

    def time_domain(self) -> TimeDomain:
        return self.current_domain


class BroadcastProcessOperator(ProcessOperator):
    """Runs a `BroadcastProcessFunction`."""

    inputs_of_elements = (OTHER_INPUT, BROADCAST_INPUT)
    """The inputs of a harness's process_element1 and process_element2: in Flink, the broadcast stream is the second."""

    def __init__(self, descriptors: Sequence[MapStateDescriptor], function: Any) -> None:
        super().__init__(function)
        self._descriptors = descriptors
        self._process_broadcast = method_of(function, "process_broadcast_element", "process")

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        clocks = UnkeyedTimerService(context)
        self._broadcast_ctx = _BroadcastContext(clocks)
        self._ctx = self._read_only_ctx = _ReadOnlyContext(clocks)  # type: ignore[assignment]  # what the loop needs

    def open(self) -> None:
        self._broadcast_ctx.states = self._read_only_ctx.states = _States(self.context, self._descriptors)
        super().open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if input_index == OTHER_INPUT:
            super().process_batch(values, timestamps)
        else:
            process_broadcast(self, self._process_broadcast, self._broadcast_ctx, values, timestamps)


class KeyedBroadcastProcessOperator(KeyedProcessOperator):
    """Runs a `KeyedBroadcastProcessFunction`."""

    inputs_of_elements = (OTHER_INPUT, BROADCAST_INPUT)

    def __init__(self, key_selector: Any, descriptors: Sequence[MapStateDescriptor], function: Any) -> None:
        super().__init__(key_selector, function)
        self._descriptors = descriptors
        self._process_broadcast = method_of(function, "process_broadcast_element", "process")
        self.keys_of = (None, self.key_of)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        timers = KeyedTimerService(context, self._backend)
        self._broadcast_ctx = _KeyedBroadcastContext(self._backend, timers)
        self._ctx = self._read_only_ctx = _KeyedReadOnlyContext(self._backend, timers)  # type: ignore[assignment]

    def open(self) -> None:
        self._broadcast_ctx.states = self._read_only_ctx.states = _States(self.context, self._descriptors)
        super().open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if input_index == OTHER_INPUT:
            super().process_batch(values, timestamps)
            return
        # A broadcast record has no key: access to keyed state must raise.
        self._backend.current_key = NO_KEY
        process_broadcast(self, self._process_broadcast, self._broadcast_ctx, values, timestamps)


def process_broadcast(
    operator: UserFunctionOperator,
    process: Callable[[Any, Any], Any],
    ctx: _Clocks,
    values: list[Any],
    timestamps: list[int | None] | None,
) -> None:
    """Hand the records of the broadcast stream to the function, one by one; they are few."""
    results = Results(stamped=timestamps is not None)
    stamps = timestamps if timestamps is not None else [None] * len(values)
    for value, timestamp in zip(values, stamps, strict=True):
        ctx.current_timestamp = timestamp
        try:
            results.take(process(value, ctx) or (), timestamp)
        except Exception as error:
            raise operator.user_error(error, value) from error
    results.emit(operator.output)
