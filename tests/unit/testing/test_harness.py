"""The harness is part of the product: it must say no where a job would."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common.errors import InvalidKeyError, PlanError
from headwater.operators.functions.plain import KeyedProcessFunction, ReduceFunction
from headwater.operators.map import MapOperator
from headwater.testing import ManualClock, OneInputOperatorHarness


class Keep(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> list[Any]:
        return [value]


def test_the_clock_only_goes_forward() -> None:
    clock = ManualClock(100)
    clock.advance(5)
    assert clock.now_ms == 105
    with pytest.raises(ValueError, match="cannot go back"):
        clock.set(104)


def test_a_clock_can_be_shared_by_two_harnesses() -> None:
    clock = ManualClock(7)
    one, other = (OneInputOperatorHarness(MapOperator(abs), clock=clock) for _ in range(2))
    one.set_processing_time(50)
    other.open()
    assert other.context.processing_time_ms == 50


def test_a_lambda_does_not_say_what_it_is_for() -> None:
    with pytest.raises(PlanError, match="MapOperator"):
        OneInputOperatorHarness(lambda value: value)


def test_a_keyed_function_needs_a_key_selector() -> None:
    class Sum(ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            return value1 + value2

    for function in (Keep(), Sum()):
        with pytest.raises(PlanError, match="key_selector"):
            OneInputOperatorHarness(function)


def test_a_record_of_another_partition_is_refused() -> None:
    halves = [
        OneInputOperatorHarness(Keep(), lambda value: value, partition=partition, parallelism=2)
        for partition in range(2)
    ]
    refused = 0
    for value in range(20):
        for half in halves:
            try:
                half.process_element(value)
            except InvalidKeyError:
                refused += 1
    assert refused == 20
    assert sorted(halves[0].get_output() + halves[1].get_output()) == list(range(20))


def test_restore_must_come_first() -> None:
    harness = OneInputOperatorHarness(Keep(), lambda value: value)
    snapshot = harness.snapshot()
    with pytest.raises(PlanError, match="before the first record"):
        harness.restore(snapshot)


def test_clear_output_forgets_the_past_only() -> None:
    harness = OneInputOperatorHarness(MapOperator(abs))
    harness.process_element(-1)
    harness.clear_output()
    harness.process_element(-2)
    assert harness.get_output() == [2]


def test_a_user_function_is_not_shown_a_batch_it_may_change() -> None:
    values = [1, 2]
    harness = OneInputOperatorHarness(MapOperator(abs))
    harness.process_elements(values)
    values.append(3)
    assert harness.get_output() == [1, 2]
