"""What the connector needs of a database: one class per kind derives from it, in a file of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.common.secrets import resolve, without_passwords
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.limits import ColumnLimits
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions
from headwater.datastream.connectors.jdbc.statement import Statement, unquoted
from headwater.datastream.connectors.jdbc.url import JdbcUrl, parse_url

CONNECT_SECONDS: Final = 10
LOCK_SECONDS: Final = 10
"""How long a commit waits for another one of the same sink and partition: then it asks who that is."""
MARKS: Final = "headwater_sink_marks"
"""The table with one row per job, sink and partition: up to which epoch its output is there."""
CREATE_MARKS: Final = (
    f"CREATE TABLE IF NOT EXISTS {MARKS} (job_id varchar(100) NOT NULL, operator_uid varchar(255) NOT NULL, "
    "partition_index integer NOT NULL, epoch bigint NOT NULL, PRIMARY KEY (job_id, operator_uid, partition_index))"
)

ROWS: Final = "rows"
"""A form of spooled output: pickled lists of tuples."""

MarkKey = tuple[str, str, int]
"""(job, operator uid, partition)"""


class Database(ABC):
    """How to reach one database. References to secrets are resolved when it connects. Connections are DB-API's."""

    name: ClassVar[str]
    """For people."""
    placeholder: ClassVar[str] = "%s"
    """The driver's sign for a value."""
    parallel_writes: ClassVar[int] = 4
    """How many transactions write at once."""
    postgres_types: ClassVar[bool] = False
    """The driver's types of columns are PostgreSQL's oids."""

    def __init__(self, options: JdbcConnectionOptions, owner: str) -> None:
        self.owner = owner
        self._options = options
        self.url: JdbcUrl = parse_url(options.url)
        self.user: str | None = None
        self.password: str | None = None

    def resolve_secrets(self) -> None:
        """Look where references point to. Called before each connection: a password may have been replaced."""
        options, owner = self._options, self.owner
        self.url = parse_url(resolve(options.url, f"{owner}: the URL"))
        properties = self.url.properties
        user, password = properties.pop("user", None), properties.pop("password", None)
        user = user if options.user_name is None else options.user_name
        password = password if options.password is None else options.password
        self.user = None if user is None else resolve(user, f"{owner}: the user name")
        self.password = None if password is None else resolve(password, f"{owner}: the password")

    def describe(self) -> str:
        """Which database it is, for errors."""
        hosts = ",".join(host if port is None else f"{host}:{port}" for host, port in self.url.hosts)
        return f"{self.name} database '{self.url.database}'" + (f" at {hosts}" if hosts else "")

    # --- errors

    @property
    @abstractmethod
    def error(self) -> type[Exception]:
        """The base of the driver's errors."""

    @abstractmethod
    def may_pass(self, error: Exception) -> bool:
        """Return True if time may cure it: the server is away, restarts, or has chosen a victim of a deadlock."""

    def refuses_row(self, error: Exception) -> bool:
        """Return True if the error is about the values of a row."""
        return any(each.__name__ in ("DataError", "IntegrityError") for each in type(error).__mro__)  # as DB-API has it

    def failed(self, what: str, error: Exception) -> HeadwaterError:
        """Return the error to raise: `what` could not be done."""
        text = without_passwords(self.text_of(error).strip(), self.password or "")
        message = f"{self.owner}: {what} in {self.describe()}: {text}"
        return ExternalSystemError(message) if self.may_pass(error) else HeadwaterError(message)

    def text_of(self, error: Exception) -> str:
        return f"{type(error).__name__}: {error}"

    # --- connections

    @abstractmethod
    def connect(self, purpose: str = "headwater") -> Any:
        """Return a new connection, whose first statement begins a transaction. Raises what `failed` makes."""

    def quoted(self, name: str) -> str:
        """A name, as it is."""
        return '"' + name.replace('"', '""') + '"'

    def quoted_table(self, name: str) -> str:
        """A table by its name, with its schema or without: orders, public.orders. One with quotes is as it is."""
        if any(each in name for each in '"`'):
            return name
        return ".".join(map(self.quoted, name.split(".")))

    @abstractmethod
    def sql_of(self, statement: Statement) -> str:
        """The statement, as the driver takes it."""

    @abstractmethod
    def check(self, connection: Any, statement: Statement, declared: Sequence[Any] | None) -> None:
        """Raise an error of the driver's if the statement cannot run: table, columns, rights. Writes nothing.

        :param declared: the types of the rows' fields.
        """

    def check_replaces(self, connection: Any, table: str, key: Sequence[str]) -> None:
        """Raise HeadwaterError if the statement of `upsert` would not replace rows by `key`, and would not say so."""

    def check_types(self, connection: Any, expected: ExpectedTable) -> None:
        """Raise HeadwaterError if columns are of types that would take the values and mean something else."""

    def limits(self, connection: Any, table: str) -> list[ColumnLimits]:
        """What the columns of a table refuse, in any order. `table` is as the statement has it."""
        return []

    def stored_name(self, name: str) -> str:
        """A name of a statement, as the catalogue has it."""
        return unquoted(name)

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """The INSERT (with ?) of these columns."""
        return f"INSERT INTO {table} ({', '.join(map(self.quoted, columns))}) VALUES ({', '.join('?' * len(columns))})"

    def upsert(self, table: str, columns: Sequence[str], key: Sequence[str]) -> str:
        """The INSERT (with ?) that replaces the row of the same key."""
        keys = ", ".join(map(self.quoted, key))
        sets = ", ".join(f"{self.quoted(c)} = EXCLUDED.{self.quoted(c)}" for c in columns if c not in key)
        then = f"UPDATE SET {sets}" if sets else "NOTHING"
        return f"{self.insert(table, columns)} ON CONFLICT ({keys}) DO {then}"

    # --- marks

    def make_marks(self, connection: Any) -> None:
        """Make the table of marks, if it is not there."""
        connection.cursor().execute(CREATE_MARKS)
        connection.commit()

    def try_mark(self, connection: Any, key: MarkKey) -> None:
        """Raise an error of the driver's if marks cannot be set, for want of a right. Leaves nothing."""
        self.lock_mark(connection, key)
        self.set_mark(connection, key, 0)
        connection.rollback()

    @abstractmethod
    def lock_mark(self, connection: Any, key: MarkKey) -> int:
        """Begin a transaction, and return the epoch up to which the output is there (-1: none).

        Until the transaction ends, another one with the same key waits here.
        """

    def set_mark(self, connection: Any, key: MarkKey, epoch: int) -> None:
        sql = f"UPDATE {MARKS} SET epoch = ? WHERE job_id = ? AND operator_uid = ? AND partition_index = ?"
        connection.cursor().execute(sql.replace("?", self.placeholder), (epoch, *key))

    # --- input

    @abstractmethod
    def primary_key(self, connection: Any, table: str) -> list[str]:
        """The columns of the table's primary key, in its order; [] if it has none."""

    def selected(
        self, expected: ExpectedTable, owner: str, codes: Mapping[str, Any], columns: Sequence[str]
    ) -> tuple[str, ...]:
        """The expressions that read `columns` of q. `codes`: the driver's type of each column that the table has."""
        expected.check(owner, codes, postgres_types=self.postgres_types)
        named = {column: f"q.{self.quoted(column)}" for column in columns}
        return tuple(self.as_text(sql) if column in expected.texts else sql for column, sql in named.items())

    def as_text(self, expression: str) -> str:
        """What reads a value that is a text in the program, and may be JSON, a UUID, … in the database."""
        return expression

    def stream(self, connection: Any, sql: str, values: Sequence[Any]) -> Any:
        """Run a query and return its cursor. Rows come as they are fetched; all belong to one state of the database."""
        cursor = connection.cursor()
        cursor.execute(sql, values)
        return cursor

    def row_order(self, alias: str, columns: Sequence[str]) -> str:
        """What to sort by so that rows which are equal there are equal in all columns."""
        return ", ".join(f"{alias}.{self.quoted(column)}" for column in columns)

    # --- output

    def form_of(self, statement: Statement) -> str:
        """In which form writers leave rows for this statement."""
        return ROWS

    def warn_if_slow(self, connection: Any, statement: Statement) -> None:
        """Tell people if the rows cannot come in the fast way that the statement would allow."""

    def write_rows(self, connection: Any, statement: Statement, batches: Iterable[list[Any]], size: int) -> None:
        """Run the statement for each row, `size` rows at a time."""
        cursor, sql = connection.cursor(), self.sql_of(statement)
        for rows in batches:
            for first in range(0, len(rows), size):
                cursor.executemany(sql, rows[first : first + size])

    def rows_of(self, block: bytes) -> list[Any]:
        """The rows of a block of a form of the database's own, as `write_rows` takes them."""
        raise HeadwaterError(f"{self.owner}: {self.name} takes no copied rows")

    def write_copy(self, connection: Any, statement: Statement, blocks: Iterable[bytes], size: int) -> None:
        """Write blocks of a form of the database's own; where they must be run as statements, `size` rows at a time."""
        raise HeadwaterError(f"{self.owner}: {self.name} takes no copied rows")


def open_database(options: JdbcConnectionOptions, owner: str) -> Database:
    """Return the database that the URL names. Raises ConfigurationError, also if its driver is not installed."""
    from headwater.datastream.connectors.jdbc.mysql import MySql
    from headwater.datastream.connectors.jdbc.postgres import Postgres
    from headwater.datastream.connectors.jdbc.sqlite import Sqlite

    kinds: dict[str, type[Database]] = {"postgres": Postgres, "mysql": MySql, "sqlite": Sqlite}
    return kinds[parse_url(options.url).kind](options, owner)
