"""What is computed for one row by Python is what the kernels compute."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from headwater.table.catalog.manager import CatalogManager
from headwater.table.functions.frame import Frame
from headwater.table.parser.parse import parse_expression
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.scope import Range, Scope
from headwater.table.stream.changes import schema_of
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.rows import NAN, frozen_column, thawed_rows
from headwater.table.stream.scalars import _quick
from headwater.table.types import logical as t

VALUES: dict[t.LogicalType, tuple[Any, ...]] = {
    t.BIGINT: (None, -1, 0, 2, 2**53 + 1),
    t.DecimalType(precision=38, scale=18): (None, Decimal("0.1"), Decimal(2)),
    t.DOUBLE: (None, -1.0, 0.1, 2.0, float(2**53), math.inf, NAN),
    t.STRING: (None, "", "a", "b"),
}
CONDITIONS = (
    "a = b", "a <> b", "a < b", "a <= b", "a > b", "a >= b", "a IN (b, 2)", "a IN (b, NULL)", "a BETWEEN b AND 2",
    "a BETWEEN 0.5e0 AND b", "NOT a > b", "a > b AND b < 2", "a > b OR b IS NULL", "a IN (b)", "a BETWEEN b AND b",
)  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_closure_gives_what_the_kernel_gives(condition: str) -> None:
    quick = 0
    for left, right in product(VALUES, repeat=2):
        if (left is t.STRING) != (right is t.STRING) or (left is t.STRING and any(each in condition for each in "2e")):
            continue
        columns = (new_column("a", left), new_column("b", right))
        scope = Scope([Range((), columns)])
        binder = ExpressionBinder(BindContext("", CatalogManager()), scope, _no_query, Allowed("the test"))
        rex = binder.bind_condition(parse_expression(condition))
        closure = _quick(rex, {column.id: place for place, column in enumerate(columns)})
        if closure is None:
            continue
        quick += 1
        rows = list(product(VALUES[left], VALUES[right]))
        found = evaluated(compiled(rex, columns), thawed_rows(rows, schema_of(columns)), Frame(len(rows)))
        for values, expected in zip(rows, frozen_column(found), strict=True):
            assert closure(values) is expected, (condition, left, right, values)
    assert quick or "NULL" in condition


def _no_query(*_: Any) -> Any:
    raise AssertionError
