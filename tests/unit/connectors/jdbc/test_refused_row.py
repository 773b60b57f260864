"""A row that only the database can refuse, at the commit: the error names it, and the job goes on when it may."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headwater.common import Row
from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.testing.sink_contract import SinkCase, committer_of, write
from tests.unit.connectors.jdbc import tables

ROWS = [Row(i, f"t{i}") for i in range(50)]
ONE_BY_ONE = f"{tables.INSERT} ON CONFLICT (text) DO UPDATE SET i = EXCLUDED.i + 0"


@pytest.mark.parametrize("sql", [tables.INSERT, tables.UPSERT, ONE_BY_ONE], ids=["copy", "upsert", "statements"])
def test_postgres(database: str, sql: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint UNIQUE, text text UNIQUE, CONSTRAINT not_37 CHECK (i <> 37))")
    case = SinkCase(tables.sink(database, sql), lambda: [])
    committer = committer_of(case)
    committables = write(case, ROWS, 1)
    with pytest.raises(HeadwaterError, match=r"table numbers refuses the row \['?37'?, 't37'\]: .*not_37") as raised:
        committer.commit(committables)
    assert "start the job again" in raised.value.__notes__[0] and not isinstance(raised.value, ExternalSystemError)
    assert tables.run(database, "SELECT count(*) FROM numbers") == [(0,)]
    tables.run(database, "ALTER TABLE numbers DROP CONSTRAINT not_37")
    committer.commit(committables)
    assert tables.run(database, "SELECT count(*) FROM numbers") == [(50,)]


def test_a_row_that_is_in_the_way(database: str) -> None:
    tables.run(
        database, "CREATE TABLE numbers (i bigint PRIMARY KEY, text text)", "INSERT INTO numbers VALUES (37, 'x')"
    )
    case = SinkCase(tables.sink(database), lambda: [])
    committer = committer_of(case)
    committables = write(case, ROWS, 1)
    with pytest.raises(HeadwaterError, match=r"refuses the row \['37', 't37'\]: .*numbers_pkey"):
        committer.commit(committables)
    tables.run(database, "DELETE FROM numbers")
    committer.commit(committables)
    assert tables.run(database, "SELECT count(*) FROM numbers") == [(50,)]


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE numbers (i integer CHECK (i <> 37), text text)")
    case = SinkCase(tables.sink(f"jdbc:sqlite:{path}"), lambda: [])
    with pytest.raises(HeadwaterError, match=r"table numbers refuses the row \[37, 't37'\]: .*CHECK constraint failed"):
        committer_of(case).commit(write(case, ROWS, 1))
    assert sqlite3.connect(path).execute("SELECT count(*) FROM numbers").fetchone() == (0,)
