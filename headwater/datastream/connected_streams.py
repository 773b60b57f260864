"""Two streams that one function processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.common.errors import PlanError, TypeMismatchError, short_repr
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.function_check import checked_function_class
from headwater.graph.transformation import OperatorTransformation
from headwater.operators.base import Operator
from headwater.operators.connected.flat_map import CoFlatMapOperator, KeyedCoFlatMapOperator
from headwater.operators.connected.map import CoMapOperator, KeyedCoMapOperator
from headwater.operators.connected.process import CoProcessOperator, KeyedCoProcessOperator
from headwater.operators.functions.connected import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from headwater.operators.functions.plain import KeySelector

if TYPE_CHECKING:
    from headwater.datastream.data_stream import DataStream


class ConnectedStreams:
    """Two streams, of different types maybe, for one function. Keyed if both are: then state and timers are shared.

    One instance of the function per partition sees the records of both streams, and lives as long as the job.
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        check_partner("connect", stream1, stream2)
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector | int | str,
        key_selector2: Callable[[Any], Any] | KeySelector | int | str,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Send records of both streams with equal keys to the same partition."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type),
            self.stream2.key_by(key_selector2, key_type),
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record in, one out (or None: nothing)."""
        checked_function_class("map", func, CoMapFunction)
        operators = (CoMapOperator, KeyedCoMapOperator)
        return self._add("co-map", "Co-Map", operators, func, output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record in, any number out."""
        checked_function_class("flat_map", func, CoFlatMapFunction)
        operators = (CoFlatMapOperator, KeyedCoFlatMapOperator)
        return self._add("co-flat map", "Co-Flat Map", operators, func, output_type)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Process each record with its context. On keyed streams the function may use state, and timers."""
        checked_function_class("process", func, CoProcessFunction, KeyedCoProcessFunction)
        if isinstance(func, KeyedCoProcessFunction) and not self._is_keyed():
            raise TypeMismatchError(
                f"process() got a KeyedCoProcessFunction, but {self._unkeyed()} not keyed; call key_by(...) on both"
            )
        name = "Keyed Co-Process" if self._is_keyed() else "Co-Process"
        operators = (CoProcessOperator, KeyedCoProcessOperator)
        return self._add(name.lower(), name, operators, func, output_type, needs_ticks=has_timers(func))

    def _is_keyed(self) -> bool:
        return self.stream1._key_selector is not None and self.stream2._key_selector is not None

    def _unkeyed(self) -> str:
        first, second = (stream._key_selector is None for stream in (self.stream1, self.stream2))
        if first and second:
            return "the streams are"
        return "the first stream is" if first else "the second stream is"

    def _add(
        self,
        kind: str,
        name: str,
        operators: tuple[Callable[..., Operator], Callable[..., Operator]],
        function: Any,
        output_type: TypeInformation | None,
        *,
        needs_ticks: bool = False,
    ) -> DataStream:
        unkeyed, keyed = operators
        if self._is_keyed():
            kind = kind if kind.startswith("keyed") else f"keyed {kind}"
            factory = partial(keyed, self.stream1._key_selector, self.stream2._key_selector, function)
        else:
            factory = partial(unkeyed, function)
        return add_two_input_node(
            (self.stream1, self.stream2),
            OperatorTransformation(
                name=name,
                kind=kind,
                upstreams=(self.stream1._transformation, self.stream2._transformation),
                factory=factory,
                function=function,
                keyed=self._is_keyed(),
                needs_ticks=needs_ticks,
            ),
            output_type,
        )


def add_two_input_node(
    streams: tuple[DataStream, DataStream], node: OperatorTransformation, output_type: TypeInformation | None
) -> DataStream:
    """Complete `node`, which reads `streams`, and add it to their environment's graph.

    It always runs in a slot: its function is one instance that sees both streams, whereas in stage 0 each split of a
    source is read by whichever Python worker is free.
    """
    if output_type is not None and not isinstance(output_type, TypeInformation):
        raise TypeMismatchError(
            f"{node.kind}: a type must be a TypeInformation such as Types.STRING(), found {short_repr(output_type)}"
        )
    node.output_type = output_type
    node.checks_output = output_type is not None
    node.needs_slot = True
    return streams[0]._add_node(node)


def check_partner(method: str, stream1: DataStream, stream2: Any) -> None:
    """Raise unless `stream2` can be combined with `stream1`. `method` is the method of `stream1` that was called."""
    if not hasattr(stream2, "_transformation"):
        raise TypeMismatchError(f"{method}() expects a stream, found {short_repr(stream2)}")
    if stream1._environment is not stream2._environment:
        raise PlanError(f"{method}() of streams of two environments; build both with the same one")
    key_types = [getattr(stream._transformation, "key_type", None) for stream in (stream1, stream2)]
    if None not in key_types and key_types[0] != key_types[1]:
        raise PlanError(
            f"{method}(): the keys of the first stream are declared as {key_types[0]}, those of the second as "
            f"{key_types[1]}; records meet if their keys are equal, so bring both to one type in key_by(...)"
        )


def has_timers(function: Any) -> bool:
    """Return True if `function` overrides `on_timer`."""
    own = getattr(type(function), "on_timer", None)
    inherited = (getattr(cls, "on_timer", None) for cls in type(function).__mro__ if is_headwater(cls))
    return own is not None and own not in inherited


def is_headwater(cls: type) -> bool:
    """Return True if a class is headwater's own, not a user's."""
    return cls.__module__.startswith("headwater.operators.")
