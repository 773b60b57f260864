"""Records in files, exactly once.

A writer writes hidden files, `.part-….inprogress`. At the end of the epoch they are complete and durable, and the
manifest names them. Only then does the committer rename them to names that readers see. Files that no manifest names
are never renamed, and are deleted when the job starts or ends.
"""

from __future__ import annotations

import contextlib
import os
import uuid
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

from headwater.checkpoint.paths import validate_name
from headwater.checkpoint.storage.durable_file import make_directories, sync_directory, sync_file
from headwater.common.connector import Committer, ReusableSinkWriter, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError
from headwater.common.machine.local_disk import room_for
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.bucket_assigner import BucketAssigner
from headwater.datastream.connectors.bulk_writers import BulkWriter, BulkWriterFactory, EncodedWriter
from headwater.datastream.connectors.file_access import local_path
from headwater.datastream.connectors.file_committer import (
    MAKE_ROOM,
    PENDING_SUFFIX,
    FileCommittable,
    FileCommitter,
)
from headwater.datastream.connectors.file_compaction import CompactingCommitter, FileCompactor, FileCompactStrategy
from headwater.datastream.connectors.part_files import OutputFileConfig, RollingPolicy

__all__ = ["FileCommittable", "FileSink"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Settings:
    base_path: str
    content: Encoder | BulkWriterFactory
    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    output_file_config: OutputFileConfig
    compaction: tuple[FileCompactStrategy, FileCompactor] | None = None

    def create_writer(self, file: BinaryIO) -> BulkWriter:
        if isinstance(self.content, Encoder):
            return EncodedWriter(file, self.content)
        return self.content.create(file)


class FileSink(Sink):
    """Writes records to files below a directory that all hosts of the job see. Built by one of the two methods below.

    Each partition writes at least one file per epoch in which it has records. File names are unique for ever.
    """

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Each record by itself, for example with `Encoder.simple_string_encoder()`."""
        if not isinstance(encoder, Encoder):
            raise ConfigurationError(
                f"FileSink.for_row_format got {encoder!r}; expected an Encoder such as Encoder.simple_string_encoder()"
            )
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """In blocks, with one of `BulkWriters` (json_lines, csv, parquet)."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise ConfigurationError(
                f"FileSink.for_bulk_format got {writer_factory!r}; expected one of BulkWriters, for example "
                "BulkWriters.parquet()"
            )
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _FileWriter(self._settings, context)

    def create_committer(self) -> Committer:
        if self._settings.compaction is not None:
            return CompactingCommitter(self._settings.base_path, *self._settings.compaction)
        return FileCommitter(self._settings.base_path)

    def __repr__(self) -> str:
        return f"FileSink({self._settings.base_path})"

    class RowFormatBuilder:
        """Settings of a `FileSink`. By default in buckets by hour of the wall clock."""

        def __init__(self, base_path: str, content: Encoder | BulkWriterFactory) -> None:
            local = local_path(base_path) if isinstance(base_path, str) and base_path else None
            if local is None:
                raise ConfigurationError(
                    f"FileSink: {base_path!r} is not a local path; files are made visible by renaming, which needs a "
                    "file system that all hosts of the job mount"
                )
            self._base_path = local
            self._content = content
            self._bucket_assigner = BucketAssigner.date_time_bucket_assigner()
            self._rolling_policy: RollingPolicy = RollingPolicy.default_rolling_policy()
            self._output_file_config = OutputFileConfig()
            self._compaction: tuple[FileCompactStrategy, FileCompactor] | None = None

        def with_bucket_check_interval(self, interval: int) -> FileSink.RowFormatBuilder:
            """Has no effect, and says so: files end with their epoch, there is nothing to check in between."""
            warnings.warn("with_bucket_check_interval has no effect: part files end with their epoch", stacklevel=2)
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink.RowFormatBuilder:
            self._bucket_assigner = _expected("with_bucket_assigner", bucket_assigner, BucketAssigner)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            self._rolling_policy = _expected("with_rolling_policy", rolling_policy, RollingPolicy)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.RowFormatBuilder:
            self._output_file_config = _expected("with_output_file_config", output_file_config, OutputFileConfig)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> FileSink.RowFormatBuilder:
            """Join the files that all partitions wrote into a bucket for one checkpoint. The driver does it."""
            if not isinstance(strategy, FileCompactStrategy) or not isinstance(compactor, FileCompactor):
                raise ConfigurationError(
                    f"FileSink.enable_compact got {strategy!r} and {compactor!r}; expected a FileCompactStrategy and a "
                    "FileCompactor"
                )
            if compactor.joins and not isinstance(self._content, Encoder):
                raise ConfigurationError(
                    "FileSink.enable_compact: only files of a row format can be joined one after the other; with a "
                    "bulk format set a longer execution.checkpointing.interval for larger files"
                )
            self._compaction = (strategy, compactor)
            return self

        def disable_compact(self) -> FileSink.RowFormatBuilder:
            self._compaction = None
            return self

        def build(self) -> FileSink:
            if os.path.exists(self._base_path) and not os.path.isdir(self._base_path):
                raise ConfigurationError(f"FileSink: {self._base_path} is a file; expected a directory, or nothing yet")
            return FileSink(
                _Settings(
                    self._base_path,
                    self._content,
                    self._bucket_assigner,
                    self._rolling_policy,
                    self._output_file_config,
                    self._compaction,
                )
            )

    class BulkFormatBuilder(RowFormatBuilder):
        """The same settings for a bulk format."""


