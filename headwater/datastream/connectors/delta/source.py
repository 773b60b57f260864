"""The source: one version of a table, or that and all that is added to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from headwater.common.connector import Split, SplitReader
from headwater.common.errors import CheckpointError, ConfigurationError, SerializationError
from headwater.datastream.connectors.delta.table import arrow_schema_of, file_options, library, load, table_uri
from headwater.datastream.connectors.file_access import FileSplit, open_plain, use_options
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


class DeltaSource(LakeSource):
    """Reads a Delta table, one split per data file. Built by `DeltaSource.for_table("/lake/orders").build()`.

    Following: files of later versions are read in the order of versions. What only reorganises the table is skipped.
    """

    def __init__(
        self,
        uri: str,
        schema: Any,
        version: Any,
        reading: LakeReading,
        options: Mapping[str, str],
        files: Mapping[str, Any],
    ) -> None:
        super().__init__(schema, reading, files)
        self._uri = uri
        self._version = version
        self._options = options

    @staticmethod
    def for_table(path: str) -> DeltaSourceBuilder:
        return DeltaSourceBuilder(path)

    def __repr__(self) -> str:
        return f"DeltaSource({self._uri})"

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        self._use_options()
        if not known:
            table = load(self._uri, self._options, self._version)
            if table is None:
                raise ConfigurationError(f"there is no Delta table at {self._uri}")
            return self._of_snapshot(table)
        if self.bounded:
            return []  # the version was fixed when the job first started
        latest = load(self._uri, self._options).version()
        return [split for version in range(last_version(known) + 1, latest + 1) for split in self._added(version)]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        self._use_options()
        return super().open_reader(split, position)

    def _of_snapshot(self, table: Any) -> list[Split]:
        import pyarrow

        version = table.version()
        actions = pyarrow.table(table.get_add_actions()).to_pylist()
        if table.deletion_vectors is not None and pyarrow.table(table.deletion_vectors()).num_rows:
            raise SerializationError(
                f"Delta table {self._uri} has deletion vectors, which cannot be read; run OPTIMIZE or REORG ... PURGE"
            )
        found = [
            self._split(version, unquote(each["path"]), each["size_bytes"], _texts(each.get("partition") or {}))
            for each in actions
        ]
        return [beginning(version), *sorted(found, key=lambda split: split.split_id)]

    def _added(self, version: int) -> list[Split]:
        log = f"{self._uri}/_delta_log/{version:020d}.json"
        try:
            with open_plain(log) as file:
                actions = [json.loads(line) for line in file.read().splitlines() if line.strip()]
        except FileNotFoundError:
            raise CheckpointError(
                f"Delta table {self._uri}: version {version} is no longer in its log, and the job has not read it; set "
                "delta.logRetentionDuration longer than a job may be down, and start on a fresh checkpoint directory"
            ) from None
        adds = [each["add"] for each in actions if "add" in each and each["add"].get("dataChange", True)]
        removes = [each["remove"] for each in actions if "remove" in each and each["remove"].get("dataChange", True)]
        if removes:
            if not self._reading.skips_changes:
                raise CheckpointError(
                    f"Delta table {self._uri}: version {version} deletes or overwrites rows; a source that follows "
                    "reads additions only. Skip such versions with skip_changes(), or start on a fresh checkpoint "
                    "directory"
                )
            adds = []
        if any(add.get("deletionVector") for add in adds):
            raise SerializationError(f"Delta table {self._uri}: version {version} has deletion vectors")
        return [
            self._split(version, unquote(add["path"]), add["size"], add.get("partitionValues") or {}) for add in adds
        ]

    def _split(self, version: int, path: str, size: int, partition: Mapping[str, str | None]) -> Split:
        where = path if "://" in path else f"{self._uri}/{path}"
        return Split(split_id(version, path), DataFile(FileSplit(where, int(size)), tuple(partition.items())))

    def _use_options(self) -> None:
        if self._files:
            use_options(self._uri, self._files)


def _texts(partition: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else _text(value) for name, value in partition.items()}


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


class DeltaSourceBuilder(LakeSourceBuilder):
    """Settings of a `DeltaSource`: bounded, the latest version, unless told otherwise."""

    kind = "Delta"

    def __init__(self, path: str) -> None:
        super().__init__()
        self._uri = table_uri(path)
        self._version: Any = None
        self._storage: dict[str, str] = {}

    def set_storage_options(self, options: Mapping[str, str]) -> DeltaSourceBuilder:
        """As of `DeltaSink`."""
        self._storage = dict(options)
        return self

    def at_version(self, version: int) -> DeltaSourceBuilder:
        """Begin with this version of the table."""
        self._version = version
        return self

    def as_of(self, when: datetime | str) -> DeltaSourceBuilder:
        """Begin with the version that the table had at this time (ISO 8601, or a datetime with a time zone)."""
        self._version = when
        return self

    def build(self) -> DeltaSource:
        library()
        table = load(self._uri, self._storage, self._version)
        if table is None:
            raise ConfigurationError(f"there is no Delta table at {self._uri}")
        return DeltaSource(
            self._uri,
            selected(arrow_schema_of(table), self._columns, f"Delta table {self._uri}"),
            self._version,
            self._reading,
            self._storage,
            file_options(self._uri, self._storage, self._options),
        )
