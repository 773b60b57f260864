"""Cassandra: a sink of statements. Needs `headwater[cassandra]`."""

from headwater.datastream.connectors.cassandra.options import (
    CassandraCommitter,
    CassandraFailureHandler,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)
from headwater.datastream.connectors.cassandra.sink import CassandraSink

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraSink",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
]
