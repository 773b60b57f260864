"""Temporal joins: each row with the version that held at its time, whatever order things come in."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.table.plan.calls import call
from headwater.table.plan.expressions import Column, ref
from headwater.table.stream.operators.temporal_join import TemporalJoinOperator
from headwater.table.types.logical import BIGINT, STRING, TimestampType
from tests.unit.table.stream.driver import Driver, Row

TIME = TimestampType(precision=3)
LK, LT, LX = Column(1, "k", STRING), Column(2, "t", TIME), Column(3, "x", BIGINT)
RK, RT, RX = Column(4, "k", STRING), Column(5, "t", TIME), Column(6, "x", BIGINT)
LEFT, RIGHT = (LK, LT, LX), (RK, RT, RX)
MS = 1_000
_ms = st.integers(0, 12)
_keys = st.sampled_from([None, "a", "b"])


def operator_of(kind: str, residual: bool = False, processing: bool = False) -> TemporalJoinOperator:
    times = (None, None) if processing else (LT, RT)
    condition = call("<", (ref(LX), ref(RX))) if residual else None
    return TemporalJoinOperator(LEFT, RIGHT, kind, [LK], [RK], *times, condition, (*LEFT, *RIGHT))


EPOCHS = 4
_epoch = st.integers(0, EPOCHS - 1)
_versions = st.lists(st.tuples(_keys, _ms, st.integers(0, 3), st.booleans(), _epoch), max_size=6)
_rows = st.lists(st.tuples(_keys, _ms, st.integers(0, 3), st.integers(1, 2), _epoch), max_size=6)


@pytest.mark.parametrize("residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@settings(max_examples=50, deadline=None)
@given(
    versions=_versions,
    rows=_rows,
    steps=st.lists(st.integers(0, 5), min_size=EPOCHS - 1, max_size=EPOCHS - 1),
    failing=_epoch,
)
def test_the_version_at_the_time_of_the_row(
    kind: str, residual: bool, versions: list[Any], rows: list[Any], steps: list[int], failing: int
) -> None:
    """Rows may be late, versions (or the times at which keys end) are not."""
    watermarks = [*accumulate(steps), MAX_WATERMARK]
    by_time = {(key, ms): (None if ends else x, epoch) for key, ms, x, ends, epoch in versions}
    driver = Driver(operator_of(kind, residual))
    in_time: Counter[Row] = Counter()
    for epoch, watermark in enumerate(watermarks):
        passed = watermarks[epoch - 1] if epoch else MIN_WATERMARK
        lefts = [((key, ms * MS, x), count) for key, ms, x, count, when in rows if when == epoch]
        for row, count in lefts:
            if row[1] // MS > passed:
                in_time[row] += count
        rights = []
        for (key, ms), (x, drawn) in by_time.items():
            latest = next(number for number, each in enumerate(watermarks) if each >= ms)
            if epoch == min(drawn, latest):
                rights.append(((key, ms * MS, x), -1 if x is None else 1))
        driver.epoch(lefts, rights, watermark=watermark, fail=epoch == failing)
    expected: Counter[Row] = Counter()
    for (key, time, x), count in in_time.items():
        times = [ms for other, ms in by_time if other == key is not None and ms * MS <= time]
        value = by_time[key, max(times)][0] if times else None
        if value is not None and (not residual or x < value):
            expected[key, time, x, key, max(times) * MS, value] += count
        elif kind == "LEFT":
            expected[key, time, x, None, None, None] += count
    assert driver.table == expected
    assert not driver.backend.keys("waiting")


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_an_update_in_one_epoch_keeps_the_history(backend: str) -> None:
    driver = Driver(operator_of("INNER"), backend)
    driver.epoch([], [(("a", 1 * MS, 10), 1)], watermark=2)
    driver.epoch([(("a", 4 * MS, 0), 1)], [(("a", 1 * MS, 10), -1), (("a", 5 * MS, 11), 1)], watermark=3, fail=True)
    driver.epoch([(("a", 6 * MS, 0), 1)], [], watermark=6)
    assert driver.table == {("a", 4 * MS, 0, "a", 1 * MS, 10): 1, ("a", 6 * MS, 0, "a", 5 * MS, 11): 1}


def test_a_deletion_without_a_time_of_its_own_holds_from_the_watermark_on() -> None:
    driver = Driver(operator_of("LEFT"))
    driver.epoch([], [(("a", 1 * MS, 10), 1)], watermark=5)
    driver.epoch([(("a", 6 * MS, 0), 1)], [(("a", 1 * MS, 10), -1)], watermark=9)
    assert driver.table == {("a", 6 * MS, 0, None, None, None): 1}
    driver.epoch([], [(("a", 12 * MS, 10), 1)], watermark=10)
    driver.epoch([(("a", 13 * MS, 0), 1)], [(("a", 12 * MS, 10), -1)], watermark=20)  # it never held
    assert driver.last == {("a", 13 * MS, 0, None, None, None): 1}


def test_old_versions_are_forgotten() -> None:
    driver = Driver(operator_of("INNER"))
    for ms in range(20):
        driver.epoch([], [(("a", ms * MS, ms), 1)], watermark=ms)
    driver.backend.current_key = "a"
    assert len(list(driver.operator._versions.items())) <= 3


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_processing_time_takes_the_latest_version(kind: str) -> None:
    driver = Driver(operator_of(kind, processing=True))
    driver.epoch([(("a", 0, 0), 2), (("b", 0, 0), 1)], [(("a", 0, 10), 1)], fail=True)
    alone = {("b", 0, 0, None, None, None): 1} if kind == "LEFT" else {}
    assert driver.last == {("a", 0, 0, "a", 0, 10): 2, **alone}
    driver.epoch([], [(("a", 0, 10), -1), (("a", 0, 11), 1)])
    assert not driver.last
    driver.epoch([(("a", 0, 0), 1)], [])
    assert driver.last == {("a", 0, 0, "a", 0, 11): 1}
    driver.epoch([(("a", 0, 0), 1)], [(("a", 0, 11), -1)])
    assert driver.last == ({("a", 0, 0, None, None, None): 1} if kind == "LEFT" else {})
