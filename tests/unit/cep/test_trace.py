"""`CEP.trace`: which partial matches lived, advanced or died, event by event."""

from __future__ import annotations

import random
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern
from headwater.cep.trace import ADVANCES, BEGINS, DIES, ENDS, MATCHES, OUT_OF_TIME, SKIPPED, PatternTrace, TraceRow
from headwater.common.errors import PatternError, TypeMismatchError
from headwater.operators.cep.steps import PatternSteps
from tests.unit.operators.cep.generated import patterns, streams
from tests.unit.operators.cep.oracle import Event
from tests.unit.operators.cep.test_matcher_oracle import Numbered, found_by_matcher


def small(amount: Any) -> bool:
    return bool(amount < 1)


def large(amount: Any) -> bool:
    return bool(amount > 500)


def fraud() -> Pattern:
    skip = AfterMatchSkipStrategy.skip_past_last_event()
    return Pattern.begin("small", skip).where(small).followed_by("large").where(large).within(600)


def is_letter(letter: str) -> Any:
    def test(event: Any) -> bool:
        return bool(event == letter)

    test.__name__ = f"is_{letter}"
    return test


def test_the_table() -> None:
    traced = CEP.trace(fraud(), [0.5, 20, 0.9, 700, 0.3, 0.2, 900], [0, 100, 200, 300, 400, 900, 1100])
    assert str(traced).splitlines() == [
        "time  event        partial match     what         why",
        "----  -----------  ----------------  -----------  -------------------",
        "0     0: 0.5       small 0           begins",
        "100   1: 20        small 0           lives        not 'large' (large)",
        "200   2: 0.9       small 0           lives        not 'large' (large)",
        "                   small 2           begins",
        "300   3: 700       small 0, large 3  matches",
        "                   small 2           skipped",
        "400   4: 0.3       small 4           begins",
        "900   5: 0.2       small 4           lives        not 'large' (large)",
        "                   small 5           begins",
        "1000  time passes  small 4           out of time",
        "1100  6: 900       small 5, large 6  matches",
    ]
    assert traced.matches == ({"small": [0.5], "large": [700]}, {"small": [0.2], "large": [900]})
    assert traced.timed_out == ({"small": [0.3]},)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ("ac", "not 'b' (is_b), which must come next"),
        ("abx", "fits what must not come (is_x)"),
        ("abbbs", "ends the loop 'b' (is_s); not 'c' (is_c)"),
    ],
)
def test_why_a_partial_match_dies(events: str, why: str) -> None:
    pattern = Pattern.begin("a").where(is_letter("a")).next("b").where(is_letter("b")).one_or_more()
    pattern = pattern.until(is_letter("s")).not_followed_by("x").where(is_letter("x"))
    pattern = pattern.next("c").where(is_letter("c"))
    deaths = [row.why for row in CEP.trace(pattern, events).rows if row.outcome == DIES]
    assert deaths and all(why in said or said == why for said in deaths)


def test_why_nothing_begins() -> None:
    pattern = Pattern.begin("a").where(is_letter("a")).followed_by("b").where(is_letter("b"))
    assert [(row.outcome, row.why) for row in CEP.trace(pattern, "x").rows] == [("nothing", "not 'a' (is_a)")]


def test_events_are_taken_in_the_order_of_time() -> None:
    pattern = Pattern.begin("first").where(lambda event: event[0] == "a").next("second")
    traced = CEP.trace(pattern, [("b", 20), ("a", 10)], lambda event: event[1])
    assert traced.matches == ({"first": [("a", 10)], "second": [("b", 20)]},)


def test_bad_input() -> None:
    with pytest.raises(TypeMismatchError, match="one for each of 2 events, found 1 of them"):
        CEP.trace(fraud(), [1, 2], [5])
    with pytest.raises(TypeMismatchError, match=r"found 0\.5 among them"):
        CEP.trace(fraud(), [1, 2], [1, 0.5])  # type: ignore[list-item]
    with pytest.raises(TypeMismatchError, match="expects a Pattern"):
        CEP.trace("fraud", [1])  # type: ignore[arg-type]
    with pytest.raises(PatternError, match=r"step 'small' raised TypeError.* for event 0: 'x'"):
        CEP.trace(fraud(), ["x"])


class _Given(Pattern):
    """A pattern that has its steps already."""

    def __init__(self, given: PatternSteps) -> None:
        self._given = given

    def steps(self) -> PatternSteps:
        return self._given


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(patterns(), streams())
def test_a_trace_finds_what_the_matcher_finds_and_every_partial_match_ends_once(
    pattern: PatternSteps, events: list[Event]
) -> None:
    numbered = []
    for index, event in enumerate(events):
        each = Numbered(*event)
        each.index = index
        numbered.append(each)
    traced = CEP.trace(_Given(pattern), numbered, [event.timestamp for event in events])
    matches, timed_out = found_by_matcher(pattern, events)
    assert (len(traced.matches), len(traced.timed_out)) == (matches.total(), timed_out.total())
    for row in traced.rows:
        if row.before:
            assert any(other.taken == row.before for other in before(traced, row)), "it comes from nowhere"
        if row.outcome in (BEGINS, ADVANCES):
            assert row.taken[-1][1] == row.event
    check_picture(traced.to_svg())


def before(traced: PatternTrace, row: TraceRow) -> list[TraceRow]:
    return [other for other in traced.rows[: traced.rows.index(row)] if other.outcome not in ENDS]


def check_picture(svg: str) -> None:
    """It is XML, and nothing lies outside."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for element in root.iter():
        for name, limit in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("cy", height)):
            assert 0 <= float(element.attrib.get(name, 0)) <= limit


def test_the_picture_has_a_line_for_each_partial_match_and_no_event_breaks_it() -> None:
    svg = CEP.trace(fraud(), [0.5, 20, 0.9, 700]).to_svg()
    assert svg.count("<circle") == 3 and "✓ matches" in svg and "✗ skipped" in svg
    odd = Pattern.begin("<&").followed_by_any("b")
    check_picture(CEP.trace(odd, ["<script>", "&amp;", object(), "x" * 500]).to_svg())
    assert "<script>" not in CEP.trace(odd, ["<script>"]).to_svg()


def test_many_events_do_not_break_it() -> None:
    rng = random.Random(1)
    traced = CEP.trace(fraud(), [rng.choice([0.5, 20, 900]) for _ in range(300)], range(0, 30_000, 100))
    outcomes = {row.outcome for row in traced.rows}
    assert {MATCHES, SKIPPED, OUT_OF_TIME} <= outcomes
    check_picture(traced.to_svg())
