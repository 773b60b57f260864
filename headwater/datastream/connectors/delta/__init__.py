"""Delta Lake tables, through the `deltalake` library: no jars."""

from headwater.datastream.connectors.delta.sink import DeltaSink, DeltaSinkBuilder
from headwater.datastream.connectors.delta.source import DeltaSource, DeltaSourceBuilder

__all__ = ["DeltaSink", "DeltaSinkBuilder", "DeltaSource", "DeltaSourceBuilder"]
