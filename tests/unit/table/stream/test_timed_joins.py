"""Window and interval joins: up to the watermark, what was emitted is the join of the rows that were in time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.table.plan.calls import call
from headwater.table.plan.expressions import Column, ref
from headwater.table.stream.operators.interval_join import IntervalJoinOperator
from headwater.table.stream.operators.join_base import KINDS
from headwater.table.stream.operators.window_join import WindowJoinOperator
from headwater.table.types.logical import BIGINT, STRING, LocalZonedTimestampType, TimestampType
from tests.unit.table.stream.driver import Driver, Row
from tests.unit.table.stream.join_oracle import nested_loops

TIME = TimestampType(precision=3)
LK, LT, LX = Column(1, "k", STRING), Column(2, "t", TIME), Column(3, "x", BIGINT)
RK, RT, RX = Column(4, "k", STRING), Column(5, "t", TIME), Column(6, "x", BIGINT)
LEFT, RIGHT = (LK, LT, LX), (RK, RT, RX)
MS = 1_000  # in the microseconds of a row

_row = st.tuples(
    st.sampled_from([None, "a", "b"]), st.integers(0, 9).map(lambda ms: ms * MS), st.sampled_from([None, 1, 2, 3])
)
_rows = st.lists(st.tuples(_row, st.booleans()), max_size=5)
_epochs = st.lists(st.tuples(_rows, _rows, st.integers(0, 4), st.booleans()), min_size=1, max_size=6)


def columns_of(kind: str) -> tuple[Column, ...]:
    return LEFT if kind in ("SEMI", "ANTI") else (*LEFT, *RIGHT)


def less(one: Row, other: Row) -> bool:
    return one[2] is not None and other[2] is not None and one[2] < other[2]


class InTime:
    """The rows of one side that were not late, and how many were."""

    def __init__(self) -> None:
        self.rows: Counter[Row] = Counter()
        self.late = 0

    def take(self, rows: list[tuple[Row, bool]], passed: int, last_ms: Any) -> list[tuple[Row, int]]:
        """Rows come, or go if they are there. `passed` is the watermark before the epoch."""
        changes = []
        for row, goes in rows:
            weight = -1 if goes and self.rows[row] > 0 else 1
            changes.append((row, weight))
            if last_ms(row) <= passed:
                self.late += 1
            else:
                self.rows[row] += weight
        return changes


def late_dropped(driver: Driver) -> int:
    return int(driver.operator._late.counter.get_count())


def run(driver: Driver, epochs: list[Any], last_ms: Any, expected: Any) -> None:
    left, right, passed = InTime(), InTime(), MIN_WATERMARK
    epochs = [*epochs, ([], [], None, False)]
    for lefts, rights, step, fail in epochs:
        watermark = MAX_WATERMARK if step is None else (0 if passed == MIN_WATERMARK else passed) + step
        driver.epoch(
            left.take(lefts, passed, last_ms), right.take(rights, passed, last_ms), watermark=watermark, fail=fail
        )
        passed = watermark
        assert driver.table == expected(left.rows, right.rows, passed)
        assert driver.watermarks[-1] == passed
    if not any(fail for *_, fail in epochs):
        assert late_dropped(driver) == left.late + right.late
    assert not driver.backend.number_of_entries()
    assert not driver.backend.event_timers.timers()


@pytest.mark.parametrize("residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(epochs=_epochs)
def test_windows_are_joined_when_they_end(kind: str, residual: bool, epochs: list[Any]) -> None:
    """The time column is the end of the window."""
    condition = call("<", (ref(LX), ref(RX))) if residual else None
    operator = WindowJoinOperator(LEFT, RIGHT, kind, [LK], [RK], condition, columns_of(kind), window_end=(LT, RT))

    def expected(left: Counter[Row], right: Counter[Row], passed: int) -> Counter[Row]:
        return nested_loops(
            [row for row in left.elements() if row[1] // MS - 1 <= passed],
            [row for row in right.elements() if row[1] // MS - 1 <= passed],
            kind,
            lambda a, b: a[0] is not None and a[:2] == b[:2] and (not residual or less(a, b)),
            (3, 3),
        )

    run(Driver(operator), epochs, lambda row: row[1] // MS - 1, expected)


@pytest.mark.parametrize("bounds", [(-2, 1), (0, 0), (1, 3), (-3, -1)], ids=str)
@pytest.mark.parametrize("residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(epochs=_epochs)
def test_pairs_within_the_interval(kind: str, residual: bool, bounds: tuple[int, int], epochs: list[Any]) -> None:
    lower, upper = bounds
    condition = call("<", (ref(LX), ref(RX))) if residual else None
    operator = IntervalJoinOperator(
        LEFT, RIGHT, kind, [LK], [RK], condition, columns_of(kind),
        left_time=LT, right_time=RT, lower_ms=lower, upper_ms=upper,
    )  # fmt: skip

    def matches(one: Row, other: Row) -> bool:
        near = other[1] + lower * MS <= one[1] <= other[1] + upper * MS
        return one[0] is not None and one[0] == other[0] and near and (not residual or less(one, other))

    def expected(left: Counter[Row], right: Counter[Row], passed: int) -> Counter[Row]:
        """Rows that stand alone are there when no match can come, or at once if their key is NULL."""
        found = nested_loops(left.elements(), right.elements(), kind, matches, (3, 3))
        for row in list(found):
            alone = row[:3] if row[:3] != (None, None, None) else row[3:]
            stays = max(-lower, 0) if row[:3] != (None, None, None) else max(upper, 0)
            if kind == "SEMI" or (kind != "ANTI" and row[:3] != (None,) * 3 and row[3:] != (None,) * 3):
                continue
            if alone[0] is not None and alone[1] // MS + stays > passed:
                del found[row]
        return found

    run(Driver(operator), epochs, lambda row: row[1] // MS, expected)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_processing_time_closes_windows(backend: str) -> None:
    operator = WindowJoinOperator(
        LEFT, RIGHT, "FULL", [LK], [RK], None, columns_of("FULL"), window_end=(LT, RT), time="processing"
    )
    driver = Driver(operator, backend)
    driver.epoch([(("a", 10 * MS, 1), 1)], [(("a", 10 * MS, 2), 1)], now=7)
    assert not driver.table and driver.operator.next_processing_timer() == 10
    driver.epoch([], [], now=10, fail=True)
    assert driver.table == {("a", 10 * MS, 1, "a", 10 * MS, 2): 1}


def test_bounds_of_zoned_windows_are_local_times() -> None:
    operator = WindowJoinOperator(
        LEFT, RIGHT, "INNER", [LK], [RK], None, columns_of("INNER"), window_end=(LT, RT), zoned=True, zone="Asia/Tokyo"
    )
    driver = Driver(operator)
    nine_hours = 9 * 3_600_000
    row = ("a", (nine_hours + 10) * MS, 1)
    driver.epoch([(row, 1)], [(row, 1)], watermark=8)
    assert not driver.table
    driver.epoch([], [], watermark=9)
    assert driver.table == {(*row, *row): 1}


def test_times_of_different_precision() -> None:
    fine = Column(5, "t", LocalZonedTimestampType(precision=9))
    operator = IntervalJoinOperator(
        LEFT, (RK, fine, RX), "INNER", [LK], [RK], None, (*LEFT, RK, fine, RX),
        left_time=LT, right_time=fine, lower_ms=0, upper_ms=1,
    )  # fmt: skip
    driver = Driver(operator)
    driver.epoch([(("a", 5 * MS, 1), 1)], [(("a", 4_000_000, 1), 1), (("a", 3_999_999, 1), 1)])
    assert driver.table == {("a", 5 * MS, 1, "a", 4_000_000, 1): 1}
