"""Patterns as data: round trips, what is refused, and that no text is ever run as Python."""

from __future__ import annotations

import contextlib
import copy
import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.cep import (
    CEP,
    Pattern,
    pattern_from_data,
    pattern_from_json,
    pattern_from_yaml,
    pattern_to_data,
    pattern_to_json,
)
from headwater.common.errors import PatternError
from headwater.common.types import Row
from headwater.operators.cep.expressions import Expression, expression
from headwater.operators.cep.nfa import compile_pattern

WHOLE = {
    "steps": [
        {"name": "a", "where": "amount < 1", "one_or_more": True, "greedy": True, "until": "stop == 1"},
        {"not_next": "n", "where": {"function": "is_odd"}},
        {
            "followed_by_any": "group",
            "steps": [{"name": "b", "where": {"or": ["x > 1", "y in (1, 2)"]}}, {"next": "c", "optional": True}],
            "times": [1, 3],
            "consecutive": True,
        },
        {"followed_by": "d", "times_or_more": 2, "allow_combinations": True, "gap_ms": 5, "window_time_ms": 3},
        {"not_followed_by": "e", "where": "amount > last(a.amount)"},
    ],
    "within_ms": 1000,
    "skip": {"skip_to_last": "b", "throw_exception_on_miss": True},
}


def is_odd(event: Any) -> bool:
    return bool(event % 2)


FUNCTIONS = {"is_odd": is_odd}


def test_the_whole_api_goes_round() -> None:
    pattern = pattern_from_data(WHOLE, FUNCTIONS)
    assert pattern_to_data(pattern) == WHOLE
    assert pattern_from_json(pattern_to_json(pattern), FUNCTIONS).steps() == pattern.steps()
    assert pickle.loads(pickle.dumps(pattern.steps())) == pattern.steps()


def test_yaml() -> None:
    text = "steps:\n- {name: a, where: amount > 5}\n- followed_by: b\nwithin_ms: 10\n"
    assert (
        pattern_from_yaml(text).steps()
        == pattern_from_data(
            {"steps": [{"name": "a", "where": "amount > 5"}, {"followed_by": "b"}], "within_ms": 10}
        ).steps()
    )
    with pytest.raises(PatternError, match="no YAML"):
        pattern_from_yaml("a: [")
    with pytest.raises(PatternError):
        pattern_from_yaml("!!python/object/apply:os.system ['true']")


def nested(depth: int) -> dict[str, Any]:
    step: dict[str, Any] = {"name": "a"}
    for _ in range(depth):
        step = {"name": "group", "steps": [step]}
    return {"steps": [step]}


