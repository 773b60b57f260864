"""A table, or a query, as a bounded source: ranges of a column are read side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.secrets import without_passwords
from headwater.datastream.connectors.jdbc.database import Database, open_database
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions
from headwater.datastream.connectors.jdbc.reader import JdbcReader, RowRange

DEFAULT_FETCH_SIZE: Final = 5000


class JdbcSource(Source):
    """Reads the rows of a query once, as `Row`s with the names of its columns.

    Each split is a range of the partition column and belongs to one state of the database, as long as its reader is
    open. Rows that change while the job runs may be read as they are then.
    """

    def __init__(
        self,
        options: JdbcConnectionOptions,
        query: str,
        table: str | None,
        partition: tuple[str, int, int, int] | None,
        fetch_size: int,
        expected: ExpectedTable | None = None,
    ) -> None:
        self._options = options
        self._query = query
        self._table = table
        """Set if the query is all of this table."""
        self._partition = partition
        """(column, lower, upper, number of ranges)"""
        self._fetch_size = fetch_size
        self._expected = expected
        """Set for a table of SQL: only these columns are read."""

    @staticmethod
    def builder() -> JdbcSourceBuilder:
        return JdbcSourceBuilder()

    def __repr__(self) -> str:
        return f"{self._owner[:-1]}, {self._table or self._query})"

    @property
    def _owner(self) -> str:
        return f"JdbcSource ({without_passwords(self._options.url).partition('?')[0]})"

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []
        database = open_database(self._options, self._owner)
        connection = database.connect()
        try:
            return self._splits(database, connection, parallelism)
        except database.error as error:
            raise database.failed("cannot run the query", error) from None
        finally:
            connection.close()

    def _splits(self, database: Database, connection: Any, parallelism: int) -> list[Split]:
        cursor = connection.cursor()
        cursor.execute(f"SELECT * FROM {self._from} WHERE 1 = 0")
        codes = {column[0]: column[1] for column in cursor.description}
        columns = tuple(codes)
        key = tuple(database.primary_key(connection, self._table)) if self._table is not None else ()
        select: tuple[str, ...] = ()
        if self._expected is not None:
            more = key if self._partition is None else (self._partition[0],)
            columns = tuple(dict.fromkeys((*self._expected.names, *(each for each in more if each in codes))))
            select = database.selected(self._expected, self._owner, codes, columns)
        if self._partition is not None:
            column, lower, upper, number = self._partition
            if column not in codes:
                raise HeadwaterError(f"{self._owner}: the query has no column '{column}'; it has {', '.join(codes)}")
            self._refuse_nulls(database, connection, column)
            return _ranges(RowRange(columns, (column,), None, None, select), lower, upper, number, open_ended=True)
        rows = RowRange(columns, key, None, None, select, ordered=self._expected is not None)
        if key:
            first = f"q.{database.quoted(key[0])}"
            cursor.execute(f"SELECT min({first}), max({first}) FROM {self._from}")
            low, high = cursor.fetchone()
            if isinstance(low, int) and isinstance(high, int):
                return _ranges(rows, low, high, min(parallelism, high - low + 1), open_ended=False)
        return [Split("0", rows)]

    def _refuse_nulls(self, database: Database, connection: Any, column: str) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SELECT count(*) FROM {self._from} WHERE q.{database.quoted(column)} IS NULL")
        (found,) = cursor.fetchone()
        if found:
            raise HeadwaterError(
                f"{self._owner}: column '{column}' is NULL in {found} rows, which no range contains; choose another "
                "partition column, or exclude them in the query"
            )

    @property
    def _from(self) -> str:
        return f"({self._query}) q"

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        database = open_database(self._options, self._owner)
        return JdbcReader(database, self._from, split.payload, position, self._fetch_size)


def _ranges(rows: RowRange, lower: int, upper: int, number: int, *, open_ended: bool) -> list[Split]:
    """Cut `lower` to `upper` into ranges. With `open_ended`, the first and the last one take what is outside."""
    bounds = [lower + (upper + 1 - lower) * index // number for index in range(number + 1)]
    splits = []
    for index in range(number):
        low = None if open_ended and index == 0 else bounds[index]
        high = None if open_ended and index == number - 1 else bounds[index + 1]
        splits.append(Split(str(index), replace(rows, low=low, high=high)))
    return splits


class JdbcSourceBuilder:
    """Collects the settings of a `JdbcSource`."""

    def __init__(self) -> None:
        self._connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        self._query: str | None = None
        self._table: str | None = None
        self._partition: tuple[str, int, int, int] | None = None
        self._fetch_size = DEFAULT_FETCH_SIZE

    def set_db_url(self, url: str) -> JdbcSourceBuilder:
        self._connection.with_url(url)
        return self

    def set_username(self, username: str) -> JdbcSourceBuilder:
        self._connection.with_user_name(username)
        return self

    def set_password(self, password: str) -> JdbcSourceBuilder:
        """Better a reference: ${env:NAME}, ${file:/path}."""
        self._connection.with_password(password)
        return self

    def set_driver_name(self, driver_name: str) -> JdbcSourceBuilder:
        """Without effect, as in the connection's options."""
        self._connection.with_driver_name(driver_name)
        return self

    def set_sql(self, sql: str) -> JdbcSourceBuilder:
        """The query. Without a partition column it is read by one reader; then give it an ORDER BY that is total: a
        reader that goes on after a failure skips as many rows as were read."""
        self._query = sql.strip().rstrip(";")
        return self

    def set_table(self, table: str) -> JdbcSourceBuilder:
        """All of a table. It is cut by its primary key, if that begins with a number."""
        self._table = table
        return self

    def set_partition_column(self, column: str, lower: int, upper: int, number: int) -> JdbcSourceBuilder:
        """Read `number` ranges of a numeric column side by side. Values outside of the bounds are read, too."""
        for name, value in (("lower", lower), ("upper", upper), ("number", number)):
            if not isinstance(value, int):
                raise ConfigurationError(f"set_partition_column: {name}: expected a number, found {value!r}")
        if lower > upper or number < 1:
            raise ConfigurationError(
                f"set_partition_column: expected lower <= upper and number >= 1, found {lower}, {upper}, {number}"
            )
        self._partition = (column, lower, upper, number)
        return self

    def set_result_set_fetch_size(self, fetch_size: int) -> JdbcSourceBuilder:
        """How many rows come in one round trip."""
        if not isinstance(fetch_size, int) or fetch_size < 1:
            raise ConfigurationError(
                f"set_result_set_fetch_size: expected a number of at least 1, found {fetch_size!r}"
            )
        self._fetch_size = fetch_size
        return self

    def build(self) -> JdbcSource:
        if (self._query is None) == (self._table is None):
            raise ConfigurationError("JdbcSource: expected a query or a table; call set_sql or set_table, one of them")
        options = self._connection.build()
        open_database(options, "JdbcSource")  # says what is wrong with the URL, or which driver is missing
        query = self._query if self._query is not None else f"SELECT * FROM {self._table}"
        return JdbcSource(options, query, self._table, self._partition, self._fetch_size)
