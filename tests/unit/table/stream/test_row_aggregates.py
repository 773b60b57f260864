"""Aggregates of a few rows in Python give what the vectorised kernels give."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.plan.expressions import AggregateCall
from headwater.table.stream.row_aggregates import row_aggregate
from headwater.table.stream.rows import frozen_column
from headwater.table.types.arrow import to_arrow
from tests.unit.table.stream.match_driver import match_of


def whole(bits: int) -> st.SearchStrategy[Any]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


KINDS = {
    "TINYINT": whole(8),
    "INT": whole(32),
    "BIGINT": whole(64),
    "DECIMAL(38, 2)": st.decimals(Decimal(10) ** 35 * -9, Decimal(10) ** 35 * 9, places=2),
    "DECIMAL(9, 3)": st.decimals(-999_999, 999_999, places=3),
    "DOUBLE": st.floats(allow_infinity=True),
    "STRING": st.text(max_size=3),
    "DATE": st.dates(),
    "TIMESTAMP(3)": st.datetimes().map(lambda found: found.replace(microsecond=0)),
    "BOOLEAN": st.booleans(),
}


@cache
def environment() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    columns = ", ".join(f"v{place} {kind}" for place, kind in enumerate(KINDS))
    t_env.execute_sql(
        f"CREATE TABLE made (ts TIMESTAMP(3), {columns}, WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
    )
    return t_env


@cache
def call_of(kind: str, function: str) -> AggregateCall:
    query = f"""SELECT * FROM made MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS ts PATTERN (A B)
        DEFINE A AS {function}(A.v{list(KINDS).index(kind)}) IS NULL)"""
    call = match_of(environment().sql_query(query)._plan).definitions[0].values[0].call
    assert call is not None
    return call


@pytest.mark.parametrize("function", ["COUNT", "SUM", "AVG", "MIN", "MAX"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_as_the_kernel(kind: str, function: str, data: Any) -> None:
    if function in ("SUM", "AVG") and kind in ("STRING", "DATE", "TIMESTAMP(3)", "BOOLEAN"):
        return
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=5))
    call = call_of(kind, function)
    arrow = to_arrow(call.binding.arg_types[0])
    array = pa.array(values, arrow)
    quick = row_aggregate(call)
    if quick is None:
        assert kind == "DOUBLE" and function in ("MIN", "MAX")
        return
    recipe = call.binding.function.recipe
    assert recipe is not None
    expected = frozen_column(recipe.gather([array], np.array([0, len(values)]), call.binding))
    assert [quick(len(values), [frozen_column(array)])] == expected
