"""Joins of two streams by key and window: Flink's Java API, which PyFlink lacks.

    orders.join(payments).where(order_id).equal_to(order_id_of_payment).window(assigner).apply(function)

`co_group` instead of `join` hands over all records of a key and window at once, those without partner too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.output_tag import OutputTag
from headwater.common.time import DurationLike
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.connected_streams import check_partner
from headwater.datastream.function_check import check_no_generator, checked_function
from headwater.datastream.key_selection import KeyFunction, key_function
from headwater.datastream.windowed_stream import WindowedStream
from headwater.graph.transformation import OperatorTransformation
from headwater.operators.functions.join import CoGroupFunction, FlatJoinFunction, JoinFunction
from headwater.operators.functions.plain import KeySelector
from headwater.operators.join.co_group import (
    FIRST,
    SECOND,
    CoGroupWindowFunction,
    JoinWindowFunction,
    KeyOfTagged,
    Tag,
)
from headwater.operators.map import MapOperator
from headwater.time.assigners import WindowAssigner
from headwater.time.evictors import Evictor
from headwater.time.triggers import Trigger

if TYPE_CHECKING:
    from headwater.datastream.data_stream import DataStream, KeyedStream

Selector = Callable[[Any], Any] | KeySelector | int | str
W = TypeVar("W", bound="_WithWindow")


class _TwoStreams:
    """Two streams and the keys chosen so far."""

    def __init__(self, method: str, first: DataStream, second: DataStream) -> None:
        check_partner(method, first, second)
        self.method = method
        # Ignore an earlier key_by: where() and equal_to() choose the keys.
        self.first = getattr(first, "_origin", first)
        self.second = getattr(second, "_origin", second)
        self.key_of_first: KeyFunction | None = None
        self.key_type: TypeInformation | None = None

    def tagged(self, key_of_second: KeyFunction) -> KeyedStream:
        """Both as one stream of (number of the stream, record), keyed."""
        both = self._tag(self.first, FIRST).union(self._tag(self.second, SECOND))
        return both.key_by(KeyOfTagged(self.key_of_first, key_of_second), self.key_type)

    def _tag(self, stream: DataStream, side: int) -> DataStream:
        label = self.method.replace("_", "-")
        node = OperatorTransformation(
            name=f"{label} input {side + 1}",
            kind=f"{label} input",
            upstreams=(stream._transformation,),
            factory=partial(MapOperator, Tag(side)),
            parallelism_of_input=True,  # so that it is chained: tagging needs no shuffle
        )
        return stream._add_node(node)


class _Joining:
    """Two streams that `join(...)` or `co_group(...)` brought together. The keys come next."""

    _method: ClassVar[str]

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self._streams = _TwoStreams(self._method, stream1, stream2)

    def _where(self, key_selector: Selector, key_type: TypeInformation | None) -> _TwoStreams:
        self._streams.key_of_first = key_function("where", key_selector)
        self._streams.key_type = key_type
        return self._streams


class JoinedStreams(_Joining):
    """Two streams to be joined."""

    _method = "join"

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Where[JoinWithWindow]:
        """Set the key of the first stream's records."""
        return Where(self._where(key_selector, key_type), JoinWithWindow)


class CoGroupedStreams(_Joining):
    """Two streams to be co-grouped."""

    _method = "co_group"

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Where[CoGroupWithWindow]:
        """Set the key of the first stream's records."""
        return Where(self._where(key_selector, key_type), CoGroupWithWindow)


class Where(Generic[W]):
    """A join or co-group that lacks its second key."""

    def __init__(self, streams: _TwoStreams, windowed: type[W]) -> None:
        self._streams = streams
        self._windowed = windowed

    def equal_to(self, key_selector: Selector) -> EqualTo[W]:
        """Set the key of the second stream's records: equal keys meet."""
        return EqualTo(self._streams, key_function("equal_to", key_selector), self._windowed)


class EqualTo(Generic[W]):
    """A join or co-group that lacks its window."""

    def __init__(self, streams: _TwoStreams, key_of_second: KeyFunction, windowed: type[W]) -> None:
        self._streams = streams
        self._key_of_second = key_of_second
        self._windowed = windowed

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> W:
        """Let records meet that are in one window. An assigner that looks at elements gets (stream, record)."""
        return self._windowed(self._streams, self._key_of_second, window_assigner)


class _WithWindow(ABC):
    """A join or co-group that only lacks its function. As in Flink, trigger and evictor see (stream, record) pairs."""

    def __init__(
        self, streams: _TwoStreams, key_of_second: KeyFunction, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeMismatchError(f"window() expects a WindowAssigner, found {short_repr(window_assigner)}")
        self._streams = streams
        self._windowed = WindowedStream(streams.tagged(key_of_second), window_assigner)

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows are evaluated, instead of the assigner's default trigger."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Remove records before, or after, a window is evaluated."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: DurationLike) -> Self:
        """Keep windows this long after their end: a record that comes until then makes them fire again."""
        self._windowed.allowed_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send records that are too late to this side output, as (0 for the first stream or 1, record)."""
        self._windowed.side_output_late_data(output_tag)
        return self

    @abstractmethod
    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call `function` for what each window brought together."""


class JoinWithWindow(_WithWindow):
    """A join that only lacks its function."""

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | Callable[[Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call `function(first, second)` for each pair with one key in one window; it returns one result.

        A `FlatJoinFunction` yields any number of them.
        """
        if not isinstance(function, FlatJoinFunction):
            function = checked_function("join().apply", function, JoinFunction)
            check_no_generator("join", function, instead="a FlatJoinFunction")
        return self._windowed.apply(JoinWindowFunction(function), output_type).name("Window Join")


class CoGroupWithWindow(_WithWindow):
    """A co-group that only lacks its function."""

    def apply(
        self,
        function: CoGroupFunction | Callable[[list[Any], list[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call `function(first records, second records)` for each key and window; it yields the results."""
        function = checked_function("co_group().apply", function, CoGroupFunction)
        return self._windowed.apply(CoGroupWindowFunction(function), output_type).name("Window CoGroup")
