"""UNNEST of each kind of collection, row by row as plain Python does it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.plan.expressions import Column, ref
from headwater.table.plan.nodes import Unnest, Values
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators.unnest import UnnestOperator
from headwater.table.types import logical as t
from headwater.table.types.logical import BIGINT, INT, STRING
from tests.unit.table.stream.driver import Driver, changes

_ROW = t.RowType(fields=(t.RowField("a", INT), t.RowField("b", STRING)))
_small = st.one_of(st.none(), st.integers(0, 2))
KINDS: dict[str, tuple[t.LogicalType, list[t.LogicalType], Any]] = {
    "ARRAY": (t.ArrayType(element=INT), [INT], st.lists(_small, max_size=3)),
    "ROWS": (
        t.ArrayType(element=_ROW),
        [INT, STRING],
        st.lists(st.one_of(st.none(), st.tuples(_small, st.sampled_from([None, "x"]))), max_size=3),
    ),
    "MAP": (
        t.MapType(key=STRING.not_null(), value=INT),
        [STRING, INT],
        st.dictionaries(st.sampled_from("abc"), _small).map(lambda each: list(each.items())),
    ),
    "MULTISET": (
        t.MultisetType(element=STRING.not_null()),
        [STRING],
        st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)).map(lambda each: list(each.items())),
    ),
}


def elements(kind: str, value: Any) -> list[tuple[Any, ...]]:
    match kind:
        case "ARRAY":
            return [(each,) for each in value]
        case "ROWS":
            return [(None, None) if each is None else tuple(each) for each in value]
        case "MAP":
            return [tuple(each) for each in value]
    return [(element,) for element, count in value for _ in range(count)]


def operator_of(kind: str, ordinality: bool, outer: bool) -> UnnestOperator:
    collection, types, _ = KINDS[kind]
    number, values = Column(1, "n", BIGINT), Column(2, "c", collection)
    added = [Column(3 + place, f"e{place}", each) for place, each in enumerate(types)]
    if ordinality:
        added.append(Column(9, "o", INT))
    node = Unnest(Values((), (number, values)), ref(values), tuple(added), kind, ordinality, outer)
    return UnnestOperator((number, values), node, node.columns)


@pytest.mark.parametrize("outer", [False, True], ids=["", "outer"])
@pytest.mark.parametrize("ordinality", [False, True], ids=["", "ordinality"])
@pytest.mark.parametrize("kind", list(KINDS))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_each_row_with_each_element(kind: str, ordinality: bool, outer: bool, data: Any) -> None:
    collections = st.one_of(st.none(), KINDS[kind][2])
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), collections, st.sampled_from([1, 1, -1, 2])), max_size=5))
    skipped = data.draw(st.integers(0, len(rows)))
    driver = Driver(operator_of(kind, ordinality, outer))
    given_rows = [((number, collection), weight) for number, collection, weight in rows]
    whole = changes(given_rows, driver.operator.inputs[0])
    sliced = Changes(whole.rows.slice(skipped), None if whole.weights is None else whole.weights[skipped:])
    driver.operator.process_batch([sliced], None)
    expected: Counter[Any] = Counter()
    for (number, collection), weight in given_rows[skipped:]:
        found = elements(kind, collection or [])
        frozen = None if collection is None else tuple(collection)
        for place, element in enumerate(found, 1):
            expected[(number, frozen, *element, *([place] if ordinality else []))] += weight
        if outer and not found:
            expected[(number, frozen, *[None] * len(KINDS[kind][1]), *([None] if ordinality else []))] += weight
    assert {row: count for row, count in driver.last.items() if count} == {k: v for k, v in expected.items() if v}
