"""Change data of MariaDB and MySQL, from the binary log. Needs `headwater[mysql]`."""

from headwater.datastream.connectors.cdc.changes import ChangeFormat, DebeziumChanges, RowChanges, SchemaChange
from headwater.datastream.connectors.cdc.startup import StartupOptions
from headwater.datastream.connectors.mysql_cdc.source import MySqlSource, MySqlSourceBuilder

__all__ = [
    "ChangeFormat",
    "DebeziumChanges",
    "MySqlSource",
    "MySqlSourceBuilder",
    "RowChanges",
    "SchemaChange",
    "StartupOptions",
]
