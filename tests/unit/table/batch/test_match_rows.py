"""MATCH_RECOGNIZE over batches that come in the order of time finds what one batch of all rows gives."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK
from headwater.table.batch.match_rows import MatchRows
from headwater.table.batch.spark_sql import batch_query
from headwater.table.stream.changes import schema_of
from headwater.table.stream.rows import thawed_rows
from tests.unit.table.stream.match_driver import START_MS, environment, match_of, run

FALLS = """SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime, tax
    MEASURES A.price AS a, LAST(B.price) AS b, MATCH_ROWTIME() AS t AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A B+ C) WITHIN INTERVAL '6' SECOND DEFINE B AS B.price < A.price, C AS C.price > LAST(B.price))"""


@settings(max_examples=40)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from("XY")), min_size=1, max_size=14),
    cuts=st.lists(st.integers(0, 14), max_size=4),
    begin=st.sampled_from([0, -START_MS // 1000 - 5]),
)
def test_batches_do_not_matter(steps: Any, cuts: list[int], begin: int) -> None:
    at, rows = begin, []
    for number, (step, price, symbol) in enumerate(steps):
        at += step
        rows.append((symbol, at, price, number))
    node = match_of(environment().sql_query(FALLS)._plan)
    schema = schema_of(node.input.columns)
    stored = [(symbol, (START_MS + at * 1000) * 1000, price, tax) for symbol, at, price, tax in rows]
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    found = list(MatchRows(node, "UTC", 0)(thawed_rows(stored[a:b], schema) for a, b in pairwise(edges)))
    assert all(batch.schema.names == [f"c{column.id}" for column in node.columns] for batch in found)
    names = [column.name for column in node.columns]
    matches = [dict(zip(names, row.values(), strict=True)) for batch in found for row in batch.to_pylist()]
    assert sorted(map(str, matches)) == sorted(map(str, run(FALLS, [rows], [MAX_WATERMARK])))


def test_rows_of_one_millisecond_keep_their_order() -> None:
    sql = """SELECT * FROM (SELECT price, CAST(rowtime AS TIMESTAMP(6)) AS ts FROM Ticker) MATCH_RECOGNIZE (
        ORDER BY ts, price MEASURES A.price AS a, B.price AS b PATTERN (A B) DEFINE A AS TRUE)"""
    node = match_of(environment().sql_query(sql)._plan)
    times = [datetime.datetime(1960, 1, 1, 12, 0, 0, micros) for micros in (1, 999, 1000, 1001)]
    batches = MatchRows(node, "UTC", 0)(
        pa.record_batch([pa.array([price]), pa.array([time])], ["price", "ts"])
        for price, time in zip((9, 8, 7, 6), times, strict=True)
    )
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == [(9, 8), (8, 7), (7, 6)]


def test_the_time_of_the_query_and_types_that_spark_lacks() -> None:
    sql = """SELECT * FROM (SELECT *, CAST(rowtime AS TIME) AS clock FROM Ticker) MATCH_RECOGNIZE (
        PARTITION BY clock ORDER BY rowtime MEASURES CURRENT_TIMESTAMP AS now_
        PATTERN (A) DEFINE A AS A.clock IS NOT NULL)"""
    node = match_of(environment().sql_query(sql)._plan)
    noon = datetime.datetime(2026, 1, 1, 12)
    rows = pa.record_batch(
        [pa.array(["X"]), pa.array([noon]), pa.array([1]), pa.array([1]), pa.array([43_200_000], pa.int32())],
        list("abcde"),
    )
    (found,) = MatchRows(node, "UTC", 1_000)([rows])
    clock, now = found.to_pylist()[0].values()
    assert (clock, now.timestamp()) == (43_200_000, 1.0)


def test_a_query_names_its_matches_from_the_inner_ones_on() -> None:
    inner = FALLS.replace("MATCH_ROWTIME()", "A.rowtime")
    outer = (
        f"SELECT * FROM ({inner}) MATCH_RECOGNIZE (ORDER BY t MEASURES A.a AS x PATTERN (A B) DEFINE B AS B.a > A.a)"
    )
    query = batch_query(environment().sql_query(outer)._plan)
    (first, (rows, _)), (second, (matched, _)) = query.matches.items()
    assert first not in rows and first in matched and second in query.sql
