"""The contexts of triggers, assigners, evictors and window functions: views of one operator's state and clocks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

from headwater.common.errors import StateError
from headwater.metrics import MetricGroup
from headwater.operators.base import OperatorContext
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.functions.timer_service import whole_timestamp
from headwater.operators.functions.window import KeyedStateStore, ProcessAllWindowFunction, ProcessWindowFunction
from headwater.state.descriptors import StateDescriptor
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.merging import merge_namespaces
from headwater.time.assigners import WindowAssigner
from headwater.time.evictors import Evictor
from headwater.time.triggers import Trigger


class PrefixedStates:
    """Namespaced states with a prefix: a trigger, a window and its contents may all have a state `count`."""

    def __init__(self, backend: KeyedStateBackend, prefix: str) -> None:
        self._backend = backend
        self._prefix = prefix
        self._states: dict[str, Any] = {}

    def get(self, descriptor: StateDescriptor) -> Any:
        state = self._states.get(descriptor.name)
        if state is None:
            renamed = copy.copy(descriptor)
            renamed.name = f"{self._prefix}:{descriptor.name}"
            state = self._states[descriptor.name] = self._backend.get_namespaced_state(renamed)
        return state


class TriggerView(Trigger.OnMergeContext, Evictor.EvictorContext):
    """The context of an operator's trigger and evictor, one object for all calls. `namespace` is the current window."""

    def __init__(self, context: OperatorContext, backend: KeyedStateBackend) -> None:
        self._context = context
        self._backend = backend
        self._states = PrefixedStates(backend, "trigger")
        self.namespace: Any = None
        self.merged_namespaces: Sequence[Any] = ()

    def get_current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def get_metric_group(self) -> MetricGroup:
        return RuntimeContext(self._context).get_metrics_group()

    def get_current_watermark(self) -> int:
        return self._context.watermark

    def register_processing_time_timer(self, time: int) -> None:
        self._backend.processing_timers.register(whole_timestamp(time), self._backend.current_key, self.namespace)

    def register_event_time_timer(self, time: int) -> None:
        self._backend.event_timers.register(whole_timestamp(time), self._backend.current_key, self.namespace)

    def delete_processing_time_timer(self, time: int) -> None:
        self._backend.processing_timers.delete(whole_timestamp(time), self._backend.current_key, self.namespace)

    def delete_event_time_timer(self, time: int) -> None:
        self._backend.event_timers.delete(whole_timestamp(time), self._backend.current_key, self.namespace)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        self._backend.current_namespace = self.namespace
        return self._states.get(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        merge_namespaces(self._backend, self._states.get(state_descriptor), self.namespace, self.merged_namespaces)


class AssignerView(WindowAssigner.WindowAssignerContext):
    """The context of an operator's assigner, one object for all calls."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._runtime_context = RuntimeContext(context)

    def get_current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class WindowStates(KeyedStateStore):
    """State of the current key and window."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._states = PrefixedStates(backend, "window")

    def get_state(self, state_descriptor: Any) -> Any:
        return self._states.get(state_descriptor)

    def get_list_state(self, state_descriptor: Any) -> Any:
        return self._states.get(state_descriptor)

    def get_map_state(self, state_descriptor: Any) -> Any:
        return self._states.get(state_descriptor)

    def get_reducing_state(self, state_descriptor: Any) -> Any:
        return self._states.get(state_descriptor)

    def get_aggregating_state(self, state_descriptor: Any) -> Any:
        return self._states.get(state_descriptor)


class FunctionView(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of an operator's window function, one object for all calls. `current_window` changes.

    The operator sets `backend.current_namespace` to the window before each call, so that states belong to the window.
    """

    def __init__(self, context: OperatorContext, backend: KeyedStateBackend, merging: bool) -> None:
        self._context = context
        self._global_state = RuntimeContext(context)
        self._window_state = None if merging else WindowStates(backend)
        self.current_window: Any = None

    def window(self) -> Any:
        return self.current_window

    def current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def current_watermark(self) -> int:
        return self._context.watermark

    def window_state(self) -> KeyedStateStore:
        if self._window_state is None:
            raise StateError(
                "window_state() of a session window: its bounds change while it lives, so no state can belong to it; "
                "use global_state()"
            )
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return cast(KeyedStateStore, self._global_state)
