"""The source, and its builder with the names of Flink CDC."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.cdc.progress import TableProgress
from headwater.datastream.connectors.cdc.settings import ChangeSourceBuilder
from headwater.datastream.connectors.jdbc.database import open_database
from headwater.datastream.connectors.postgres_cdc.connection import PgConnection, SqlState, lsn_number, lsn_text
from headwater.datastream.connectors.postgres_cdc.reader import ACK, PostgresReader
from headwater.datastream.connectors.postgres_cdc.settings import CdcSettings, check_names, prepare, slot_lsn
from headwater.datastream.connectors.postgres_cdc.snapshot import Position

SPLIT: Final = "changes"
ACK_SECONDS: Final = 1.0
"""The server learns at most this often what checkpoints hold."""
ACK_BYTES: Final = 512
"""Less than this is left in the log: the message about it would be as long, and be followed by the next one."""
IN_USE: Final = "55006"


class PostgresIncrementalSource(Source):
    """The rows of tables, then all changes of them, from PostgreSQL's logical replication. One reader, in log order.

    Applied one after the other, the changes give exactly the tables: also if the job died and went on at any
    checkpoint, and whatever others wrote meanwhile. No row is locked.
    """

    waits = True

    def __init__(self, settings: CdcSettings) -> None:
        self.settings = settings
        self.bounded = settings.startup.mode == "snapshot"
        self._connection: PgConnection | None = None
        self._acked_lsn = 0
        self._acked_time = 0.0

    @staticmethod
    def builder() -> PostgresSourceBuilder:
        return PostgresSourceBuilder()

    def __repr__(self) -> str:
        return f"{self.settings.owner[:-1]}, slot {self.settings.slot})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    # --- the driver

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []
        settings = self.settings
        connection = settings.connect()
        try:
            prepare(settings, connection)
            lsn = slot_lsn(settings, connection, None)
            if settings.startup.mode == "latest":
                now = connection.one("SELECT pg_current_wal_insert_lsn()")
                assert now is not None and now[0] is not None
                lsn = lsn_number(now[0])
        finally:
            connection.close()
        progress = TableProgress(done=settings.startup.mode in ("latest", "committed"))
        return [Split(SPLIT, Position(lsn, tables=dict.fromkeys(settings.tables, progress)))]

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        """Let the server forget the log before the checkpoint's place.

        A slot that is being read can only be moved by its reader, in another process: a message in the log tells it.
        """
        position = positions.get(SPLIT)
        if position is None or position.lsn < self._acked_lsn + ACK_BYTES:
            return
        if time.monotonic() - self._acked_time < ACK_SECONDS:
            return
        if self._connection is None:
            self._connection = self.settings.connect()
        lsn = lsn_text(position.lsn)
        try:
            try:
                self._connection.query(
                    "SELECT pg_replication_slot_advance($1, $2::pg_lsn) FROM pg_replication_slots "
                    "WHERE slot_name = $1 AND confirmed_flush_lsn < $2::pg_lsn",
                    self.settings.slot,
                    lsn,
                )
            except SqlState as error:
                if error.state != IN_USE:
                    raise
                content = f"{self.settings.slot} {lsn}"
                self._connection.query("SELECT pg_logical_emit_message(true, $1, $2::text)", ACK, content)
        except SqlState as error:
            raise self._connection.failed("cannot advance the replication slot", error) from None
        except BaseException:
            self.close()
            raise
        self._acked_lsn, self._acked_time = position.lsn, time.monotonic()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- the tasks

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return PostgresReader(self.settings, split.payload if position is None else position)


class PostgresSourceBuilder(ChangeSourceBuilder[CdcSettings]):
    """Collects the settings of a `PostgresIncrementalSource`."""

    def __init__(self) -> None:
        super().__init__(CdcSettings(), 5432)
        self._schemas: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}

    def database(self, database: str) -> PostgresSourceBuilder:
        self._settings.database = database
        return self

    def schema_list(self, *schemas: str) -> PostgresSourceBuilder:
        """The schemas of tables whose names have none."""
        self._schemas = schemas
        return self

    def slot_name(self, name: str) -> PostgresSourceBuilder:
        """The replication slot: one per job. It is made if it is not there, and stays when the job is gone: then drop
        it (`SELECT pg_drop_replication_slot(...)`), or the server keeps its log for ever."""
        self._settings.slot = name
        return self

    def publication_name(self, name: str) -> PostgresSourceBuilder:
        """The publication. Made if it is not there. Beyond Flink CDC, where it is a Debezium property."""
        self._settings.publication = name
        return self

    def decoding_plugin_name(self, name: str) -> PostgresSourceBuilder:
        """Only `pgoutput`, which every server has."""
        if name != "pgoutput":
            raise ConfigurationError(f"decoding_plugin_name: expected 'pgoutput', found {name!r}")
        return self

    def heartbeat_interval(self, interval_ms: int) -> PostgresSourceBuilder:
        """How often (ms) the server may forget log of other tables while these are quiet."""
        if not isinstance(interval_ms, int) or interval_ms < 1:
            raise ConfigurationError(f"heartbeat_interval: expected milliseconds, found {interval_ms!r}")
        self._settings.heartbeat_ms = interval_ms
        return self

    def set_property(self, key: str, value: str) -> PostgresSourceBuilder:
        """A setting of the connection, as libpq has it: sslmode, sslrootcert, …"""
        self._properties[key] = value
        return self

    def build(self) -> PostgresIncrementalSource:
        settings = self._settings
        if not settings.database:
            raise ConfigurationError("PostgresIncrementalSource: no database; call database('shop')")
        if not self._tables:
            raise ConfigurationError("PostgresIncrementalSource: no tables; call table_list('public.orders')")
        schema = self._schemas[0] if self._schemas else "public"
        settings.tables = tuple(name if "." in name else f"{schema}.{name}" for name in self._tables)
        check_names(settings)
        properties = dict(self._properties)
        if self._hostname.startswith("/"):
            properties |= {"host": self._hostname, "port": str(self._port)}
            address = settings.database
        else:
            address = f"//{self._hostname}:{self._port}/{settings.database}"
        query = f"?{urlencode(properties)}" if properties else ""
        self._settings_of(f"jdbc:postgresql:{address}{query}")
        open_database(settings.options, settings.owner)  # says which package is missing
        return PostgresIncrementalSource(settings)
