"""Which of many rows a database refuses: found by halves, in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.common.errors import short_repr
from headwater.datastream.connectors.jdbc.database import Database
from headwater.datastream.connectors.jdbc.statement import Statement

_SAVEPOINT = "headwater_row"


def refused_row(
    database: Database, connection: Any, statement: Statement, batches: Iterable[list[Any]], size: int
) -> str:
    """Run the statement for the rows until one is refused; say which, and why, or "" if all are taken.

    The transaction must have begun, and the caller rolls it back.
    """
    for batch in batches:
        for first in range(0, len(batch), size):
            rows = batch[first : first + size]
            error = _error_of(database, connection, statement, rows)
            if error is None:
                continue
            while len(rows) > 1:
                half = rows[: len(rows) // 2]
                found = _error_of(database, connection, statement, half)
                rows = half if found is not None else rows[len(half) :]
            error = _error_of(database, connection, statement, rows) or error
            table = statement.table() or statement.sql
            return f"table {table} refuses the row {short_repr(list(rows[0]))}: {database.text_of(error).strip()}"
    return ""


def _error_of(database: Database, connection: Any, statement: Statement, rows: list[Any]) -> Exception | None:
    """Write the rows; if one is refused, none of them is there."""
    cursor = connection.cursor()
    cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
    try:
        database.write_rows(connection, statement, [rows], len(rows))
        cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        return None
    except database.error as error:
        if not database.refuses_row(error):
            raise
        cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        return error
