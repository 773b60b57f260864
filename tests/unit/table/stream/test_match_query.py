"""MATCH_RECOGNIZE in whole queries, in process: with a crash in the middle; whose state is found again by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import SqlError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.stream.planner import StreamPlanner
from headwater.testing import in_process

QUERY = """
SELECT symbol, low, COUNT(*) AS times FROM Ticker MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY rowtime
    MEASURES LAST(DOWN.price) AS low, UP.price AS high, MATCH_ROWTIME() AS seen
    AFTER MATCH SKIP TO LAST UP
    PATTERN (START_ROW DOWN+ UP)
    DEFINE DOWN AS DOWN.price < LAST(DOWN.price, 1) OR (LAST(DOWN.price, 1) IS NULL AND DOWN.price < START_ROW.price),
           UP AS UP.price > LAST(DOWN.price){more}
) GROUP BY symbol, low"""


PRICES = (12, 17, 10, 7, 11, 9, 3, 5, 8, 6, 7, 7, 2, 9)


def environment(folder: Path, prices: Sequence[int] = PRICES) -> TableEnvironment:
    lines = [f"{symbol},2020-01-01 10:00:{at:02},{price}" for at, price in enumerate(prices) for symbol in "ab"]
    (folder / "ticker.csv").write_text("\n".join(lines) + "\n")
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        "CREATE TABLE Ticker (symbol STRING, rowtime TIMESTAMP(3), price INT,"
        " WATERMARK FOR rowtime AS rowtime - INTERVAL '1' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{folder}/ticker.csv', 'format' = 'csv')"
    )
    return t_env


def final(t_env: TableEnvironment, query: str) -> set[tuple[object, ...]]:
    table: set[tuple[object, ...]] = set()
    for row in t_env.execute_sql(query).collect():
        (table.add if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER") else table.discard)(tuple(row))
    return table


def test_matches_are_grouped_and_survive_a_crash(tmp_path: Path) -> None:
    expected = {(symbol, low, 1) for symbol in "ab" for low in (7, 3, 6, 2)}
    with in_process(epoch_records=1):
        assert final(environment(tmp_path), QUERY.format(more="")) == expected
    with in_process(epoch_records=4) as here:
        here.fail_attempt(epoch=3)
        assert final(environment(tmp_path), QUERY.format(more="")) == expected


def uid_of_match(t_env: TableEnvironment, query: str) -> str:
    node = StreamPlanner().plan(t_env.sql_query(query)._plan)
    while node.kind != "Match":
        node = node.inputs[0]
    return str(node.uid)


def test_another_definition_is_other_state(tmp_path: Path) -> None:
    one = uid_of_match(environment(tmp_path), QUERY.format(more=""))
    assert one == uid_of_match(environment(tmp_path), QUERY.format(more=""))
    assert one != uid_of_match(environment(tmp_path), QUERY.format(more=" AND UP.price > 1"))


def test_an_updating_input_is_refused(tmp_path: Path) -> None:
    t_env = environment(tmp_path)
    latest = "SELECT symbol, MAX(rowtime) AS rowtime, MAX(price) AS price FROM Ticker GROUP BY symbol"
    t_env.execute_sql(f"CREATE TEMPORARY VIEW latest AS {latest}")
    with pytest.raises(SqlError, match="MATCH_RECOGNIZE"):
        t_env.execute_sql(QUERY.format(more="").replace("FROM Ticker", "FROM latest"))


WAITING = """
CREATE TEMPORARY VIEW drops AS SELECT * FROM Ticker MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY rowtime MEASURES A.price AS a, C.price AS c, MATCH_ROWTIME() AS seen
    AFTER MATCH SKIP TO NEXT ROW PATTERN (A B* C) DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10)"""
WINDOWED = """
SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE drops, DESCRIPTOR(seen), INTERVAL '1' SECOND))
GROUP BY window_start, window_end"""


@pytest.mark.parametrize("epoch_records", [1, 2, 7, 1000])
def test_a_match_that_waited_is_not_late_for_a_window(tmp_path: Path, epoch_records: int) -> None:
    """Its MATCH_ROWTIME is when it is handed out: the watermark has passed its rows long before."""
    t_env = environment(tmp_path, (50, 100, 60, *[55] * 9, 10, 11))
    t_env.execute_sql(WAITING)
    with in_process(epoch_records=epoch_records):
        matches = list(t_env.execute_sql("SELECT seen, c FROM drops").collect())
        windows = list(t_env.execute_sql(WINDOWED).collect())
    assert sum(row[1] for row in windows) == len(matches) == 24
    assert {row[0].second for row in matches} == {12}  # that of (100, 60) has waited


def test_the_time_of_processing_is_a_time_attribute(tmp_path: Path) -> None:
    t_env = environment(tmp_path, (50, 100, 60, *[55] * 9, 10, 11))
    t_env.execute_sql(WAITING.replace("MATCH_ROWTIME", "MATCH_PROCTIME"))
    with in_process():
        windows = list(t_env.execute_sql(WINDOWED).collect())
    assert sum(row[1] for row in windows) == 24


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_matches_survive_a_lost_slot_and_a_rescale(tmp_path: Path, backend: str) -> None:
    expected = {(symbol, low, 1) for symbol in "ab" for low in (7, 3, 6, 2)}
    t_env = environment(tmp_path)
    t_env.get_config().set("state.backend.type", backend)
    t_env.get_config().set("parallelism.default", "3")
    with in_process(epoch_records=3) as here:
        here.kill_slot("Match(partitionBy=[symbol])", epoch=2)
        rescaled: list[Any] = []
        here.call(lambda job: rescaled.append(job.rescale(2)), epoch=4)
        here.fail_attempt(epoch=6)
        assert final(t_env, QUERY.format(more="")) == expected
    assert rescaled[0].result(0) > 0


def test_rows_are_matched_in_processing_time_as_they_come(tmp_path: Path) -> None:
    t_env = environment(tmp_path)
    t_env.execute_sql("CREATE TEMPORARY VIEW arriving AS SELECT *, PROCTIME() AS seen_at FROM Ticker")
    query = (
        QUERY.format(more="").replace("FROM Ticker", "FROM arriving").replace("ORDER BY rowtime", "ORDER BY seen_at")
    )
    expected = {(symbol, low, 1) for symbol in "ab" for low in (7, 3, 6, 2)}
    for epoch_records in (1, 5, 1000):
        with in_process(epoch_records=epoch_records):
            assert final(t_env, query) == expected
