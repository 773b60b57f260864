"""MATCH_RECOGNIZE finds what brute force finds: generated patterns as SQL text, over epochs with rows in any order."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.common.errors import PatternError
from headwater.common.ids import MAX_WATERMARK
from headwater.operators.cep.conditions import Test as Asked
from headwater.operators.cep.skip import AfterMatchSkipStrategy
from headwater.operators.cep.steps import Contiguity, PatternSteps, Step
from tests.unit.operators.cep.generated import LETTERS, Letter, LetterAfter, streams
from tests.unit.operators.cep.oracle import FOREVER, Event, Oracle
from tests.unit.table.stream.match_driver import START, START_MS, run

QUANTIFIERS = {
    # text: (least, most, optional, greedy)
    "": (1, 1, False, False),
    "+": (1, None, False, True),
    "+?": (1, None, False, False),
    "*": (1, None, True, True),
    "*?": (1, None, True, False),
    "?": (1, 1, True, False),
    "{2}": (2, 2, False, False),
    "{2,}": (2, None, False, True),
    "{1,2}?": (1, 2, False, False),
    "{0,2}": (1, 2, True, True),
}


@dataclass(frozen=True)
class Query:
    """A query, and what its pattern means."""

    sql: str
    steps: PatternSteps


@st.composite
def queries(draw: Any) -> Query:
    steps: list[Step] = []
    pattern, defined = [], []
    count = draw(st.integers(1, 4))
    for number in range(count):
        name, letter = f"s{number}", draw(st.sampled_from(LETTERS))
        looks_back = number > 0 and draw(st.integers(0, 3)) == 0
        allowed = [text for text, found in QUANTIFIERS.items() if number < count - 1 or not found[3]]
        quantifier = draw(st.sampled_from(allowed if draw(st.booleans()) else [""]))
        least, most, optional, greedy = QUANTIFIERS[quantifier]
        condition = Asked(LetterAfter(letter), True) if looks_back else Asked(Letter(letter))
        made = Step(name, Contiguity.STRICT, condition, least=least, most=most, inner=Contiguity.STRICT)
        steps.append(replace(made, optional=optional, greedy=greedy))
        pattern.append(name + quantifier)
        bits = [bits for bits in range(8) if bits >> LETTERS.index(letter) & 1]
        text = f"{name} AS {name}.price IN ({', '.join(map(str, bits))})"
        defined.append(text + (" AND MOD(COUNT(s0.price), 2) = 1" if looks_back else ""))
    if all(step.optional for step in steps):
        steps[0], pattern[0] = replace(steps[0], optional=False, greedy=False, least=1, most=1), "s0"
    target = draw(st.sampled_from([step.name for step in steps]))
    skip, strategy = draw(
        st.sampled_from(
            [
                ("PAST LAST ROW", AfterMatchSkipStrategy.skip_past_last_event()),
                ("TO NEXT ROW", AfterMatchSkipStrategy.skip_to_next()),
                (f"TO FIRST {target}", AfterMatchSkipStrategy.skip_to_first(target).throw_exception_on_miss()),
                (f"TO LAST {target}", AfterMatchSkipStrategy.skip_to_last(target).throw_exception_on_miss()),
            ]
        )
    )
    within = draw(st.none() | st.integers(1, 9))
    counts = ", ".join(f"COUNT({step.name}.price) AS c{at}" for at, step in enumerate(steps))
    partition = draw(st.sampled_from(["", "PARTITION BY symbol "]))
    sql = f"""SELECT * FROM Ticker MATCH_RECOGNIZE ({partition}ORDER BY rowtime, tax
        MEASURES MATCH_ROWTIME() AS seen, FIRST(tax) AS began, {counts} AFTER MATCH SKIP {skip}
        PATTERN ({" ".join(pattern)}) {"" if within is None else f"WITHIN INTERVAL '{within}' SECOND"}
        DEFINE {", ".join(defined)})"""
    return Query(sql, PatternSteps(tuple(steps), strategy, None if within is None else within * 1000))


def by_brute_force(query: Query, events: list[Event]) -> Counter[Any]:
    matches, _ = Oracle(query.steps, [Event(event.letters, event.timestamp * 1000) for event in events]).results()
    found: Counter[Any] = Counter()
    for (seen_ms, _, _), taken in matches:
        if seen_ms < FOREVER:
            counts = Counter(name for name, _ in taken)
            began = min(index for _, index in taken)
            found[(seen_ms, began, *(counts[step.name] for step in query.steps.parts))] += 1  # type: ignore[union-attr]
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(), events=streams(9), data=st.data())
def test_as_brute_force(query: Query, events: list[Event], data: Any) -> None:
    prices = [sum(1 << LETTERS.index(letter) for letter in event.letters) for event in events]
    rows = [("X", event.timestamp, price, at) for at, (event, price) in enumerate(zip(events, prices, strict=True))]
    cuts = [at for at in range(1, len(rows)) if rows[at - 1][1] < rows[at][1]]
    chosen = sorted(data.draw(st.sets(st.sampled_from(cuts)))) if cuts else []
    epochs = [data.draw(st.permutations(rows[a:b])) for a, b in pairwise([0, *chosen, len(rows)])]
    watermarks = [*(START_MS + rows[cut - 1][1] * 1000 for cut in chosen), MAX_WATERMARK]
    try:
        expected = by_brute_force(query, events)
    except PatternError:
        with pytest.raises(PatternError, match="skip_to"):
            run(query.sql, epochs, watermarks)
        return
    found = [
        {name: value for name, value in row.items() if name != "symbol"} for row in run(query.sql, epochs, watermarks)
    ]
    assert Counter((since_start_ms(row.pop("seen")), *row.values()) for row in found) == expected


def since_start_ms(at: datetime.datetime) -> int:
    return (at - START) // datetime.timedelta(milliseconds=1)
