"""The queries of Flink's page on pattern recognition, as they stand there, over its rows: as Flink 2.3 has them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from headwater.common.errors import PatternError
from headwater.common.ids import MAX_WATERMARK
from tests.unit.table.stream.match_driver import START, run

SKIPS = "SUM(A.price) AS s, FIRST(rowtime) AS b, LAST(rowtime) AS e {} PATTERN (A+ C) DEFINE A AS SUM(A.price) < 30"
SKIPPED = (7, 9, 10, 5, 10, 7, 14)
LOGICAL = "A.price AS a, LAST(B.price) AS b, C.price AS c PATTERN (A B+ C) DEFINE A AS A.price >= 10, {}"
DROP = """C.rowtime AS dropTime, A.price - C.price AS dropDiff ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A B* C) WITHIN INTERVAL {} DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10"""
DROPS = (20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19)
ENDLESS = "A.price AS a, C.price AS c PATTERN {} as A.price > 10, {}C as C.price > 20"

CASES: dict[str, tuple[str, tuple[int, ...], list[tuple[Any, ...]]]] = {
    # The page has AVG as 14.5 and 13.5, which is that of a DECIMAL; an integer's is one.
    "aggregations": (
        """FIRST(A.rowtime) AS start_tstamp, LAST(A.rowtime) AS end_tstamp, AVG(A.price) AS avgPrice ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS AVG(A.price) < 15""",
        (12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30),
        [(0, 3, 14), (5, 10, 13)],
    ),
    # The page has 14 for an hour; but 15 to 1 takes exactly an hour, which is too long.
    "time constraint": (DROP.format("'1' HOUR"), DROPS, [(9, 13)]),
    "a longer time": (DROP.format("'3601' SECOND(4)"), DROPS, [(9, 14)]),
    # The page has the first of these rows, as if a match skipped past its last row.
    "output mode": (
        """FIRST(A.price) AS startPrice, LAST(A.price) AS topPrice, B.price AS lastPrice ONE ROW PER MATCH
        PATTERN (A+ B)
        DEFINE A AS LAST(A.price, 1) IS NULL OR A.price > LAST(A.price, 1), B AS B.price < LAST(A.price)""",
        (10, 12, 13, 11),
        [(10, 13, 11), (12, 13, 11), (13, 13, 11)],
    ),
    "variables": (
        LOGICAL.format("B AS B.price > A.price AND SUM(price) < 100 AND SUM(B.price) < 80"),
        (10, 15, 20, 31, 35),
        [(10, 31, 35), (15, 31, 35)],
    ),
    "logical offsets": (
        LOGICAL.format(
            "B AS (LAST(B.price, 1) IS NULL OR B.price > LAST(B.price, 1)) AND "
            "(LAST(B.price, 2) IS NULL OR B.price > 2 * LAST(B.price, 2))"
        ),
        (10, 15, 20, 31, 35),
        [(10, 31, 35), (15, 31, 35)],
    ),
    # The page has B for 15; but of `?` the shorter match comes first.
    "all rows": (
        """A.price AS a, B.price AS b, C.price AS c PATTERN (A B? C)
        DEFINE B AS B.price < 20, C AS LAST(price, 1) < C.price""",
        (10, 15, 20),
        [(10, None, 15), (15, None, 20)],
    ),
    "past last": (SKIPS.format("AFTER MATCH SKIP PAST LAST ROW"), SKIPPED, [(26, 0, 3), (17, 4, 6)]),
    "to next": (
        SKIPS.format("AFTER MATCH SKIP TO NEXT ROW"),
        SKIPPED,
        [(26, 0, 3), (24, 1, 4), (25, 2, 5), (22, 3, 6), (17, 4, 6)],
    ),
    "to last": (SKIPS.format("AFTER MATCH SKIP TO LAST A"), SKIPPED, [(26, 0, 3), (25, 2, 5), (17, 4, 6)]),
    "never finishes": (ENDLESS.format("(A B+ C) DEFINE A", ""), (11, 15, 12, 31, 35), []),
    "negated": (
        ENDLESS.format("(A B+ C) DEFINE A", "B as B.price <= 20, "),
        (11, 15, 12, 31, 35),
        [(11, 31), (15, 31)],
    ),
    "reluctant": (ENDLESS.format("(A B+? C) DEFINE A", ""), (11, 15, 12, 31, 35), [(11, 31), (15, 31), (12, 35)]),
}


def matches(clauses: str, prices: tuple[int, ...], seconds: int = 1) -> list[tuple[Any, ...]]:
    rows = [("ACME", place * seconds, price, 1) for place, price in enumerate(prices)]
    sql = f"SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime MEASURES {clauses}) MR;"
    found = [tuple(row.values())[1:] for row in run(sql, [rows], [MAX_WATERMARK])]
    return [
        tuple((v - START).seconds // seconds if isinstance(v, datetime.datetime) else v for v in row) for row in found
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_query_of_the_page(name: str) -> None:
    clauses, prices, expected = CASES[name]
    assert matches(clauses, prices, 1200 if prices is DROPS else 1) == expected


def test_skipping_to_the_first_row_would_not_end() -> None:
    with pytest.raises(PatternError, match="would skip to the first event"):
        matches(SKIPS.format("AFTER MATCH SKIP TO FIRST A"), SKIPPED)
