"""The proof must be able to fail: each way of cheating shows in its line."""

from __future__ import annotations

import pytest

from headwater.demo.card_watch import Book, alerts_of, parse_book
from headwater.demo.payments import CARDS, WINDOW_MS, payment
from headwater.demo.proof import judge, plain_loop

COUNT = 2 * CARDS + 1_000


@pytest.fixture(scope="module")
def honest() -> tuple[list[Book], list[str]]:
    """Books and alerts as a job that loses nothing writes them."""
    books: dict[int, Book] = {}
    for index in range(COUNT):
        card, round_number, cents, _ = payment(index)
        before = books.get(card, Book(card, 0, 0, 0))
        books[card] = Book(card, before.payments + 1, before.cents + cents, before.seen | 1 << round_number)
    return list(books.values()), sorted(plain_loop(COUNT)[1].elements())


def test_an_honest_job(honest: tuple[list[Book], list[str]]) -> None:
    verdict = judge(COUNT, *honest)
    assert verdict.holds
    assert verdict.alerts > 0
    assert verdict.line(1) == "81,000 in, 81,000 counted, 1 slot killed, 0 lost, 0 twice"


def test_a_lost_payment(honest: tuple[list[Book], list[str]]) -> None:
    (first, *others), alerts = honest
    verdict = judge(COUNT, [first._replace(payments=first.payments - 1, seen=first.seen & ~1), *others], alerts)
    assert not verdict.holds
    assert verdict.line(1) == "81,000 in, 80,999 counted, 1 slot killed, 1 lost, 0 twice"


def test_a_payment_counted_twice(honest: tuple[list[Book], list[str]]) -> None:
    (first, *others), alerts = honest
    verdict = judge(COUNT, [first._replace(payments=first.payments + 1), *others], alerts)
    assert not verdict.holds
    assert verdict.line(2) == "81,000 in, 81,001 counted, 2 slots killed, 0 lost, 1 twice"


def test_one_lost_and_another_twice_do_not_hide_each_other(honest: tuple[list[Book], list[str]]) -> None:
    (first, second, *others), alerts = honest
    cheated = [
        first._replace(payments=first.payments - 1, seen=first.seen & ~1),
        second._replace(payments=second.payments + 1),
    ]
    verdict = judge(COUNT, [*cheated, *others], alerts)
    assert (verdict.counted, verdict.lost, verdict.twice) == (COUNT, 1, 1)
    assert not verdict.holds


def test_a_book_written_twice(honest: tuple[list[Book], list[str]]) -> None:
    books, alerts = honest
    verdict = judge(COUNT, [*books, books[0]], alerts)
    assert verdict.twice == books[0].payments
    assert not verdict.holds


def test_a_card_without_book(honest: tuple[list[Book], list[str]]) -> None:
    books, alerts = honest
    verdict = judge(COUNT, books[1:], alerts)
    assert verdict.lost == books[0].payments
    assert not verdict.holds


def test_alerts_that_differ(honest: tuple[list[Book], list[str]]) -> None:
    books, alerts = honest
    assert judge(COUNT, books, alerts[1:]).wrong_alerts == 1
    assert judge(COUNT, books, [*alerts, alerts[0]]).wrong_alerts == 1
    assert not judge(COUNT, books, alerts[1:]).holds


def test_a_book_survives_its_line() -> None:
    book = Book(17, 3, 4_200, 0b1011)
    assert parse_book(book.line()) == book


def test_a_pair_is_an_alert_in_whatever_order_it_comes() -> None:
    small, large = (1_000, 50), (1_000 + WINDOW_MS, 60_000)
    assert alerts_of(7, large, (small,)) == alerts_of(7, small, (large,)) != []


@pytest.mark.parametrize("large_ms", [999, 1_000, 1_001 + WINDOW_MS])
def test_a_large_payment_before_or_long_after_is_none(large_ms: int) -> None:
    assert alerts_of(7, (large_ms, 60_000), ((1_000, 50),)) == []