def nested_condition(depth: int) -> Any:
    return "x > 1" if depth == 0 else {"and": [nested_condition(depth - 1), "x > 1"]}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "must be an object"),
        ({}, "at least one step"),
        ({"steps": []}, "at least one step"),
        ({"steps": [{"name": "a"}], "withn": 3}, "'withn', which is unknown"),
        ({"steps": [{"next": "a"}]}, "follows nothing"),
        ({"steps": [{"name": "a"}, {"name": "b"}]}, "must have one of next"),
        ({"steps": [{"name": "a"}, {"next": "b", "followed_by": "b"}]}, "must have one of next"),
        ({"steps": [{"name": "a", "times": 0}]}, "found 0"),
        ({"steps": [{"name": "a", "times": [1, 2, 3]}]}, "list of two"),
        ({"steps": [{"name": "a", "times": 2, "one_or_more": True}]}, "choose one"),
        ({"steps": [{"name": "a", "where": 5}]}, "must be an expression"),
        ({"steps": [{"name": "a", "where": {"function": "gone"}}]}, "registered: none is"),
        ({"steps": [{"name": "a", "where": "count(z) > 1"}]}, "step 'z', which there is not"),
        ({"steps": [{"name": "a"}], "skip": "somewhere"}, "'skip' must be one of"),
        ({"steps": [{"name": "a"}], "within_ms": "5"}, "expected a Duration"),
        ({"steps": [{"name": 5}]}, "the name of a step"),
        ({"steps": [{"name": "a"}, {"not_followed_by": "b"}]}, "has no within"),
        ({"steps": [{"name": "a", "where": {"function": []}}]}, r"the function \[\]"),
        ({"steps": [{"name": "a", "optional": "false"}]}, "'optional' must be true or false"),
        ({"steps": [{"name": f"s{n}"} if n == 0 else {"next": f"s{n}"} for n in range(201)]}, "at most 200"),
        (nested(21), "more than 20 deep"),
        ({"steps": [{"name": "a", "where": nested_condition(30)}]}, "more than 20 deep"),
    ],
)
def test_rubbish_is_refused(data: Any, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        pattern_from_data(data)


RUBBISH = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.sampled_from(["a", "x > 1", "group", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*WHOLE, *WHOLE["steps"][0], "and", "function"]), inner, max_size=3),  # type: ignore[misc]
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_pattern_with_anything_changed_is_read_or_refused(data: st.DataObject) -> None:
    """Nothing but `PatternError`: everything else would stop the job that reads patterns from a stream."""
    changed = copy.deepcopy(WHOLE)
    target: Any = changed
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(target[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
            target[key] = data.draw(RUBBISH)
            break
        target = target[key]
    with contextlib.suppress(PatternError):
        compile_pattern(pattern_from_data(changed, FUNCTIONS).steps())


def test_a_function_without_a_name_cannot_be_written_down() -> None:
    with pytest.raises(PatternError, match="register the function"):
        pattern_to_data(Pattern.begin("a").where(lambda event: True))


class Trade:
    price = 7
    name = "x"


@pytest.mark.parametrize("event", [{"price": 7, "name": "x"}, Row(price=7, name="x"), Trade()])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("price > 5", True),
        ("price > 5 and name == 'y'", False),
        ("not price < 5", True),
        ("5 < price <= 7 != 8", True),
        ("name in ('x', 'y')", True),
        ("name not in ['x']", False),
        ("price * 2 + 1 - -1 == 16", True),
        ("price % 4 == 3 or name", True),
        ("price / 2 == 3.5", True),
        ("price / 0 > 1 or price % 0 > 1 or -name == 1 or name < 5 or lost > 1 or lost + 1 > 0", False),
        ("lost == None and 5 not in (lost, 'x')", True),
        ("5 in price", False),
        ("name * 1000000000 == None and name % price == None", True),
    ],
)
def test_expressions(event: Any, text: str, value: bool) -> None:
    assert bool(Expression(text)(event)) is value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "().__class__", "price.__class__", "open('x')", "lambda: 1", "[x for x in y]", "x[0]",
        "x if y else z", "f'{x}'", "x := 5", "price ** 99", "x is None", "count(x, y)", "first(x)", "last(x._secret)",
        "_hidden > 1", "await x", "", "  ", "x >", "1; 2", "*x", "'a' * 999999999", "(" * 200 + "1" + ")" * 200 + " +",
        5, b"x", "...", "eval(x)", "x.y", "1" + "+1" * 4000,
    ],
)  # fmt: skip
def test_what_is_no_expression(text: Any) -> None:
    with pytest.raises(PatternError):
        expression(text)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=40))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    with contextlib.suppress(PatternError):
        expression(text)


def test_equalities_are_known() -> None:
    assert Expression("kind == 'x' and 3 == n and m > 1").equalities == {"kind": "x", "n": 3}
    assert Expression("kind == 'x' or n == 3").equalities == {}


@pytest.mark.parametrize(
    ("condition", "values", "fits"),
    [
        ("sum(a.v) > 10", [Decimal("4.5"), Decimal(6)], True),
        ("sum(a.v) > 10", [np.int64(8), np.float32(3)], True),
        ("avg(a.v) == 5", [Decimal(4), Decimal(6)], True),
        ("max(a.v) < v", [date(2020, 1, 1), date(2020, 1, 2)], True),
        ("min(a.v) < v", ["x", "y"], True),
        ("sum(a.v) == 3", [1, None, "text", 2], True),
        ("sum(a.v) == None", [Decimal(1), 0.5], True),  # Python adds no Decimal to a float
        ("max(a.v) == None", [1, "text"], True),
        ("max(a.v) == None and avg(a.v) == None and sum(a.v) == 0", [None, None], True),
        ("sum(a.v) > 10", [np.int64(8), 2], False),
    ],
)
def test_aggregates_take_values_of_any_kind(condition: str, values: list[Any], fits: bool) -> None:
    steps = [
        {"name": "a", "where": "k == 'a'", "times": len(values)},
        {"next": "b", "where": f"k == 'b' and {condition}"},
    ]
    last = {"k": "b", "v": date(2020, 1, 3) if isinstance(values[0], date) else "z"}
    events = [{"k": "a", "v": value} for value in values]
    assert bool(CEP.trace(pattern_from_data({"steps": steps}), [*events, last]).matches) == fits
