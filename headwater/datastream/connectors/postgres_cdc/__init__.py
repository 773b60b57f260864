"""Change data of PostgreSQL, without Debezium. Needs `headwater[postgres]`."""

from headwater.datastream.connectors.cdc.changes import ChangeFormat, DebeziumChanges, RowChanges, SchemaChange
from headwater.datastream.connectors.cdc.startup import StartupOptions
from headwater.datastream.connectors.postgres_cdc.source import PostgresIncrementalSource, PostgresSourceBuilder

__all__ = [
    "ChangeFormat",
    "DebeziumChanges",
    "PostgresIncrementalSource",
    "PostgresSourceBuilder",
    "RowChanges",
    "SchemaChange",
    "StartupOptions",
]
