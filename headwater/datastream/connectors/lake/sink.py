"""What sinks of lakes share."""

from __future__ import annotations

from headwater.common.connector import Sink, SinkWriter, WriterContext
from headwater.datastream.connectors.lake.committer import CommitSettings
from headwater.datastream.connectors.lake.writer import LakeWriter, TableLayout


class LakeSink(Sink):
    """Writes data files, which a `LakeCommitter` adds to the table."""

    insert_only = True

    def __init__(self, table: object, layout: TableLayout, settings: CommitSettings) -> None:
        """:param table: for people."""
        self.table = table
        self.layout = layout
        self.settings = settings

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LakeWriter(self.layout, context)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.table})"
