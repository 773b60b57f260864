"""Every function's kernel against what real Flink gave for the same arguments (recorded)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions.definition import BoundArgument
from headwater.table.functions.registry import all_functions, lookup
from headwater.table.types.type_text import parse_type
from tests.sql_functions import aggregate_cases
from tests.sql_functions.aggregate_cases import AGGREGATES
from tests.sql_functions.case import FRAME, Case
from tests.sql_functions.cases import CASES, NOT_RECORDED
from tests.sql_functions.comparing import RECORDED, canonical_values, same
from tests.sql_functions.differences import DIFFERENT, DIFFERENT_ROWS, DIFFERENT_TYPES, accepted, not_compared


def by_sql(case: Case) -> str:
    return case.sql


@pytest.mark.parametrize("case", [*CASES, *AGGREGATES], ids=by_sql)
def test_the_type_is_flinks(case: Case) -> None:
    expected = RECORDED[case.sql]
    if "refused" in expected:
        assert case.sql in DIFFERENT, f"Flink refuses it: {expected['refused']}"
        return
    if "failed" in expected or case.sql in DIFFERENT_TYPES:
        return
    binding = case.bind()
    assert binding.result_type.same_kind(parse_type(expected["type"])), f"{binding.result_type} {expected['type']}"
    if None in expected["values"] and case.sql not in DIFFERENT:
        assert binding.result_type.nullable


@pytest.mark.parametrize("case", CASES, ids=by_sql)
def test_the_kernel_gives_flinks_result(case: Case) -> None:
    expected, binding = RECORDED[case.sql], case.bind()
    if accepted(case, "kernel"):
        return
    if "failed" in expected:
        with pytest.raises(ComputationError):
            binding.kernel(case.arrays(), FRAME)
        return
    values = canonical_values(binding.kernel(case.arrays(), FRAME), binding.result_type)
    equal = same(values, expected["values"], binding.result_type, not_compared(case))
    assert equal, f"\n{values}\n{expected['values']}"


@pytest.mark.parametrize("case", AGGREGATES, ids=by_sql)
def test_the_aggregate_gives_flinks_result(case: Case) -> None:
    expected, binding = RECORDED[case.sql], case.bind()
    if accepted(case, "kernel"):
        return
    recipe = binding.function.recipe
    assert recipe is not None
    found = recipe.gather(aggregate_cases.arguments(case), aggregate_cases.OFFSETS, binding)
    values = canonical_values(found, binding.result_type)
    equal = same(values, expected["values"], binding.result_type, not_compared(case))
    assert equal, f"\n{values}\n{expected['values']}"


@pytest.mark.parametrize("case", CASES, ids=by_sql)
def test_an_empty_frame_gives_an_empty_column(case: Case) -> None:
    binding = case.bind()
    assert len(binding.kernel(case.arrays([]), replace(FRAME, rows=0))) == 0


def test_every_function_is_recorded_or_has_tests_of_its_own() -> None:
    tried = {lookup(each.function) for each in (*CASES, *AGGREGATES)}
    assert {each.name for each in all_functions() if each not in tried} == NOT_RECORDED


def test_every_recording_is_used() -> None:
    assert set(RECORDED) == {each.sql for each in (*CASES, *AGGREGATES)}


def test_every_difference_is_of_a_case() -> None:
    assert {*DIFFERENT, *DIFFERENT_TYPES, *DIFFERENT_ROWS} <= set(RECORDED)


def test_an_error_says_what_a_function_takes() -> None:
    upper = lookup("upper")
    assert upper is not None
    with pytest.raises(FunctionTypeError, match="argument 1 must be of type string, found INT; use CAST"):
        upper.bind([BoundArgument(parse_type("INT"))])
    with pytest.raises(FunctionTypeError, match=r"takes 1 argument \(string\), found 0"):
        upper.bind([])
