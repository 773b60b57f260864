"""What the demo claims at its end, computed from what the job wrote and from the payments' arithmetic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from headwater.demo.card_watch import Book, alerts_of
from headwater.demo.payments import LARGE_FROM_CENTS, SMALL_BELOW_CENTS, payment


@dataclass(frozen=True)
class Verdict:
    """`lost`: payments in no book. `twice`: how many times a payment was counted again."""

    payments_in: int
    counted: int
    lost: int
    twice: int
    cents: int
    expected_cents: int
    alerts: int
    expected_alerts: int
    wrong_alerts: int
    """Alerts that a plain loop over the same payments does not raise, or raises and the job did not."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.twice or self.wrong_alerts) and self.cents == self.expected_cents

    def line(self, slots_killed: int) -> str:
        slots = "1 slot" if slots_killed == 1 else f"{slots_killed} slots"
        happened = f"{self.payments_in:,} in, {self.counted:,} counted, {slots} killed"
        return f"{happened}, {self.lost:,} lost, {self.twice:,} twice"


def judge(count: int, books: Iterable[Book], alert_lines: Iterable[str]) -> Verdict:
    """Compare the job's output with what `count` payments must give.

    A card whose book was written twice counts twice: the sink is part of what is proved.
    """
    counted = cents = 0
    seen: defaultdict[int, int] = defaultdict(int)  # {card: bits of its payments}
    for book in books:
        counted += book.payments
        cents += book.cents
        seen[book.card] |= book.seen
    different = sum(bits.bit_count() for bits in seen.values())

    expected_cents, expected_alerts = plain_loop(count)
    alerts = Counter(alert_lines)
    wrong = (alerts - expected_alerts) + (expected_alerts - alerts)
    return Verdict(
        payments_in=count,
        counted=counted,
        lost=count - different,
        twice=counted - different,
        cents=cents,
        expected_cents=expected_cents,
        alerts=alerts.total(),
        expected_alerts=expected_alerts.total(),
        wrong_alerts=wrong.total(),
    )


def plain_loop(count: int) -> tuple[int, Counter[str]]:
    """The sum of all payments and the alerts, by one loop without any engine: no state is ever forgotten."""
    cents = 0
    alerts: Counter[str] = Counter()
    recent: defaultdict[int, tuple[tuple[int, int], ...]] = defaultdict(tuple)  # {card: ((time_ms, cents), ...)}
    for index in range(count):
        card, _, amount, time_ms = payment(index)
        cents += amount
        if amount < SMALL_BELOW_CENTS or amount >= LARGE_FROM_CENTS:
            new = (time_ms, amount)
            alerts.update(alert.line() for alert in alerts_of(card, new, recent[card]))
            recent[card] += (new,)
    return cents, alerts
