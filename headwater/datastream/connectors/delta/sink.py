"""The sink, its builder and its committer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.common.connector import Committer
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.delta.table import (
    arrow_schema_of,
    file_options,
    library,
    load,
    table_uri,
    with_secrets,
)
from headwater.datastream.connectors.file_store import file_store
from headwater.datastream.connectors.lake.committer import CommitSettings, LakeCommitter, OthersWereQuickerError
from headwater.datastream.connectors.lake.settings import LakeSinkBuilder
from headwater.datastream.connectors.lake.sink import LakeSink
from headwater.datastream.connectors.lake.writer import LakeFile, PartitionField, TableLayout


class DeltaSink(LakeSink):
    """Appends records to a Delta table, exactly once: an app transaction (`txn`) of each commit says up to which epoch.

    Built by `DeltaSink.for_table("/lake/orders").set_schema(...).build()`.
    """

    def __init__(self, uri: str, layout: TableLayout, settings: CommitSettings, options: Mapping[str, str]) -> None:
        super().__init__(uri, layout, settings)
        self._uri = uri
        self._options = options

    @staticmethod
    def for_table(path: str) -> DeltaSinkBuilder:
        return DeltaSinkBuilder(path)

    def create_committer(self) -> Committer:
        return _DeltaCommitter(self._uri, self.layout, self.settings, self._options)


class DeltaSinkBuilder(LakeSinkBuilder):
    """Settings of a `DeltaSink`."""

    kind = "Delta"

    def __init__(self, path: str) -> None:
        super().__init__()
        self._uri = table_uri(path)
        self._options: dict[str, str] = {}
        self._file_options: dict[str, Any] | None = None

    def set_storage_options(self, options: Mapping[str, str]) -> DeltaSinkBuilder:
        """Options of `deltalake` for the table's store: `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, …. Text may refer to
        secrets: `${env:NAME}`."""
        self._options = dict(options)
        return self

    def set_file_options(self, options: Mapping[str, Any]) -> DeltaSinkBuilder:
        """Options of the fsspec file system that data files are written through; for S3 they follow from the others."""
        self._file_options = dict(options)
        return self

    def build(self) -> DeltaSink:
        """Look at the table, and create it if it is not there."""
        deltalake = library()
        table = load(self._uri, self._options)
        if table is None:
            if self._schema is None:
                raise ConfigurationError(f"there is no Delta table at {self._uri}; call set_schema(...) to create it")
            unknown = [name for name in self._partition_by or () if name not in self._schema.names]
            if unknown:
                raise ConfigurationError(f"Delta: partition column {unknown[0]!r} is not in {self._schema.names}")
            deltalake.DeltaTable.create(
                self._uri,
                self._schema,
                mode="ignore",
                partition_by=list(self._partition_by or ()),
                storage_options=with_secrets(self._options),
            )
            table = load(self._uri, self._options)
        present = arrow_schema_of(table)
        self._check_columns(self._uri, present)
        partition_by = tuple(table.metadata().partition_columns)
        if self._partition_by is not None and self._partition_by != partition_by:
            raise ConfigurationError(
                f"Delta table {self._uri} is partitioned by {list(partition_by)}, not by {list(self._partition_by)}"
            )
        layout = TableLayout(
            "Delta",
            file_store(self._uri, file_options(self._uri, self._options, self._file_options)),
            present if self._schema is None else self._schema,
            tuple(map(PartitionField, partition_by)),
            stores_partitions=False,
            target_file_bytes=self._target,
            compression=self._compression,
        )
        return DeltaSink(self._uri, layout, self._commits, self._options)


class _DeltaCommitter(LakeCommitter):
    def __init__(self, uri: str, layout: TableLayout, settings: CommitSettings, options: Mapping[str, str]) -> None:
        super().__init__(layout, settings)
        self._uri = uri
        self._options = options
        self._table: Any = None

    def present_schema(self) -> Any:
        return arrow_schema_of(self._load())

    def add_columns(self, fields: Sequence[Any]) -> None:
        import pyarrow

        self._load().alter.add_columns(library().Schema.from_arrow(pyarrow.schema(fields)).fields)

    def read_mark(self, mark: str) -> int | None:
        self._table = self._load()
        found = self._table.transaction_version(mark)
        return None if found is None else int(found)

    def append(self, files: Sequence[LakeFile], mark: str, epoch: int) -> None:
        deltalake = library()
        from deltalake.transaction import AddAction

        now_ms = int(time.time() * 1000)
        actions = [AddAction(file.path, file.size, dict(file.partition), now_ms, True, file.stats) for file in files]
        # Without retries of the library's own: it would not look at the mark again.
        properties = deltalake.CommitProperties(
            custom_metadata={"headwater.epoch": str(epoch)},
            max_commit_retries=0,
            app_transactions=[deltalake.Transaction(mark, epoch)],
        )
        try:
            self._table.create_write_transaction(
                actions,
                "append",
                self._table.schema(),
                [each.column for each in self.layout.partition_by],
                commit_properties=properties,
            )
        except deltalake.exceptions.CommitFailedError as error:
            raise OthersWereQuickerError(str(error)) from error

    def _load(self) -> Any:
        table = load(self._uri, self._options)
        if table is None:
            raise ConfigurationError(f"there is no Delta table at {self._uri} any more; restore it")
        return table
