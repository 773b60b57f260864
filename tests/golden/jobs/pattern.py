"""A pattern with a loop, a step that must not happen, and a time limit: small, growing, then large payments."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern
from headwater.common import Duration, WatermarkStrategy
from headwater.common.output_tag import OutputTag
from headwater.datastream import DataStream, StreamExecutionEnvironment
from tests.golden.jobs.golden_job import GoldenJob

WITHIN_MS = 90_000
OUT_OF_TIME = OutputTag("out of time")

_random = random.Random(23)
PAYMENTS = [
    (_random.randrange(30), _random.randrange(100), number * 1_000 + _random.randrange(3_000))
    for number in range(1_500)
]
"""(card, amount, time_ms), out of order by less than three seconds."""


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(3))
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda payment, _: payment[2])
    )
    pattern = (
        Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda payment: payment[1] < 20)
        .followed_by("more")
        .where(lambda payment: 20 <= payment[1] < 60)
        .times(2)
        .not_followed_by("refund")
        .where(lambda payment: 60 <= payment[1] < 70)
        .followed_by("large")
        .where(lambda payment: payment[1] >= 80)
        .within(Duration.of_millis(WITHIN_MS))
    )
    found = CEP.pattern(payments.key_by(lambda payment: payment[0]), pattern).select(
        flat, timed_out_tag=OUT_OF_TIME, timeout_function=lambda match, at: ("out of time", at, *flat(match))
    )
    return found.union(found.get_side_output(OUT_OF_TIME))


def flat(match: dict[str, list[Any]]) -> tuple[Any, ...]:
    return tuple(payment for payments in match.values() for payment in payments)


def expected() -> Counter[Any]:
    """Card by card, with a list of attempts: each small payment begins one."""
    cards = defaultdict(list)
    for payment in sorted(PAYMENTS, key=lambda payment: payment[2]):
        cards[payment[0]].append(payment)
    result: Counter[Any] = Counter()
    for payments in cards.values():
        result.update(_of_one_card(payments))
    return result


def _of_one_card(payments: list[tuple[int, int, int]]) -> list[Any]:
    found: list[Any] = []
    attempts: list[list[tuple[int, int, int]]] = []
    waiting: list[list[tuple[int, int, int]]] = []

    def hand_out() -> None:
        """An attempt that is complete waits for those that began before it; the first ends all that overlap."""
        while waiting and not any(attempt[0][2] < waiting[0][0][2] for attempt in attempts):
            match = waiting.pop(0)
            found.append(tuple(match))
            attempts[:] = [attempt for attempt in attempts if attempt[0][2] > match[-1][2]]
            waiting[:] = [other for other in waiting if other[0][2] > match[-1][2]]

    def expire(now: int) -> None:
        for attempt in [each for each in attempts if each[0][2] + WITHIN_MS <= now]:
            attempts.remove(attempt)
            found.append(("out of time", attempt[0][2] + WITHIN_MS, *attempt))
            hand_out()

    for payment in payments:
        _, amount, time = payment
        expire(time)
        for attempt in list(attempts):
            if 20 <= amount < 60 and len(attempt) < 3:
                attempt.append(payment)
            elif 60 <= amount < 70 and len(attempt) in (2, 3):
                attempts.remove(attempt)
            elif amount >= 80 and len(attempt) == 3:
                attempts.remove(attempt)
                waiting.append([*attempt, payment])
        if amount < 20:
            attempts.append([payment])
        waiting.sort(key=lambda match: match[0][2])
        hand_out()
    expire(1 << 60)
    return found


PATTERN = GoldenJob("pattern", build, expected, epoch_records=150)
