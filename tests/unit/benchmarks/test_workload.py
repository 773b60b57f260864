"""All frameworks get the same input, and latency is told from when a record was due."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.latency.schedule import Schedule
from benchmarks.workload import FIRST_FACTOR, MASK, SECOND_FACTOR, StampDir, key_of, percentile


@given(st.integers(0, 3 * 10**9))
def test_no_step_of_the_key_leaves_a_signed_64_bit_integer(i: int) -> None:
    mixed = i * FIRST_FACTOR
    assert mixed < 2**63
    mixed = (mixed & MASK) ^ (mixed & MASK) >> 15
    assert mixed * SECOND_FACTOR < 2**63


def test_keys_are_spread_evenly_and_repeat_among_neighbours() -> None:
    keys = [key_of(i, 1000) for i in range(100_000)]
    assert set(keys) == set(range(1000))
    assert max(keys.count(key) for key in range(0, 1000, 50)) < 200
    assert 550 < len(set(keys[:1000])) < 700  # as random ones do: 1000 * (1 - 1/e)


@pytest.mark.parametrize(("now", "due"), [(99.0, 0), (100.0, 1), (100.0105, 11), (105.0, 3000), (1e9, 3000)])
def test_records_are_due_by_the_clock(now: float, due: int) -> None:
    assert Schedule(rate=1000, warm_up_s=1.0, measured_s=2.0).due(100.0, now) == due


def test_latency_leaves_the_warm_up_out_and_counts_what_is_missing() -> None:
    schedule = Schedule(rate=10, warm_up_s=1.0, measured_s=1.0)
    seen = [(i, 9.0) for i in range(10)] + [(i, 0.001 * (i - 9)) for i in range(10, 19)]
    summary = schedule.summary(seen)
    assert summary["records"] == 9
    assert summary["missing"] == 1
    assert summary["twice"] == 0
    assert summary["median_ms"] == pytest.approx(5.0)
    assert summary["max_ms"] == pytest.approx(9.0)


def test_a_record_that_came_twice_does_not_hide_one_that_is_missing() -> None:
    summary = Schedule(rate=10, warm_up_s=0.0, measured_s=0.3).summary([(0, 0.1), (0, 0.2), (2, 0.1)])
    assert (summary["missing"], summary["twice"]) == (1, 1)


def test_percentile_is_a_value_that_was_there() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0


def test_stamps_are_read_in_order_of_time(tmp_path: Path) -> None:
    stamps = StampDir(tmp_path)
    stamps.stamp("commit", outputs=1)
    stamps.stamp("commit", outputs=2)
    stamps.stamp("other")
    assert [stamp["outputs"] for stamp in stamps.read("commit")] == [1, 2]
    assert stamps.seconds_between("commit", "other") >= 0
