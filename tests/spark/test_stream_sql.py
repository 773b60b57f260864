"""SQL on streams, on Spark: the sum of the changelog is what batch mode gives for the same rows."""

from __future__ import annotations

from collections import Counter

import pytest

from headwater.common.types import RowKind
from headwater.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.spark

ROWS = [(number, "abc"[number % 3], None if number % 7 == 0 else number % 5) for number in range(200)]

QUERIES = [
    "SELECT k, COUNT(*), SUM(v), MIN(v), COUNT(DISTINCT v), AVG(v) FROM t GROUP BY k",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id + 3 AND a.v < b.v",
    "SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS rn FROM t) WHERE rn <= 2",
    "SELECT id, UPPER(k), v * 1.5, LPAD(k, 3, 'x') FROM t WHERE v IN (SELECT v FROM t WHERE id < 3)",
]


def test_the_changelog_adds_up_to_the_batch() -> None:
    stream, batch = (
        TableEnvironment.create(settings)
        for settings in (EnvironmentSettings.in_streaming_mode(), EnvironmentSettings.in_batch_mode())
    )
    stream.get_config().set("parallelism.default", "2")
    for tables in (stream, batch):
        tables.create_temporary_view("t", tables.from_elements(ROWS, ["id", "k", "v"]))
    for query in QUERIES:
        total: Counter[str] = Counter()
        with stream.execute_sql(query).collect() as rows:
            for row in rows:
                total[str(tuple(row))] += -1 if row.get_row_kind() in (RowKind.DELETE, RowKind.UPDATE_BEFORE) else 1
        with batch.execute_sql(query).collect() as rows:
            expected = Counter(str(tuple(row)) for row in rows)
        assert +total == expected, query
