"""Fewer, larger files: the part files of one or several checkpoints are joined before they become visible.

A group of pending files becomes one: written whole under a hidden name, then the parts are deleted, then it is renamed
to its final name. So at any time there are all parts, or the joined file, or it was visible: files are not joined again
after a reader took them away.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shutil import copyfileobj
from typing import Any, BinaryIO, Final

from headwater.common.connector import CheckpointMoment, Selection
from headwater.common.errors import CheckpointError, ConfigurationError
from headwater.common.machine.local_disk import room_for
from headwater.datastream.connectors.bulk_writers import ColumnarWriterFactory
from headwater.datastream.connectors.columnar.orc import OrcFile
from headwater.datastream.connectors.columnar.parquet import ParquetFile
from headwater.datastream.connectors.file_committer import EarlierTry, FileCommitter, digest
from headwater.datastream.connectors.file_store import MAKE_ROOM, FileStore
from headwater.datastream.connectors.part_files import FileCommittable, HeldFile, RollingPolicy
from headwater.datastream.no_effect import warn_no_effect

__all__ = ["CompactingCommitter", "FileCompactStrategy", "FileCompactor"]

_PREFIX: Final = "compacted-"


@dataclass(frozen=True)
class FileCompactStrategy:
    """Which files are joined: those of one bucket, until they have `size_threshold` bytes or are of so many
    checkpoints."""

    size_threshold: int | None = None
    checkpoints: int = 1

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()

    class Builder:
        """Needs at least one of the two rules, as in Flink."""

        def __init__(self) -> None:
            self._checkpoints: int | None = None
            self._size_threshold: int | None = None

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Join the files of so many checkpoints. They are hidden until then."""
            if num_checkpoints_before_compaction < 1:
                raise ConfigurationError(
                    f"num_checkpoints_before_compaction is {num_checkpoints_before_compaction}; expected 1 or more"
                )
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Bytes after which a joined file takes no more parts."""
            if size_threshold < 1:
                raise ConfigurationError(f"size_threshold is {size_threshold}; expected 1 or more bytes")
            self._size_threshold = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            warn_no_effect("set_num_compact_threads", "the driver joins files when it commits them")
            return self

        def build(self) -> FileCompactStrategy:
            if self._checkpoints is None and self._size_threshold is None:
                raise ConfigurationError(
                    "FileCompactStrategy has no rule; call enable_compaction_on_checkpoint(1) or set_size_threshold()"
                )
            return FileCompactStrategy(self._size_threshold, self._checkpoints or 1)


@dataclass(frozen=True)
class FileCompactor:
    """How files are joined."""

    delimiter: bytes = b""
    how: str = "bytes"
    """`bytes`: one after the other; `columns`: rows of Parquet or ORC files; `not`."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """The content of the files, with `file_delimiter` between them. For formats without a header or a footer."""
        return FileCompactor(file_delimiter or b"")

    @staticmethod
    def columnar_file_compactor() -> FileCompactor:
        """The rows of Parquet or ORC files, in one file. Fields that only some of them have are null in the others."""
        return FileCompactor(how="columns")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Every file by itself, as if there were no compaction."""
        return FileCompactor(how="not")


