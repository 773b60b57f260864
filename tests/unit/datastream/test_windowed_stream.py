"""Windowed streams: what they add to the plan, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common import Types
from headwater.common.errors import ConfigurationError, PlanError, TypeMismatchError
from headwater.datastream import (
    AggregateFunction,
    AllWindowFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowedStream,
    WindowFunction,
)
from headwater.datastream.no_effect import NoEffectWarning, forget_warnings
from headwater.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from headwater.graph.plan import Exchange
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sessions import SessionWindowOperator
from headwater.operators.window.sliced import SlicedWindowOperator


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Show(WindowFunction):
    def apply(self, key, window, inputs):
        return inputs


class ShowAll(AllWindowFunction):
    def apply(self, window, inputs):
        return inputs


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


@pytest.fixture
def windowed(env: StreamExecutionEnvironment) -> WindowedStream:
    return env.from_collection([("a", 1)]).key_by(0).window(TumblingEventTimeWindows.of(10))


def window_operator(env: StreamExecutionEnvironment, stream: Any) -> Any:
    stream.print()
    plan = env._plan("job")[0]
    (found,) = [op for stage in plan.stages for op in stage.operators if op.needs_slot]
    return found


def test_a_window_is_a_keyed_operator(env, windowed) -> None:
    spec = window_operator(env, windowed.aggregate(Count(), output_type=Types.LONG()))
    assert spec.name == "TumblingEventTimeWindows"
    assert [edge.exchange for edge in spec.inputs] == [Exchange.HASH]
    assert spec.inputs[0].key_selector(("a", 1)) == "a"


def test_the_description_says_what_it_is_made_of(windowed) -> None:
    stream = windowed.trigger(CountTrigger.of(3)).aggregate(Count(), Show())
    described = stream._transformation.description
    assert described == "Window(TumblingEventTimeWindows(10, 0), CountTrigger, Count, Show)"


def test_types(env) -> None:
    typed = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.LONG()])).key_by(0)
    windowed = typed.window(TumblingEventTimeWindows.of(10))
    assert windowed.get_input_type() == Types.TUPLE([Types.STRING(), Types.LONG()])
    assert windowed.get_execution_environment() is env
    assert windowed.reduce(max).get_type() == windowed.get_input_type()
    assert windowed.reduce(max, output_type=Types.STRING()).get_type() == Types.STRING()
    assert windowed.reduce(max, Show()).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert windowed.aggregate(Count(), output_type=Types.LONG()).get_type() == Types.LONG()
    assert windowed.aggregate(Count(), None, [Types.LONG()]).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert windowed.apply(Show(), Types.LONG()).get_type() == Types.LONG()


def test_windows_of_a_whole_stream_have_one_key(env) -> None:
    stream = env.from_collection([1]).window_all(TumblingEventTimeWindows.of(10)).reduce(max, ShowAll())
    spec = window_operator(env, stream)
    assert {spec.inputs[0].key_selector(value) for value in (1, 2, "x")} == {0}


TUMBLING, SLIDING = TumblingEventTimeWindows.of(10), SlidingEventTimeWindows.of(20, 10)
SESSION = EventTimeSessionWindows.with_gap(10)


class Mine(TumblingEventTimeWindows):
    """A subclass may have changed anything."""


@pytest.mark.parametrize(
    ("assigner", "build", "expected"),
    [
        (TUMBLING, lambda w: w.reduce(max), AlignedWindowOperator),
        (TUMBLING, lambda w: w.apply(Show()), AlignedWindowOperator),
        (TUMBLING, lambda w: w.allowed_lateness(5).reduce(max), AlignedWindowOperator),
        (TUMBLING, lambda w: w.trigger(EventTimeTrigger()).reduce(max), AlignedWindowOperator),
        (TUMBLING, lambda w: w.trigger(PurgingTrigger(EventTimeTrigger())).reduce(max), AlignedWindowOperator),
        (
            TUMBLING,
            lambda w: w.trigger(PurgingTrigger(EventTimeTrigger())).allowed_lateness(5).reduce(max),
            WindowOperator,
        ),
        (TUMBLING, lambda w: w.trigger(CountTrigger(5)).reduce(max), WindowOperator),
        (TUMBLING, lambda w: w.evictor(CountEvictor.of(1)).reduce(max), WindowOperator),
        (Mine(10), lambda w: w.reduce(max), WindowOperator),
        (SLIDING, lambda w: w.reduce(max), AlignedWindowOperator),
        (SLIDING, lambda w: w.aggregate(Count()), SlicedWindowOperator),
        (SLIDING, lambda w: w.trigger(ContinuousEventTimeTrigger(5)).aggregate(Count()), WindowOperator),
        (SlidingEventTimeWindows.of(10, 10), lambda w: w.aggregate(Count()), AlignedWindowOperator),
        (SESSION, lambda w: w.reduce(max), SessionWindowOperator),
        (SESSION, lambda w: w.trigger(CountTrigger(5)).reduce(max), WindowOperator),
        (TumblingProcessingTimeWindows.of(10), lambda w: w.reduce(max), AlignedWindowOperator),
        (TumblingProcessingTimeWindows.of(10), lambda w: w.trigger(EventTimeTrigger()).reduce(max), WindowOperator),
        (ProcessingTimeSessionWindows.with_gap(10), lambda w: w.reduce(max), SessionWindowOperator),
        (GlobalWindows.create(), lambda w: w.reduce(max), WindowOperator),
    ],
)
def test_which_operator_runs_it(env, assigner, build, expected) -> None:
    stream = build(env.from_collection([("a", 1)]).key_by(0).window(assigner))
    assert type(window_operator(env, stream).factory()) is expected


@pytest.mark.parametrize(
    ("assigner", "trigger", "expected"),
    [
        (TUMBLING, None, False),
        (TUMBLING, CountTrigger(5), False),
        (TUMBLING, PurgingTrigger(ContinuousEventTimeTrigger(5)), False),
        (TUMBLING, ContinuousProcessingTimeTrigger(5), True),
        (TumblingProcessingTimeWindows.of(10), None, True),
    ],
)
def test_processing_time_needs_ticks(env, assigner, trigger, expected) -> None:
    windowed = env.from_collection([("a", 1)]).key_by(0).window(assigner)
    stream = (windowed if trigger is None else windowed.trigger(trigger)).reduce(max)
    assert stream._transformation.needs_ticks is expected


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda k: k.window(TumblingEventTimeWindows), TypeMismatchError, "did you forget to call it, or its of"),
        (lambda k: k.window(10), TypeMismatchError, r"needs a WindowAssigner such as.*found 10"),
        (lambda k: k.window_all(CountTrigger(1)), TypeMismatchError, "needs a WindowAssigner"),
        (lambda k: k.count_window(0), ConfigurationError, "size must be a whole number of at least 1"),
        (lambda k: k.count_window(5, -1), ConfigurationError, "slide must be a whole number of at least 1"),
        (
            lambda k: k.window(TUMBLING).trigger(EventTimeTrigger),
            TypeMismatchError,
            "expects a Trigger.*did you forget",
        ),
        (lambda k: k.window(TUMBLING).evictor(5), TypeMismatchError, "expects an Evictor"),
        (lambda k: k.window(TUMBLING).allowed_lateness(-1), ConfigurationError, "at least 0 ms"),
        (lambda k: k.window(TUMBLING).side_output_late_data("late"), TypeMismatchError, "expects an OutputTag"),
        (lambda k: k.window(TUMBLING).reduce(5), TypeMismatchError, "a ReduceFunction, found 5"),
        (lambda k: k.window(TUMBLING).reduce(max, max), TypeMismatchError, "must be a WindowFunction or a Process"),
        (lambda k: k.window(TUMBLING).reduce(max, ShowAll()), TypeMismatchError, "must be a WindowFunction or"),
        (lambda k: k.window_all(TUMBLING).reduce(max, Show()), TypeMismatchError, "must be an AllWindowFunction or"),
        (lambda k: k.window(TUMBLING).aggregate(max), TypeMismatchError, "AggregateFunction.*which lacks create_acc"),
        (lambda k: k.window(TUMBLING).aggregate(Count), TypeMismatchError, "AggregateFunction, found <class"),
        (lambda k: k.window(TUMBLING).aggregate(Count(), None, 5), TypeMismatchError, "accumulator_type must be"),
        (lambda k: k.window(TUMBLING).apply(Show), TypeMismatchError, r"did you forget to call it: Show\(\)"),
        (lambda k: k.window(TUMBLING).process(KeyedProcessFunction), TypeMismatchError, "expects a function or a Pro"),
        (lambda k: k.window(TUMBLING).process(Show()), TypeMismatchError, "ProcessWindowFunction, found a WindowFunc"),
        (
            lambda k: k.window(SESSION).evictor(CountEvictor.of(1)).reduce(max),
            PlanError,
            r"an evictor with reduce\(\) or aggregate\(\) on EventTimeSessionWindows\(10\)",
        ),
    ],
)
def test_what_is_refused(env, build, error, message) -> None:
    with pytest.raises(error, match=message):
        build(env.from_collection([("a", 1)]).key_by(0))


def test_lateness_without_event_time_has_no_effect(env) -> None:
    forget_warnings()
    windowed = env.from_collection([("a", 1)]).key_by(0).window(TumblingProcessingTimeWindows.of(10))
    with pytest.warns(NoEffectWarning, match="allowed_lateness has no effect.*is not by event time"):
        windowed.allowed_lateness(5)


def test_late_data_is_a_side_output(env, windowed) -> None:
    late = OutputTag("late")
    main = windowed.side_output_late_data(late).reduce(max)
    main.get_side_output(late).print()
    spec = window_operator(env, main)
    assert spec.factory().settings.late_data_tag == late


def test_contexts_can_be_annotated_as_in_pyflink() -> None:
    class Annotated(ProcessWindowFunction[tuple, str, str, Any]):
        def process(self, key: str, context: ProcessWindowFunction.Context[Any], elements):
            return []

    assert Annotated()
