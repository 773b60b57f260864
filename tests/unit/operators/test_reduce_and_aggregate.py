"""reduce, sum, min, max, min_by and max_by per key."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from headwater.common.errors import UserCodeError
from headwater.common.ids import MAX_WATERMARK
from headwater.common.types import Row
from headwater.operators.aggregate import KeyedAggregateOperator
from headwater.operators.functions.plain import ReduceFunction
from headwater.operators.reduce import KeyedReduceOperator
from headwater.testing import OneInputOperatorHarness


class Sale(NamedTuple):
    shop: str
    amount: int


def first(value: Any) -> Any:
    return value[0]


def rolling(operator: Any, values: list[Any], **options: Any) -> list[Any]:
    harness = OneInputOperatorHarness(operator, **options)
    harness.process_elements(values)
    harness.end_input()
    return harness.get_output()


def test_reduce_emits_after_every_record_with_its_timestamp() -> None:
    harness = OneInputOperatorHarness(KeyedReduceOperator(first, lambda a, b: (a[0], a[1] + b[1])))
    harness.process_elements([("x", 1), ("y", 5), ("x", 2)], [10, 20, 30])
    assert harness.get_output_with_timestamps() == [(("x", 1), 10), (("y", 5), 20), (("x", 3), 30)]


def test_reduce_takes_a_function_object() -> None:
    class Longer(ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            return max(value1, value2, key=len)

    assert rolling(KeyedReduceOperator(first, Longer()), ["ab", "a", "abc"]) == ["ab", "ab", "abc"]


def test_batch_emits_one_final_value_per_key_at_the_end() -> None:
    harness = OneInputOperatorHarness(KeyedReduceOperator(first, lambda a, b: (a[0], a[1] + b[1])), batch_mode=True)
    harness.process_elements([("x", 1), ("y", 5), ("x", 2)])
    assert harness.get_output() == []
    harness.end_input()
    assert harness.get_output_with_timestamps() == [(("x", 3), None), (("y", 5), None)]


def test_batch_results_of_stamped_records_come_at_the_end_of_time() -> None:
    harness = OneInputOperatorHarness(KeyedReduceOperator(first, max), batch_mode=True)
    harness.process_elements([("x", 1), ("x", 2)], [10, 20])
    harness.end_input()
    assert harness.get_output_with_timestamps() == [(("x", 2), MAX_WATERMARK)]


def test_batch_with_many_keys_loses_none() -> None:
    results = rolling(KeyedReduceOperator(lambda value: value, max), list(range(10_000)), batch_mode=True)
    assert results == list(range(10_000))


def test_a_reduce_function_may_change_its_argument_without_changing_results_already_emitted() -> None:
    def append(so_far: list[Any], new: list[Any]) -> list[Any]:
        so_far += new[1:]
        return so_far

    results = rolling(KeyedReduceOperator(first, append), [["x", 1], ["x", 2], ["x", 3]])
    assert results == [["x", 1], ["x", 1, 2], ["x", 1, 2, 3]]


def test_changing_a_result_downstream_does_not_change_state() -> None:
    harness = OneInputOperatorHarness(KeyedReduceOperator(first, lambda a, b: [*a, b[1]]))
    harness.process_element(["x", 1])
    harness.get_output()[0].append("scribble")
    harness.process_element(["x", 2])
    assert harness.get_output()[1] == ["x", 1, 2]


def test_a_failing_reduce_function_names_the_record() -> None:
    harness = OneInputOperatorHarness(KeyedReduceOperator(first, lambda a, b: a + b[1]), name="total")
    with pytest.raises(UserCodeError) as caught:
        harness.process_elements([("x", 1), ("y", 1), ("x", 2)])
    assert (caught.value.operator_name, caught.value.record_repr) == ("total", "('x', 2)")


SALES = [("x", 3, "first"), ("x", 1, "second"), ("x", 3, "third"), ("x", 1, "fourth")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", [("x", 3, "first"), ("x", 4, "first"), ("x", 7, "first"), ("x", 8, "first")]),
        ("min", [("x", 3, "first"), ("x", 1, "first"), ("x", 1, "first"), ("x", 1, "first")]),
        ("max", [("x", 3, "first")] * 4),
        ("min_by", [("x", 3, "first")] + [("x", 1, "second")] * 3),
        ("max_by", [("x", 3, "first")] * 4),
    ],
)
def test_kinds_of_aggregation(kind: str, expected: list[Any]) -> None:
    assert rolling(KeyedAggregateOperator(first, kind, 1), SALES) == expected


def test_aggregations_know_all_shapes_of_records() -> None:
    assert rolling(KeyedAggregateOperator(first, "sum", 1), [["x", 1], ["x", 2]]) == [["x", 1], ["x", 3]]
    assert rolling(KeyedAggregateOperator(first, "sum", 1), [Row("x", 1), Row("x", 2)]) == [Row("x", 1), Row("x", 3)]
    named = [Row(shop="x", amount=1), Row(shop="x", amount=2)]
    assert rolling(KeyedAggregateOperator(lambda row: row["shop"], "sum", "amount"), named)[-1]["amount"] == 3
    sales = [Sale("x", 1), Sale("x", 2)]
    for field in ("amount", 1):
        assert rolling(KeyedAggregateOperator(first, "sum", field), sales) == [Sale("x", 1), Sale("x", 3)]
    dicts = [{"k": "x", "n": 1}, {"k": "x", "n": 2}]
    by_name = KeyedAggregateOperator(lambda record: record["k"], "sum", "n")
    assert rolling(by_name, dicts) == [{"k": "x", "n": 1}, {"k": "x", "n": 3}]


def test_plain_values_are_their_own_field() -> None:
    assert rolling(KeyedAggregateOperator(lambda value: value % 2, "sum"), [1, 2, 3]) == [1, 2, 4]
    assert rolling(KeyedAggregateOperator(lambda value: 0, "min_by"), [2, 1, 3]) == [2, 1, 1]


def test_records_are_not_changed_in_place() -> None:
    records = [["x", 1], ["x", 2], ["x", 3]]
    rolling(KeyedAggregateOperator(first, "sum", 1), records)
    assert records == [["x", 1], ["x", 2], ["x", 3]]


@pytest.mark.parametrize(
    ("field", "record", "message"),
    [(5, ("x", 1), "no such field"), ("amount", ("x", 1), "no such field"), (1, 7, "has no fields")],
)
def test_a_field_that_is_not_there_is_named(field: Any, record: Any, message: str) -> None:
    with pytest.raises(UserCodeError, match=message):
        rolling(KeyedAggregateOperator(lambda value: 0, "sum", field), [record, record])


def test_an_unknown_aggregation_is_refused() -> None:
    with pytest.raises(ValueError, match="median"):
        KeyedAggregateOperator(first, "median", 1)
