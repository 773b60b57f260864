"""Rows of a table by key: in batches, cached, and for streams without waiting for each."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from headwater.common.errors import ConfigurationError, HeadwaterError, short_repr
from headwater.common.secrets import without_passwords
from headwater.common.types import Row, named_row
from headwater.datastream.connectors.jdbc.asked_keys import AskedKeys
from headwater.datastream.connectors.jdbc.database import Database, open_database
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions
from headwater.operators.functions.asynchronous import AsyncFunction
from headwater.operators.functions.runtime_context import RuntimeContext

KEYS_PER_QUERY: Final = 500


class JdbcLookup:
    """Looks up the rows of a table by the values of some columns. Picklable; connects where it is used.

    With `cache_max_rows` the rows of the keys that were asked for last are kept, for `cache_expire_ms` at most; so is
    the fact that a key has none. A row that changed in the table is then seen late, by that time at most.
    """

    def __init__(
        self,
        options: JdbcConnectionOptions,
        table: str,
        keys: Sequence[str],
        columns: Sequence[str],
        *,
        cache_max_rows: int = 0,
        cache_expire_ms: int = 60_000,
        texts: Collection[str] = (),
    ) -> None:
        if not keys or not columns:
            raise ConfigurationError(f"JdbcLookup: expected key columns and columns, found {keys!r} and {columns!r}")
        self._options = options
        self._table = table
        self._keys = list(keys)
        self._columns = list(columns)
        self._texts = frozenset(texts)
        """Columns whose values come as texts, whatever they are in the database."""
        self._max_rows = cache_max_rows
        self._expire_ms = cache_expire_ms
        self._database_or_none: Database | None = None
        self._connection: Any = None
        self._cache: OrderedDict[Any, tuple[float, list[Row]]] = OrderedDict()  # {key: (until when, rows)}
        self._cached_rows = 0
        self.hits = 0
        self.misses = 0

    def __getstate__(self) -> dict[str, Any]:
        fresh: dict[str, Any] = {
            "_database_or_none": None,
            "_connection": None,
            "_cached_rows": 0,
            "_cache": OrderedDict(),
        }
        return {**self.__dict__, **fresh}

    @property
    def _database(self) -> Database:
        if self._database_or_none is None:
            owner = f"JdbcLookup ({without_passwords(self._options.url).partition('?')[0]}, {self._table})"
            self._database_or_none = open_database(self._options, owner)
        return self._database_or_none

    def cached(self, key: Any) -> list[Row] | None:
        """The rows of a key, if the cache has them. Counts."""
        found = self._cache.get(key)
        if found is not None and found[0] > time.monotonic():
            self._cache.move_to_end(key)
            self.hits += 1
            return found[1]
        self.misses += 1
        return None

    def lookup(self, keys: Iterable[Any]) -> dict[Any, list[Row]]:
        """Return {key: rows}. A key is a value, or a tuple of them if there are several key columns.

        The rows are the cache's: do not change them. Keys must be spelled as in the table, also where the database
        ignores case: a row that it finds under another spelling is an error. A UUID may be asked for as a text, a
        number as a float, and a char(n) of PostgreSQL without the spaces at its end. Raises ExternalSystemError if the
        database cannot be reached.
        """
        found: dict[Any, list[Row]] = {}
        missing: list[Any] = []
        for key in dict.fromkeys(keys):
            rows = self.cached(key)
            if rows is None:
                missing.append(key)
            else:
                found[key] = rows
        for first in range(0, len(missing), KEYS_PER_QUERY):
            some = missing[first : first + KEYS_PER_QUERY]
            asked = self._ask(some)
            for key in some:
                self._keep(key, asked[key])
            found |= asked
        return found

    def _ask(self, keys: list[Any]) -> dict[Any, list[Row]]:
        database = self._database
        single = len(self._keys) == 1
        values = [(key,) if single else tuple(key) for key in keys]
        found: dict[Any, list[Row]] = {key: [] for key in keys}
        retried = False
        while True:
            fresh = self._connection is None
            try:
                if fresh:
                    self._connection = database.connect()
                cursor = self._connection.cursor()
                known = [value for value in values if None not in value]  # NULL equals nothing
                if known:
                    cursor.execute(self._sql(database, len(known)), [part for value in known for part in value])
                    width = len(self._keys)
                    codes = [column[1] for column in cursor.description[:width]]
                    asked = AskedKeys(known, codes, postgres_types=database.postgres_types)
                    for row in cursor.fetchall():
                        for key in asked.of(row[:width]) or self._unasked(known, row[:width]):
                            found[key[0] if single else key].append(named_row(list(row[width:]), self._columns))
                self._connection.rollback()  # the next question sees a newer state
                return found
            except database.error as error:
                self.close()
                if fresh or retried or not database.may_pass(error):
                    raise database.failed("cannot look up keys", error) from None
                retried = True
                found = {key: [] for key in keys}

    def _unasked(self, asked: list[tuple[Any, ...]], answered: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Raise an error for a row whose key nobody asked for, as it seems here: it would be taken for no row.

        Texts of SQL are compared as SQL does it, whatever the database takes for equal: no row is right, then.
        """
        if any(name in self._texts for name in self._keys):
            return []
        single = len(self._keys) == 1
        given = [key[0] if single else key for key in asked]
        found = answered[0] if single else answered
        raise HeadwaterError(
            f"{self._database.owner}: the database found a row with ({', '.join(self._keys)}) = {short_repr(found)}, "
            f"which is none of the keys that were asked for, as {short_repr(given[:3])}; ask with the values and "
            "types that the table has"
        )

    def _sql(self, database: Database, count: int) -> str:
        names = [database.quoted(name) for name in self._keys]
        columns = ", ".join(
            database.as_text(database.quoted(name)) if name in self._texts else database.quoted(name)
            for name in (*self._keys, *self._columns)
        )
        one = "(" + ", ".join([database.placeholder] * len(names)) + ")"
        rows = ", ".join([one] * count)
        matches = f"({', '.join(names)}) IN (VALUES {rows})" if len(names) > 1 else f"{names[0]} IN ({rows})"
        return f"SELECT {columns} FROM {self._table} WHERE {matches}"

    def _keep(self, key: Any, rows: list[Row]) -> None:
        if self._max_rows <= 0:
            return
        before = self._cache.pop(key, None)
        self._cached_rows += max(1, len(rows)) - (max(1, len(before[1])) if before else 0)
        self._cache[key] = (time.monotonic() + self._expire_ms / 1000, rows)
        while self._cached_rows > self._max_rows and self._cache:
            _, (_, dropped) = self._cache.popitem(last=False)
            self._cached_rows -= max(1, len(dropped))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()


