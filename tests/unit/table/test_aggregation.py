"""Aggregates fold, merge and take rows back with the result of computing them anew."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.functions.aggregation import AggregateRecipe, fold_groups
from headwater.table.functions.definition import Binding, BoundArgument
from headwater.table.functions.registry import all_functions, lookup
from headwater.table.types.arrow import to_arrow
from headwater.table.types.type_text import parse_type

VALUES = {
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DECIMAL(10, 2)": st.decimals(-99999999, 99999999, places=2),
}
FOLDING = [each.name for each in all_functions() if each.recipe is not None and each.recipe.folds]


def bound(name: str, kind: str) -> tuple[Binding, AggregateRecipe]:
    definition = lookup(name)
    assert definition is not None and definition.recipe is not None
    return definition.bind([BoundArgument(parse_type(kind))]), definition.recipe


def folded(binding: Binding, recipe: AggregateRecipe, parts: list[tuple[list[object], int]]) -> object:
    """Fold parts of (values, weight) one after the other into one group's state, then finish."""
    assert recipe.accumulators is not None and recipe.contribute is not None and recipe.finish is not None
    columns = recipe.accumulators(binding)
    state: list[pa.Array] | None = None
    for values, weight in parts:
        array = pa.array(values, to_arrow(binding.arg_types[0]))
        weights = pa.array([weight] * len(values), pa.int64())
        added = recipe.contribute([array], weights, binding)
        groups = np.zeros(len(values), np.int64)
        new = [fold_groups(each, groups, 1, column.fold) for each, column in zip(added, columns, strict=True)]
        if state is not None:
            both = [pa.concat_arrays(pair) for pair in zip(state, new, strict=True)]
            pairs = zip(both, columns, strict=True)
            new = [fold_groups(each, np.zeros(2, np.int64), 1, column.fold) for each, column in pairs]
        state = new
    assert state is not None
    return recipe.finish(state, binding).to_pylist()[0]


def computed(binding: Binding, recipe: AggregateRecipe, values: list[object]) -> object:
    array = pa.array(values, to_arrow(binding.arg_types[0]))
    return recipe.gather([array], np.array([0, len(values)], np.int64), binding).to_pylist()[0]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", ["COUNT", "SUM", "AVG", "MIN", "MAX"])
@settings(max_examples=25)
@given(data=st.data())
def test_parts_merge_into_the_whole(name: str, kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=8))
    cut = data.draw(st.integers(0, len(values)))
    binding, recipe = bound(name, kind)
    assert folded(binding, recipe, [(values[:cut], 1), (values[cut:], 1)]) == computed(binding, recipe, values)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", ["COUNT", "SUM", "AVG"])
@settings(max_examples=25)
@given(data=st.data())
def test_rows_that_are_taken_back_leave_no_trace(name: str, kind: str, data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.none() | VALUES[kind], max_size=5))
    gone = data.draw(st.lists(st.none() | VALUES[kind], max_size=5))
    binding, recipe = bound(name, kind)
    assert recipe.retractable(binding)
    parts: list[tuple[list[object], int]] = [(gone, 1), (kept, 1), (gone, -1)]
    assert folded(binding, recipe, parts) == computed(binding, recipe, kept)


def test_a_weight_counts_a_row_several_times() -> None:
    for kind in ("INT", "DECIMAL(10, 2)"):
        binding, recipe = bound("SUM", kind)
        assert folded(binding, recipe, [([5, None], 3)]) == 15
        count, counting = bound("COUNT", kind)
        assert folded(count, counting, [([5, None], 3)]) == 3


def test_least_and_greatest_cannot_be_taken_back_by_folding() -> None:
    for name in ("MIN", "MAX"):
        binding, recipe = bound(name, "INT")
        assert recipe.folds and not recipe.retractable(binding)


def test_a_decimal_sum_that_overflows_is_null_and_stays_so() -> None:
    binding, recipe = bound("SUM", "DECIMAL(38, 0)")
    most = 10**38 - 1
    assert folded(binding, recipe, [([most, 1], 1)]) is None
    assert folded(binding, recipe, [([most, 1], 1), ([5], 1)]) is None
    assert computed(binding, recipe, [most] * 1000) is None
    assert computed(binding, recipe, [most, -most]) == 0


def test_no_rows_give_an_empty_result() -> None:
    for name in FOLDING:
        binding, recipe = bound(name, "DOUBLE")
        assert computed(binding, recipe, []) == (0 if name == "COUNT" else None)


def test_spark_puts_distinct_and_filter_where_they_belong() -> None:
    binding, _ = bound("AVG", "INT")
    text = binding.spark_aggregate(["x"], distinct=True, suffix="FILTER (WHERE f)")
    assert text.count("DISTINCT") == 2 and text.count(") FILTER (WHERE f)") == 2
