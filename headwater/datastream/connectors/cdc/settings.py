"""Settings that all sources of change data have, and their builder with the names of Flink CDC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Generic, Self, TypeVar

from headwater.common.errors import ConfigurationError, short_repr
from headwater.datastream.connectors.cdc.changes import ChangeFormat, RowChanges
from headwater.datastream.connectors.cdc.startup import StartupOptions
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions


@dataclass
class ChangeSettings:
    """Settings of a source. `tables` are `schema.table`, or `database.table`."""

    source_name: ClassVar[str]

    options: JdbcConnectionOptions = field(default_factory=lambda: JdbcConnectionOptions(""), repr=False)
    tables: tuple[str, ...] = ()
    startup: StartupOptions = field(default_factory=StartupOptions.initial)
    chunk_rows: int = 8096
    schema_changes: bool = False
    truncate: str = "fail"
    form: ChangeFormat = field(default_factory=RowChanges)
    expected: ExpectedTable | None = None
    """Set for a table of SQL: what it must have when a job starts from nothing."""

    @property
    def owner(self) -> str:
        return f"{self.source_name} ({', '.join(self.tables)})"


S = TypeVar("S", bound=ChangeSettings)


class ChangeSourceBuilder(Generic[S]):
    """Collects settings. A value may refer to a secret: ${env:NAME}, ${file:/path}. A subclass adds `build`."""

    modes: ClassVar[tuple[str, ...]] = ("initial", "latest", "committed", "snapshot")
    """Which `StartupOptions` the source has."""

    def __init__(self, settings: S, port: int) -> None:
        self._settings = settings
        self._hostname = "localhost"
        self._port = port
        self._username: str | None = None
        self._password: str | None = None
        self._tables: tuple[str, ...] = ()
        self._form: ChangeFormat | None = None

    def hostname(self, hostname: str) -> Self:
        """A host, or a Unix socket: for PostgreSQL its directory, for MySQL its path."""
        self._hostname = hostname
        return self

    def port(self, port: int) -> Self:
        self._port = port
        return self

    def table_list(self, *tables: str) -> Self:
        """The tables: `schema.table` of PostgreSQL, `database.table` of MySQL."""
        self._tables = tables
        return self

    def username(self, username: str) -> Self:
        """For MySQL it needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT; for MySQL's snapshot also RELOAD."""
        self._username = username
        return self

    def password(self, password: str) -> Self:
        self._password = password
        return self

    def deserializer(self, deserializer: ChangeFormat) -> Self:
        """`RowChanges()` (the default) or `DebeziumChanges()`."""
        if not isinstance(deserializer, ChangeFormat):
            raise ConfigurationError(
                f"deserializer: expected RowChanges() or DebeziumChanges(), found {deserializer!r}"
            )
        self._form = deserializer
        return self

    def startup_options(self, startup_options: StartupOptions) -> Self:
        if not isinstance(startup_options, StartupOptions) or startup_options.mode not in self.modes:
            names = ", ".join(f"{mode}()" for mode in self.modes)
            raise ConfigurationError(
                f"startup_options: expected one of StartupOptions {names}, found {short_repr(startup_options)}"
            )
        self._settings.startup = startup_options
        return self

    def split_size(self, split_size: int) -> Self:
        """How many rows of a table are read at a time."""
        if not isinstance(split_size, int) or split_size < 1:
            raise ConfigurationError(f"split_size: expected at least 1, found {split_size!r}")
        self._settings.chunk_rows = split_size
        return self

    def include_schema_changes(self, include: bool) -> Self:
        """Emit a `SchemaChange` where a table has other columns from then on."""
        self._settings.schema_changes = include
        return self

    def on_truncate(self, what: str) -> Self:
        """'fail' (the default), or 'skip': a TRUNCATE does not say which rows are gone."""
        if what not in ("fail", "skip"):
            raise ConfigurationError(f"on_truncate: expected 'fail' or 'skip', found {what!r}")
        self._settings.truncate = what
        return self

    def _settings_of(self, url: str) -> S:
        """The settings, complete. `tables` are set already."""
        settings = self._settings
        settings.options = JdbcConnectionOptions(url, self._username, self._password)
        settings.form = self._form or RowChanges(with_table=len(settings.tables) > 1)
        return settings
