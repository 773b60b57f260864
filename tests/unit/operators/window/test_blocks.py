"""Blocks of slices: fewer merges, and never a stale one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import UserCodeError
from headwater.operators.functions.plain import AggregateFunction
from headwater.operators.window.settings import Aggregated, WindowSettings
from headwater.operators.window.sliced import SlicedWindowOperator
from headwater.testing import OneInputOperatorHarness
from headwater.time.assigners_aligned import SlidingEventTimeWindows
from headwater.time.triggers import EventTimeTrigger
from tests.unit.operators.window.test_properties import operator_maker, run
from tests.unit.operators.window.window_model import AlignedModel, sliding

times = st.integers(0, 25)
dense_steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("records"),
            st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9), times), min_size=4, max_size=12),
        ),
        st.tuples(st.just("watermark"), st.integers(8, 30)),
        st.tuples(st.sampled_from(["snapshot", "restore", "fail"])),
    ),
    max_size=20,
)


@pytest.mark.parametrize("contents", ["aggregated", "aggregated in place"])
@given(script=dense_steps, size=st.integers(8, 20), offset=st.integers(0, 2), lateness=st.sampled_from([0, 4]))
@settings(max_examples=60, deadline=None)
def test_windows_of_many_slices(contents: str, script: Any, size: int, offset: int, lateness: int) -> None:
    # A block is not a multiple of the offset, and its slices get records after the first window that had them fired.
    assigner = SlidingEventTimeWindows(2 * size, 2, offset % 2)
    make = operator_maker(SlicedWindowOperator, assigner, contents, lateness)
    run(make, script, AlignedModel(sliding(2 * size, 2, offset % 2), lateness), ordered=False)


class CountedSum(AggregateFunction):
    """A sum that counts its merges."""

    def __init__(self) -> None:
        self.merges = 0

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: tuple[str, int], accumulator: int) -> int:
        return accumulator + value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        self.merges += 1
        return acc_a + acc_b


def harness_of(function: AggregateFunction, size: int) -> OneInputOperatorHarness:
    window_settings = WindowSettings(
        assigner=SlidingEventTimeWindows(size, 1), trigger=EventTimeTrigger(), contents=Aggregated(function)
    )
    return OneInputOperatorHarness(SlicedWindowOperator(lambda value: value[0], window_settings))


def test_a_window_of_n_slices_takes_about_two_roots_of_n_merges() -> None:
    function = CountedSum()
    harness = harness_of(function, 100)
    for minute in range(100):
        harness.process_element(("a", 1), minute)
    harness.process_watermark(98)
    before = function.merges
    for minute in range(100, 200):
        harness.process_element(("a", 1), minute)
        harness.process_watermark(minute - 1)
    assert harness.get_output()[-100:] == [100] * 100
    assert 100 * 9 < function.merges - before < 100 * 20


def test_a_late_record_of_a_block_is_in_the_windows_that_are_still_to_come() -> None:
    harness = harness_of(CountedSum(), 16)
    for minute in range(16):
        harness.process_element(("a", 1), minute)
    harness.process_watermark(15)
    assert harness.get_output()[-1] == 16
    harness.process_element(("a", 100), 9)
    harness.process_watermark(16)
    assert harness.get_output()[-1] == 115


def test_a_block_that_was_made_in_an_epoch_goes_when_the_epoch_is_undone() -> None:
    harness = harness_of(CountedSum(), 16)
    for minute in range(16):
        harness.process_element(("a", 1), minute)
    harness.snapshot()
    harness.process_element(("a", 100), 9)
    harness.process_watermark(15)
    assert harness.get_output()[-1] == 116
    harness.fail_epoch()
    harness.process_watermark(15)
    assert harness.get_output()[-1] == 16


def test_a_merge_that_raises_names_the_window_and_the_key() -> None:
    class Broken(CountedSum):
        def merge(self, acc_a: int, acc_b: int) -> int:
            raise ValueError(f"cannot add {acc_a} and {acc_b}")

    harness = harness_of(Broken(), 16)
    for minute in range(16):
        harness.process_element(("some key", 1), minute)
    with pytest.raises(UserCodeError, match="some key"):
        harness.process_watermark(15)
