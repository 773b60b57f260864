"""The demo's function gives what the plain loop gives: out of order, rolled back, restored."""

from __future__ import annotations

from headwater.demo.card_watch import BOOKS, CardWatch, parse_book
from headwater.demo.payments import CARDS, Payment, end_of_day_ms, payment
from headwater.demo.proof import Verdict, judge
from headwater.testing import OneInputOperatorHarness

COUNT = 2 * CARDS + 3_000
CHUNK = 2_000


def harness() -> OneInputOperatorHarness:
    return OneInputOperatorHarness(CardWatch(end_of_day_ms(COUNT)), key_selector=lambda each: each.card)


def feed(target: OneInputOperatorHarness, start: int, stop: int) -> None:
    """Two splits, side by side: first the even payments of a chunk, then the odd ones; then the watermark."""
    for first in range(start, stop, CHUNK):
        for parity in (0, 1):
            chunk = [payment(index) for index in range(first + parity, min(first + CHUNK, stop), 2)]
            target.process_elements(chunk, [each.time_ms for each in chunk])
        target.process_watermark(payment(min(first + CHUNK, stop) - 1).time_ms - 1)


def verdict_of(*harnesses: OneInputOperatorHarness) -> Verdict:
    books = [parse_book(line) for each in harnesses for line in each.get_side_output(BOOKS)]
    return judge(COUNT, books, [line for each in harnesses for line in each.get_output()])


def test_disorder_within_the_watermark_changes_nothing() -> None:
    watch = harness()
    feed(watch, 0, COUNT)
    watch.end_input()
    verdict = verdict_of(watch)
    assert verdict.holds
    assert verdict.alerts > 0


def test_a_failed_epoch_and_a_restore_change_nothing() -> None:
    half = COUNT // 2 // CHUNK * CHUNK
    first = harness()
    feed(first, 0, half)
    taken = first.snapshot()
    feed(first, half, half + 5 * CHUNK)
    first.fail_epoch()
    second = harness().restore(taken)
    feed(second, half, COUNT)
    second.end_input()
    assert verdict_of(first, second).holds


def test_what_is_remembered_of_a_card_is_forgotten_in_time() -> None:
    watch = harness()
    small, later = Payment(7, 0, 50, 1_000), Payment(7, 1, 200, 500_000)
    watch.process_element(small, small.time_ms)
    assert watch.num_event_time_timers() == 2  # the small payment, and the end of the day
    watch.process_element(later, later.time_ms)
    watch.process_watermark(later.time_ms)
    assert watch.num_event_time_timers() == 1
