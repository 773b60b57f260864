"""Expressions of the Table API in `where`: three-valued logic over the fields of any event."""

from __future__ import annotations

import datetime
import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from headwater.cep import CEP, Pattern
from headwater.common import Row
from headwater.common.errors import PatternError
from headwater.table.expression import Expression
from headwater.table.expressions import call, col, current_timestamp, lit

NAN = float("nan")
NOON = datetime.datetime(2026, 1, 1, 12)


@dataclass
class Payment:
    amount: Any
    country: str | None = None


KINDS = (
    lambda amount: {"amount": amount, "country": None},
    lambda amount: Row(amount=amount, country=None),
    lambda amount: Payment(amount),
)


def fits(condition: Expression, event: Any) -> bool:
    return bool(CEP.trace(Pattern.begin("step").where(condition), [event]).matches)


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        (col("amount") > 100, (101, 100.5, Decimal("100.01"), 2**70), (100, 5, NAN, None)),
        (~(col("amount") > 100), (100, 5.5, NAN), (101, None)),
        (col("amount") == None, (), (1, None)),  # noqa: E711
        (col("amount").is_null, (None,), (0, NAN)),
        (col("amount").in_(1, 2), (1, 2.0), (3, None)),
        (~col("amount").in_(1, 2), (3, NAN), (1, None)),
        (col("amount").between(1, 2.5), (1, 2.5, Decimal(2)), (3, None, NAN)),
        ((col("amount") > 1) | (col("country") == "FR"), (2,), (1, None)),
        (~((col("amount") > 1) & (col("country") == "FR")), (1,), (2, None)),
        (col("amount") / 2 == 3, (7, 6.0), (7.0, None)),
        (col("amount").like("a%") & (col("amount").char_length > 1), ("ab",), ("a", "ba", None)),
        (col("amount") > NOON, (NOON + datetime.timedelta(microseconds=1),), (NOON, None)),
        (col("amount"), (True,), (False, None)),
        (lit(True), (1, None), ()),
    ],
)
def test_an_event_fits_where_sql_says_true(condition: Expression, yes: Any, no: Any) -> None:
    for make in KINDS:
        assert [value for value in yes if not fits(condition, make(value))] == []
        assert [value for value in no if fits(condition, make(value))] == []


def test_one_step_sees_events_of_several_types() -> None:
    pattern = Pattern.begin("a").where(col("amount") > 1).one_or_more().greedy().next("b").where(col("amount") <= 1)
    events = [{"amount": 2}, Payment(2.5), {}, Row(amount=Decimal("1.1")), {"amount": "2", "other": 1}]
    assert CEP.trace(pattern, [*events[:2], {"amount": 1}]).matches[0]["a"] == events[:2]
    assert not CEP.trace(pattern, events[:4]).matches
    with pytest.raises(PatternError, match=r"step 'a'.*STRING does not compare"):
        CEP.trace(pattern, events)


def test_conditions_join_and_end_loops() -> None:
    pattern = Pattern.begin("a").subtype(Payment).where(col("amount") > 1).where(lambda event: event.amount < 9)
    pattern = pattern.or_where(col("amount") == 0).one_or_more().consecutive().until(col("country") == "FR")
    found = CEP.trace(pattern, [Payment(0), Payment(9), Payment(2), Payment(3), Payment(4, "FR")]).matches
    assert [[event.amount for event in match["a"]] for match in found] == [[0], [2], [2, 3], [3]]
    assert "(`amount` > 1)" in pattern.explain()


def test_a_condition_is_pickled() -> None:
    condition: Any = Pattern.begin("a").where(col("amount") > 1).steps().parts[0]
    condition = condition.condition.function
    condition({"amount": 2})
    assert pickle.loads(pickle.dumps(condition))({"amount": 2})


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Payment("x"), "STRING does not compare with INT"),
        (Payment([1]), "ARRAY<BIGINT> does not compare"),
        (Payment(NOON), "does not compare"),
        (7, "the event has no field 'amount': 7"),
        (Row(1), "the event has no field 'amount'"),
        (Payment(object()), "SQL has no type for"),
    ],
)
def test_what_sql_cannot_compare(event: Any, said: str) -> None:
    with pytest.raises(PatternError, match="step 'step'") as error:
        fits(col("amount") > 1, event)
    assert said in str(error.value)


def test_a_time_zone_is_an_error_whatever_came_before() -> None:
    pattern = Pattern.begin("a").where(col("amount") > NOON)
    with pytest.raises(PatternError, match="time zone"):
        CEP.trace(pattern, [Payment(NOON), Payment(NOON.replace(tzinfo=datetime.UTC))])


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (col("amount").sum > 1, "SUM has no place"),
        (current_timestamp() > NOON, "CURRENT_TIMESTAMP has no place"),
        (call("nonsense", col("amount")) > 1, "no function 'nonsense'"),
    ],
)
def test_what_no_event_fits_is_refused_when_the_pattern_is_built(condition: Expression, said: str) -> None:
    with pytest.raises(PatternError, match=r"where\(\) of step 'a'") as error:
        Pattern.begin("a").where(condition)
    assert said in str(error.value)


def test_a_number_is_no_condition() -> None:
    with pytest.raises(PatternError, match="needs a BOOLEAN"):
        fits(col("amount") + 1, Payment(1))