class CompactingCommitter(FileCommitter):
    """Joins files while it commits. Idempotent for the same committables: groups and names follow from them."""

    def __init__(
        self,
        store: FileStore,
        rolling_policy: RollingPolicy,
        strategy: FileCompactStrategy,
        compactor: FileCompactor,
        columns: ColumnarWriterFactory | None,
    ) -> None:
        super().__init__(store, rolling_policy)
        self._strategy = strategy
        self._compactor = compactor
        self._columns = columns

    def select(self, prepared: list[Any], held: list[Any], moment: CheckpointMoment) -> Selection:
        """Hold the files of a bucket until there are enough of them, or of their checkpoints."""
        due: list[Any] = []
        waiting: dict[str, list[HeldFile]] = {}  # {directory: its files}
        for each in held:
            if isinstance(each, HeldFile):
                older = HeldFile(each.file, each.checkpoints + 1)
                waiting.setdefault(each.file.directory, []).append(older)
            else:  # a part that grew before compaction was enabled
                due += each.whole(appends=self.store.appends)
        for file in prepared:
            waiting.setdefault(file.directory, []).append(HeldFile(file, 1))
        still: list[HeldFile] = []
        for files in waiting.values():
            if moment.final or self._is_due(files):
                due += [each.file for each in files]
            else:
                still += files
        return Selection(due, list(still))

    def _is_due(self, files: Sequence[HeldFile]) -> bool:
        limit = self._strategy.size_threshold
        return (
            max(each.checkpoints for each in files) >= self._strategy.checkpoints
            or any(each.file.job_id != self._job_id for each in files)
            or (limit is not None and sum(each.file.length for each in files) >= limit)
        )

    def _commit(self, committables: list[Any], earlier: EarlierTry) -> None:
        if self._compactor.how == "not":
            super()._commit(committables, earlier)
            return
        files = [each for each in committables if isinstance(each, FileCommittable)]
        if len(files) < len(committables):
            super()._commit(committables, earlier)  # parts that grew before compaction was enabled, for once
            return
        by_directory: dict[str, list[FileCommittable]] = {}
        for committable in files:
            by_directory.setdefault(committable.directory, []).append(committable)
        for members in by_directory.values():
            for group in self._groups(sorted(members, key=lambda member: member.final_name)):
                if len(group) == 1 or not self._join(group, earlier):
                    for member in group:
                        self.make_visible(member, earlier)
        self.store.sync(by_directory)

    def _groups(self, members: Sequence[FileCommittable]) -> Iterable[list[FileCommittable]]:
        group: list[FileCommittable] = []
        size, limit = 0, self._strategy.size_threshold
        for member in members:
            group.append(member)
            size += member.length
            if limit is not None and size >= limit:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _join(self, group: list[FileCommittable], earlier: EarlierTry) -> bool:
        """Make the group visible as one file. Return False if it was committed apart, or all of it is gone."""
        store, directory = self.store, group[0].directory
        # The name identifies all members, so that no other group is taken as done.
        final = f"{directory}/{_PREFIX}{digest(group)}-{group[0].final_name}"
        parts = [member.pending_path for member in group]
        if not store.exists(final):
            # It ends like a pending name, so that find_leftovers finds it.
            pending_end = group[0].pending_name.lstrip(".")
            joined = f"{directory}/.{_PREFIX}{pending_end}"
            if not store.exists(joined):
                if not all(map(store.exists, parts)) or any(store.exists(member.final_path) for member in group):
                    return False  # gone, or committed by an earlier run without compaction
                draft = f"{directory}/.{_PREFIX}{uuid.uuid4().hex}-{pending_end}"
                with room_for("a joined file of FileSink", directory, MAKE_ROOM):
                    self._write(draft, group)
                store.rename(draft, joined)
                store.sync([directory])  # before a part is deleted
            for part in parts:
                store.delete(part)
            earlier.got_here = False
            store.rename(joined, final)
        for part in parts:
            store.delete(part)
        return True

    def _write(self, target: str, group: list[FileCommittable]) -> None:
        draft = self.store.create(target)
        try:
            with contextlib.ExitStack() as opened:
                contents = [opened.enter_context(self._open(member, target)) for member in group]
                if self._compactor.how == "columns":
                    assert self._columns is not None
                    join_columns(contents, draft.file, self._columns)
                else:
                    for number, content in enumerate(contents):
                        if number and self._compactor.delimiter:
                            draft.file.write(self._compactor.delimiter)
                        copyfileobj(content, draft.file)
        except BaseException:
            draft.discard()
            raise
        draft.complete()

    def _open(self, member: FileCommittable, target: str) -> BinaryIO:
        part = member.pending_path
        size = self.store.size(part)
        if size is None:
            raise CheckpointError(
                f"pending output file {part} is gone, so it cannot become part of {target}; somebody else "
                "deleted or moved it. Put it back and start the job again"
            )
        if size != member.length:
            raise CheckpointError(
                f"pending output file {part} does not have the {member.length:,} bytes that its "
                "manifest says; it was changed from outside. Restore it from a copy"
            )
        return self.store.open(part)


def join_columns(contents: Sequence[BinaryIO], file: BinaryIO, columns: ColumnarWriterFactory) -> None:
    """Write the rows of Parquet or ORC files into one."""
    import pyarrow

    files = [OrcFile(content) if columns.kind == "ORC" else ParquetFile(content) for content in contents]
    schema = pyarrow.unify_schemas([each.schema for each in files])
    writer = columns.open_writer(file, schema)
    write = writer.write if columns.kind == "ORC" else writer.write_table
    for each in files:
        for group in range(each.groups):
            rows = pyarrow.Table.from_batches(each.batches(group, None), each.schema)
            missing = [field for field in schema if field.name not in rows.schema.names]
            for field in missing:
                rows = rows.append_column(field, pyarrow.nulls(rows.num_rows, field.type))
            write(rows.select(schema.names).combine_chunks())
    writer.close()
