"""MySQL and MariaDB, by PyMySQL: `pip install 'headwater[mysql]'`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headwater.common.advice import warn_user
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.optional_library import optional_library
from headwater.datastream.connectors.jdbc.database import (
    CONNECT_SECONDS,
    CREATE_MARKS,
    LOCK_SECONDS,
    MARKS,
    Database,
    MarkKey,
)
from headwater.datastream.connectors.jdbc.limits import ColumnLimits
from headwater.datastream.connectors.jdbc.mysql_tls import TLS_PROPERTIES, tls_settings
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions
from headwater.datastream.connectors.jdbc.statement import Statement, unquoted

TAKEN: Final = {"unix_socket": "unix_socket", "localSocket": "unix_socket", "connectTimeout": "connect_timeout"}
"""{property of the URL: PyMySQL's setting}"""
_PASSING: Final = frozenset((1040, 1053, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 2002, 2003, 2006, 2013, 2055, 0))
"""Codes: too many connections, shutdown, aborted, lock wait, deadlock, server gone or away."""
_CHECK_VIOLATED: Final = (4025, 3819)
"""MariaDB's code and MySQL's."""
_COLUMNS: Final = """
SELECT c.column_name, c.column_type, c.data_type,
  c.is_nullable = 'NO' AND c.extra NOT LIKE '%%auto_increment%%' AND c.data_type <> 'timestamp' AND NOT EXISTS (
    SELECT 1 FROM information_schema.triggers t WHERE t.event_object_schema = c.table_schema
    AND t.event_object_table = c.table_name AND t.action_timing = 'BEFORE'),
  c.character_maximum_length, c.numeric_precision, c.numeric_scale
FROM information_schema.columns c JOIN information_schema.tables b USING (table_schema, table_name)
WHERE c.table_schema = coalesce(%s, DATABASE()) AND c.table_name = %s AND b.table_type = 'BASE TABLE'
"""
"""A NULL for a column that counts, or for a TIMESTAMP, or before a trigger, may become a value."""
_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def _limits(
    name: str, declared: str, kind: str, not_null: int, length: int | None, precision: int | None, scale: int | None
) -> ColumnLimits:
    kind, required = kind.lower(), bool(not_null)
    shown = f"{declared} NOT NULL" if required else declared
    if kind in ("varchar", "char"):
        return ColumnLimits(name, shown, required, characters=length)
    unsigned = "unsigned" in declared.lower()
    if kind == "decimal" and precision is not None:
        return ColumnLimits(name, shown, required, digits=precision - (scale or 0), scale=scale or 0)
    return ColumnLimits(name, shown, required, bits=_BITS.get(kind), unsigned=unsigned)


class MySql(Database):
    name = "MySQL"

    def __init__(self, options: JdbcConnectionOptions, owner: str) -> None:
        super().__init__(options, owner)
        self._pymysql = optional_library("pymysql", "mysql", f"{owner}: MySQL")

    @property
    def error(self) -> type[Exception]:
        found: type[Exception] = self._pymysql.Error
        return found

    def may_pass(self, error: Exception) -> bool:
        code = error.args[0] if error.args else 0
        if not isinstance(error, (self._pymysql.OperationalError, self._pymysql.InterfaceError)):
            return False
        return code in _PASSING and "CERTIFICATE_VERIFY_FAILED" not in str(error)

    def refuses_row(self, error: Exception) -> bool:
        return super().refuses_row(error) or bool(error.args and error.args[0] in _CHECK_VIOLATED)

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def connection_settings(self) -> dict[str, Any]:
        """PyMySQL's settings."""
        self.resolve_secrets()
        found: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "charset": "utf8mb4"}
        if len(self.url.hosts) > 1:
            raise ConfigurationError(f"{self.owner}: {self.describe()}: expected one host")
        for host, port in self.url.hosts:
            found |= {"host": host} | ({} if port is None else {"port": port})
        for key, value in (("database", self.url.database), ("user", self.user), ("password", self.password)):
            if value:
                found[key] = value
        for key, value in self.url.properties.items():
            if key == "connectTimeout":
                found["connect_timeout"] = max(1, int(value) // 1000)
            elif key in TAKEN:
                found[TAKEN[key]] = value
            elif key not in TLS_PROPERTIES:
                warn_user(f"{self.owner}: '{key}' in the JDBC URL has no effect in headwater")
        return found | tls_settings(self.url.properties, self.owner)

    def connect(self, purpose: str = "headwater") -> Any:
        try:
            connection = self._pymysql.connect(**self.connection_settings())
            connection.cursor().execute(f"SET SESSION innodb_lock_wait_timeout = {LOCK_SECONDS}, time_zone = '+00:00'")
            connection.commit()
            return connection
        except self._pymysql.Error as error:
            raise self.failed("cannot connect", error) from None

    def sql_of(self, statement: Statement) -> str:
        return statement.with_percents()

    def check(self, connection: Any, statement: Statement, declared: Sequence[Any] | None) -> None:
        cursor = connection.cursor()
        cursor.execute("PREPARE headwater_check FROM %s", (statement.sql,))
        cursor.execute("DEALLOCATE PREPARE headwater_check")
        table = statement.table()
        if table is None:
            return
        cursor.execute(
            "SELECT t.engine FROM information_schema.tables t JOIN information_schema.engines e ON t.engine = e.engine "
            "WHERE t.table_schema = DATABASE() AND t.table_name = %s AND e.transactions <> 'YES'",
            (table,),
        )
        found = cursor.fetchone()
        if found is not None:
            raise HeadwaterError(
                f"{self.owner}: table '{table}' in {self.describe()} has engine {found[0]}, which has no "
                "transactions; make it InnoDB, or choose DeliveryGuarantee.AT_LEAST_ONCE"
            )

    def limits(self, connection: Any, table: str) -> list[ColumnLimits]:
        schema, _, name = table.rpartition(".")
        place = unquoted(schema.strip()) or None, unquoted(name.strip())
        cursor = connection.cursor()
        cursor.execute(f"{_COLUMNS} ORDER BY c.ordinal_position", place)
        return [_limits(*row) for row in cursor.fetchall()]

    def upsert(self, table: str, columns: Sequence[str], key: Sequence[str]) -> str:
        sets = ", ".join(f"{self.quoted(c)} = VALUES({self.quoted(c)})" for c in columns if c not in key)
        sets = sets or f"{self.quoted(key[0])} = {self.quoted(key[0])}"
        return f"{self.insert(table, columns)} ON DUPLICATE KEY UPDATE {sets}"

    def check_replaces(self, connection: Any, table: str, key: Sequence[str]) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SHOW KEYS FROM {table} WHERE Non_unique = 0")
        unique: dict[str, set[str]] = {}
        for row in cursor.fetchall():
            unique.setdefault(row[2], set()).add(row[4])
        if set(key) not in unique.values():
            raise HeadwaterError(
                f"{self.owner}: table {table} in {self.describe()} has no primary or unique key ({', '.join(key)}): "
                "rows would be added, and replace none. Add it to the table"
            )

    def primary_key(self, connection: Any, table: str) -> list[str]:
        cursor = connection.cursor()
        cursor.execute(f"SHOW KEYS FROM {table} WHERE Key_name = 'PRIMARY'")
        return [row[4] for row in sorted(cursor.fetchall(), key=lambda row: int(row[3]))]

    def stream(self, connection: Any, sql: str, values: Sequence[Any]) -> Any:
        cursor = connection.cursor(self._pymysql.cursors.SSCursor)  # others fetch all rows at once
        cursor.execute(sql, values or None)  # with none, a % is a %
        return cursor

    def make_marks(self, connection: Any) -> None:
        connection.cursor().execute(f"{CREATE_MARKS} ENGINE = InnoDB")
        connection.commit()

    def lock_mark(self, connection: Any, key: MarkKey) -> int:
        cursor = connection.cursor()
        cursor.execute(f"INSERT IGNORE INTO {MARKS} VALUES (%s, %s, %s, -1)", key)
        asked = f"SELECT epoch FROM {MARKS} WHERE job_id = %s AND operator_uid = %s AND partition_index = %s FOR UPDATE"
        cursor.execute(asked, key)
        found: int = cursor.fetchone()[0]
        return found
