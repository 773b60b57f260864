"""SQL databases as sink, source and lookup, with the names of pyflink.datastream.connectors.jdbc.

PostgreSQL needs `headwater[postgres]`, MySQL and MariaDB need `headwater[mysql]`, SQLite needs nothing.
"""

from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.jdbc.lookup import JdbcLookup, JdbcLookupFunction
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from headwater.datastream.connectors.jdbc.sink import JdbcSink
from headwater.datastream.connectors.jdbc.source import JdbcSource, JdbcSourceBuilder

__all__ = [
    "DeliveryGuarantee",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcLookup",
    "JdbcLookupFunction",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
]
