"""Late rows go to the table that keeps them, in the epoch that drops them, once, whatever fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.common import Row, Types
from headwater.common.errors import SqlError
from headwater.datastream import StreamExecutionEnvironment
from headwater.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from headwater.testing import InProcess, in_process

ROWS = [(5, "a"), (25, "a"), (7, "a"), (26, "b"), (40, "a"), (8, "b"), (8, "b"), (30, "b")]
"""(seconds, key) in order of coming, two in each epoch. Late: 7, 30, and 8 twice."""
WINDOW = "TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
TIMED = "SELECT k, s, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY s) AS place"
ONE_SIDE = f"(SELECT * FROM {WINDOW})"


@pytest.fixture
def here() -> Iterator[InProcess]:
    with in_process(epoch_records=2) as found:
        yield found


@pytest.fixture
def tables(tmp_path: Any) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    (tmp_path / "e.csv").write_text("".join(f"{s},{k}\n" for s, k in ROWS))
    environment.execute_sql(
        "CREATE TABLE e (s BIGINT, k STRING, ts AS TO_TIMESTAMP(FROM_UNIXTIME(s)), WATERMARK FOR ts AS ts)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/e.csv', 'format' = 'csv')"
    )
    environment.execute_sql(
        "CREATE TABLE late (row_data STRING, row_kind STRING, operator_name STRING, watermark_time TIMESTAMP_LTZ(3))"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/late', 'format' = 'json')"
    )
    environment.get_config().set("headwater.sql.late-rows-table", "late")
    return environment


def kept(tmp_path: Any) -> list[dict[str, Any]]:
    files = sorted(each for each in (tmp_path / "late").glob("**/*") if each.is_file() and each.name[0] not in "._")
    return [json.loads(line) for each in files for line in each.read_text().splitlines()]


@pytest.mark.parametrize(
    ("query", "operator", "late"),
    [
        (f"SELECT k, SUM(s) FROM {WINDOW} GROUP BY k, window_start, window_end", "WindowAggregate", "30788"),
        (f"SELECT * FROM ({TIMED} FROM {WINDOW}) WHERE place <= 1", "WindowRank", "30788"),
        (
            f"SELECT l.s, r.s FROM {ONE_SIDE} l JOIN {ONE_SIDE} r USING (k, window_start, window_end)",
            "WindowJoin",
            "3030778888",
        ),
        ("SELECT k, SUM(s) FROM e GROUP BY k, SESSION(ts, INTERVAL '10' SECOND)", "SessionWindow", "30788"),
        ("SELECT s, COUNT(*) OVER (PARTITION BY k ORDER BY ts) FROM e", "OverAggregate", "30788"),
        ("SELECT l.s, r.s FROM e l JOIN e r ON l.k = r.k AND l.ts BETWEEN r.ts AND r.ts", "IntervalJoin", "3030778888"),
    ],
    ids=["aggregate", "rank", "window join", "session", "over", "interval join"],
)
def test_what_is_dropped_is_kept(
    tables: TableEnvironment, here: InProcess, tmp_path: Any, query: str, operator: str, late: str
) -> None:
    with tables.execute_sql(query).collect() as rows:
        list(rows)
    found = kept(tmp_path)
    data = [json.loads(each["row_data"]) for each in found]
    assert "".join(sorted(str(each["s"]) for each in data)) == late
    assert {each["row_kind"] for each in found} == {"+I"}
    assert {each["operator_name"].partition("(")[0] for each in found} == {operator}
    assert {each["watermark_time"][17:19] for each in found} == {"25", "26", "40"}


def test_a_failed_epoch_keeps_its_late_rows_once(tables: TableEnvironment, tmp_path: Any) -> None:
    tables.execute_sql("CREATE TABLE sink (k STRING, n BIGINT) WITH ('connector' = 'blackhole')")
    with in_process(epoch_records=2) as here:
        for epoch in range(1, 5):
            here.fail_attempt(epoch=epoch)
        query = f"SELECT k, SUM(s) FROM {WINDOW} GROUP BY k, window_start, window_end"
        tables.execute_sql(f"INSERT INTO sink {query}").wait()
    assert sorted(json.loads(each["row_data"])["s"] for each in kept(tmp_path)) == [7, 8, 8, 30]


def test_a_job_in_which_nothing_can_be_late_keeps_nothing(
    tables: TableEnvironment, here: InProcess, tmp_path: Any
) -> None:
    with tables.execute_sql("SELECT s FROM e WHERE k = 'a'").collect() as rows:
        assert len(list(rows)) == 4
    assert kept(tmp_path) == []


def test_wrong_tables_are_errors(tables: TableEnvironment) -> None:
    query = f"SELECT COUNT(*) FROM {WINDOW} GROUP BY window_start, window_end"
    tables.get_config().set("headwater.sql.late-rows-table", "lat")
    with pytest.raises(SqlError, match="did you mean 'late'"):
        tables.execute_sql(query)
    tables.execute_sql("CREATE TABLE odd (row_data STRING, s BIGINT) WITH ('connector' = 'blackhole')")
    tables.get_config().set("headwater.sql.late-rows-table", "odd")
    with pytest.raises(SqlError, match="column 's BIGINT' is none of what is known of them; these are: operator_name"):
        tables.execute_sql(query)


def test_the_job_of_a_datastream_program_refuses_it() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    rows = tables.from_data_stream(env.from_collection([Row(1)], Types.ROW_NAMED(["s"], [Types.INT()])))
    tables.execute_sql("CREATE TABLE late (row_data STRING) WITH ('connector' = 'blackhole')")
    tables.get_config().set("headwater.sql.late-rows-table", "late")
    with pytest.raises(SqlError, match="not for tables in the job of a StreamExecutionEnvironment"):
        tables.to_data_stream(rows)
