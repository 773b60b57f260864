"""The broadcast state pattern: all partitions see one stream, and process another one by it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headwater.common.errors import PlanError, TypeMismatchError, short_repr
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.connected_streams import add_two_input_node, check_partner, has_timers
from headwater.datastream.function_check import checked_function_class
from headwater.graph.transformation import OperatorTransformation
from headwater.operators.base import Operator
from headwater.operators.connected.broadcast import BroadcastProcessOperator, KeyedBroadcastProcessOperator
from headwater.operators.functions.broadcast import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from headwater.state.descriptors import MapStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.datastream.data_stream import DataStream


class BroadcastStream:
    """Records for all partitions, and the states that keep them. For `connect(...)` of another stream."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]) -> None:
        """`input_stream` is already partitioned by `broadcast()`."""
        names = set()
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise TypeMismatchError(f"broadcast() expects MapStateDescriptors, found {short_repr(descriptor)}")
            if descriptor.get_ttl_config() is not None:
                raise PlanError(f"broadcast(): state '{descriptor.name}' has a TTL, which only keyed state can have")
            if descriptor.name in names:
                raise PlanError(f"broadcast(): two states are named '{descriptor.name}'; give each a name of its own")
            names.add(descriptor.name)
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream:
    """A stream, keyed or not, connected with a broadcast one."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        check_partner("connect", non_broadcast_stream, broadcast_stream.input_stream)
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Process the records of both streams. A keyed stream takes a `KeyedBroadcastProcessFunction`."""
        checked_function_class("process", func, BroadcastProcessFunction, KeyedBroadcastProcessFunction)
        stream, rules = self.non_broadcast_stream, self.broadcast_stream.input_stream
        key_selector = stream._key_selector
        if key_selector is None and isinstance(func, KeyedBroadcastProcessFunction):
            raise TypeMismatchError(
                "process() got a KeyedBroadcastProcessFunction, but the stream is not keyed; call key_by(...) before "
                "connect(...)"
            )
        if key_selector is not None and isinstance(func, BroadcastProcessFunction):
            raise TypeMismatchError(
                "process() got a BroadcastProcessFunction, but the stream is keyed; use a KeyedBroadcastProcessFunction"
            )
        descriptors = tuple(self.broadcast_state_descriptors)
        factory: Callable[..., Operator]
        if key_selector is None:
            name, factory = "Co-Process-Broadcast", partial(BroadcastProcessOperator, descriptors, func)
        else:
            factory = partial(KeyedBroadcastProcessOperator, key_selector, descriptors, func)
            name = "Keyed-Co-Process-Broadcast"
        return add_two_input_node(
            (stream, rules),
            OperatorTransformation(
                name=name,
                kind="broadcast process" if key_selector is None else "keyed broadcast process",
                # The broadcast stream is input 0: chunks of equal event time are read in the order of inputs, so that
                # rules are there before the records of the same time.
                upstreams=(rules._transformation, stream._transformation),
                factory=factory,
                function=func,
                keyed=key_selector is not None,
                needs_ticks=has_timers(func),
            ),
            output_type,
        )
