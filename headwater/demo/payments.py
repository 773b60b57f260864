"""The payments of the demo, as arithmetic: payment number `i` is the same in every run, on every machine.

In each round of `CARDS` payments every card pays exactly once, in an order that differs from round to round. So
payment `i` is payment number `i // CARDS` of its card, and one bit per payment of a card is enough to see which of them
were counted.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

CARDS = 40_000
FIRST_PAYMENT_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
INTERVAL_MS = 20
"""Event time between two payments."""

SMALL_BELOW_CENTS = 100
LARGE_FROM_CENTS = 50_000
WINDOW_MS = 120_000
"""A thief tries a stolen card with a small payment; a large one follows within this time."""

_MASK = (1 << 64) - 1


class Payment(NamedTuple):
    """One card payment. `round` counts the payments of this card from 0."""

    card: int
    round: int
    cents: int
    time_ms: int


def mix(number: int) -> int:
    """64 well mixed bits of `number` (splitmix64)."""
    bits = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31


@cache
def step_of_round(round_number: int) -> int:
    """By how much the card number grows from one payment to the next; shares no factor with CARDS (2^6 x 5^4)."""
    return mix(round_number) % (CARDS // 10) * 10 + 3


def payment(index: int) -> Payment:
    round_number, place = divmod(index, CARDS)
    card = place * step_of_round(round_number) % CARDS
    return Payment(card, round_number, cents_of(index), FIRST_PAYMENT_MS + index * INTERVAL_MS)


def cents_of(index: int) -> int:
    """A tenth of the payments is small, a tenth large, the rest in between."""
    bits = mix(index)
    kind, spread = bits % 10, bits >> 32
    if kind == 0:
        return 1 + spread % (SMALL_BELOW_CENTS - 1)
    if kind == 1:
        return LARGE_FROM_CENTS + spread % 100_000
    return SMALL_BELOW_CENTS + spread % (LARGE_FROM_CENTS - SMALL_BELOW_CENTS)


def end_of_day_ms(count: int) -> int:
    """A moment after the last of `count` payments, when the books are closed."""
    return FIRST_PAYMENT_MS + count * INTERVAL_MS + WINDOW_MS + 1
