"""Epoch budgets find the size that takes the target duration, from any start, and keep it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import ConfigurationError
from headwater.runtime.epoch.sizing import EpochSizer


def run(sizer: EpochSizer, duration_of: Callable[[int, int], float], epochs: int) -> list[tuple[int, float]]:
    """(records, duration) of each epoch, for a source that always has more."""
    seen: list[tuple[int, float]] = []
    for epoch in range(epochs):
        records = sizer.next_budget()
        seen.append((records, duration_of(epoch, records)))
        sizer.observe(*seen[-1])
    return seen


def test_a_fast_job_reaches_its_size_within_seven_epochs_after_a_slow_start() -> None:
    seen = run(EpochSizer(1_000), lambda epoch, n: 140 + n * 0.002 + (3_000 if epoch == 0 else 0), 12)
    assert seen[0][0] == 1_000
    assert seen[1][0] == 1_000, "a slow first epoch may be slow records as well as a slow start"
    assert all(900 <= duration <= 1_100 for _, duration in seen[7:])


@given(overhead_ms=st.floats(1, 400), cost_us=st.floats(0.5, 200))
def test_it_converges_for_any_overhead_and_cost(overhead_ms: float, cost_us: float) -> None:
    seen = run(EpochSizer(1_000, min_records=100), lambda _, n: overhead_ms + n * cost_us / 1000, 40)
    assert all(700 <= duration <= 1_300 for _, duration in seen[-3:])
    assert max(duration for _, duration in seen) <= 10_000


def test_one_outlier_changes_nothing_and_two_do() -> None:
    sizer = EpochSizer(1_000)
    run(sizer, lambda _, n: 100 + n * 0.01, 12)
    before = sizer.next_budget()
    sizer.observe(before, 9_000)
    assert sizer.next_budget() == pytest.approx(before, rel=0.05)
    sizer.observe(before, 9_000)
    assert sizer.next_budget() < before / 5


def test_a_trickle_does_not_grow_the_budget_without_bound() -> None:
    sizer = EpochSizer(1_000)
    for _ in range(50):
        sizer.observe(500, 150)
    assert sizer.next_budget() <= 8 * 500
    for _ in range(50):
        sizer.observe(0, 150)
    assert sizer.next_budget() == 1_000


def test_a_target_below_the_overhead_still_moves_records() -> None:
    seen = run(EpochSizer(50, min_records=10), lambda _, n: 140 + n * 0.002, 30)
    assert seen[-1][0] > 1_000
    assert seen[-1][1] < 2 * 140


def test_limits_hold() -> None:
    sizer = EpochSizer(1_000, min_records=10, max_records=5_000)
    assert max(records for records, _ in run(sizer, lambda _, n: 1, 10)) == 5_000
    sizer = EpochSizer(1_000, min_records=10, max_records=5_000)
    assert run(sizer, lambda _, n: 1e6 * n, 10)[-1][0] == 10


@pytest.mark.parametrize("arguments", [(0, 1, 2), (10, 0, 2), (10, 3, 2)])
def test_senseless_settings_are_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigurationError, match=r"headwater\.epoch"):
        EpochSizer(*arguments)
