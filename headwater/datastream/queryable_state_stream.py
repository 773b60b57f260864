"""What `KeyedStream.as_queryable_state` returns: the end of a stream whose last value per key can be queried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.common.errors import StateError, TypeMismatchError, short_repr
from headwater.operators.functions.plain import KeyedProcessFunction
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.state.descriptors import ReducingStateDescriptor, StateDescriptor, ValueStateDescriptor

if TYPE_CHECKING:
    from headwater.datastream.data_stream import DataStream


class QueryableStateStream:
    """Nothing flows out of it. `uid` and `name` are those of the operator that holds the state."""

    def __init__(self, queryable_state_name: str, state_descriptor: StateDescriptor, stream: DataStream) -> None:
        self._name = queryable_state_name
        self._descriptor = state_descriptor
        self._stream = stream

    def get_queryable_state_name(self) -> str:
        return self._name

    def get_state_descriptor(self) -> StateDescriptor:
        return self._descriptor

    def uid(self, uid: str) -> QueryableStateStream:
        self._stream.uid(uid)
        return self

    def name(self, name: str) -> QueryableStateStream:
        self._stream.name(name)
        return self


class KeepInState(KeyedProcessFunction):
    """Stores each record as the value of its key, or folds it into a reducing state. Emits nothing."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor
        self._store: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._descriptor, ReducingStateDescriptor):
            self._store = runtime_context.get_reducing_state(self._descriptor).add
        else:
            assert isinstance(self._descriptor, ValueStateDescriptor)
            self._store = runtime_context.get_state(self._descriptor).update

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self._store(value)


def queryable_descriptor(name: str, descriptor: StateDescriptor | None) -> StateDescriptor:
    """Return the descriptor of the state that gets the queryable name `name`."""
    if descriptor is None:
        descriptor = ValueStateDescriptor(name)
    if not isinstance(descriptor, ValueStateDescriptor | ReducingStateDescriptor):
        raise TypeMismatchError(
            f"as_queryable_state() expects a ValueStateDescriptor or a ReducingStateDescriptor, found "
            f"{short_repr(descriptor)}; for other state, call set_queryable() on the descriptor that a function uses"
        )
    if not descriptor.is_queryable():
        descriptor.set_queryable(name)
    elif descriptor.get_queryable_state_name() != name:
        raise StateError(
            f"state '{descriptor.name}' already has the queryable name '{descriptor.get_queryable_state_name()}', so "
            f"it cannot be '{name}' too"
        )
    return descriptor
