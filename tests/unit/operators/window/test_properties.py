"""Window operators against windows recomputed from scratch, with failures and restores in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK
from headwater.common.output_tag import OutputTag
from headwater.operators.functions.plain import AggregateFunction
from headwater.operators.functions.window import ProcessWindowFunction, WindowFunction
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.base import WindowOperatorBase
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sessions import SessionWindowOperator
from headwater.operators.window.settings import Aggregated, Buffered, Contents, Reduced, WindowSettings
from headwater.operators.window.sliced import SlicedWindowOperator
from headwater.testing import OneInputOperatorHarness
from headwater.time.assigners import WindowAssigner
from headwater.time.assigners_aligned import SlidingEventTimeWindows, TumblingEventTimeWindows
from headwater.time.assigners_session import DynamicEventTimeSessionWindows, EventTimeSessionWindows
from headwater.time.triggers import EventTimeTrigger
from tests.unit.operators.window.window_model import AlignedModel, SessionModel, sliding

LATE = OutputTag("late")

Step = tuple[Any, ...]

record = st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(0, 60))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("records"), st.lists(record, min_size=1, max_size=8)),
        st.tuples(st.just("watermark"), st.integers(0, 70)),
        st.tuples(st.sampled_from(["snapshot", "restore", "fail"])),
    ),
    max_size=25,
)


class SortedElements(AggregateFunction):
    """Elements as a tuple: immutable accumulators, and everything that was added can be seen."""

    def create_accumulator(self) -> tuple[Any, ...]:
        return ()

    def add(self, value: Any, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*accumulator, value)

    def get_result(self, accumulator: tuple[Any, ...]) -> Any:
        return tuple(sorted(accumulator))

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        return acc_a + acc_b


class ElementsInPlace(AggregateFunction):
    """Elements as a list that is changed in place, and taken over in merges: the worst allowed."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        accumulator.sort()
        return tuple(accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_b.extend(acc_a)
        acc_a.clear()
        return acc_b


class Apply(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield key, (window.start, window.end), _flat(inputs)


class Process(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        return [(key, (window.start, window.end), _flat(elements))]


def _flat(elements: Iterable[Any]) -> Any:
    """The records in `elements`, whether the window kept them or folded them into one value."""
    found: list[Any] = []
    for element in elements:
        found += element if isinstance(element[0], tuple) else [element]
    return tuple(found)


def _concatenate(one: Any, other: Any) -> Any:
    """Reduces records (key, number, timestamp) to the tuple of all of them."""
    return (one if isinstance(one[0], tuple) else (one,)) + (other if isinstance(other[0], tuple) else (other,))


CONTENTS: dict[str, Callable[[], Contents]] = {
    "buffered": Buffered,
    "reduced": lambda: Reduced(_concatenate),
    "aggregated": lambda: Aggregated(SortedElements()),
    "aggregated in place": lambda: Aggregated(ElementsInPlace()),
}


def run(make: Callable[[], WindowOperatorBase], script: list[Step], model: Any, ordered: bool) -> None:
    """Feed `script` to an operator, with failures and restores, and to `model`, without.

    `ordered`: the elements of a window must be in the order they came.
    """
    in_order: Any = tuple if ordered else sorted
    harness = OneInputOperatorHarness(make())
    harness.open()
    output: list[Any] = []
    late: list[Any] = []
    uncommitted: list[Step] = []

    def feed(step: Step) -> None:
        if step[0] == "records":
            harness.process_elements(step[1], [each[2] for each in step[1]])
        elif step[1] > harness.context.watermark:
            harness.process_watermark(step[1])

    for step in [*script, ("watermark", MAX_WATERMARK)]:
        if step[0] == "snapshot":
            harness.snapshot()
            uncommitted = []
        elif step[0] == "restore":
            snapshot = harness.snapshot()
            output += harness.get_output_with_timestamps()
            late += harness.get_side_output(LATE)
            harness = OneInputOperatorHarness(make()).restore(snapshot)
            uncommitted = []
        elif step[0] == "fail":
            harness.fail_epoch()
            for again in uncommitted:
                feed(again)
        else:
            uncommitted.append(step)
            feed(step)
            if step[0] == "records":
                for each in step[1]:
                    model.record(each[0], each, each[2])
            elif step[1] > model.watermark:
                model.advance(step[1])
    output += harness.get_output_with_timestamps()
    late += harness.get_side_output(LATE)
    found = [((key, window, tuple(in_order(elements))), timestamp) for (key, window, elements), timestamp in output]
    expected = [
        ((key, window, tuple(in_order(elements))), timestamp) for key, window, elements, timestamp in model.fired
    ]
    assert Counter(found) == Counter(expected)
    assert Counter(late) == Counter(model.late)
    assert harness.num_keyed_state_entries() == 0
    assert harness.num_event_time_timers() == 0


def operator_maker(
    kind: type[WindowOperatorBase], assigner: WindowAssigner[Any, Any], contents: str, lateness: int
) -> Callable[[], WindowOperatorBase]:
    return lambda: kind(
        lambda value: value[0],
        WindowSettings(
            assigner=assigner,
            trigger=EventTimeTrigger(),
            contents=CONTENTS[contents](),
            function=Apply() if contents == "reduced" else Process(),
            allowed_lateness_ms=lateness,
            late_data_tag=LATE,
        ),
    )


@pytest.mark.parametrize("contents", CONTENTS)
@pytest.mark.parametrize("kind", [WindowOperator, AlignedWindowOperator])
@given(script=steps, size=st.integers(1, 20), offset=st.integers(-3, 3), lateness=st.sampled_from([0, 0, 5, 30]))
@settings(max_examples=30, deadline=None)
def test_tumbling_windows(kind, contents, script, size, offset, lateness):
    offset %= size
    make = operator_maker(kind, TumblingEventTimeWindows(size, offset), contents, lateness)
    model = AlignedModel(sliding(size, size, offset), lateness)
    run(make, script, model, ordered=not contents.startswith("aggregated"))


@pytest.mark.parametrize("contents", CONTENTS)
@pytest.mark.parametrize("kind", [WindowOperator, AlignedWindowOperator, SlicedWindowOperator])
@given(
    script=steps,
    size=st.integers(1, 20),
    slide=st.integers(1, 25),
    offset=st.integers(-3, 3),
    lateness=st.sampled_from([0, 0, 5, 30]),
)
@settings(max_examples=30, deadline=None)
def test_sliding_windows(kind, contents, script, size, slide, offset, lateness):
    if kind is SlicedWindowOperator:
        if not contents.startswith("aggregated"):
            return
        slide = min(slide, size)
    offset %= slide
    make = operator_maker(kind, SlidingEventTimeWindows(size, slide, offset), contents, lateness)
    model = AlignedModel(sliding(size, slide, offset), lateness)
    run(make, script, model, ordered=not contents.startswith("aggregated"))


@pytest.mark.parametrize("contents", CONTENTS)
@pytest.mark.parametrize("kind", [WindowOperator, SessionWindowOperator])
@given(script=steps, gap=st.integers(1, 12), lateness=st.sampled_from([0, 0, 5, 30]))
@settings(max_examples=30, deadline=None)
def test_session_windows(kind, contents, script, gap, lateness):
    make = operator_maker(kind, EventTimeSessionWindows(gap), contents, lateness)
    run(make, script, SessionModel(lambda value: gap, lateness), ordered=False)


@pytest.mark.parametrize("contents", CONTENTS)
@pytest.mark.parametrize("kind", [WindowOperator, SessionWindowOperator])
@given(script=steps, lateness=st.sampled_from([0, 0, 5, 30]))
@settings(max_examples=30, deadline=None)
def test_session_windows_with_a_gap_per_element(kind, contents, script, lateness):
    make = operator_maker(kind, DynamicEventTimeSessionWindows(_gap), contents, lateness)
    run(make, script, SessionModel(_gap, lateness), ordered=False)


def _gap(value: Any) -> int:
    return value[1]
