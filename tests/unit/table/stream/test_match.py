"""MATCH_RECOGNIZE: the queries of Flink's documentation, cuts into epochs, and what is refused."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import SqlError, UserCodeError
from headwater.common.ids import MAX_WATERMARK
from tests.unit.table.stream.match_driver import START, START_MS, environment, run


def at(seconds: int) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def prices(*values: int) -> list[tuple[Any, ...]]:
    return [("ACME", place, value, 1) for place, value in enumerate(values)]


V_SHAPE = """
SELECT * FROM Ticker MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY rowtime
    MEASURES START_ROW.rowtime AS start_tstamp, LAST(PRICE_DOWN.rowtime) AS bottom_tstamp,
             LAST(PRICE_UP.rowtime) AS end_tstamp
    ONE ROW PER MATCH AFTER MATCH SKIP TO LAST PRICE_UP
    PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
    DEFINE PRICE_DOWN AS (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price)
                         OR PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
           PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)) MR"""

AVERAGE = """
SELECT * FROM Ticker MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY rowtime
    MEASURES FIRST(A.rowtime) AS start_tstamp, LAST(A.rowtime) AS end_tstamp, AVG(A.price * 1.0) AS avgPrice
    ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A+ B) DEFINE A AS AVG(A.price * 1.0) < 15) MR"""


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_prices_that_fall_and_rise_as_flinks_documentation_has_them(backend: str) -> None:
    rows = prices(12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19)
    found = run(V_SHAPE, [rows], [MAX_WATERMARK], backend)
    assert found == [{"symbol": "ACME", "start_tstamp": at(4), "bottom_tstamp": at(7), "end_tstamp": at(8)}]


def test_an_aggregate_in_define_counts_the_row_in_question() -> None:
    found = run(AVERAGE, [prices(12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30)], [MAX_WATERMARK])
    shown = [(row["start_tstamp"], row["end_tstamp"], float(row["avgPrice"])) for row in found]
    assert shown == [(at(0), at(3), 14.5), (at(5), at(10), 13.5)]


@pytest.mark.parametrize(("quantifier", "expected"), [("B*", [(11, 16)]), ("B*?", [(11, 13), (14, 16)])])
def test_greedy_and_reluctant_as_flinks_documentation_has_them(quantifier: str, expected: list[Any]) -> None:
    sql = f"""SELECT * FROM Ticker MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY rowtime MEASURES A.price AS a, C.price AS c
        ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A {quantifier} C)
        DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12)"""
    found = run(sql, [prices(10, 11, 12, 13, 14, 16)], [MAX_WATERMARK])
    assert [(row["a"], row["c"]) for row in found] == expected


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, 11), max_size=4), data=st.data())
def test_cuts_into_epochs_do_not_matter(cuts: list[int], data: Any) -> None:
    values = (12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30)
    rows = [(symbol, place, price, 1) for place, price in enumerate(values) for symbol in "AB"]
    edges = sorted({0, 24, *(cut * 2 for cut in cuts)})
    epochs = [data.draw(st.permutations(rows[a:b])) for a, b in pairwise(edges)]
    watermarks = [START_MS + (edge // 2) * 1000 - 1 for edge in edges[1:-1]] + [MAX_WATERMARK]
    whole = run(AVERAGE, [rows], [MAX_WATERMARK])
    assert sorted(map(str, run(AVERAGE, epochs, watermarks))) == sorted(map(str, whole))
    assert len(whole) == 4


def test_within_ends_a_match_in_time() -> None:
    sql = """SELECT * FROM Ticker MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY rowtime MEASURES A.price AS a, B.price AS b, MATCH_ROWTIME() AS t
        PATTERN (A B) WITHIN INTERVAL '3' SECOND DEFINE A AS A.price = 1, B AS B.price = 2)"""
    rows = [("X", 0, 1, 1), ("X", 2, 2, 1), ("X", 10, 1, 1), ("X", 13, 2, 1)]
    assert run(sql, [rows], [MAX_WATERMARK]) == [{"symbol": "X", "a": 1, "b": 2, "t": at(2)}]


@pytest.mark.parametrize(
    ("clauses", "text"),
    [
        ("MEASURES A.price AS p PATTERN (A | B) DEFINE A AS TRUE", "alternatives"),
        ("MEASURES A.price AS p PATTERN (PERMUTE(A, B)) DEFINE A AS TRUE", "PERMUTE"),
        ("MEASURES A.price AS p PATTERN ((A B)+ C) DEFINE A AS TRUE", "single variables"),
        ("MEASURES A.price AS p PATTERN (A B+) DEFINE A AS TRUE", "greedy 'B'"),
        ("MEASURES A.price AS p PATTERN (A*? B*?) DEFINE A AS TRUE", "no row at all"),
        ("MEASURES A.price AS p PATTERN (A B) DEFINE C AS TRUE", "not in PATTERN (A, B)"),
        ("MEASURES A.price AS p PATTERN (A B) DEFINE A AS A.price", "BOOLEAN"),
        ("MEASURES A.prize AS p PATTERN (A B) DEFINE A AS TRUE", "prize"),
        ("MEASURES A.price AS p PATTERN (A B) DEFINE B AS PREV(B.price) < 1", "LAST(variable.column, 1)"),
        ("MEASURES SUM(A.price + B.price) AS p PATTERN (A B) DEFINE A AS TRUE", "one variable"),
        ("MEASURES A.price AS p ALL ROWS PER MATCH PATTERN (A B) DEFINE A AS TRUE", "ALL ROWS"),
        ("MEASURES A.price AS p AFTER MATCH SKIP TO FIRST C PATTERN (A B) DEFINE A AS TRUE", "no variable of PATTERN"),
        ("MEASURES A.price AS p PATTERN (A B A) DEFINE A AS TRUE", "twice"),
        ("MEASURES COUNT(A.price) FILTER (WHERE A.tax = 1) AS p PATTERN (A B) DEFINE A AS TRUE", "FILTER"),
        ("MEASURES COUNT(DISTINCT A.price) AS p PATTERN (A B) DEFINE A AS TRUE", "DISTINCT"),
    ],
)
def test_what_is_refused(clauses: str, text: str) -> None:
    sql = f"SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime {clauses})"
    with pytest.raises(SqlError) as error:
        environment().sql_query(sql)
    assert text in str(error.value) and str(error.value).startswith("line ")


def test_the_order_is_a_time() -> None:
    with pytest.raises(SqlError, match="TIMESTAMP"):
        environment().sql_query(
            "SELECT * FROM Ticker MATCH_RECOGNIZE (ORDER BY price MEASURES A.price AS p PATTERN (A B) DEFINE A AS TRUE)"
        )


def test_a_condition_that_cannot_be_computed_is_asked_only_of_rows_that_a_match_may_take() -> None:
    sql = """SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime
        MEASURES A.price AS a, B.price AS b PATTERN (A B) DEFINE A AS A.price = 1, B AS {})"""
    for condition in ("100 / B.price > 3", "SUM(100 / B.price) > 3"):
        assert [
            (row["a"], row["b"]) for row in run(sql.format(condition), [prices(0, 1, 5, 0, 9)], [MAX_WATERMARK])
        ] == [(1, 5)]
        with pytest.raises(UserCodeError, match="step 'B'"):
            run(sql.format(condition), [prices(1, 0)], [MAX_WATERMARK])


def test_final_and_running_stand_before_any_value() -> None:
    sql = """SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime
        MEASURES FINAL LAST(A.price) - FINAL FIRST(A.price) AS d, 1 + RUNNING SUM(A.price) AS s, FINAL B.price AS b
        AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS A.price < 5)"""
    assert run(sql, [prices(1, 2, 4, 9)], [MAX_WATERMARK]) == [{"symbol": "ACME", "d": 3, "s": 8, "b": 9}]


def test_a_column_may_have_the_name_final() -> None:
    sql = """SELECT * FROM (SELECT symbol, rowtime, price AS final, tax FROM Ticker) MATCH_RECOGNIZE (ORDER BY rowtime
        MEASURES A.final AS a, final AS b PATTERN (A B) DEFINE A AS A.final < 5 AND final IN (1, 2))"""
    assert run(sql, [prices(1, 9)], [MAX_WATERMARK]) == [{"a": 1, "b": 9}]
