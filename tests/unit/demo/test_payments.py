"""The arithmetic that the demo's proof stands on."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.demo.payments import CARDS, cents_of, end_of_day_ms, payment


@settings(max_examples=5)
@given(st.integers(0, 200))
def test_every_card_pays_once_per_round(round_number: int) -> None:
    start = round_number * CARDS
    some_round = [payment(index) for index in range(start, start + CARDS)]
    assert {each.card for each in some_round} == set(range(CARDS))
    assert {each.round for each in some_round} == {round_number}


def test_the_order_of_cards_differs_between_rounds() -> None:
    first, second = ([payment(start + place).card for place in range(100)] for start in (0, CARDS))
    assert first != second


@given(st.integers(1, 5 * CARDS))
def test_books_close_after_the_last_payment(count: int) -> None:
    assert payment(count - 1).time_ms < end_of_day_ms(count)


def test_amounts_are_positive_and_of_all_kinds() -> None:
    kinds = Counter(
        "small" if cents < 100 else "large" if cents >= 50_000 else "usual" for cents in map(cents_of, range(10_000))
    )
    assert min(map(cents_of, range(10_000))) > 0
    assert 800 < kinds["small"] < 1_200
    assert 800 < kinds["large"] < 1_200
