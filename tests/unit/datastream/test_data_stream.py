"""Each method of a stream adds the right operator, and refuses wrong arguments where they are given."""

from __future__ import annotations

from functools import partial

import pytest

from headwater.common import Types, WatermarkStrategy
from headwater.common.connector import Sink
from headwater.common.errors import PlanError, TypeMismatchError
from headwater.datastream import (
    DataStream,
    KeyedProcessFunction,
    KeySelector,
    OutputTag,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.function_sink import DiscardSink, FunctionSink
from headwater.datastream.connectors.print_sink import PrintSink
from headwater.datastream.executor import set_executor
from headwater.datastream.no_effect import NoEffectWarning, forget_warnings
from headwater.graph.plan import OperatorSpec
from headwater.operators.filter import FilterOperator
from headwater.operators.flat_map import FlatMapOperator
from headwater.operators.map import MapOperator
from headwater.operators.process import ProcessOperator
from headwater.operators.sink import SinkOperator
from headwater.operators.timestamps import TimestampsAndWatermarksOperator
from tests.unit.datastream.plain_functions import First, Identity, Keep, Twice
from tests.unit.datastream.recording_executor import RecordingExecutor


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


@pytest.fixture
def stream(env) -> DataStream:
    return env.from_collection([("a", 1), ("b", 2)])


class Pass(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class KeyedPass(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Drop(SinkFunction):
    def invoke(self, value):
        pass


def generator(value):
    yield value


def planned(env: StreamExecutionEnvironment) -> OperatorSpec:
    """The one operator of the job that is neither source, sink nor check."""
    operators = [op for stage in env._plan("job")[0].stages for op in stage.operators]
    (found,) = [op for op in operators if op.sink is None and "Type-Check" not in op.name]
    return found


@pytest.mark.parametrize(
    ("build", "name", "operator"),
    [
        (lambda s: s.map(lambda v: v), "Map", MapOperator),
        (lambda s: s.map(Identity()), "Map", MapOperator),
        (lambda s: s.map(str), "Map", MapOperator),
        (lambda s: s.flat_map(generator), "FlatMap", FlatMapOperator),
        (lambda s: s.flat_map(lambda v: [v]), "FlatMap", FlatMapOperator),
        (lambda s: s.flat_map(Twice()), "FlatMap", FlatMapOperator),
        (lambda s: s.filter(lambda v: True), "Filter", FilterOperator),
        (lambda s: s.filter(Keep()), "Filter", FilterOperator),
        (lambda s: s.process(Pass()), "PROCESS", ProcessOperator),
        (lambda s: s.process(lambda value, ctx: [value]), "PROCESS", ProcessOperator),
        (lambda s: s.project(1), "Projection", MapOperator),
        (
            lambda s: s.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()),
            "Timestamps/Watermarks",
            TimestampsAndWatermarksOperator,
        ),
    ],
)
def test_transformations(env, stream, build, name, operator):
    build(stream).print()
    spec = planned(env)
    assert spec.name == name
    assert isinstance(spec.factory(), operator)
    assert not spec.keyed and not spec.needs_slot


@pytest.mark.parametrize(
    ("build", "sink"),
    [
        (lambda s: s.print(), PrintSink),
        (lambda s: s.sink_to(DiscardSink()), DiscardSink),
        (lambda s: s.add_sink(Drop()), FunctionSink),
        (lambda s: s.add_sink(lambda value: None), FunctionSink),
        (lambda s: s.add_sink(DiscardSink()), DiscardSink),
    ],
)
def test_sinks(env, stream, build, sink):
    build(stream).name("out").uid("out-1")
    (spec,) = env._plan("job")[0].stages[0].operators
    assert (spec.name, spec.uid) == ("out", "out-1")
    assert isinstance(spec.sink, sink) and isinstance(spec.sink, Sink)
    assert isinstance(spec.factory(), SinkOperator)


def test_print_identifier(env, stream):
    stream.print("mine")
    (spec,) = env._plan("job")[0].stages[0].operators
    assert spec.sink.identifier == "mine"


def test_project_picks_fields_in_order():
    env = StreamExecutionEnvironment.get_execution_environment()
    typed = env.from_collection([("a", 1, 2.0)], Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE()]))
    assert typed.project(2, 0).get_type() == Types.TUPLE([Types.DOUBLE(), Types.STRING()])
    stream = env.from_collection([("a", 1, 2.0)])
    one, two = stream.project(1), stream.project(2, 0)
    assert one._transformation.factory()._map(("a", 1, 2.0)) == (1,)
    assert two._transformation.factory()._map(("a", 1, 2.0)) == (2.0, "a")


