"""PostgreSQL, by psycopg: `pip install 'headwater[postgres]'`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from headwater.common.advice import warn_user
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.optional_library import optional_library
from headwater.datastream.connectors.jdbc.copy_text import COPY_TEXT, rows_of
from headwater.datastream.connectors.jdbc.database import (
    CONNECT_SECONDS,
    LOCK_SECONDS,
    MARKS,
    ROWS,
    Database,
    MarkKey,
)
from headwater.datastream.connectors.jdbc.declared_types import family_of, fits
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.limits import ColumnLimits
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions
from headwater.datastream.connectors.jdbc.postgres_copy import Target, copy_rows, stored_name
from headwater.datastream.connectors.jdbc.postgres_limits import column_limits
from headwater.datastream.connectors.jdbc.statement import Statement

RENAMED: Final = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "targetServerType": "target_session_attrs",
    "sslcert": "sslcert",
}
"""{name of Java's driver: libpq's}. Others are libpq's own, or an error."""
WITHOUT_EFFECT: Final = frozenset(
    (
        "socketTimeout", "reWriteBatchedInserts", "stringtype", "prepareThreshold", "preparedStatementCacheQueries",
        "defaultRowFetchSize", "binaryTransfer", "loggerLevel", "autosave", "preferQueryMode", "sslfactory",
    )
)  # fmt: skip
"""Settings of Java's driver that mean nothing here: said, not refused."""
_PASSING_CLASSES: Final = ("08", "40", "53", "55", "57", "58")
"""Classes of SQLSTATE: connection, rollback, resources, object in use, operator intervention, system error."""
_REFUSED: Final = ("authentication failed", "no pg_hba.conf entry", "does not exist", "no password supplied")