def _expected(method: str, given: T, kind: type[Any]) -> T:
    if not isinstance(given, kind):
        hint = "; did you forget build()?" if hasattr(given, "build") else ""
        raise ConfigurationError(f"FileSink.{method} got {given!r}; expected {kind.__name__}{hint}")
    return given


def _create(path: str) -> BinaryIO:
    return open(path, "xb", buffering=1 << 18)  # closed by complete or discard


class _Part:
    """One file that is being written."""

    def __init__(self, settings: _Settings, directory: str, pending_name: str, final_name: str) -> None:
        self._committable = FileCommittable(directory, pending_name, final_name, 0)
        self.path = os.path.join(directory, pending_name)
        try:
            self.file = _create(self.path)
        except FileNotFoundError:
            make_directories(directory)
            self.file = _create(self.path)
        self.writer = settings.create_writer(self.file)

    def complete(self) -> FileCommittable:
        self.writer.finish()
        sync_file(self.file)
        length = self.file.tell()
        self.file.close()
        found = self._committable
        return FileCommittable(found.directory, found.pending_name, found.final_name, length)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)


class _FileWriter(ReusableSinkWriter):
    def __init__(self, settings: _Settings, context: WriterContext) -> None:
        self._settings = settings
        self._pending_end = f".{validate_name(context.job_id, 'job id')}{PENDING_SUFFIX}"
        self._one_bucket = settings.bucket_assigner.bucket_of_all()
        self._parts: dict[str, _Part] = {}  # {bucket id: the file being written}
        self._complete: list[FileCommittable] = []
        self.begin_epoch(context)

    def begin_epoch(self, context: WriterContext) -> None:
        attempt, unique = validate_name(context.attempt_id, "attempt id"), uuid.uuid4().hex[:12]
        who = f"{self._settings.output_file_config.part_prefix}-{context.partition}"
        self._pending_stem = f".{who}-{attempt}-{unique}"
        self._final_stem = f"{who}-{context.epoch}-{unique}"
        self._files = 0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        with self._room():
            self._write_batch(values, timestamps)

    def _write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if self._one_bucket is not None:
            if values:
                self._write(self._one_bucket, values)
            return
        bucket_of = self._settings.bucket_assigner.get_bucket_id
        by_bucket: dict[str, list[Any]] = {}
        for index, value in enumerate(values):
            bucket = bucket_of(value, timestamps[index] if timestamps is not None else None)
            by_bucket.setdefault(bucket, []).append(value)
        for bucket, members in by_bucket.items():
            self._write(bucket, members)

    def _room(self) -> AbstractContextManager[None]:
        return room_for("output of FileSink", self._settings.base_path, MAKE_ROOM)

    def prepare_commit(self) -> list[Any]:
        with self._room():
            for bucket in list(self._parts):
                self._complete_part(bucket)
            for directory in {committable.directory for committable in self._complete}:
                sync_directory(directory)  # the pending names must survive a power cut too
        complete, self._complete = self._complete, []
        return list(complete)

    def abort(self) -> None:
        for part in self._parts.values():
            part.discard()
        for committable in self._complete:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(committable.directory, committable.pending_name))
        self._parts, self._complete = {}, []

    def close(self) -> None:
        self.abort()

    def _write(self, bucket: str, values: Sequence[Any]) -> None:
        part = self._parts.get(bucket)
        if part is None:
            part = self._parts[bucket] = self._open_part(bucket)
        part.writer.add_batch(values)
        limit = self._settings.rolling_policy.part_size
        if limit is not None and part.file.tell() >= limit:
            self._complete_part(bucket)

    def _open_part(self, bucket: str) -> _Part:
        directory = _bucket_directory(self._settings.base_path, bucket)
        number = self._files
        self._files += 1
        suffix = self._settings.output_file_config.part_suffix
        pending = f"{self._pending_stem}-{number}{self._pending_end}"
        return _Part(self._settings, directory, pending, f"{self._final_stem}-{number}{suffix}")

    def _complete_part(self, bucket: str) -> None:
        # It leaves `_parts` only when it is complete: if this fails, abort() still finds it.
        self._complete.append(self._parts[bucket].complete())
        del self._parts[bucket]


def _bucket_directory(base_path: str, bucket: str) -> str:
    parts = bucket.split("/") if isinstance(bucket, str) else [".."]
    if bucket != "" and any(part in ("", ".", "..") or part.startswith(".") or "\0" in part for part in parts):
        raise ConfigurationError(
            f"bucket {bucket!r} is not a relative directory name; expected text such as 'country=se/2026-02'"
        )
    return os.path.join(base_path, bucket) if bucket else base_path
