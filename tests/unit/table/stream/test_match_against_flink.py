"""MATCH_RECOGNIZE gives what Flink gave on the same rows (`make parity-matches` records)."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from headwater.common.errors import PatternError, SqlError
from headwater.common.ids import MAX_WATERMARK
from tests.parity.matches import cases
from tests.unit.table.stream.match_driver import START, run

GREEDY_RANGE = re.compile(r"\{\d,\d\} ")
RECORDED = cases.recorded()
QUERIES = cases.queries()


def events() -> list[tuple[Any, ...]]:
    return [
        (symbol, (datetime.datetime.fromisoformat(at) - START).total_seconds(), price, tax)
        for symbol, at, price, tax in cases.rows()
    ]


def shown(values: Iterable[Any]) -> tuple[Any, ...]:
    """The measures; the last is MATCH_ROWTIME, which Flink's record has as text."""
    *measures, seen = values
    return *measures, datetime.datetime.fromisoformat(seen) if isinstance(seen, str) else seen


@pytest.mark.parametrize("name", [name for name in QUERIES if not GREEDY_RANGE.search(name)])
def test_as_flink(name: str) -> None:
    recorded = RECORDED[name]
    query = QUERIES[name].replace("FROM ticks", "FROM Ticker").replace("ORDER BY ts", "ORDER BY rowtime")
    if "rows" not in recorded:
        with pytest.raises((SqlError, PatternError)):
            run(query, [events()], [MAX_WATERMARK])
        return
    found = run(query, [events()], [MAX_WATERMARK])
    assert Counter(shown(row.values()) for row in found) == Counter(map(shown, recorded["rows"]))


def test_after_a_greedy_range_the_next_row_may_fit_it_too() -> None:
    """Flink wants a row that does not fit A here; nothing in SQL says so."""
    query = """SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime
        MEASURES COUNT(A.price) AS n, B.price AS b PATTERN (A{2,3} B) DEFINE A AS A.price < 4, B AS B.price = 3)"""
    rows = [("X", second, price, 1) for second, price in enumerate((1, 2, 1, 3))]
    assert run(query, [rows], [MAX_WATERMARK]) == [{"symbol": "X", "n": 3, "b": 3}]
