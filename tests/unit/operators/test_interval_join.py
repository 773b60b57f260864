"""Interval joins: against two nested loops, over restores and failed epochs, with their memory given back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import PlanError, TimestampError, UserCodeError
from headwater.common.ids import MIN_WATERMARK
from headwater.common.output_tag import OutputTag
from headwater.operators.functions.join import ProcessJoinFunction
from headwater.operators.join import interval_buffer
from headwater.operators.join.interval_join import IntervalJoinOperator, IntervalJoinSettings
from headwater.testing import TwoInputOperatorHarness

KEYS = (lambda value: value[0], lambda value: value[0])


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield left, right, ctx.get_left_timestamp(), ctx.get_right_timestamp()


def joined(lower: int, upper: int, function: Any = None, **options: Any) -> TwoInputOperatorHarness:
    join = IntervalJoinSettings(lower, upper, **options)
    return TwoInputOperatorHarness(IntervalJoinOperator(*KEYS, join, function or Pair()), KEYS, name="orders")


def pairs(harness: TwoInputOperatorHarness) -> list[Any]:
    """(left, right) without keys and timestamps."""
    return [(left and left[1], right and right[1]) for left, right, _, _ in harness.get_output()]


def test_bounds_are_inclusive_and_results_have_the_later_timestamp() -> None:
    harness = joined(-2, 3)
    harness.process_element1(("k", "L10"), 10)
    harness.process_elements2([("k", f"R{time}") for time in (7, 8, 13, 14)], [7, 8, 13, 14])
    harness.process_element2(("other key", "R10"), 10)
    assert pairs(harness) == [("L10", "R8"), ("L10", "R13")]
    harness.process_element1(("k", "L11"), 11)
    assert pairs(harness)[2:] == [("L11", "R13"), ("L11", "R14")]
    assert [timestamp for _, timestamp in harness.get_output_with_timestamps()] == [10, 13, 13, 14]


def test_the_context_tells_both_timestamps() -> None:
    def with_times(left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        return [(ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp())]

    harness = joined(-5, 5, with_times)
    harness.process_element2(("k", 1), 4)
    harness.process_element1(("k", 1), 2)
    harness.process_element2(("k", 1), 6)
    assert harness.get_output() == [(2, 4, 4), (2, 6, 6)]


def test_late_records_are_dropped_or_go_to_their_side_output() -> None:
    harness = joined(0, 10, left_late_tag="late left")
    harness.process_watermark(100)
    harness.process_elements1([("k", "late"), ("k", "at the watermark")], [99, 100])
    harness.process_elements2([("k", "late"), ("k", "in time")], [99, 105])
    assert pairs(harness) == [("at the watermark", "in time")]
    assert harness.get_side_output(OutputTag("late left")) == [("k", "late")]


@pytest.mark.parametrize(("lower", "upper"), [(-10, 20), (0, 0), (5, 80), (-80, -5), (-1000, 1000)])
@pytest.mark.parametrize("outer", [False, True])
def test_memory_is_given_back_when_the_watermark_has_passed_the_interval(lower: int, upper: int, outer: bool) -> None:
    harness = joined(lower, upper, left_outer=outer, right_outer=outer)
    times = list(range(0, 300, 7))
    harness.process_elements1([("k", time) for time in times], times)
    harness.process_elements2([("k", time) for time in times], times)
    # An inner join cleans up in steps of a quarter of the interval.
    harness.process_watermark(300 + max(upper, -lower, 0) + 1 + (upper - lower) // 4)
    assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)


def test_a_record_is_kept_until_its_last_partner_can_have_come() -> None:
    harness = joined(-5, 10)
    harness.process_element1(("k", "L"), 100)
    harness.process_element2(("k", "R"), 100)
    harness.process_watermark(110)
    harness.process_element2(("k", "last"), 110)
    harness.process_watermark(200)
    assert pairs(harness) == [("L", "R"), ("L", "last")]


def test_outer_joins_hand_over_who_stayed_alone_when_that_is_certain() -> None:
    harness = joined(-5, 10, left_outer=True, right_outer=True)
    harness.process_elements1([("k", "L1"), ("k", "L1 too"), ("k", "L50")], [1, 1, 50])
    harness.process_elements2([("k", "R20"), ("k", "R55")], [20, 55])
    assert pairs(harness) == [("L50", "R55")]
    harness.process_watermark(11)
    assert pairs(harness) == [("L50", "R55")]
    harness.process_watermark(12)
    assert pairs(harness)[1:] == [("L1", None), ("L1 too", None)]
    harness.process_watermark(1000)
    assert pairs(harness)[3:] == [(None, "R20")]
    stamped = [(output[2:], timestamp) for output, timestamp in harness.get_output_with_timestamps()]
    assert stamped == [((50, 55), 55), ((1, None), 12), ((1, None), 12), ((None, 20), 26)]


def test_left_outer_says_nothing_about_the_right_side() -> None:
    harness = joined(0, 10, left_outer=True)
    harness.process_element1(("a", "L"), 0)
    harness.process_element2(("b", "R"), 0)
    harness.end_input()
    assert pairs(harness) == [("L", None)]


def test_records_without_a_timestamp_are_refused() -> None:
    harness = joined(0, 10)
    with pytest.raises(TimestampError, match=r"operator 'orders' joins by event time.*\('k', 1\) has no timestamp"):
        harness.process_element1(("k", 1))
    with pytest.raises(TimestampError, match=r"\('k', 2\).*assign_timestamps_and_watermarks"):
        harness.process_elements2([("k", 1), ("k", 2)], [5, None])


def test_an_error_names_the_record() -> None:
    def fails(left: Any, right: Any, ctx: Any) -> Any:
        raise ValueError("no such pair")

    harness = joined(0, 10, fails, right_outer=True)
    harness.process_element2(("k", "R"), 5)
    with pytest.raises(UserCodeError, match=r"no such pair(.|\n)*record: \('k', 'L'\)"):
        harness.process_element1(("k", "L"), 0)
    harness.fail_epoch()
    harness.process_element2(("k", "alone"), 5)
    with pytest.raises(UserCodeError, match=r"record: \('k', 'alone'\)"):
        harness.process_watermark(100)


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(
        PlanError, match=r"lower bound, 5 ms, is above the upper bound, -5 ms.*swap them, or make an exclusive"
    ):
        IntervalJoinSettings(5, -5)


def test_a_long_buffer_is_searched_in_order_and_its_index_follows_the_state() -> None:
    harness = joined(-1000, 1000)
    harness.process_elements1([("k", time) for time in range(40, 0, -1)], list(range(40, 0, -1)))
    harness.process_element2(("k", "R"), 1)
    assert pairs(harness) == [(time, "R") for time in range(1, 41)]
    harness.snapshot()
    harness.process_element1(("k", "lost"), 20)
    harness.process_element1(("k", "lost"), 45)
    harness.fail_epoch()
    harness.clear_output()
    harness.process_element2(("k", "again"), 2)
    assert pairs(harness) == [(time, "again") for time in range(1, 41)]
    sides = harness.operator._sides  # type: ignore[attr-defined]
    assert len(sides[0]._sorted["k"]) == 40
    harness.process_watermark(5000)
    assert [side._sorted for side in sides] == [{}, {}]


@pytest.mark.parametrize("outer", [False, True])
def test_an_epoch_that_was_finished_and_then_undone_leaves_no_trace(outer: bool) -> None:
    """State is rolled back without a word to the operator, when another partition failed after this one was done."""
    harness = joined(0, 100, left_outer=outer)
    harness.process_elements1([("k", time) for time in range(30)], list(range(30)))
    harness.process_element2(("k", "R"), 10)
    harness.snapshot()
    harness.process_elements1([("k", "lost"), ("new key", "lost")], [40, 40])
    harness.process_watermark(105)
    for backend in harness._backends():
        backend.rollback_epoch()
        backend.begin_epoch()
    harness.context.watermark = MIN_WATERMARK
    harness.clear_output()
    harness.process_element2(("k", "again"), 70)
    assert pairs(harness) == [(time, "again") for time in range(30)]
    harness.end_input()
    assert len(pairs(harness)) == 30
    assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)


# --- against a model

RECORD = st.tuples(st.just("record"), st.integers(0, 1), st.sampled_from("aab"), st.integers(0, 60))
WATERMARK = st.tuples(st.just("watermark"), st.integers(0, 70))
BOUNDARY = st.sampled_from([("snapshot",), ("fail",), ("restore",)])
# Mostly records: a join of two that never meet proves nothing.
EVENT = st.integers(0, 13).flatmap(lambda kind: WATERMARK if kind == 12 else BOUNDARY if kind == 13 else RECORD)
EVENTS = st.lists(EVENT, min_size=10, max_size=60)


def nested_loops(records: list[Any], lower: int, upper: int, left_outer: bool, right_outer: bool) -> Counter[Any]:
    """What the join of all records that were not late must give."""
    lefts = [(value, time) for side, value, time in records if side == 0]
    rights = [(value, time) for side, value, time in records if side == 1]
    expected: Counter[Any] = Counter()
    matched = set()
    for left, left_time in lefts:
        for right, right_time in rights:
            if left[0] == right[0] and left_time + lower <= right_time <= left_time + upper:
                expected[left, right, left_time, right_time] += 1
                matched |= {left, right}
    if left_outer:
        expected.update((left, None, time, None) for left, time in lefts if left not in matched)
    if right_outer:
        expected.update((None, right, None, time) for right, time in rights if right not in matched)
    return expected


@pytest.mark.parametrize("scan_limit", [0, 3, 24])
@settings(max_examples=120, deadline=None)
@given(events=EVENTS, bounds=st.tuples(st.integers(-20, 20), st.integers(-20, 20)), outer=st.integers(0, 3))
def test_gives_what_nested_loops_give(scan_limit: int, events: list[Any], bounds: Any, outer: int) -> None:
    lower, upper = sorted(bounds)
    options = {"left_outer": bool(outer & 1), "right_outer": bool(outer & 2)}
    before, interval_buffer.SCAN_LIMIT = interval_buffer.SCAN_LIMIT, scan_limit
    try:
        harness = joined(lower, upper, **options)
        found: Counter[Any] = Counter()
        committed: list[Any] = []  # records that count, up to the last snapshot
        pending: list[Any] = []
        watermark = committed_watermark = MIN_WATERMARK
        for number, event in enumerate(events):
            if event[0] == "record":
                _, side, key, time = event
                value = (key, number)
                (harness.process_element2 if side else harness.process_element1)(value, time)
                if time >= watermark:
                    pending.append((side, value, time))
            elif event[0] == "watermark" and event[1] >= watermark:
                watermark = event[1]
                harness.process_watermark(watermark)
            elif event[0] == "fail":
                harness.fail_epoch()
                pending, watermark = [], committed_watermark
            elif event[0] in ("snapshot", "restore"):
                snapshot = harness.snapshot()
                committed, pending, committed_watermark = committed + pending, [], watermark
                found.update(harness.get_output())
                harness.clear_output()
                if event[0] == "restore":
                    harness = joined(lower, upper, **options).restore(snapshot)
        harness.end_input()
        found.update(harness.get_output())
        assert found == nested_loops(committed + pending, lower, upper, **options)
        assert (harness.num_keyed_state_entries(), harness.num_event_time_timers()) == (0, 0)
    finally:
        interval_buffer.SCAN_LIMIT = before
