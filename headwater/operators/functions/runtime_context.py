"""What a user function may know about its partition and job, and how it gets state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from headwater.common.errors import StateError, short_repr
from headwater.metrics import MetricGroup, PlainMetricGroup
from headwater.operators.functions.plain import FunctionInitializationContext

if TYPE_CHECKING:
    from headwater.operators.base import OperatorContext
    from headwater.state.api import AggregatingState, ListState, MapState, ReducingState, ValueState
    from headwater.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateDescriptor,
        ValueStateDescriptor,
    )


_METHODS = {
    "value": "get_state",
    "list": "get_list_state",
    "map": "get_map_state",
    "reducing": "get_reducing_state",
    "aggregating": "get_aggregating_state",
}
"""{kind of a descriptor: the method that returns its state}"""


class RuntimeContext(FunctionInitializationContext):
    """Passed to `Function.open`. Get each state here once and use it for every record: it follows the current key.

    The operator makes one per partition and function.
    """

    def __init__(self, context: OperatorContext, restored: bool = False) -> None:
        self._context = context
        self._restored = restored

    def get_task_name(self) -> str:
        """The operator's name."""
        return self._context.name

    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""
        return self._context.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups: the largest parallelism that the state can be spread over."""
        return self._context.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """This partition, from 0."""
        return self._context.partition

    def get_attempt_number(self) -> int:
        """How often the job was started, or went back to a checkpoint, before."""
        return self._context.attempt

    def get_task_name_with_subtasks(self) -> str:
        """For example `enrich (3/6)`: partitions count from 1 here."""
        return f"{self._context.name} ({self._context.partition + 1}/{self._context.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """One of the job's global parameters."""
        return self._context.job_parameters.get(key, default_value)

    def get_job_parameters(self) -> Mapping[str, str]:
        """All of the job's global parameters."""
        return self._context.job_parameters

    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its counters, gauges, meters and distributions."""
        if self._context.metrics is None:
            self._context.metrics = PlainMetricGroup()
        return cast(MetricGroup, self._context.metrics)

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value per key."""
        return cast("ValueState[Any]", self._keyed_state("get_state", state_descriptor))

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """One list per key."""
        return cast("ListState[Any]", self._keyed_state("get_list_state", state_descriptor))

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """One map per key."""
        return cast("MapState[Any, Any]", self._keyed_state("get_map_state", state_descriptor))

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """One value per key, reduced from all that were added."""
        return cast("ReducingState[Any]", self._keyed_state("get_reducing_state", state_descriptor))

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """One accumulator per key."""
        return cast("AggregatingState[Any, Any]", self._keyed_state("get_aggregating_state", state_descriptor))

    def get_operator_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The non-keyed list of this partition. It is certainly persisted only for a `CheckpointedFunction`."""
        backend = self._context.operator_backend
        if backend is None:
            raise StateError(
                f"operator '{self._context.name}' asked for operator state '{state_descriptor.name}', but runs where "
                "none is kept; let the function extend CheckpointedFunction too"
            )
        return backend.get_list_state(state_descriptor)

    def is_restored(self) -> bool:
        return self._restored

    def _keyed_state(self, method: str, state_descriptor: StateDescriptor) -> Any:
        kind: str = getattr(state_descriptor, "kind", "")
        if _METHODS.get(kind) != method:
            hint = f"; use {_METHODS[kind]}()" if kind in _METHODS else ""
            expected = next(kind for kind, name in _METHODS.items() if name == method).capitalize()
            raise StateError(
                f"operator '{self._context.name}': {method}() expects a {expected}StateDescriptor, "
                f"found {short_repr(state_descriptor)}{hint}"
            )
        backend = self._context.keyed_backend
        if backend is None:
            raise StateError(
                f"operator '{self._context.name}' asked for keyed state '{state_descriptor.name}' on a stream that is "
                "not keyed; call key_by(...) first"
            )
        return backend.get_state(state_descriptor)
