"""Change data of any database: applied as strictly as a table would, and made at random."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from headwater.common import Row, RowKind
from headwater.common.connector import Source, SplitReader
from tests.waiting import wait_until


def start(source: Source) -> Any:
    """A reader of the source's only split, from its beginning."""
    (split,) = source.discover_splits(1, frozenset())
    return source.open_reader(split, None)


def read_until(reader: SplitReader, condition: Callable[[list[Any]], bool], batch: int = 1000) -> list[Any]:
    found: list[Any] = []

    def done() -> bool:
        found.extend(reader.read_batch(batch) or [])
        return condition(found)

    wait_until(done, lambda: f"more than {found[-5:]}", 30)
    return found


def kinds(rows: list[Row]) -> list[str]:
    return [f"{row.get_row_kind()}{row[0]}" for row in rows]


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


class RandomWriter(threading.Thread):
    """Inserts, updates, moves and deletes rows of `items`, in transactions of several statements, some rolled back."""

    insert: str
    """Of %(key)s and %(name)s, or an update if the key is there."""
    move: str
    """From %(key)s to %(other)s, if nothing is there."""

    def __init__(self, connect: Callable[[], AbstractContextManager[Any]], seed: int, key: str = "number") -> None:
        super().__init__(daemon=True)
        self._connect = connect
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
            with self._connect() as connection:
                while not self._ended.is_set():
                    self._transaction(connection)
                    self.transactions += 1
        except BaseException as error:
            self.error = error

    def _transaction(self, connection: Any) -> None:
        dice, cursor = self._dice, connection.cursor()
        update, delete = "UPDATE items SET name = %(name)s WHERE id = %(key)s", "DELETE FROM items WHERE id = %(key)s"
        for _ in range(dice.randint(1, 5)):
            values = {"key": self.some_key(), "name": uuid.uuid4().hex[: dice.randint(0, 8)], "other": self.some_key()}
            cursor.execute(dice.choice([self.insert, update, delete, self.move]), values)
        if dice.randrange(5):
            connection.commit()
        else:
            connection.rollback()

    def stop(self) -> None:
        self._ended.set()
        self.join(30)
        assert self.error is None, self.error
