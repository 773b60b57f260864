"""Joins of changing tables: after every epoch, the sum of what was emitted is the join of what was given."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.plan.calls import call
from headwater.table.plan.expressions import Column, Rex, ref
from headwater.table.stream.operators.join import JoinOperator
from headwater.table.stream.operators.join_base import KINDS
from headwater.table.stream.operators.join_pairs import pairs_of
from headwater.table.types.logical import BIGINT, STRING
from tests.unit.table.stream.driver import Driver, Row
from tests.unit.table.stream.join_oracle import nested_loops

LK, LV, LX = Column(1, "k", STRING), Column(2, "v", BIGINT), Column(3, "x", BIGINT)
RK, RV, RX = Column(4, "k", STRING), Column(5, "v", BIGINT), Column(6, "x", BIGINT)
LEFT, RIGHT = (LK, LV, LX), (RK, RV, RX)
KEYS: dict[str, tuple[list[Column], list[Column], list[bool]]] = {
    "one key": ([LK], [RK], [False]),
    "two keys": ([LK, LV], [RK, RV], [False, False]),
    "null safe": ([LK, LV], [RK, RV], [True, False]),
    "both null safe": ([LK], [RK], [True]),
    "no key": ([], [], []),
}
_row = st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2]), st.sampled_from([None, 1, 2, 3]))
_epoch = st.tuples(
    st.lists(st.tuples(_row, st.booleans()), max_size=6), st.lists(st.tuples(_row, st.booleans()), max_size=6)
)


def residual_of(kind: bool) -> Rex | None:
    return call("<", (ref(LX), ref(RX))) if kind else None


def columns_of(kind: str) -> tuple[Column, ...]:
    return LEFT if kind in ("SEMI", "ANTI") else (*LEFT, *RIGHT)


def joined(left: Counter[Row], right: Counter[Row], kind: str, keys: str, residual: bool) -> Counter[Row]:
    left_keys, right_keys, safe = KEYS[keys]
    pairs = [
        (LEFT.index(a), RIGHT.index(b), is_safe) for a, b, is_safe in zip(left_keys, right_keys, safe, strict=True)
    ]

    def matches(one: Row, other: Row) -> bool:
        for a, b, is_safe in pairs:
            if not ((one[a] is not None and one[a] == other[b]) or (is_safe and one[a] is None and other[b] is None)):
                return False
        return not residual or (one[2] is not None and other[2] is not None and one[2] < other[2])

    return nested_loops(left.elements(), right.elements(), kind, matches, (3, 3))


def changed(held: Counter[Row], rows: list[tuple[Row, bool]]) -> list[tuple[Row, int]]:
    """Rows come, or go if they are there."""
    out = []
    for row, goes in rows:
        if goes and held[row] > 0:
            held[row] -= 1
            out.append((row, -1))
        else:
            held[row] += 1
            out.append((row, 1))
    return out


@pytest.mark.parametrize("residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("keys", list(KEYS))
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(epochs=st.lists(st.tuples(_epoch, st.booleans()), min_size=1, max_size=5))
def test_every_epoch_gives_the_join(kind: str, keys: str, residual: bool, epochs: list[Any]) -> None:
    left_keys, right_keys, safe = KEYS[keys]
    driver = Driver(
        JoinOperator(LEFT, RIGHT, kind, left_keys, right_keys, residual_of(residual), columns_of(kind), null_safe=safe)
    )
    left: Counter[Row] = Counter()
    right: Counter[Row] = Counter()
    for (lefts, rights), fail in epochs:
        driver.epoch(changed(left, lefts), changed(right, rights), fail=fail)
        assert driver.table == joined(left, right, kind, keys, residual)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=2, deadline=None)
@given(epochs=st.lists(st.tuples(_epoch, st.booleans()), min_size=1, max_size=3), residual=st.booleans())
def test_rocksdb_keeps_the_same(kind: str, residual: bool, epochs: list[Any]) -> None:
    operator = JoinOperator(LEFT, RIGHT, kind, [LK], [RK], residual_of(residual), columns_of(kind))
    driver = Driver(operator, "rocksdb")
    left: Counter[Row] = Counter()
    right: Counter[Row] = Counter()
    for (lefts, rights), fail in epochs:
        driver.epoch(changed(left, lefts), changed(right, rights), fail=fail)
        assert driver.table == joined(left, right, kind, "one key", residual)


def test_an_update_that_changes_nothing_is_not_emitted() -> None:
    driver = Driver(JoinOperator(LEFT, RIGHT, "LEFT", [LK], [RK], None, columns_of("LEFT")))
    driver.epoch([(("a", 1, 1), 1)], [(("a", 1, 1), 1)])
    assert driver.last == {("a", 1, 1, "a", 1, 1): 1}
    driver.epoch([(("a", 1, 1), -1), (("a", 1, 1), 1)], [])
    assert not driver.last
    driver.epoch([], [(("a", 1, 1), -1), (("a", 1, 2), 1)])
    assert driver.last == {("a", 1, 1, "a", 1, 1): -1, ("a", 1, 1, "a", 1, 2): 1}


def test_state_expires_by_side() -> None:
    driver = Driver(JoinOperator(LEFT, RIGHT, "INNER", [LK], [RK], None, columns_of("INNER"), ttl_ms=(1_000, None)))
    driver.epoch([(("a", 1, 1), 1)], [(("b", 1, 1), 1)], now=0)
    driver.epoch([(("b", 2, 2), 1)], [(("a", 2, 2), 1)], now=5_000)
    assert driver.last == {("b", 2, 2, "b", 1, 1): 1}


@pytest.mark.parametrize(
    ("kind", "alone"), [("LEFT", {("a", 1, 1, None, None, None): 1}), ("SEMI", {}), ("ANTI", {("a", 1, 1): 1})]
)
def test_an_expired_row_matches_nothing_new(kind: str, alone: dict[Row, int]) -> None:
    operator = JoinOperator(LEFT, RIGHT, kind, [LK], [RK], None, columns_of(kind), ttl_ms=(None, 1_000))
    driver = Driver(operator)
    driver.epoch([], [(("a", 1, 1), 1)], now=0)
    driver.epoch([(("a", 1, 1), 1)], [], now=5_000)
    assert driver.last == alone
    driver.epoch([], [(("a", 1, 1), -1), (("a", 2, 2), 1)], now=6_000)  # an update of the expired row
    assert driver.table == joined(Counter([("a", 1, 1)]), Counter([("a", 2, 2)]), kind, "one key", False)


def test_a_row_that_was_never_there_cannot_be_taken_back() -> None:
    driver = Driver(JoinOperator(LEFT, RIGHT, "FULL", [LK], [RK], None, columns_of("FULL")))
    driver.epoch([(("a", 1, 1), -1)], [(("a", 1, 1), 1)])
    assert driver.last == {(None, None, None, "a", 1, 1): 1}
    driver.epoch([(("a", 1, 1), 1)], [])
    assert driver.table == {("a", 1, 1, "a", 1, 1): 1}


def test_many_pairs_come_in_parts() -> None:
    blocks = [(0, 3, 0, 2), (3, 0, 2, 5), (3, 2, 2, 0), (5, 2, 2, 2)]
    whole = [pair for part in pairs_of(blocks) for pair in zip(*part, strict=True)]
    assert whole == [(a, b) for s, n, t, m in blocks for a in range(s, s + n) for b in range(t, t + m)]
    parts = [pair for part in pairs_of(blocks, at_once=3) for pair in zip(*part, strict=True)]
    assert parts == whole
