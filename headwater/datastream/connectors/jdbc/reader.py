"""Reads one range of a query, in the order of its key."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from headwater.common.connector import SplitReader
from headwater.common.types import named_row
from headwater.datastream.connectors.jdbc.database import Database


@dataclass(frozen=True)
class RowRange:
    """A split: the rows whose first key column is at least `low` and less than `high` (None: no bound)."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    """By which rows are sorted. Empty: as they come."""
    low: int | None
    high: int | None
    select: tuple[str, ...] = ()
    """Expressions that give the columns. Empty: all columns, by *."""
    ordered: bool = False
    """Without a key: rows are sorted by all they have, so that a reader which goes on skips the same ones."""


class JdbcReader(SplitReader):
    """The position is (key of the last row, how many rows with this key were read).

    Without a key it is ((), how many rows were read).
    """

    gives_away = True

    def __init__(self, database: Database, source: str, rows: RowRange, position: Any | None, fetch_size: int) -> None:
        self._database = database
        self._source = source
        self._range = rows
        self._names = list(rows.columns)
        self._key_at = [rows.columns.index(name) for name in rows.key]
        self._last: tuple[tuple[Any, ...] | None, int] = (None, 0) if position is None else position
        self._fetch_size = fetch_size
        self._connection: Any = None
        self._cursor: Any = None

    def read_batch(self, max_records: int) -> list[Any] | None:
        database = self._database
        try:
            if self._cursor is None:
                self._connection = database.connect()
                self._cursor = self._query()
            rows = self._cursor.fetchmany(min(max_records, self._fetch_size))
        except database.error as error:
            self.close()
            raise database.failed("cannot read rows", error) from None
        if not rows:
            return None
        self._note(rows)
        return [named_row(list(row), self._names) for row in rows]

    def _query(self) -> Any:
        """Begin behind the position."""
        database, rows = self._database, self._range
        mark, quoted = database.placeholder, [f"q.{database.quoted(name)}" for name in rows.key]
        conditions, values = [], []
        for bound, sign in ((rows.low, ">="), (rows.high, "<")):
            if bound is not None:
                conditions.append(f"{quoted[0]} {sign} {mark}")
                values.append(bound)
        key, skip = self._last
        if key and quoted:
            conditions.append(f"({', '.join(quoted)}) >= ({', '.join([mark] * len(key))})")
            values += key
        source = self._source.replace("%", "%%") if mark == "%s" and values else self._source
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = [*quoted, database.row_order("q", rows.columns)] if quoted or rows.ordered else []
        by = f" ORDER BY {', '.join(order)}" if order else ""
        selected = ", ".join(rows.select) or "*"
        cursor = database.stream(self._connection, f"SELECT {selected} FROM {source}{where}{by}", values)
        while skip > 0:
            skipped = cursor.fetchmany(min(skip, self._fetch_size))
            if not skipped:
                break
            skip -= len(skipped)
        return cursor

    def _note(self, rows: list[Any]) -> None:
        """Remember the key of the last row, and how many rows with it there were."""
        key, count = self._last
        if not self._key_at:
            self._last = ((), count + len(rows))
            return
        last = tuple(rows[-1][at] for at in self._key_at)
        same = 0
        for row in reversed(rows):
            if tuple(row[at] for at in self._key_at) != last:
                break
            same += 1
        self._last = (last, same + (count if same == len(rows) and key == last else 0))

    def position(self) -> Any:
        return self._last

    def close(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