class Postgres(Database):
    name = "PostgreSQL"
    postgres_types = True

    def __init__(self, options: JdbcConnectionOptions, owner: str) -> None:
        super().__init__(options, owner)
        self._psycopg = optional_library("psycopg", "postgres", f"{owner}: PostgreSQL")

    @property
    def error(self) -> type[Exception]:
        found: type[Exception] = self._psycopg.Error
        return found

    def may_pass(self, error: Exception) -> bool:
        state = getattr(error, "sqlstate", None)
        if state is not None:
            return str(state).startswith(_PASSING_CLASSES)
        refused = any(words in str(error) for words in _REFUSED)
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError)) and not refused

    def connection_settings(self) -> dict[str, Any]:
        """libpq's settings."""
        self.resolve_secrets()
        found: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "client_encoding": "UTF8", "keepalives_idle": 30}
        if self.url.hosts:
            found["host"] = ",".join(host for host, _ in self.url.hosts)
            if any(port is not None for _, port in self.url.hosts):
                found["port"] = ",".join(str(port or 5432) for _, port in self.url.hosts)
        for key, value in (("dbname", self.url.database), ("user", self.user), ("password", self.password)):
            if value:
                found[key] = value
        for key, value in self.url.properties.items():
            if key in WITHOUT_EFFECT:
                warn_user(f"{self.owner}: '{key}' in the JDBC URL has no effect in headwater")
            elif key == "currentSchema":
                found["options"] = f"{found.get('options', '')} -c search_path={value}".strip()
            elif key == "ssl":
                if value.lower() != "false":
                    found.setdefault("sslmode", "verify-full")
            else:
                found[RENAMED.get(key, key)] = value
        return found

    def connect(self, purpose: str = "headwater") -> Any:
        settings = {"application_name": purpose, **self.connection_settings()}
        try:
            return self._psycopg.connect(**settings)
        except self._psycopg.ProgrammingError as error:
            raise ConfigurationError(f"{self.owner}: {self.describe()}: {str(error).strip()}") from None
        except self._psycopg.Error as error:
            raise self.failed("cannot connect", error) from None

    def sql_of(self, statement: Statement) -> str:
        return statement.with_percents()

    def check(self, connection: Any, statement: Statement, declared: Sequence[Any] | None) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PREPARE headwater_check AS {statement.with_numbers()}")
        found = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'headwater_check'"
        types = cursor.execute(found).fetchone()[0]
        for number, (wanted, there) in enumerate(zip(declared or (), types, strict=False), 1):
            if not fits(family_of(wanted), there):
                raise HeadwaterError(
                    f"{self.owner}: value {number} of the statement is of type {there} in {self.describe()}, and the "
                    f"rows' field {number} is declared as {wanted!r}; change one of them, or convert in the statement: "
                    f"CAST(? AS {there})"
                )
        # Planning it checks the rights on the table, too.
        cursor.execute(f"EXPLAIN EXECUTE headwater_check ({', '.join(['NULL'] * statement.parameters)})")
        connection.rollback()
        cursor.execute("DEALLOCATE headwater_check")
        connection.commit()

    def check_types(self, connection: Any, expected: ExpectedTable) -> None:
        asked = "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        codes = dict(connection.execute(asked, (self.quoted_table(expected.table),)).fetchall())
        connection.rollback()
        expected.check(self.owner, codes, postgres_types=True)

    def limits(self, connection: Any, table: str) -> list[ColumnLimits]:
        found = column_limits(connection, table)
        connection.rollback()
        return found

    def stored_name(self, name: str) -> str:
        return stored_name(name)

    def make_marks(self, connection: Any) -> None:
        if connection.execute(f"SELECT to_regclass('{MARKS}')").fetchone()[0] is None:
            # Two at once would fail with a unique violation of the catalogue.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('headwater marks', 0))")
            super().make_marks(connection)
        connection.commit()

    def lock_mark(self, connection: Any, key: MarkKey) -> int:
        try:
            return self._lock_mark(connection, key)
        except self._psycopg.errors.LockNotAvailable:
            connection.rollback()
            self._end_blockers(connection, key)
            return self._lock_mark(connection, key)

    def _lock_mark(self, connection: Any, key: MarkKey) -> int:
        cursor = connection.cursor()
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        cursor.execute(f"INSERT INTO {MARKS} VALUES (%s, %s, %s, -1) ON CONFLICT DO NOTHING", key)
        asked = f"SELECT epoch FROM {MARKS} WHERE job_id = %s AND operator_uid = %s AND partition_index = %s FOR UPDATE"
        found: int = cursor.execute(asked, key).fetchone()[0]
        cursor.execute("SET LOCAL lock_timeout = 0")
        return found

    def _end_blockers(self, connection: Any, key: MarkKey) -> None:
        """End the sessions of a driver before this one that hangs, or was stopped, in the middle of its commit.

        Whether it had committed is what the mark says afterwards.
        """
        name = connection.info.parameter_status("application_name")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s "
            "AND pid <> pg_backend_pid() AND usename = current_user AND datname = current_database() "
            f"AND state <> 'idle' AND xact_start < now() - interval '{LOCK_SECONDS} seconds'",
            (name,),
        )
        connection.commit()

    # --- input

    def primary_key(self, connection: Any, table: str) -> list[str]:
        asked = (
            "SELECT a.attname FROM pg_index i "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
            "WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)"
        )
        return [name for (name,) in connection.execute(asked, (table,)).fetchall()]

    def as_text(self, expression: str) -> str:
        return f"{expression}::text"

    def stream(self, connection: Any, sql: str, values: Sequence[Any]) -> Any:
        cursor = connection.cursor("headwater_rows")  # in the server: the client would fetch all rows at once
        cursor.execute(sql, values or None)  # with none, a % is a %
        return cursor

    def row_order(self, alias: str, columns: Sequence[str]) -> str:
        return f"{alias}::text"  # some types have no order

    # --- output

    def form_of(self, statement: Statement) -> str:
        return ROWS if statement.copy_plan() is None else COPY_TEXT

    def warn_if_slow(self, connection: Any, statement: Statement) -> None:
        plan = statement.copy_plan()
        if plan is not None and (why := Target.of(connection, plan).why_rows(plan)):
            warn_user(f"{self.owner}: rows come to {plan.table} by single statements, not by COPY: {why}")
        connection.rollback()

    def rows_of(self, block: bytes) -> list[Any]:
        # The values stay texts: the server reads each as the type of its column, as COPY does.
        return rows_of(block)

    def write_copy(self, connection: Any, statement: Statement, blocks: Iterable[bytes], size: int) -> None:
        plan = statement.copy_plan()
        assert plan is not None
        target = Target.of(connection, plan)
        if target.why_rows(plan):
            self.write_rows(connection, statement, map(self.rows_of, blocks), size)
        else:
            copy_rows(connection, plan, target, blocks)
