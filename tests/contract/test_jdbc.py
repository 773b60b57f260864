"""The contract of sinks, for databases: rows that are copied, upserts that are copied, and statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.testing import SINK_CHECKS, SinkCase
from tests.postgres_server import PostgresServer, postgres_server
from tests.unit.connectors.jdbc import tables

STATEMENTS = {
    "copied": tables.INSERT,
    "copied-upsert": tables.UPSERT,
    "statements": f"{tables.INSERT} ON CONFLICT (i) DO UPDATE SET text = EXCLUDED.text || ''",
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize("sql", STATEMENTS.values(), ids=STATEMENTS.keys())
@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_postgres(check: Callable[[SinkCase], None], sql: str, server: PostgresServer) -> None:
    uri = server.new_database()
    key = " PRIMARY KEY" if "CONFLICT" in sql else ""  # without a key each row that comes twice is seen
    tables.run(uri, f"CREATE TABLE numbers (i bigint{key}, text text)")
    check(
        SinkCase(
            tables.sink(uri, sql),
            visible=lambda: tables.run(uri, "SELECT i, text FROM numbers"),
            shown=tuple,
            records=rows,
            whole_epochs=True,
        )
    )


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_sqlite(check: Callable[[SinkCase], None], tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE numbers (i integer, text text)")
    check(
        SinkCase(
            tables.sink(f"jdbc:sqlite:{path}"),
            visible=lambda: sqlite3.connect(path).execute("SELECT i, text FROM numbers").fetchall(),
            shown=tuple,
            records=rows,
            whole_epochs=True,
        )
    )


def rows(start: int, stop: int) -> list[tuple[int, str]]:
    return [(i, f"\\{i}\t\n\\N" if i % 5 == 0 else f"t{i}") for i in range(start, stop)]
