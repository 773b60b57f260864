"""Streams of records and their operations. Each method adds to the environment's graph; nothing runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, overload

from headwater.common.connector import Sink
from headwater.common.errors import PlanError, TypeMismatchError, short_repr
from headwater.common.output_tag import OutputTag
from headwater.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from headwater.datastream.closeable_iterator import CloseableIterator
from headwater.datastream.connected_streams import ConnectedStreams
from headwater.datastream.connectors.function_sink import DiscardSink, FunctionSink
from headwater.datastream.connectors.print_sink import PrintSink
from headwater.datastream.data_stream_sink import DataStreamSink
from headwater.datastream.field_check import check_field
from headwater.datastream.function_check import check_no_generator, checked_function
from headwater.datastream.interval_joined_stream import IntervalJoin
from headwater.datastream.joined_streams import CoGroupedStreams, JoinedStreams
from headwater.datastream.key_selection import KeyFunction, key_function, partition_function
from headwater.datastream.no_effect import warn_no_effect
from headwater.datastream.operator_settings import OperatorSettings
from headwater.datastream.plain_process_function import PlainKeyedProcessFunction, PlainProcessFunction
from headwater.datastream.queryable_state_stream import KeepInState, QueryableStateStream, queryable_descriptor
from headwater.datastream.timestamps import timestamps_node
from headwater.datastream.windowed_stream import AllWindowedStream, WindowedStream
from headwater.graph.plan import Exchange
from headwater.graph.transformation import (
    OperatorTransformation,
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
    source_names,
)
from headwater.operators.aggregate import AggregationKind, FieldAggregation, KeyedAggregateOperator
from headwater.operators.base import Operator
from headwater.operators.filter import FilterOperator, KeyedFilterOperator
from headwater.operators.flat_map import FlatMapOperator, KeyedFlatMapOperator
from headwater.operators.functions.plain import (
    CheckpointedFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
)
from headwater.operators.map import KeyedMapOperator, MapOperator
from headwater.operators.process import KeyedProcessOperator, ProcessOperator
from headwater.operators.reduce import KeyedReduceOperator
from headwater.operators.sink import SinkOperator
from headwater.operators.window.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from headwater.state.descriptors import MapStateDescriptor, StateDescriptor
from headwater.time.assigners import WindowAssigner

if TYPE_CHECKING:
    from headwater.common.execution_config import ExecutionConfig
    from headwater.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]


class DataStream(OperatorSettings):
    """Records that flow from one operator to the next. Made by an environment, or by another stream's methods.

    Functions may be lambdas, plain functions, generators (where several results are allowed) or instances of the
    function classes. A declared `output_type` is checked for every record; without one records are Python objects.
    """

    _key_selector: KeyFunction | None = None
    """Set on a keyed stream."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        transformation: Transformation,
        settings_node: PhysicalTransformation | None = None,
    ) -> None:
        """`settings_node`: where `name()`, `uid()`, ... go, if it is not the node that the records come from."""
        self._environment = environment
        self._transformation = transformation
        self._settings_node = settings_node

    # --- what the stream is -------------------------------------------------------------------------------------

    def get_type(self) -> TypeInformation:
        """The declared type of the records; PICKLED_BYTE_ARRAY stands for any Python object."""
        return self._transformation.output_type or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        return self._environment.get_config()

    # --- transformations ----------------------------------------------------------------------------------------

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record in, one out."""
        func = checked_function("map", func, MapFunction)
        check_no_generator("map", func)
        return self._add("map", "Map", partial(MapOperator, func), func, output_type)

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """One record in, any number out: `func` yields them, or returns an iterable, or None."""
        func = checked_function("flat_map", func, FlatMapFunction)
        return self._add("flat map", "FlatMap", partial(FlatMapOperator, func), func, output_type)

    def filter(self, func: Callable[[Any], Any] | FilterFunction) -> DataStream:
        """Keep the records for which `func` is true."""
        func = checked_function("filter", func, FilterFunction)
        check_no_generator("filter", func)
        return self._add("filter", "Filter", partial(FilterOperator, func), func, keeps_type=True)

    def process(
        self, func: ProcessFunction | Callable[[Any, Any], Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Process each record with its context: timestamp, clocks, side outputs. A plain function gets both."""
        func = checked_function("process", func, ProcessFunction)
        function = func if _has_method(func, "process_element") else PlainProcessFunction(func)  # type: ignore[arg-type]
        return self._add("process", "PROCESS", partial(ProcessOperator, function), func, output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """Keep these fields of each tuple, in this order."""
        for index in field_indexes:
            if not isinstance(index, int) or isinstance(index, bool) or index < 0:
                raise TypeMismatchError(f"project() expects indexes of fields, from 0, found {index!r}")
        if not field_indexes:
            raise TypeMismatchError("project() expects at least one index of a field, found none")
        known = self._transformation.output_type
        projected: TypeInformation | None = None
        if isinstance(known, TupleTypeInfo):
            fields = known.get_field_types()
            if max(field_indexes) >= len(fields):
                raise PlanError(f"project(): field {max(field_indexes)} of {known}, which has {len(fields)} fields")
            projected = Types.TUPLE([fields[index] for index in field_indexes])
        elif known is not None and known != Types.PICKLED_BYTE_ARRAY():
            raise PlanError(f"project() works on tuples, but the records are declared as {known}; use map()")
        fields_of = _OneField(field_indexes[0]) if len(field_indexes) == 1 else operator.itemgetter(*field_indexes)
        stream = self._add("projection", "Projection", partial(MapOperator, fields_of))
        stream._transformation.output_type = projected
        return stream

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give each record an event timestamp and let event time advance, as `watermark_strategy` says."""
        node = timestamps_node(self._transformation, watermark_strategy, source_names(self._transformation))
        return DataStream(self._environment, self._environment._add_operator(node))

    def union(self, *streams: DataStream) -> DataStream:
        """The records of this stream and of `streams`, in no particular order between them."""
        parts: list[Transformation] = [self._transformation]
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise TypeMismatchError(f"union() expects streams, found {short_repr(stream)}")
            if stream._environment is not self._environment:
                raise PlanError("union() of streams of two environments; build both with the same one")
            # A stream that is twice in one union needs a node of its own the second time, or the two are one.
            part = stream if stream._transformation not in parts else stream.map(_same)
            parts.append(part._transformation)
        types = {part.output_type for part in parts}
        known = types.pop() if len(types) == 1 else None
        return DataStream(
            self._environment, UnionTransformation(name="Union", upstreams=tuple(parts), output_type=known)
        )

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...
    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...
    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """This stream and another one, for a function that sees both."""
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Cut the whole stream into windows. One partition does all the work."""
        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of `size` records of the whole stream, of which one begins every `slide` (0: every `size`)."""
        return AllWindowedStream(self, _count_windows(size, slide))

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Pairs with one key in one window: `.where(...).equal_to(...).window(...).apply(...)` follows."""
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """All records of one key and window: `.where(...).equal_to(...).window(...).apply(...)` follows."""
        return CoGroupedStreams(self, other_stream)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator before this call emitted under `output_tag`."""
        if not isinstance(output_tag, OutputTag):
            raise TypeMismatchError(f"get_side_output() expects an OutputTag, found {short_repr(output_tag)}")
        if isinstance(self._transformation, UnionTransformation):
            raise PlanError(
                f"side output '{output_tag.tag_id}' of a union; read it from the operator that emits it, before union()"
            )
        return DataStream(
            self._environment,
            SideOutputTransformation(
                name=f"Side Output {output_tag.tag_id}",
                upstream=self._transformation,
                tag_id=output_tag.tag_id,
                output_type=output_tag.type_info,
            ),
        )

    # --- partitioning -------------------------------------------------------------------------------------------

    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector | int | str,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Send all records with one key to one partition. State and timers belong to the key.

        An index or a name selects a field of tuples, rows or dicts. Equal keys have one state, whatever their classes:
        `docs/keys.md` says what can be a key.
        """
        key_of = key_function("key_by", key_selector)
        if isinstance(key_selector, (int, str)):
            check_field("key_by", key_selector, self._transformation, key_of)
        return KeyedStream(self, key_of, declared("key_by", key_type))

    def rebalance(self) -> DataStream:
        """Spread records evenly over the partitions of the next operator, in turn."""
        return self._partition(Exchange.REBALANCE)

    def rescale(self) -> DataStream:
        """Spread the records of each partition over its share of the next operator's partitions, in turn."""
        return self._partition(Exchange.RESCALE)

    def shuffle(self) -> DataStream:
        """Send each record to a random partition of the next operator; a replay sends it to the same one."""
        return self._partition(Exchange.SHUFFLE)

    def forward(self) -> DataStream:
        """Keep each record in its partition; the next operator must have the same parallelism."""
        return self._partition(Exchange.FORWARD)

    def global_(self) -> DataStream:
        """Send all records to the first partition of the next operator."""
        return self._partition(Exchange.GLOBAL)

    @overload
    def broadcast(self) -> DataStream: ...
    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, *other_broadcast_state_descriptors: MapStateDescriptor
    ) -> BroadcastStream: ...
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Send each record to every partition of the next operator.

        With descriptors it is one half of the broadcast state pattern: what `connect(...)` of another stream takes.
        """
        stream = self._partition(Exchange.BROADCAST)
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector | int | str,
    ) -> DataStream:
        """Send each record to partition `partitioner(key, number of partitions)` of the next operator."""
        key_of = key_function("partition_custom", key_selector)
        if isinstance(key_selector, (int, str)):
            check_field("partition_custom", key_selector, self._transformation, key_of)
        return self._partition(
            Exchange.CUSTOM,
            key_selector=key_of,
            partitioner=partition_function(partitioner),
        )

    # --- ends ---------------------------------------------------------------------------------------------------

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write records to standard output as they are committed: `identifier:partition> record`."""
        sink = PrintSink(sink_identifier or "", type_info=self._transformation.output_type)
        return self._add_sink(sink, "Print to Std. Out")

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write records to `sink`; they become visible when their epoch is committed."""
        if not isinstance(sink, Sink):
            hint = "; did you forget build()?" if hasattr(sink, "build") else ""
            raise TypeMismatchError(f"sink_to() expects a Sink, found {short_repr(sink)}{hint}")
        return self._add_sink(sink, "Sink")

    def add_sink(self, sink_func: SinkFunction | Callable[[Any], Any] | Sink) -> DataStreamSink:
        """Call `sink_func` with each record: at least once, because a replayed epoch calls it again."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        sink_func = checked_function("add_sink", sink_func, SinkFunction)
        return self._add_sink(FunctionSink(sink_func), "Unnamed", sink_func)

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and iterate over this stream's records as they are committed; with `limit`, a list of the first.

        Close the iterator (it is a context manager) to stop a job that would not end.
        """
        return self._environment._execute_and_collect(self, job_execution_name, limit)

    def cache(self) -> CachedDataStream:
        """This stream, for several jobs. Each computes it anew: nothing is kept between jobs."""
        warn_no_effect(
            "cache()",
            "each job computes the stream anew, with the same result; to save that, write it with FileSink and read it "
            "with FileSource",
        )
        return CachedDataStream(self)

    # --- building -----------------------------------------------------------------------------------------------

    def _settings_of(self, method: str) -> PhysicalTransformation:
        node = self._settings_node or self._transformation
        if not isinstance(node, PhysicalTransformation):
            raise PlanError(
                f"{method}() behind {node.name.lower()}: that only says where records go, it is no operator; "
                f"call {method}() on the operator before or behind it"
            )
        return node

    def _add(
        self,
        kind: str,
        name: str,
        factory: Callable[..., Operator],
        function: Any = None,
        output_type: TypeInformation | None = None,
        *,
        keeps_type: bool = False,
        keyed: bool = False,
        needs_ticks: bool = False,
    ) -> DataStream:
        """Add an operator that reads this stream. `keeps_type`: its records are some of this stream's."""
        node = OperatorTransformation(
            name=name,
            kind=kind,
            upstreams=(self._transformation,),
            factory=factory,
            function=function,
            output_type=self._transformation.output_type if keeps_type else declared(kind, output_type),
            checks_output=not keeps_type and output_type is not None,
            keyed=keyed,
            needs_slot=keyed or isinstance(function, CheckpointedFunction),
            needs_ticks=needs_ticks,
        )
        return self._add_node(node)

    def _add_node(self, node: OperatorTransformation) -> DataStream:
        return DataStream(self._environment, self._environment._add_operator(node))

    def _add_sink(self, sink: Sink, name: str, function: Any = None, *, like_input: bool = False) -> DataStreamSink:
        node = OperatorTransformation(
            name=name,
            kind="sink",
            upstreams=(self._transformation,),
            factory=partial(SinkOperator, sink),
            function=sink if function is None else function,
            sink=sink,
            parallelism_of_input=like_input,
        )
        self._environment._add_operator(node)
        return DataStreamSink(node)

    def _partition(
        self,
        exchange: Exchange,
        key_selector: KeyFunction | None = None,
        partitioner: Callable[[Any, int], int] | None = None,
    ) -> DataStream:
        node = PartitionTransformation(
            name=f"{exchange.value}()",
            upstream=self._transformation,
            output_type=self._transformation.output_type,
            exchange=exchange,
            key_selector=key_selector,
            partitioner=partitioner,
        )
        return DataStream(self._environment, node)


