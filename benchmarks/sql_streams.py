"""Rows a second of SQL on streams, in one process without Spark: `python -m benchmarks.sql_streams [rows]`."""

from __future__ import annotations

import sys
import time

from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import in_process

QUERIES = {
    "filter and project": "SELECT id, v * 2 FROM t WHERE v > 500",
    "group by 1,000 keys": "SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k",
    "group by 100,000 keys": "SELECT MOD(id, 100000), COUNT(*), SUM(v) FROM t GROUP BY MOD(id, 100000)",
    "tumbling windows": (
        "SELECT window_start, k, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
        " GROUP BY window_start, window_end, k"
    ),
    "join with 1,000 rows": "SELECT t.id, d.n FROM t JOIN (SELECT k, COUNT(*) AS n FROM t WHERE id < 1000 GROUP BY k) d"
    " ON t.k = d.k",
}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.execute_sql(
        "CREATE TABLE t (id BIGINT, k INT, v INT, ts AS TO_TIMESTAMP_LTZ(id, 3), WATERMARK FOR ts AS ts) WITH"
        f" ('connector' = 'datagen', 'rows-per-second' = '0', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0',"
        f" 'fields.id.end' = '{rows - 1}', 'fields.k.min' = '0', 'fields.k.max' = '999', 'fields.v.min' = '0',"
        " 'fields.v.max' = '1000')"
    )
    for name, query in QUERIES.items():
        columns = ", ".join(
            f"c{place} {column.type.with_nullable(True).sql()}"
            for place, column in enumerate(tables.sql_query(query).get_schema().fields)
        )
        tables.execute_sql(f"CREATE OR REPLACE TEMPORARY TABLE s ({columns}) WITH ('connector' = 'blackhole')")
        begun = time.perf_counter()
        with in_process():
            tables.execute_sql(f"INSERT INTO s {query}").wait()
        seconds = time.perf_counter() - begun
        tables.drop_temporary_table("s")
        print(f"{name:24} {rows / seconds:12,.0f} rows/s")


if __name__ == "__main__":
    main()