def test_types_are_known_downstream(env):
    stream = env.from_collection([1], Types.LONG())
    assert stream.filter(lambda v: True).rebalance().get_type() == Types.LONG()
    assert stream.union(env.from_collection([2], Types.LONG())).get_type() == Types.LONG()
    assert stream.union(env.from_collection([2])).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert stream.map(str).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert stream.map(str, Types.STRING()).get_type() == Types.STRING()
    assert stream.get_side_output(OutputTag("t", Types.STRING())).get_type() == Types.STRING()


def test_name_uid_and_parallelism_of_a_source_with_watermarks_are_the_sources(env):
    from headwater.datastream.connectors.number_seq import NumberSequenceSource

    strategy = WatermarkStrategy.for_monotonous_timestamps()
    env.from_source(NumberSequenceSource(1, 2), strategy, "n").name("numbers").uid("u").set_parallelism(3).print()
    plan = env._plan("job")[0]
    (source,) = plan.sources
    assert (source.name, source.uid, source.parallelism) == ("numbers", "u", 3)
    assert plan.stages[0].operators[0].parallelism == 3


def test_settings_return_the_stream(stream):
    mapped = stream.map(str)
    assert mapped.name("n").uid("u").set_parallelism(2).set_description("long").force_non_parallel() is mapped
    assert mapped.get_name() == "n"
    assert mapped.start_new_chain().disable_chaining().set_max_parallelism(128) is mapped


def two_values(a, b):
    return a


@pytest.mark.parametrize(
    "function", [str, len, "{}".format, print, partial(max, 3), lambda *values: 1, lambda value, more=None: 1]
)
def test_whatever_can_be_called_with_a_record_is_a_function(stream, function):
    stream.map(function).filter(function).key_by(function)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.map(3), "map() expects a function or a MapFunction, found 3"),
        (lambda s: s.map(Identity), "found the class Identity; did you forget to call it: Identity()?"),
        (lambda s: s.map(Twice()), "found a FlatMapFunction; did you mean flat_map()?"),
        (lambda s: s.map(generator), "map() got a generator function, but wants one result; use flat_map()"),
        (lambda s: s.process(KeyedPass()), "found a KeyedProcessFunction; call key_by(...) first"),
        (lambda s: s.key_by(First()).process(Pass()), "a keyed stream takes a KeyedProcessFunction"),
        (lambda s: s.map(str, str), "a type must be a TypeInformation such as Types.STRING(), found <class 'str'>"),
        (lambda s: s.key_by(None), "key_by() expects a function, a KeySelector, or the index or name of a field"),
        (lambda s: s.key_by(First), "key_by() got the class First"),
        (lambda s: s.partition_custom(3, 0), "partition_custom() expects a function (key, number of partitions)"),
        (lambda s: s.union([1]), "union() expects streams, found [1]"),
        (lambda s: s.get_side_output("late"), "get_side_output() expects an OutputTag, found 'late'"),
        (lambda s: s.sink_to(print), "sink_to() expects a Sink"),
        (lambda s: s.add_sink(3), "add_sink() expects a function or a SinkFunction, found 3"),
        (lambda s: s.project(), "at least one index"),
        (lambda s: s.project("a"), "project() expects indexes of fields"),
        (lambda s: s.assign_timestamps_and_watermarks(5), "expects a WatermarkStrategy"),
        (lambda s: s.map(str).name(""), "name() expects a string that is not empty"),
        (lambda s: s.map(str).set_parallelism(0), "set_parallelism() expects a whole number of at least 1, found 0"),
        (lambda s: s.map(str).set_parallelism(True), "at least 1, found True"),
        (lambda s: s.map(str).set_uid_hash("xyz"), "32 hexadecimal digits"),
        (lambda s: s.key_by(First()).sum(1.5), "sum() expects the index or the name of a field, found 1.5"),
        (lambda s: s.execute_and_collect(limit=0), "limit, a whole number of at least 1, found 0"),
        (lambda s: s.map(lambda: 1), "map() expects a function or a MapFunction of (value), found a lambda of ()"),
        (lambda s: s.filter(two_values), "a FilterFunction of (value), found two_values(a, b)"),
        (lambda s: s.process(lambda value: []), "a ProcessFunction of (value, ctx), found a lambda of (value)"),
        (lambda s: s.key_by(First()).reduce(lambda a: a), "of (value1, value2), found a lambda of (a)"),
        (lambda s: s.key_by(lambda: 1), "found a lambda of (), which cannot take a record"),
        (lambda s: s.partition_custom(lambda key: 0, 0), "or a Partitioner, found a lambda of (key)"),
    ],
)
def test_wrong_arguments(stream, call, words):
    with pytest.raises(TypeMismatchError) as caught:
        call(stream)
    assert words in str(caught.value)
    assert isinstance(caught.value, TypeError)


