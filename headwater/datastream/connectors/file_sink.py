"""Records in files, exactly once.

A writer writes hidden files, `.part-….inprogress`. At the end of the epoch they are complete and durable, and the
manifest names them. Only then does the committer rename them to names that readers see, or let them grow together,
hidden, over several checkpoints (`part_files.py`). Files that no manifest names are never renamed, and are deleted when
the job starts or ends.
"""

from __future__ import annotations

import contextlib
import os
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, TypeVar

from headwater.checkpoint.paths import validate_name
from headwater.common.connector import Committer, ReusableSinkWriter, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.machine.local_disk import room_for
from headwater.common.row_changes import is_insert_only
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.bucket_assigner import BucketAssigner
from headwater.datastream.connectors.bulk_writers import (
    BulkWriter,
    BulkWriterFactory,
    ColumnarWriterFactory,
    EncodedWriter,
)
from headwater.datastream.connectors.file_committer import PENDING_SUFFIX, FileCommitter
from headwater.datastream.connectors.file_compaction import CompactingCommitter, FileCompactor, FileCompactStrategy
from headwater.datastream.connectors.file_store import MAKE_ROOM, FileStore, file_store
from headwater.datastream.connectors.part_files import FileCommittable, OutputFileConfig, RollingPolicy

__all__ = ["FileCommittable", "FileSink"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Settings:
    store: FileStore
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
    """Writes records to files below a directory that all hosts of the job see, or in an object store.

    Built by one of the two methods below. A file becomes visible as a whole, when it is complete by the rolling policy
    and the checkpoint that says so is durable. File names are unique for ever.
    """

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        self.insert_only = is_insert_only(settings.content)

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
        settings = self._settings
        if settings.compaction is not None:
            columns = settings.content if isinstance(settings.content, ColumnarWriterFactory) else None
            return CompactingCommitter(settings.store, settings.rolling_policy, *settings.compaction, columns)
        return FileCommitter(settings.store, settings.rolling_policy)

    def __repr__(self) -> str:
        return f"FileSink({self._settings.store.base_path})"

    class RowFormatBuilder:
        """Settings of a `FileSink`. By default in buckets by hour, and files that roll by size and time."""

        _default_policy: RollingPolicy = RollingPolicy.default_rolling_policy()

        def __init__(self, base_path: str, content: Encoder | BulkWriterFactory) -> None:
            if not isinstance(base_path, str) or not base_path:
                raise ConfigurationError(
                    f"FileSink: {base_path!r} is not a path; expected a directory, or a URL such as s3://bucket/out"
                )
            self._settings = _Settings(
                file_store(base_path),
                content,
                BucketAssigner.date_time_bucket_assigner(),
                self._default_policy,
                OutputFileConfig(),
            )

        def with_bucket_check_interval(self, interval: int) -> FileSink.RowFormatBuilder:
            """Has no effect, and says so: the rolling policy is asked with each checkpoint, and when it asked to be."""
            warnings.warn(
                "with_bucket_check_interval has no effect: the rolling policy is asked with each checkpoint",
                stacklevel=2,
            )
            return self

        def with_storage_options(self, options: Mapping[str, Any]) -> FileSink.RowFormatBuilder:
            """Options of the fsspec file system of an object store: `endpoint_url`, `key`, `secret`, ….

            Text may refer to secrets: `${env:NAME}`, `${file:/path}`. Without them the file system looks in its own
            places, such as `AWS_ACCESS_KEY_ID`.
            """
            return self._with(store=file_store(self._settings.store.base_path, options))

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink.RowFormatBuilder:
            return self._with(bucket_assigner=_expected("with_bucket_assigner", bucket_assigner, BucketAssigner))

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            policy = _expected("with_rolling_policy", rolling_policy, RollingPolicy)
            content = self._settings.content
            if policy.across_checkpoints and not (isinstance(content, Encoder) or content.joins):
                policy = _EndedByCheckpoints(policy.part_size)
                warnings.warn(
                    "files of this format end with each checkpoint: only the size of the rolling policy counts. For "
                    "larger files use enable_compact, or a longer execution.checkpointing.interval",
                    stacklevel=2,
                )
            return self._with(rolling_policy=policy)

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.RowFormatBuilder:
            expected = _expected("with_output_file_config", output_file_config, OutputFileConfig)
            return self._with(output_file_config=expected)

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> FileSink.RowFormatBuilder:
            """Join the files that all partitions wrote into a bucket, for one or several checkpoints.

            The driver does it, when it commits them; until then they are hidden.
            """
            if not isinstance(strategy, FileCompactStrategy) or not isinstance(compactor, FileCompactor):
                raise ConfigurationError(
                    f"FileSink.enable_compact got {strategy!r} and {compactor!r}; expected a FileCompactStrategy and a "
                    "FileCompactor"
                )
            content = self._settings.content
            if compactor.how == "bytes" and not (isinstance(content, Encoder) or content.joins):
                raise ConfigurationError(
                    "FileSink.enable_compact: files of this format cannot be joined one after the other; for Parquet "
                    "and ORC use FileCompactor.columnar_file_compactor(), for others set a longer "
                    "execution.checkpointing.interval"
                )
            if compactor.how == "columns" and not isinstance(content, ColumnarWriterFactory):
                raise ConfigurationError(
                    "FileSink.enable_compact: columnar_file_compactor() joins Parquet and ORC files; for lines use "
                    "FileCompactor.concat_file_compactor()"
                )
            return self._with(compaction=(strategy, compactor))

        def disable_compact(self) -> FileSink.RowFormatBuilder:
            return self._with(compaction=None)

        def build(self) -> FileSink:
            path = self._settings.store.base_path
            if os.path.exists(path) and not os.path.isdir(path):
                raise ConfigurationError(f"FileSink: {path} is a file; expected a directory, or nothing yet")
            return FileSink(self._settings)

        def _with(self, **settings: Any) -> FileSink.RowFormatBuilder:
            self._settings = replace(self._settings, **settings)
            return self

    class BulkFormatBuilder(RowFormatBuilder):
        """The same settings for a bulk format: by default files end with each checkpoint."""

        _default_policy = RollingPolicy.on_checkpoint_rolling_policy()


class _EndedByCheckpoints(RollingPolicy):
    """By size, and with each checkpoint."""

    def __init__(self, part_size: int | None) -> None:
        self.part_size = part_size


def _expected(method: str, given: T, kind: type[Any]) -> T:
    if not isinstance(given, kind):
        hint = "; did you forget build()?" if hasattr(given, "build") else ""
        raise ConfigurationError(f"FileSink.{method} got {given!r}; expected {kind.__name__}{hint}")
    return given


class _Part:
    """One file that is being written."""

    def __init__(self, settings: _Settings, committable: FileCommittable) -> None:
        self._committable = committable
        self.draft = settings.store.create(committable.pending_path)
        self.writer = settings.create_writer(self.draft.file)

    def complete(self) -> FileCommittable:
        """Write the rest. It is not durable yet."""
        self.writer.finish()
        return replace(self._committable, length=self.draft.file.tell())

    def make_durable(self) -> None:
        self.draft.complete()


class _FileWriter(ReusableSinkWriter):
    def __init__(self, settings: _Settings, context: WriterContext) -> None:
        self._settings = settings
        self._pending_end = f".{validate_name(context.job_id, 'job id')}{PENDING_SUFFIX}"
        self._parts: dict[str, _Part] = {}  # {bucket id: the file being written}
        self._complete: list[FileCommittable] = []
        self._unsynced: list[_Part] = []
        """Parts that are complete, but not durable yet."""
        self._unsynced_directories: set[str] = set()
        self.begin_epoch(context)

    def begin_epoch(self, context: WriterContext) -> None:
        attempt, unique = validate_name(context.attempt_id, "attempt id"), uuid.uuid4().hex[:12]
        who = f"{self._settings.output_file_config.part_prefix}-{context.partition}"
        self._pending_stem = f".{who}-{attempt}-{unique}"
        self._final_stem = f"{who}-{context.epoch}-{unique}"
        self._files = 0
        self._context = context
        self._one_bucket = self._settings.bucket_assigner.bucket_of_all(context.now_ms)

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
        return room_for("output of FileSink", self._settings.store.base_path, MAKE_ROOM)

    def prepare_commit(self) -> list[Any]:
        with self._room():
            for bucket in list(self._parts):
                self._complete_part(bucket)
        complete, self._complete = self._complete, []
        self._unsynced_directories = {committable.directory for committable in complete}
        return list(complete)

    def make_durable(self) -> None:
        parts, self._unsynced = self._unsynced, []
        directories, self._unsynced_directories = self._unsynced_directories, set()
        try:
            with self._room():
                for part in parts:
                    part.make_durable()
                self._settings.store.sync(directories)  # the pending names must survive a power cut too
        except BaseException:
            for part in parts:
                part.draft.discard()
            raise

    def abort(self) -> None:
        for part in self._parts.values():
            part.draft.discard()
        for part in self._unsynced:
            part.draft.discard()
        self._unsynced = []
        for committable in self._complete:
            with contextlib.suppress(OSError, HeadwaterError):
                self._settings.store.delete(committable.pending_path)
        self._parts, self._complete = {}, []

    def close(self) -> None:
        self.abort()

    def _write(self, bucket: str, values: Sequence[Any]) -> None:
        part = self._parts.get(bucket)
        if part is None:
            part = self._parts[bucket] = self._open_part(bucket)
        part.writer.add_batch(values)
        limit = self._settings.rolling_policy.part_size
        if limit is not None and part.draft.file.tell() >= limit:
            self._complete_part(bucket)
            self._unsynced.pop().make_durable()  # an epoch may have more parts than a process may have open files

    def _open_part(self, bucket: str) -> _Part:
        directory = _bucket_directory(self._settings.store.base_path, bucket)
        number = self._files
        self._files += 1
        suffix = self._settings.output_file_config.part_suffix
        pending = f"{self._pending_stem}-{number}{self._pending_end}"
        committable = FileCommittable(
            directory,
            pending,
            f"{self._final_stem}-{number}{suffix}",
            length=0,
            epoch=self._context.epoch,
            partition=self._context.partition,
            written_ms=self._context.now_ms,
            job_id=self._context.job_id,
        )
        return _Part(self._settings, committable)

    def _complete_part(self, bucket: str) -> None:
        # It leaves `_parts` only when it is complete: if this fails, abort() still finds it.
        part = self._parts[bucket]
        self._complete.append(part.complete())
        self._unsynced.append(part)
        del self._parts[bucket]


def _bucket_directory(base_path: str, bucket: str) -> str:
    parts = bucket.split("/") if isinstance(bucket, str) else [".."]
    if bucket != "" and any(part in ("", ".", "..") or part.startswith(".") or "\0" in part for part in parts):
        raise ConfigurationError(
            f"bucket {bucket!r} is not a relative directory name; expected text such as 'country=se/2026-02'"
        )
    return f"{base_path}/{bucket}" if bucket else base_path
