"""A pattern that cannot mean anything is refused when it is built, and the error says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern, WithinType
from headwater.common.errors import PatternError, TypeMismatchError
from headwater.datastream import StreamExecutionEnvironment

a, b = Pattern.begin, AfterMatchSkipStrategy


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: a("x").next("x").steps(), "two steps are named 'x'"),
        (lambda: a("x").next(a("y").next("x")).steps(), "two steps are named 'x'"),
        (lambda: a("x").not_followed_by("n").steps(), "has no within"),
        (lambda: a("x").not_followed_by("n").next("y").optional().steps(), "may be the last step"),
        (lambda: a("x").next(a("y").not_followed_by("n")).steps(), "may be the last step"),
        (lambda: a("x").within(10**18), "a thousand years"),
        (lambda: a("x").greedy(), "a fixed number of events"),
        (lambda: a("x").times(3).greedy(), "a fixed number of events"),
        (lambda: a("x").one_or_more().allow_combinations().greedy(), "contradicts its allow_combinations"),
        (lambda: a("x").one_or_more().greedy().allow_combinations(), "contradicts its greedy"),
        (lambda: a(a("x")).one_or_more().greedy(), "greedy() of a group"),
        (lambda: a("x").not_next("n").optional(), "must not happen"),
        (lambda: a("x").not_followed_by("n").one_or_more(), "must not happen"),
        (lambda: a("x").optional().optional(), "optional already"),
        (lambda: a("x").until(bool), "no loop"),
        (lambda: a("x").times(2).until(bool), "no loop"),
        (lambda: a("x").one_or_more().until(is_small).until(is_small), "already has an until"),
        (lambda: a("x").times(0), "found 0"),
        (lambda: a("x").times(-1), "found -1"),
        (lambda: a("x").times(True), "found True"),
        (lambda: a("x").times(3, 2), "must not be above"),
        (lambda: a("x").times_or_more(0), "found 0"),
        (lambda: a("x").one_or_more().times(2), "already says how often"),
        (lambda: a("x").consecutive(), "is no loop"),
        (lambda: a("x").one_or_more().consecutive().allow_combinations(), "'strict' already"),
        (lambda: a("x").where(3), "found 3"),
        (lambda: a("x").where(int), "use subtype"),
        (lambda: a("x").where(lambda event, ctx, more: True), "of the event and a context"),
        (lambda: a("x").subtype("no class"), "expects a class"),
        (lambda: a(a("x")).where(bool), "of a group"),
        (lambda: a("x").not_next(a("y")), "a group cannot be negative"),
        (lambda: a("x").next(a("y").within(5)).steps(), "call it on the whole pattern"),
        (lambda: a("x").next(a("y", b.skip_to_next())).steps(), "only the whole pattern can skip"),
        (lambda: a(a("x").optional()).one_or_more().steps(), "make the group optional instead"),
        (lambda: a("x", b.skip_to_first("z")).steps(), "its steps are x"),
        (lambda: a("x", b.skip_to_last("n")).not_next("n").steps(), "negative one"),
        (lambda: b.no_skip().throw_exception_on_miss(), "is for skip_to_first"),
        (lambda: b.skip_to_first(""), "the name of a step"),
        (lambda: a(""), "the name of a step"),
        (lambda: a("x", "past"), "AfterMatchSkipStrategy"),
        (lambda: a("x").within(0), "at least 1 ms"),
        (lambda: a("x").within("soon"), "expected a Duration"),
        (lambda: a("x").within(5, WithinType.PREVIOUS_AND_CURRENT), "before which there is no event"),
        (lambda: a("x").times(20_000).next("y").explain(), "more than 10000 positions"),
    ],
)
def test_a_pattern_without_a_meaning(build: Callable[[], Any], said: str) -> None:
    with pytest.raises(PatternError, match=said.replace("(", r"\(").replace(")", r"\)")):
        build()


def test_what_is_no_pattern_or_no_stream() -> None:
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(TypeMismatchError, match="expects a Pattern"):
        CEP.pattern(stream, "a b")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="expects a stream"):
        CEP.pattern([1], a("x"))  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="both timed_out_tag and timeout_function"):
        CEP.pattern(stream, a("x")).select(list, timeout_function=lambda match, at: at)
    with pytest.raises(PatternError, match="has no within"):
        CEP.pattern(stream, a("x").not_followed_by("n"))


def test_explain_shows_positions_and_dot_is_a_graph() -> None:
    pattern = a("small").where(is_small).followed_by("large").one_or_more().greedy().within(10)
    assert pattern.explain().splitlines() == [
        "after a match: no_skip; within 10 ms",
        "0: start",
        "    take 'small' if is_small -> 1",
        "1: small",
        "    take 'large' if any event -> 2; ignores events that do not fit; greedy",
        "2: large x 1+ -> match",
        "    take 'large' if any event -> 2; ignores events that do not fit; greedy",
    ]
    assert pattern.to_dot().startswith("digraph pattern {") and '"small: is_small"' in pattern.to_dot()


def test_dot_shows_what_must_not_come_what_ends_a_loop_and_the_times() -> None:
    pattern = a("loop").where(is_small).one_or_more().greedy().until(lambda event: event == 4).not_followed_by("stop")
    pattern = pattern.where(is_small).followed_by("end").within(5, WithinType.PREVIOUS_AND_CURRENT).within(10)
    dot = pattern.to_dot()
    assert "✗ is_small</FONT><BR/>" in dot and "✗ until &lt;lambda&gt; (for loop)</FONT>" in dot
    assert 'p1 -> p1 [label="loop: is_small\\ngreedy", penwidth=2, tailport=n, headport=n]' in dot
    assert 'p1 -> p1 [label="not is_small", style=dotted' in dot
    assert 'label="end: any event\\nwithin 5 ms"' in dot and 'label="after a match: no_skip, within 10 ms"' in dot
    waiting = a("a").not_followed_by("b").within(3).to_dot()
    assert 'p1 -> match [label="time is over"]' in waiting and "✗ any event" in waiting


def is_small(event: Any) -> bool:
    return event < 5
