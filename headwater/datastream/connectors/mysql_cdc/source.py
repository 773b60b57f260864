"""The source, and its builder with the names of Flink CDC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.common.optional_library import optional_library
from headwater.datastream.connectors.cdc.progress import TableProgress
from headwater.datastream.connectors.cdc.settings import ChangeSourceBuilder
from headwater.datastream.connectors.mysql_cdc.position import Position
from headwater.datastream.connectors.mysql_cdc.reader import MySqlReader
from headwater.datastream.connectors.mysql_cdc.settings import MySqlSettings, check_server, log_end, table_info
from headwater.datastream.no_effect import warn_no_effect

SPLIT: Final = "changes"


class MySqlSource(Source):
    """The rows of tables, then all changes of them, from the binary log of MariaDB or MySQL. One reader, in log order.

    Applied one after the other, the changes give exactly the tables, also if the job died and went on at any
    checkpoint. The server must keep its log for longer than the job may be down.
    """

    def __init__(self, settings: MySqlSettings) -> None:
        self.settings = settings
        self.bounded = settings.startup.mode == "snapshot"

    @staticmethod
    def builder() -> MySqlSourceBuilder:
        return MySqlSourceBuilder()

    def __repr__(self) -> str:
        return self.settings.owner

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []
        settings, server = self.settings, self.settings.server()
        connection = server.connect()
        try:
            check_server(settings, server, connection)
            for name in settings.tables:
                info = table_info(settings, server, connection, name)
                if settings.expected is not None:
                    settings.expected.check(settings.owner, dict(zip(info.columns, info.types, strict=True)))
                    settings.expected.check_key(settings.owner, info.key)
            place = log_end(connection)
        except server.error as error:
            raise server.failed("cannot prepare the reading of changes", error) from None
        finally:
            connection.close()
        progress = TableProgress(done=settings.startup.mode == "latest")
        return [Split(SPLIT, Position(place, tables=dict.fromkeys(settings.tables, progress)))]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return MySqlReader(self.settings, split.payload if position is None else position)


class MySqlSourceBuilder(ChangeSourceBuilder[MySqlSettings]):
    """Collects the settings of a `MySqlSource`."""

    modes = ("initial", "latest", "snapshot")

    def __init__(self) -> None:
        super().__init__(MySqlSettings(), 3306)
        self._databases: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}

    def jdbc_properties(self, properties: Mapping[str, str]) -> MySqlSourceBuilder:
        """Properties of the URL, such as {"sslMode": "VERIFY_IDENTITY", "sslCa": "/path"}."""
        self._properties = dict(properties)
        return self

    def database_list(self, *databases: str) -> MySqlSourceBuilder:
        """The database of tables whose names have none."""
        self._databases = databases
        return self

    def server_id(self, server_id: str | int) -> MySqlSourceBuilder:
        """As which replica the reader registers; all replicas differ. Without one, a number is drawn."""
        try:
            self._settings.server_id = int(server_id)
        except ValueError:
            raise ConfigurationError(f"server_id: expected a number, found {server_id!r}") from None
        return self

    def server_time_zone(self, time_zone: str) -> MySqlSourceBuilder:
        """Without effect: TIMESTAMP columns are read in UTC, whatever the server's zone is."""
        warn_no_effect("server_time_zone()", "TIMESTAMP columns are read in UTC, whatever the server's zone is")
        return self

    def build(self) -> MySqlSource:
        settings = self._settings
        if not self._tables:
            raise ConfigurationError("MySqlSource: no tables; call table_list('shop.orders')")
        bare = [name for name in self._tables if "." not in name]
        if bare and len(self._databases) != 1:
            raise ConfigurationError(f"MySqlSource: of which database is {', '.join(bare)}? Write database.table")
        settings.tables = tuple(name if "." in name else f"{self._databases[0]}.{name}" for name in self._tables)
        optional_library("pymysqlreplication", "mysql", settings.owner)
        database = settings.tables[0].partition(".")[0]
        properties, at = self._properties, f"//{self._hostname}:{self._port}/"
        if self._hostname.startswith("/"):
            properties, at = {"unix_socket": self._hostname, **properties}, ""
        url = f"jdbc:mysql:{at}{database}?{urlencode(properties)}"
        return MySqlSource(self._settings_of(url))
