"""map, flat_map and filter: what they pass on, and how they report a user's exception."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headwater.common.errors import PlanError, UserCodeError
from headwater.operators.filter import FilterOperator, KeyedFilterOperator
from headwater.operators.flat_map import FlatMapOperator, KeyedFlatMapOperator
from headwater.operators.functions.plain import FilterFunction, FlatMapFunction, MapFunction
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.map import KeyedMapOperator, MapOperator
from headwater.state.descriptors import ValueStateDescriptor
from headwater.testing import OneInputOperatorHarness


class Doubled(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


class CountPerKey(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def map(self, value: Any) -> Any:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        return value, seen


class FirstOfKey(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def filter(self, value: Any) -> bool:
        first = self.seen.value() is None
        self.seen.update(True)
        return first


class RepeatByCount(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def flat_map(self, value: Any) -> Iterator[Any]:
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        for _ in range(seen):
            yield value


def test_map_replaces_values_and_keeps_timestamps() -> None:
    harness = OneInputOperatorHarness(MapOperator(lambda value: value + 1))
    harness.process_elements([1, 2], [10, None])
    harness.process_element(3)
    assert harness.get_output_with_timestamps() == [(2, 10), (3, None), (4, None)]


def test_map_takes_a_function_object() -> None:
    harness = OneInputOperatorHarness(Doubled())
    harness.process_elements(["a", "b"])
    assert harness.get_output() == ["aa", "bb"]


def test_filter_keeps_timestamps_with_their_records() -> None:
    harness = OneInputOperatorHarness(FilterOperator(lambda value: value % 2))
    harness.process_elements([1, 2, 3], [10, 20, 30])
    harness.process_elements([4, 5])
    assert harness.get_output_with_timestamps() == [(1, 10), (3, 30), (5, None)]


@pytest.mark.parametrize(
    "function",
    [
        lambda text: text.split(),
        lambda text: (word for word in text.split()),
        lambda text: {word: 1 for word in text.split()},
        lambda text: text.split() or None,
    ],
    ids=["list", "generator", "dict", "None for nothing"],
)
@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]])
def test_flat_map_takes_any_iterable_and_none(function: Any, timestamps: list[int] | None) -> None:
    harness = OneInputOperatorHarness(FlatMapOperator(function))
    harness.process_elements(["to be", "", "or"], timestamps)
    stamps = [None, None, None] if timestamps is None else [1, 1, 3]
    assert harness.get_output_with_timestamps() == list(zip(["to", "be", "or"], stamps, strict=True))


def test_flat_map_takes_a_generator_function() -> None:
    def twice(value: int) -> Iterator[int]:
        yield value
        yield value

    harness = OneInputOperatorHarness(FlatMapOperator(twice))
    harness.process_elements([1, 2])
    assert harness.get_output() == [1, 1, 2, 2]


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4]])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (CountPerKey(), [("a", 1), ("b", 1), ("a", 2), ("a", 3)]),
        (FirstOfKey(), ["a", "b"]),
        (RepeatByCount(), ["a", "b", "a", "a", "a", "a", "a"]),
    ],
)
def test_keyed_functions_see_the_state_of_their_key(
    function: Any, expected: list[Any], timestamps: list[int] | None
) -> None:
    harness = OneInputOperatorHarness(function, lambda value: value)
    harness.process_elements(["a", "b", "a", "a"], timestamps)
    assert harness.get_output() == expected


def test_results_of_keyed_functions_have_the_timestamp_of_their_record() -> None:
    harness = OneInputOperatorHarness(RepeatByCount(), lambda value: value)
    harness.process_elements(["a", "a"], [1, 2])
    assert harness.get_output_with_timestamps() == [("a", 1), ("a", 2), ("a", 2)]
    harness = OneInputOperatorHarness(FirstOfKey(), lambda value: value)
    harness.process_elements(["a", "a", "b"], [1, 2, 3])
    assert harness.get_output_with_timestamps() == [("a", 1), ("b", 3)]


def fails_at_three(value: int) -> Any:
    if value == 3:
        raise ValueError("three is too much")
    return [value]


@pytest.mark.parametrize(
    "operator",
    [
        MapOperator(fails_at_three),
        FilterOperator(fails_at_three),
        FlatMapOperator(fails_at_three),
        KeyedMapOperator(abs, fails_at_three),
        KeyedFilterOperator(abs, fails_at_three),
        KeyedFlatMapOperator(abs, fails_at_three),
    ],
    ids=lambda operator: type(operator).__name__,
)
@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4]])
def test_a_failure_names_operator_record_epoch_and_the_users_own_frames(operator: Any, timestamps: Any) -> None:
    harness = OneInputOperatorHarness(operator, name="enrich")
    with pytest.raises(UserCodeError) as caught:
        harness.process_elements([1, 2, 3, 4], timestamps)
    error = caught.value
    assert error.operator_name == "enrich"
    assert error.record_repr == "3"
    assert error.epoch == 1
    assert "three is too much" in error.user_traceback
    assert "fails_at_three" in error.user_traceback
    assert "process_batch" not in error.user_traceback
    assert harness.get_output() == []


def test_a_failure_in_a_generator_names_the_record_too() -> None:
    def explode(value: int) -> Iterator[int]:
        yield value
        raise RuntimeError("late")

    harness = OneInputOperatorHarness(FlatMapOperator(explode))
    with pytest.raises(UserCodeError) as caught:
        harness.process_elements([7, 8])
    assert caught.value.record_repr == "7"


def test_a_long_record_is_cut_in_the_error() -> None:
    harness = OneInputOperatorHarness(MapOperator(lambda value: value["missing"]))
    with pytest.raises(UserCodeError) as caught:
        harness.process_element({"text": "x" * 10_000})
    assert len(caught.value.record_repr) < 600


def test_stop_iteration_from_user_code_is_an_error_and_not_the_end() -> None:
    harness = OneInputOperatorHarness(MapOperator(lambda value: next(iter([]))))
    with pytest.raises(UserCodeError):
        harness.process_elements([1, 2])


def test_a_failure_in_open_says_so() -> None:
    class Broken(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            raise ConnectionError("no database")

        def map(self, value: Any) -> Any:
            return value

    with pytest.raises(UserCodeError, match="no database") as caught:
        OneInputOperatorHarness(Broken()).open()
    assert "open()" in caught.value.record_repr


def test_what_is_not_a_function_is_refused_when_the_operator_is_made() -> None:
    with pytest.raises(PlanError, match="pass an instance"):
        MapOperator(Doubled)
    with pytest.raises(PlanError, match="'flat_map'"):
        FlatMapOperator(42)


def test_a_result_that_cannot_be_gone_through_gets_a_hint_and_the_functions_own_error_does_not() -> None:
    hint = "the function must return a list or another iterable, or yield its results"
    with pytest.raises(UserCodeError, match=f"'int' object is not iterable.*; {hint}") as wrong:
        OneInputOperatorHarness(FlatMapOperator(lambda value: value)).process_element(5)
    assert "flat_map.py" not in wrong.value.user_traceback, "frames of headwater explain nothing"
    with pytest.raises(UserCodeError) as caught:
        OneInputOperatorHarness(FlatMapOperator(lambda value: list(value))).process_element(5)
    assert hint not in str(caught.value)
