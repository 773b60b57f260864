"""The source: one snapshot of a table, or that and all that is appended to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headwater.common.connector import Split, SplitReader
from headwater.common.errors import CheckpointError, ConfigurationError, SerializationError
from headwater.datastream.connectors.file_access import FileSplit, local_path, use_options
from headwater.datastream.connectors.iceberg.table import (
    TableName,
    arrow_schema_of,
    file_options,
    library,
    place,
    required,
    table_name,
)
from headwater.datastream.connectors.lake.reader import (
    DataFile,
    LakeReading,
    LakeSource,
    beginning,
    last_version,
    selected,
    split_id,
)
from headwater.datastream.connectors.lake.settings import LakeSourceBuilder


class IcebergSource(LakeSource):
    """Reads an Iceberg table, one split per data file. Built by `IcebergSource.for_table(catalog, name).build()`.

    Following: files of later snapshots are read in the order of snapshots. What only reorganises the table is skipped.
    """

    def __init__(
        self, name: TableName, schema: Any, snapshot_id: int | None, reading: LakeReading, files: Mapping[str, Any]
    ) -> None:
        super().__init__(schema, reading, files)
        self._name = name
        self._snapshot_id = snapshot_id

    @staticmethod
    def for_table(catalog: str, identifier: str, **properties: str) -> IcebergSourceBuilder:
        """As of `IcebergSink`."""
        return IcebergSourceBuilder(table_name(catalog, identifier, properties))

    def __repr__(self) -> str:
        return f"IcebergSource({self._name})"

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known and self.bounded:
            return []  # the snapshot was fixed when the job first started
        table = required(self._name)
        if not known:
            return self._of_snapshot(table)
        last = last_version(known)
        return [split for each in self._history(table, last) for split in self._added(table, each)]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        if self._files and split.payload is not None and local_path(split.payload.file.path) is None:
            use_options(split.payload.file.path.rpartition("/data/")[0], self._files)
        return super().open_reader(split, position)

    def _of_snapshot(self, table: Any) -> list[Split]:
        snapshot = table.current_snapshot() if self._snapshot_id is None else table.snapshot_by_id(self._snapshot_id)
        version = 0 if snapshot is None else int(snapshot.sequence_number or 0)
        found = []
        if snapshot is not None:
            for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
                if task.delete_files:
                    raise SerializationError(
                        f"Iceberg table {self._name} has delete files, which cannot be read; rewrite its data files"
                    )
                found.append(self._split(version, task.file))
        return [beginning(version), *sorted(found, key=lambda split: split.split_id)]

    def _history(self, table: Any, last: int) -> list[Any]:
        """Snapshots after the one with the sequence number `last`, the oldest first."""
        found = []
        snapshot = table.current_snapshot()
        while snapshot is not None and int(snapshot.sequence_number or 0) > last:
            found.append(snapshot)
            parent_id = snapshot.parent_snapshot_id
            snapshot = None if parent_id is None else table.snapshot_by_id(parent_id)
            if snapshot is None and parent_id is not None:
                raise CheckpointError(
                    f"Iceberg table {self._name}: snapshot {parent_id} was expired before the job read it; keep "
                    "snapshots for longer than a job may be down, and start on a fresh checkpoint directory"
                )
        if last > 0 and snapshot is None and table.current_snapshot() is not None:
            raise CheckpointError(
                f"Iceberg table {self._name} was rolled back behind what the job has read, or replaced; start on a "
                "fresh checkpoint directory"
            )
        return found[::-1]

    def _added(self, table: Any, snapshot: Any) -> list[Split]:
        operation = snapshot.summary.operation.value if snapshot.summary is not None else "append"
        if operation == "replace":
            return []  # the same rows in other files
        if operation != "append":
            if self._reading.skips_changes:
                return []
            raise CheckpointError(
                f"Iceberg table {self._name}: snapshot {snapshot.snapshot_id} is of kind {operation!r}; a source that "
                "follows reads additions only. Skip such snapshots with skip_changes(), or start on a fresh checkpoint "
                "directory"
            )
        added = library("pyiceberg.manifest").ManifestEntryStatus.ADDED
        version = int(snapshot.sequence_number)
        return [
            self._split(version, entry.data_file)
            for manifest in snapshot.manifests(table.io)
            if manifest.added_snapshot_id == snapshot.snapshot_id
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            if entry.status == added
        ]

    def _split(self, version: int, file: Any) -> Split:
        path = place(file.file_path)
        return Split(split_id(version, path), DataFile(FileSplit(path, int(file.file_size_in_bytes))))


class IcebergSourceBuilder(LakeSourceBuilder):
    """Settings of an `IcebergSource`: bounded, the current snapshot, unless told otherwise."""

    kind = "Iceberg"

    def __init__(self, name: TableName) -> None:
        super().__init__()
        self._name = name
        self._snapshot_id: int | None = None
        self._when: datetime | None = None

    def at_snapshot(self, snapshot_id: int) -> IcebergSourceBuilder:
        """Begin with this snapshot of the table."""
        self._snapshot_id = snapshot_id
        return self

    def as_of(self, when: datetime) -> IcebergSourceBuilder:
        """Begin with the snapshot that was current at this time."""
        self._when = when
        return self

    def build(self) -> IcebergSource:
        table = required(self._name)
        if self._when is not None:
            found = table.snapshot_as_of_timestamp(int(self._when.timestamp() * 1000))
            if found is None:
                raise ConfigurationError(f"Iceberg table {self._name} had no snapshot at {self._when}")
            self._snapshot_id = found.snapshot_id
        if self._snapshot_id is not None and table.snapshot_by_id(self._snapshot_id) is None:
            raise ConfigurationError(f"Iceberg table {self._name} has no snapshot {self._snapshot_id}")
        if self._reading.interval_ms is not None and table.format_version < 2:
            raise ConfigurationError(
                f"Iceberg table {self._name} has format version 1, whose snapshots have no order to follow; "
                "upgrade it to version 2"
            )
        return IcebergSource(
            self._name,
            selected(arrow_schema_of(table.schema()), self._columns, f"Iceberg table {self._name}"),
            self._snapshot_id,
            self._reading,
            file_options(self._name.properties, self._options),
        )
