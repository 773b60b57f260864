"""Apache Iceberg tables, through the `pyiceberg` library: no jars."""

from headwater.datastream.connectors.iceberg.sink import IcebergSink, IcebergSinkBuilder
from headwater.datastream.connectors.iceberg.source import IcebergSource, IcebergSourceBuilder

__all__ = ["IcebergSink", "IcebergSinkBuilder", "IcebergSource", "IcebergSourceBuilder"]