async def coroutine(value):
    return value


def test_coroutine_functions_are_refused(stream):
    with pytest.raises(TypeMismatchError, match="coroutine function"):
        stream.map(coroutine)


class Opening(KeySelector):
    def open(self, runtime_context):
        self.prefix = "x"

    def get_key(self, value):
        return self.prefix


class Closing(Partitioner):
    def close(self):
        pass

    def partition(self, key, num_partitions):
        return 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.rebalance().name("n"), "name() behind rebalance()"),
        (lambda s: s.union(s.map(str)).uid("u"), "uid() behind union"),
        (lambda s: s.key_by(First()).set_parallelism(2), "set_parallelism() on a keyed stream"),
        (lambda s: s.key_by(First()).rebalance(), "rebalance on a keyed stream would tear its keys apart"),
        (lambda s: s.set_parallelism(2), "runs with parallelism 1 only, found 2"),
        (lambda s: s.start_new_chain(), "call it on the operator behind the source"),
        (lambda s: s.union(s.map(str)).get_side_output(OutputTag("t")), "side output 't' of a union"),
        (lambda s: s.key_by(Opening()), "Opening has open(), which nobody calls"),
        (lambda s: s.partition_custom(Closing(), 0), "Closing has close(), which nobody calls"),
        (lambda s: s.union(StreamExecutionEnvironment().from_collection([1])), "two environments"),
    ],
)
def test_graphs_that_make_no_sense(stream, call, words):
    with pytest.raises(PlanError) as caught:
        call(stream)
    assert words in str(caught.value)


@pytest.mark.parametrize("words", ["out of range", "not a tuple"])
def test_project_of_a_typed_stream(env, words):
    if words == "out of range":
        with pytest.raises(PlanError, match="field 5 of"):
            env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).project(5)
    else:
        with pytest.raises(PlanError, match="works on tuples"):
            env.from_collection([1], Types.LONG()).project(0)


def test_each_job_computes_a_cached_stream_anew(env, stream):
    forget_warnings()
    executor = RecordingExecutor()
    set_executor(executor)
    try:
        with pytest.warns(
            NoEffectWarning, match=r"cache\(\) has no effect in headwater: each job computes .* FileSink"
        ):
            cached = stream.map(str).name("dear").cache()
        cached.filter(bool).print()
        env.execute()
        cached.invalidate()
        cached.flat_map(list).print()
        env.execute()
    finally:
        set_executor(None)
    names = [[op.name for stage in plan.stages for op in stage.operators] for plan, _ in executor.launched]
    assert names == [["dear", "Filter", "Print to Std. Out"], ["dear", "FlatMap", "Print to Std. Out"]]
    assert [len(plan.sources) for plan, _ in executor.launched] == [1, 1]


def test_what_pyflink_refuses_of_caches_is_refused(stream):
    with pytest.raises(PlanError, match=r"cache\(\) on a keyed stream.* before key_by\(\)"):
        stream.key_by(0).cache()
    with pytest.raises(PlanError, match=r"set_parallelism\(\) of a cached stream.* before cache\(\)"):
        stream.cache().set_parallelism(2)


def test_misspelt_methods_are_plain_attribute_errors(stream):
    with pytest.raises(AttributeError, match="'DataStream' object has no attribute 'mapp'"):
        stream.mapp  # noqa: B018


def test_settings_without_effect_say_so_once(stream):
    forget_warnings()
    mapped = stream.map(str)
    with pytest.warns(
        NoEffectWarning, match=r"set_buffer_timeout has no effect in headwater: .*epoch\.duration"
    ) as seen:
        mapped.set_buffer_timeout(10).set_buffer_timeout(20)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with pytest.warns(NoEffectWarning, match="slot_sharing_group"):
        mapped.slot_sharing_group("group")
