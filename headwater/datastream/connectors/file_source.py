"""Files as a source: once, or a directory watched for new ones."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.common.connector import Source, Split, SplitReader, drain
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.common.rejected import Rejected
from headwater.common.time import DurationLike, to_millis
from headwater.datastream.connectors.columnar.reader import piece_id
from headwater.datastream.connectors.file_access import FileSplit, find_files, use_options
from headwater.datastream.connectors.file_formats import BulkFormat, FileFormat, StreamFormat
from headwater.datastream.connectors.record_readers import BadRecordPolicy

__all__ = ["FileSource", "FileSourceBuilder"]


class FileSource(Source):
    """Reads files, directories (with all below them) and glob patterns, each file once. Large files of formats that can
    be cut (Parquet, ORC, lines that are not compressed) are several splits, other files one.

    A file is read up to the size it has when it is found, so files should appear whole: written under a hidden name
    (`.name`, `name.tmp`) and renamed. What is appended later is not read.

    Built by `FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()`.
    """

    def __init__(
        self,
        file_format: FileFormat,
        paths: tuple[str, ...],
        discovery_interval_ms: int | None = None,
        bad_record_policy: BadRecordPolicy = BadRecordPolicy.FAIL,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.file_format = file_format
        self.paths = paths
        self.discovery_interval_ms = discovery_interval_ms
        self.bounded = discovery_interval_ms is None
        self.bad_record_policy = bad_record_policy
        self._storage_options = storage_options

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(bulk_format, paths)

    def rejecting(self) -> Source:
        if self.bad_record_policy is not BadRecordPolicy.FAIL:
            return self
        return FileSource(
            self.file_format, self.paths, self.discovery_interval_ms, BadRecordPolicy.REJECT, self._storage_options
        )

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if self.bounded and known:
            return []  # the set of files was fixed when the job first started
        self._use_options()
        found: dict[str, FileSplit] = {}
        for path in self.paths:
            for file in find_files(path, must_exist=self.bounded):
                found.setdefault(file.path, file)
        new = [path for path in sorted(found) if known.isdisjoint((path, piece_id(path, 0), piece_id(path, 0, "byte")))]
        return [split for path in new for split in self.file_format.splits_of(found[path])]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        self._use_options()
        return self.file_format.open(split.payload, position, self.bad_record_policy)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        with tempfile.NamedTemporaryFile(prefix="headwater-again-") as file:
            head = self.file_format.head_of(str(rejected.attributes.get("file", "")))
            content = head + (rejected.raw or b"") + b"\n"
            file.write(content)
            file.flush()
            reader = self.file_format.open(FileSplit(file.name, len(content)), None, BadRecordPolicy.REJECT)
            try:
                records = [record for batch in drain(reader, 1000) for record in batch]
                for bad in reader.rejected():
                    raise SerializationError(bad.error)
                return records
            finally:
                reader.close()

    def _use_options(self) -> None:
        if self._storage_options is not None:
            for path in self.paths:
                use_options(path, self._storage_options)

    def __repr__(self) -> str:
        return f"FileSource({', '.join(self.paths)})"


class FileSourceBuilder:
    """Settings of a `FileSource`. Bounded unless told otherwise."""

    def __init__(self, file_format: FileFormat, paths: tuple[str, ...]) -> None:
        if not isinstance(file_format, FileFormat):
            raise ConfigurationError(
                f"FileSource got the format {file_format!r}; expected StreamFormat.text_line_format() or another one "
                "of StreamFormat or BulkFormat"
            )
        if not paths or not all(isinstance(path, str) and path for path in paths):
            raise ConfigurationError(f"FileSource got the paths {list(paths)}; expected at least one path")
        self._format = file_format
        self._paths = paths
        self._interval_ms: int | None = None
        self._policy = BadRecordPolicy.FAIL
        self._storage_options: dict[str, Any] | None = None

    def monitor_continuously(self, discovery_interval: DurationLike) -> FileSourceBuilder:
        """Never end, and look for new files this often."""
        self._interval_ms = to_millis(discovery_interval, "discovery_interval", minimum=1)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that are there when the job first starts, and end. The default."""
        self._interval_ms = None
        return self

    def set_bad_record_policy(self, policy: BadRecordPolicy | str) -> FileSourceBuilder:
        """'fail' (the default) names the file, the line and the text; 'skip' counts `bad_records_skipped`; 'reject' is
        what 'fail' becomes if the stream has dead letters."""
        self._policy = BadRecordPolicy.of(policy)
        return self

    def set_storage_options(self, options: Mapping[str, Any]) -> FileSourceBuilder:
        """Read remote paths through fsspec, with these options of its file system: `endpoint_url`, `key`, `secret`, ….

        Text may refer to secrets: `${env:NAME}`, `${file:/path}`.
        """
        self._storage_options = dict(options)
        return self

    def build(self) -> FileSource:
        return FileSource(self._format, self._paths, self._interval_ms, self._policy, self._storage_options)
