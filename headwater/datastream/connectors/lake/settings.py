"""Settings that the builders of lake sinks and sources share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from headwater.common.errors import ConfigurationError
from headwater.common.time import DurationLike, to_millis
from headwater.datastream.connectors.columnar.arrow_types import arrow_schema
from headwater.datastream.connectors.lake.committer import CommitSettings
from headwater.datastream.connectors.lake.reader import LakeReading
from headwater.datastream.connectors.lake.writer import TARGET_FILE_BYTES


class LakeSinkBuilder:
    """Collects the settings of a sink."""

    kind = "Lake"

    def __init__(self) -> None:
        self._schema: Any = None
        self._partition_by: tuple[str, ...] | None = None
        self._commits = CommitSettings()
        self._target = TARGET_FILE_BYTES
        self._compression = "zstd"

    def set_schema(self, row_type: Any) -> Self:
        """The records' fields: `Types.ROW_NAMED(...)`, `DataTypes.ROW(...)` or a pyarrow.Schema. A table that is not
        there is created with it. Without it, the fields of the table."""
        self._schema = arrow_schema(row_type)
        return self

    def partition_by(self, *columns: str) -> Self:
        """Of a table that is not there yet: which columns its files are partitioned by."""
        self._partition_by = tuple(columns)
        return self

    def add_new_columns(self) -> Self:
        """Fields of the schema that the table lacks become new columns, when the job starts. Otherwise they are an
        error."""
        self._commits = replace(self._commits, adds_columns=True)
        return self

    def set_min_commit_interval(self, interval: DurationLike) -> Self:
        """Commit to the table at most this often: the output of several checkpoints becomes one version of it.

        Until then it is in the manifests, and survives whatever happens to the job. Small files of one commit are
        joined.
        """
        ms = to_millis(interval, "interval", minimum=0)
        self._commits = replace(self._commits, min_interval_ms=ms, joins_small_files=ms > 0)
        return self

    def join_small_files(self, enabled: bool = True) -> Self:
        """Whether the driver joins small files of one commit. By default it does with a minimal commit interval."""
        self._commits = replace(self._commits, joins_small_files=enabled)
        return self

    def set_target_file_size(self, target_bytes: int) -> Self:
        """Begin a new data file when one has so many bytes."""
        if target_bytes < 1:
            raise ConfigurationError(f"{self.kind}: target file size is {target_bytes}; expected more than 0 bytes")
        self._target = target_bytes
        return self

    def set_compression(self, compression: str) -> Self:
        """zstd (the default), snappy, gzip, lz4 or none."""
        self._compression = compression
        return self

    def _check_columns(self, table: str, present: Any) -> None:
        """`present` is the table's pyarrow.Schema."""
        if self._schema is None:
            return
        new = [field.name for field in self._schema if field.name not in present.names]
        if new and not self._commits.adds_columns:
            raise ConfigurationError(
                f"{self.kind} table {table} has no column {new[0]!r}; it has {present.names}. Call add_new_columns() "
                "to add it, or correct the schema"
            )
        required = [field.name for field in present if not field.nullable and field.name not in self._schema.names]
        if required:
            raise ConfigurationError(
                f"{self.kind} table {table} requires the column {required[0]!r}, which the records lack"
            )


class LakeSourceBuilder:
    """Collects the settings of a source."""

    kind = "Lake"

    def __init__(self) -> None:
        self._columns: tuple[str, ...] | None = None
        self._reading = LakeReading()
        self._options: dict[str, Any] | None = None

    def select(self, *columns: str) -> Self:
        """Read these columns only."""
        if not columns or not all(isinstance(column, str) for column in columns):
            raise ConfigurationError(f"{self.kind}: select got {list(columns)}; expected names of columns")
        self._columns = tuple(columns)
        return self

    def as_rows(self) -> Self:
        """Records are Rows with names instead of dicts."""
        self._reading = replace(self._reading, rows=True)
        return self

    def as_batches(self) -> Self:
        """Records are pyarrow.RecordBatches of up to 8192 rows."""
        self._reading = replace(self._reading, batches=True)
        return self

    def follow(self, discovery_interval: DurationLike = 1000) -> Self:
        """Never end: after the files that are there, read those that are added, looking for them this often."""
        interval_ms = to_millis(discovery_interval, "discovery_interval", minimum=1)
        self._reading = replace(self._reading, interval_ms=interval_ms)
        return self

    def skip_changes(self) -> Self:
        """While following, skip versions that delete or overwrite rows. Otherwise they are an error."""
        self._reading = replace(self._reading, skips_changes=True)
        return self

    def set_file_options(self, options: Mapping[str, Any]) -> Self:
        """Options of the fsspec file system that data files are read through, if they are remote."""
        self._options = dict(options)
        return self
