"""The keyed function of the demo: it keeps the books of each card, and raises alerts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from headwater.common.output_tag import OutputTag
from headwater.datastream import KeyedProcessFunction, RuntimeContext
from headwater.datastream.state import ValueStateDescriptor
from headwater.demo.payments import LARGE_FROM_CENTS, SMALL_BELOW_CENTS, WINDOW_MS, Payment

BOOKS = OutputTag("books")


class Alert(NamedTuple):
    """A small payment, and a large one with the same card soon after."""

    card: int
    small_ms: int
    large_ms: int
    cents: int

    def line(self) -> str:
        return f"{self.card},{self.small_ms},{self.large_ms},{self.cents}"


class Book(NamedTuple):
    """What was counted for one card. Bit r of `seen` is set if the card's payment number r was among it."""

    card: int
    payments: int
    cents: int
    seen: int

    def line(self) -> str:
        return f"{self.card},{self.payments},{self.cents},{self.seen:x}"


def parse_book(line: str) -> Book:
    card, payments, cents, seen = line.split(",")
    return Book(int(card), int(payments), int(cents), int(seen, 16))


class CardWatch(KeyedProcessFunction):
    """Emits the lines of alerts, and on `BOOKS` one line per card when event time reaches `closing_ms`.

    An alert is a pair of payments whatever the order they arrive in: each side is kept until the watermark says that no
    partner can come any more.
    """

    def __init__(self, closing_ms: int) -> None:
        self.closing_ms = closing_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.book = runtime_context.get_state(ValueStateDescriptor("book"))  # (payments, cents, seen)
        self.recent = runtime_context.get_state(ValueStateDescriptor("recent"))  # ((time_ms, cents), ...)

    def process_element(self, value: Payment, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        card, round_number, cents, time_ms = value
        book = self.book.value()
        if book is None:
            self.book.update((1, cents, 1 << round_number))
            ctx.timer_service().register_event_time_timer(self.closing_ms)
        else:
            self.book.update((book[0] + 1, book[1] + cents, book[2] | 1 << round_number))

        if SMALL_BELOW_CENTS <= cents < LARGE_FROM_CENTS:
            return ()
        recent = self.recent.value() or ()
        self.recent.update((*recent, (time_ms, cents)))
        ctx.timer_service().register_event_time_timer(_useful_until_ms(time_ms, cents))
        return (alert.line() for alert in alerts_of(card, (time_ms, cents), recent))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        if timestamp == self.closing_ms:
            payments, cents, seen = self.book.value() or (0, 0, 0)
            yield BOOKS, Book(ctx.get_current_key(), payments, cents, seen).line()
            return
        kept = tuple(each for each in self.recent.value() or () if _useful_until_ms(*each) > timestamp)
        if kept:
            self.recent.update(kept)
        else:
            self.recent.clear()


def alerts_of(card: int, new: tuple[int, int], recent: tuple[tuple[int, int], ...]) -> list[Alert]:
    """The alerts that `new` makes with payments that came before it; both are (time_ms, cents)."""
    if new[1] < SMALL_BELOW_CENTS:
        pairs = [(new, other) for other in recent if other[1] >= LARGE_FROM_CENTS]
    else:
        pairs = [(other, new) for other in recent if other[1] < SMALL_BELOW_CENTS]
    return [
        Alert(card, small_ms, large_ms, cents)
        for (small_ms, _), (large_ms, cents) in pairs
        if small_ms < large_ms <= small_ms + WINDOW_MS
    ]


def _useful_until_ms(time_ms: int, cents: int) -> int:
    """Until when a partner may come: a small payment waits for a large one, a large one only for late-comers."""
    return time_ms + WINDOW_MS if cents < SMALL_BELOW_CENTS else time_ms
