"""Archives of closed windows: what `as_queryable_series` writes to."""

from headwater.datastream.connectors.archive.closed_window import ClosedWindow
from headwater.datastream.connectors.archive.postgres import PostgresArchive
from headwater.datastream.connectors.archive.sqlite import SqliteArchive
from headwater.datastream.connectors.archive.store import Archive

__all__ = ["Archive", "ClosedWindow", "PostgresArchive", "SqliteArchive"]
