"""SQLite, by Python's own module: a file that all processes of the job can reach."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from headwater.datastream.connectors.jdbc.database import LOCK_SECONDS, MARKS, Database, MarkKey
from headwater.datastream.connectors.jdbc.limits import ColumnLimits
from headwater.datastream.connectors.jdbc.statement import Statement, unquoted


class Sqlite(Database):
    name = "SQLite"
    placeholder = "?"
    parallel_writes = 1
    """A second writer would only wait for the first."""

    @property
    def error(self) -> type[Exception]:
        return sqlite3.Error

    def may_pass(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def connect(self, purpose: str = "headwater") -> Any:
        try:
            # A file that is not there is not made: a wrong path would go unnoticed.
            return sqlite3.connect(
                f"file:{self.url.database}?mode=rw", timeout=LOCK_SECONDS, uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self.failed("cannot open the file", error) from None

    def sql_of(self, statement: Statement) -> str:
        return statement.sql

    def check(self, connection: Any, statement: Statement, declared: Sequence[Any] | None) -> None:
        connection.execute(f"EXPLAIN {statement.sql}", [None] * statement.parameters).fetchall()

    def limits(self, connection: Any, table: str) -> list[ColumnLimits]:
        """NOT NULL, where nothing else may become of the row: SQLite enforces no lengths and no ranges."""
        name = unquoted(table.rpartition(".")[2].strip())
        own = "SELECT count(*) FROM sqlite_master WHERE tbl_name = ? AND (type = 'trigger' OR sql LIKE '%ON CONFLICT%')"
        ((special,),) = connection.execute(own, (name,)).fetchall()
        found = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,)).fetchall()
        return [
            ColumnLimits(column, f"{kind} NOT NULL".strip() if required else kind, required)
            for column, kind, not_null, pk in found
            for required in (bool(not_null) and not pk and not special,)
        ]

    def primary_key(self, connection: Any, table: str) -> list[str]:
        found = connection.execute(
            "SELECT name, pk FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (unquoted(table),)
        )
        return [name for name, _ in found]

    def lock_mark(self, connection: Any, key: MarkKey) -> int:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"INSERT OR IGNORE INTO {MARKS} VALUES (?, ?, ?, -1)", key)
        asked = f"SELECT epoch FROM {MARKS} WHERE job_id = ? AND operator_uid = ? AND partition_index = ?"
        found: int = connection.execute(asked, key).fetchone()[0]
        return found