class KeyedStream(DataStream):
    """A stream whose records with one key are in one partition. The next operator may use keyed state and timers."""

    def __init__(self, origin: DataStream, key_selector: KeyFunction, key_type: TypeInformation | None) -> None:
        self._origin = origin
        self._key_selector: KeyFunction = key_selector
        upstream = origin._transformation
        node = PartitionTransformation(
            name="key_by()",
            upstream=upstream,
            output_type=upstream.output_type,
            exchange=Exchange.HASH,
            key_selector=key_selector,
            key_type=key_type,
        )
        super().__init__(origin._environment, node)

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record in, one out. A MapFunction may use the state of the record's key."""
        if not isinstance(func, Function):
            return super().map(func, output_type)  # a plain function cannot reach state: it needs no slot
        func = checked_function("map", func, MapFunction)
        check_no_generator("map", func)
        factory = partial(KeyedMapOperator, self._key_selector, func)
        return self._add("keyed map", "Map", factory, func, output_type, keyed=True)

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """One record in, any number out. A FlatMapFunction may use the state of the record's key."""
        if not isinstance(func, Function):
            return super().flat_map(func, output_type)
        func = checked_function("flat_map", func, FlatMapFunction)
        factory = partial(KeyedFlatMapOperator, self._key_selector, func)
        return self._add("keyed flat map", "FlatMap", factory, func, output_type, keyed=True)

    def filter(self, func: Callable[[Any], Any] | FilterFunction) -> DataStream:
        """Keep the records for which `func` is true. A FilterFunction may use the state of the record's key."""
        if not isinstance(func, Function):
            return super().filter(func)
        func = checked_function("filter", func, FilterFunction)
        factory = partial(KeyedFilterOperator, self._key_selector, func)
        return self._add("keyed filter", "Filter", factory, func, keeps_type=True, keyed=True)

    def process(  # type: ignore[override]  # as in PyFlink: another kind of function
        self, func: KeyedProcessFunction | Callable[[Any, Any], Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Process each record with the state and the timers of its key. A plain function gets `(value, ctx)`."""
        func = checked_function("process", func, KeyedProcessFunction)
        function = func if _has_method(func, "process_element") else PlainKeyedProcessFunction(func)  # type: ignore[arg-type]
        no_timers = KeyedProcessFunction.on_timer
        has_timers = getattr(type(function), "on_timer", no_timers) is not no_timers
        factory = partial(KeyedProcessOperator, self._key_selector, function)
        return self._add(
            "keyed process", "KEYED PROCESS", factory, func, output_type, keyed=True, needs_ticks=has_timers
        )

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine the records of each key; emit the value so far for each (in BATCH mode: the last, at the end)."""
        func = checked_function("reduce", func, ReduceFunction)
        check_no_generator("reduce", func)
        factory = partial(KeyedReduceOperator, self._key_selector, func)
        return self._add("reduce", "Reduce", factory, func, keeps_type=True, keyed=True)

    def as_queryable_state(
        self, queryable_state_name: str, state_descriptor: StateDescriptor | None = None
    ) -> QueryableStateStream:
        """Keep the last record of each key where clients can query it, under a name that is unique in the job.

        Ends the stream, as in Flink. With a ReducingStateDescriptor, records are folded instead. Every keyed state can
        be queried by its operator and name; this needs no function for it.
        """
        descriptor = queryable_descriptor(queryable_state_name, state_descriptor)
        kept = self.process(KeepInState(descriptor)).name(f"Queryable state: {queryable_state_name}")
        kept._add_sink(DiscardSink(), "Discard", like_input=True)
        return QueryableStateStream(queryable_state_name, descriptor, kept)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Cut the records of each key into windows."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of `size` records of each key, of which one begins every `slide` (0: every `size`)."""
        return WindowedStream(self, _count_windows(size, slide))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The running sum per key of one field; the other fields are the first record's."""
        return self._aggregate("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The running minimum per key of one field; the other fields are the first record's."""
        return self._aggregate("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The running maximum per key of one field; the other fields are the first record's."""
        return self._aggregate("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record per key with the smallest value so far in one field; the first of equals."""
        return self._aggregate("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record per key with the largest value so far in one field; the first of equals."""
        return self._aggregate("max_by", position_to_max_by)

    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector | int | str,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Choose another key: as if called on the stream before `key_by`."""
        return self._origin.key_by(key_selector, key_type)

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with records of another keyed stream that are close in event time: `.between(lower, upper)` follows."""
        return IntervalJoin(self, other_stream)

    def _aggregate(self, kind: str, position: int | str) -> DataStream:
        if not isinstance(position, int | str) or isinstance(position, bool):
            raise TypeMismatchError(f"{kind}() expects the index or the name of a field, found {position!r}")
        check_field(kind, position, self._transformation, FieldAggregation(AggregationKind(kind), position).field_of)
        factory = partial(KeyedAggregateOperator, self._key_selector, kind, position)
        return self._add(kind.replace("_", " "), "Reduce", factory, keeps_type=True, keyed=True)

    def cache(self) -> NoReturn:
        raise PlanError("cache() on a keyed stream, which PyFlink refuses too; call it before key_by()")

    def _settings_of(self, method: str) -> NoReturn:
        raise PlanError(
            f"{method}() on a keyed stream: it is no operator; call {method}() on the operator before or behind"
        )

    def _partition(
        self,
        exchange: Exchange,
        key_selector: KeyFunction | None = None,
        partitioner: Callable[[Any, int], int] | None = None,
    ) -> NoReturn:
        raise PlanError(f"{exchange.value} on a keyed stream would tear its keys apart; call it before key_by()")


class CachedDataStream(DataStream):
    """What `cache()` gives. Each job that reads it computes it anew, as PyFlink does where there is no cache."""

    def __init__(self, origin: DataStream) -> None:
        super().__init__(origin._environment, origin._transformation)

    def invalidate(self) -> None:
        """Does nothing: nothing is kept."""

    def set_parallelism(self, parallelism: int) -> NoReturn:
        raise PlanError("set_parallelism() of a cached stream, which PyFlink refuses too; call it before cache()")


def _count_windows(size: int, slide: int) -> WindowAssigner[Any, Any]:
    return CountTumblingWindowAssigner(size) if slide == 0 else CountSlidingWindowAssigner(size, slide)


class _OneField:
    """The field as a tuple of one: `itemgetter` with one index gives the bare value."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __call__(self, record: Any) -> tuple[Any]:
        return (record[self._index],)


def declared(method: str, type_info: TypeInformation | None) -> TypeInformation | None:
    """`type_info` if it is one, or None."""
    if type_info is not None and not isinstance(type_info, TypeInformation):
        raise TypeMismatchError(
            f"{method}: a type must be a TypeInformation such as Types.STRING(), found {short_repr(type_info)}"
        )
    return type_info


def _has_method(function: Any, name: str) -> bool:
    return callable(getattr(function, name, None))


def _same(record: Any) -> Any:
    return record
