"""Watermark logic, timestamp checks and idleness by themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.watermark_strategy import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from headwater.time.idleness import IdlenessTimer
from headwater.time.timestamps import are_plain, latest_usable, problem_with, to_timestamp
from headwater.time.watermarks import BoundedOutOfOrderness, GeneratedWatermarks, NoWatermarks, logic_of


class Follow(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_each_strategy_has_its_logic() -> None:
    assert isinstance(logic_of(WatermarkStrategy.no_watermarks()), NoWatermarks)
    assert isinstance(logic_of(WatermarkStrategy.for_generator(Follow)), GeneratedWatermarks)
    for strategy, expected in (
        (WatermarkStrategy.for_monotonous_timestamps(), 99),
        (WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=30)), 69),
    ):
        logic = logic_of(strategy)
        assert logic.periodic() == MIN_WATERMARK
        logic.on_batch(100)
        assert logic.periodic() == expected


def test_every_split_gets_a_generator_of_its_own() -> None:
    strategy = WatermarkStrategy.for_generator(Follow)
    one, other = logic_of(strategy), logic_of(strategy)
    assert isinstance(one, GeneratedWatermarks)
    one.on_event("a", 10)
    assert other.periodic() == MIN_WATERMARK


@given(st.lists(st.integers(0, 1_000), min_size=1), st.integers(0, 100))
def test_bounded_watermarks_never_make_a_record_late_that_keeps_the_bound(stamps: list[int], delay: int) -> None:
    logic = BoundedOutOfOrderness(delay)
    for index, stamp in enumerate(stamps):
        watermark = logic.periodic()
        if stamp >= max(stamps[:index], default=stamp) - delay:
            assert stamp > watermark
        logic.on_batch(stamp)
        assert logic.periodic() >= watermark


@given(st.lists(st.integers(0, 1_000)), st.lists(st.integers(0, 1_000)))
def test_a_restored_logic_goes_on_like_the_old_one(before: list[int], after: list[int]) -> None:
    for make in (lambda: BoundedOutOfOrderness(7), lambda: GeneratedWatermarks(Follow())):
        old = make()
        for stamp in before:
            old.on_event("record", stamp) if isinstance(old, GeneratedWatermarks) else old.on_batch(stamp)
        new = make()
        new.restore(cloudpickle.loads(cloudpickle.dumps(old.state())))
        for stamp in after:
            for logic in (old, new):
                logic.on_event("record", stamp) if isinstance(logic, GeneratedWatermarks) else logic.on_batch(stamp)
            assert old.periodic() == new.periodic()


def test_a_generators_watermark_does_not_go_back() -> None:
    logic = GeneratedWatermarks(Follow())
    assert [logic.on_event("record", stamp) for stamp in (5, 3, 8)] == [5, 5, 8]


def test_no_clock_means_no_limit_ahead() -> None:
    assert latest_usable(0, 1_000) == MAX_WATERMARK - 1
    assert latest_usable(5_000, 1_000) == 6_000


anything = st.one_of(
    st.none(), st.booleans(), st.integers(-100, 10_000), st.floats(), st.text(max_size=3), st.just(MAX_WATERMARK)
)


@given(st.lists(anything, max_size=5))
def test_the_fast_check_accepts_only_what_the_slow_one_accepts_unchanged(found: list[Any]) -> None:
    latest = 5_000
    converted = [to_timestamp(value, latest) for value in found]
    if are_plain(found, latest):
        assert converted == found
    for value, stamp in zip(found, converted, strict=True):
        if stamp is None:
            assert problem_with(value, latest, 1_000)
        else:
            assert type(stamp) is int
            assert stamp == value
            assert 0 <= stamp <= latest
            with pytest.raises(AssertionError):
                problem_with(value, latest, 1_000)


def test_idleness_counts_from_the_last_records() -> None:
    timer = IdlenessTimer(100)
    assert not timer.is_idle(1_000)
    assert timer.is_idle(1_100)
    timer.on_records(1_150)
    assert not timer.is_idle(1_249)
    restored = IdlenessTimer(100)
    restored.restore(timer.state())
    assert restored.is_idle(1_250)
