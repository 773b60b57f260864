"""Lookup joins: keys are asked in batches, once each, and remembered as the cache says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import SqlError
from headwater.table.plan.calls import call
from headwater.table.plan.expressions import Column, ref
from headwater.table.plan.nodes import LookupRetry
from headwater.table.stream.operators.lookup_join import LookupCache, LookupJoinOperator
from headwater.table.types.logical import BIGINT, STRING
from tests.unit.table.stream.driver import Driver, Row
from tests.unit.table.stream.join_oracle import nested_loops

K, X = Column(1, "k", STRING), Column(2, "x", BIGINT)
RK, RX = Column(3, "k", STRING), Column(4, "x", BIGINT)


class Table:
    """Rows by key in memory, which notes what it is asked."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.asked: list[list[Row]] = []

    def open(self) -> None:
        self.asked = []

    def lookup(self, keys: list[Row]) -> dict[Row, list[Row]]:
        self.asked.append(keys)
        return {key: found for key in keys if (found := [row for row in self.rows if row[:1] == key])}


def driver_of(rows: list[Row], kind: str = "LEFT", residual: bool = False, cache: LookupCache | None = None) -> Driver:
    condition = call("<", (ref(X), ref(RX))) if residual else None
    return Driver(LookupJoinOperator((K, X), Table(rows), kind, [K], condition, (K, X, RK, RX), cache=cache))


_rows = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 3)), max_size=5)
_input = st.lists(
    st.tuples(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 3)), st.sampled_from([1, 1, -1])),
    max_size=8,
)


@pytest.mark.parametrize("cache", [None, LookupCache(2)], ids=["", "cache"])
@pytest.mark.parametrize("residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@settings(max_examples=30, deadline=None)
@given(table=_rows, rows=_input)
def test_each_row_with_what_its_key_has(kind: str, residual: bool, cache: Any, table: list[Row], rows: Any) -> None:
    driver = driver_of(table, kind, residual, cache)
    driver.epoch(rows)
    expected: Counter[Row] = Counter()
    for row, weight in rows:
        for found, count in nested_loops(
            [row], table, kind, lambda a, b: a[0] == b[0] and (not residual or a[1] < b[1]), (2, 2)
        ).items():
            expected[found] += weight * count
    assert driver.table == {row: count for row, count in expected.items() if count}
    for asked in driver.operator.lookup.asked:
        assert len({*asked}) == len(asked) and (None,) not in asked


def test_a_cache_forgets_by_size_and_age() -> None:
    driver = driver_of([("a", 1), ("b", 1)], cache=LookupCache(2, expire_after_write_ms=100))
    asked = driver.operator.lookup.asked
    driver.epoch([(("a", 0), 1)], now=0)
    driver.epoch([(("a", 0), 1)], now=99)
    assert asked == [[("a",)]]
    driver.epoch([(("a", 0), 1)], now=100)
    assert len(asked) == 2
    for key in "bca":  # 'a' is the least used one when 'c' comes
        driver.epoch([((key, 0), 1)], now=101)
    assert [keys[0][0] for keys in asked[2:]] == ["b", "c", "a"]


def test_missing_keys_are_remembered_only_by_choice() -> None:
    driver = driver_of([], cache=LookupCache(9, cache_missing_key=False))
    for _ in range(2):
        driver.epoch([(("a", 0), 1)])
    assert len(driver.operator.lookup.asked) == 2


def test_a_row_of_the_wrong_width_is_an_error() -> None:
    driver = driver_of([("a",)])
    with pytest.raises(SqlError, match=r"a row of 1 columns: \('a',\); the table has 2"):
        driver.epoch([(("a", 0), 1)])


class Growing(Table):
    """A row for "a" is there from the third time on that it is asked."""

    def lookup(self, keys: list[Row]) -> dict[Row, list[Row]]:
        self.rows = [("a", 1)] if len(self.asked) >= 2 else []
        return super().lookup(keys)


@pytest.mark.parametrize(("attempts", "found"), [(1, None), (2, 1), (3, 1)])
@pytest.mark.parametrize("cache", [None, LookupCache(9)], ids=["", "cache"])
def test_keys_without_rows_are_asked_for_again(cache: LookupCache | None, attempts: int, found: int | None) -> None:
    operator = LookupJoinOperator(
        (K, X), Growing([]), "LEFT", [K], None, (K, X, RK, RX), cache=cache, retry=LookupRetry(1, attempts)
    )
    driver = Driver(operator)
    driver.epoch([(("a", 0), 1)])
    assert driver.operator.lookup.asked == [[("a",)]] * (1 + min(attempts, 2))
    assert driver.table == {("a", 0, "a" if found else None, found): 1}
