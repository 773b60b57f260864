"""Applies changes as strictly as a table would, and writes at random into one."""

from __future__ import annotations

import random
import threading
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

from headwater.common import Row, RowKind
from headwater.datastream.connectors.postgres_cdc import PostgresIncrementalSource, PostgresSourceBuilder

CREATE = "CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10, 2))"
FULL = "ALTER TABLE items REPLICA IDENTITY FULL"


def builder(uri: str, *tables: str) -> PostgresSourceBuilder:
    parts = urlsplit(uri)
    return (
        PostgresIncrementalSource.builder()
        .hostname(parse_qs(parts.query)["host"][0])
        .database(parts.path[1:])
        .username("postgres")
        .table_list(*(tables or ("public.items",)))
        .slot_name(f"slot_{parts.path[1:]}")
    )


class Table:
    """What a changelog makes of an empty table. A change that does not fit is an error."""

    def __init__(self, keys: int = 1) -> None:
        self.rows: dict[Any, tuple[Any, ...]] = {}
        self._keys = keys

    def apply(self, row: Row) -> None:
        values, kind = tuple(row), row.get_row_kind()
        key = values[: self._keys]
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            assert key not in self.rows, f"{kind} {row}, and there is {self.rows[key]}"
            self.rows[key] = values
        else:
            assert self.rows.get(key) == values, f"{kind} {row}, and there is {self.rows.get(key)}"
            del self.rows[key]

    def values(self) -> list[tuple[Any, ...]]:
        return sorted(self.rows.values(), key=repr)


class Writer(threading.Thread):
    """Inserts, updates, moves and deletes rows of `items`, in transactions of several statements, some rolled back."""

    def __init__(self, uri: str, seed: int, key: str = "number") -> None:
        super().__init__(daemon=True)
        self._uri = uri
        self._dice = random.Random(seed)
        self._key = key
        self._ended = threading.Event()
        self.error: BaseException | None = None
        self.transactions = 0

    def some_key(self) -> Any:
        number = self._dice.randrange(400)
        return number if self._key == "number" else f"{'abÄzZ_'[number % 6]}{number}"

    def run(self) -> None:
        try:
            with psycopg.connect(self._uri) as connection:
                while not self._ended.is_set():
                    self._transaction(connection)
                    self.transactions += 1
        except BaseException as error:
            self.error = error

    def _transaction(self, connection: Any) -> None:
        dice = self._dice
        for _ in range(dice.randint(1, 5)):
            key, name = self.some_key(), uuid.uuid4().hex[: dice.randint(0, 8)]
            what = dice.randrange(4)
            if what == 0:
                connection.execute(
                    "INSERT INTO items VALUES (%s, %s, 1.50) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
                    (key, name),
                )
            elif what == 1:
                connection.execute("UPDATE items SET name = %s WHERE id = %s", (name, key))
            elif what == 2:
                connection.execute("DELETE FROM items WHERE id = %s", (key,))
            else:
                other = self.some_key()
                connection.execute(
                    "UPDATE items SET id = %s WHERE id = %s AND NOT EXISTS (SELECT 1 FROM items WHERE id = %s)",
                    (other, key, other),
                )
        if dice.randrange(5):
            connection.commit()
        else:
            connection.rollback()

    def stop(self) -> None:
        self._ended.set()
        self.join(30)
        assert self.error is None, self.error