class JdbcLookupFunction(AsyncFunction):
    """For `AsyncDataStream`: looks up each record's key. Records that wait at the same time share a query.

    :param key_of: the key of a record.
    :param join: makes results of a record and the rows of its key.
    """

    def __init__(
        self, lookup: JdbcLookup, key_of: Callable[[Any], Any], join: Callable[[Any, list[Row]], Iterable[Any]]
    ) -> None:
        self._lookup = lookup
        self._key_of = key_of
        self._join = join

    def open(self, runtime_context: RuntimeContext) -> None:
        self._waiting: dict[Any, asyncio.Future[list[Row]]] = {}
        self._asking = threading.Lock()
        group = runtime_context.get_metrics_group()
        self._hits, self._misses = group.counter("lookupCacheHits"), group.counter("lookupCacheMisses")

    async def async_invoke(self, value: Any) -> list[Any]:
        key = self._key_of(value)
        waiting = self._waiting.get(key)
        if waiting is None:
            loop = asyncio.get_running_loop()
            if not self._waiting:
                loop.call_soon(self._ask)
            waiting = self._waiting[key] = loop.create_future()
        return list(self._join(value, await asyncio.shield(waiting)))

    def _ask(self) -> None:
        """Ask for all keys that wait now, in another thread."""
        waiting, self._waiting = self._waiting, {}
        task = asyncio.ensure_future(asyncio.to_thread(self._answer, list(waiting)))

        def done(answered: asyncio.Future[dict[Any, list[Row]]]) -> None:
            error = answered.exception()
            for key, future in waiting.items():
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(answered.result()[key])

        task.add_done_callback(done)

    def _answer(self, keys: list[Any]) -> dict[Any, list[Row]]:
        with self._asking:  # one connection
            hits, misses = self._lookup.hits, self._lookup.misses
            found = self._lookup.lookup(keys)
            self._hits.inc(self._lookup.hits - hits)
            self._misses.inc(self._lookup.misses - misses)
            return found

    def close(self) -> None:
        self._lookup.close()
