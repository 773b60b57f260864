"""Fewer, larger files: the part files of one checkpoint are joined before they become visible.

A group of pending files becomes one: written whole under a hidden name, then the parts are deleted, then it is renamed
to its final name. So there are all parts, or the joined file, or it was visible: it cannot be joined a second time
because a reader has taken it away.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shutil import copyfileobj
from typing import Any, Final

from headwater.checkpoint.storage.durable_file import sync_directory, sync_file
from headwater.common.errors import CheckpointError, ConfigurationError
from headwater.common.machine.local_disk import room_for
from headwater.datastream.connectors.file_committer import (
    MAKE_ROOM,
    EarlierTry,
    FileCommittable,
    FileCommitter,
    digest,
    make_visible,
    sync_if_there,
)
from headwater.datastream.no_effect import warn_no_effect

__all__ = ["CompactingCommitter", "FileCompactStrategy", "FileCompactor"]

_PREFIX: Final = "compacted-"


@dataclass(frozen=True)
class FileCompactStrategy:
    """Which files are joined: those of one bucket and one checkpoint, until they have `size_threshold` bytes."""

    size_threshold: int | None = None

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()

    class Builder:
        """Needs at least one of the two rules, as in Flink."""

        def __init__(self) -> None:
            self._on_checkpoint = False
            self._size_threshold: int | None = None

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Files of several checkpoints are not joined: they would stay invisible for so long."""
            if num_checkpoints_before_compaction < 1:
                raise ConfigurationError(
                    f"num_checkpoints_before_compaction is {num_checkpoints_before_compaction}; expected 1 or more"
                )
            if num_checkpoints_before_compaction > 1:
                warn_no_effect(
                    "num_checkpoints_before_compaction above 1",
                    "the files of each checkpoint are joined; for larger ones set execution.checkpointing.interval",
                )
            self._on_checkpoint = True
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
            if not self._on_checkpoint and self._size_threshold is None:
                raise ConfigurationError(
                    "FileCompactStrategy has no rule; call enable_compaction_on_checkpoint(1) or set_size_threshold()"
                )
            return FileCompactStrategy(self._size_threshold)


@dataclass(frozen=True)
class FileCompactor:
    """How files are joined: one after the other."""

    delimiter: bytes = b""
    joins: bool = True

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """The content of the files, with `file_delimiter` between them. For formats without a header or a footer."""
        return FileCompactor(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Every file by itself, as if there were no compaction."""
        return FileCompactor(joins=False)


class CompactingCommitter(FileCommitter):
    """Joins files while it commits. Idempotent for the same committables: groups and names follow from them."""

    def __init__(self, base_path: str, strategy: FileCompactStrategy, compactor: FileCompactor) -> None:
        super().__init__(base_path)
        self._strategy = strategy
        self._compactor = compactor

    def _commit(self, committables: list[Any], earlier: EarlierTry) -> None:
        if not self._compactor.joins:
            super()._commit(committables, earlier)
            return
        by_directory: dict[str, list[FileCommittable]] = {}
        for committable in committables:
            by_directory.setdefault(committable.directory, []).append(committable)
        for directory, members in by_directory.items():
            for group in self._groups(sorted(members, key=lambda member: member.final_name)):
                if len(group) == 1 or not self._join(directory, group, earlier):
                    for member in group:
                        make_visible(member, earlier)
            sync_if_there(directory)

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

    def _join(self, directory: str, group: list[FileCommittable], earlier: EarlierTry) -> bool:
        """Make the group visible as one file. False: it is committed apart, or all of it is gone."""
        # The name tells all members: what it does not stand for is never taken as done.
        final = os.path.join(directory, f"{_PREFIX}{digest(group)}-{group[0].final_name}")
        parts = [os.path.join(directory, member.pending_name) for member in group]
        if not os.path.exists(final):
            # The pending name of a part, with more in it: find_leftovers finds it, too.
            pending_end = group[0].pending_name.lstrip(".")
            joined = os.path.join(directory, f".{_PREFIX}{pending_end}")
            if not os.path.exists(joined):
                if not all(map(os.path.exists, parts)) or _committed_apart(group):
                    return False
                draft = os.path.join(directory, f".{_PREFIX}{uuid.uuid4().hex}-{pending_end}")
                with room_for("a joined file of FileSink", directory, MAKE_ROOM):
                    self._write(draft, directory, group)
                os.rename(draft, joined)
                sync_directory(directory)  # before a part is deleted
            _delete(parts)
            earlier.got_here = False
            os.rename(joined, final)
        _delete(parts)
        return True

    def _write(self, target: str, directory: str, group: list[FileCommittable]) -> None:
        with open(target, "wb") as joined:
            for number, member in enumerate(group):
                part = os.path.join(directory, member.pending_name)
                if number and self._compactor.delimiter:
                    joined.write(self._compactor.delimiter)
                try:
                    with open(part, "rb") as content:
                        if os.fstat(content.fileno()).st_size != member.length:
                            raise CheckpointError(
                                f"pending output file {part} does not have the {member.length:,} bytes that its "
                                "manifest says; it was changed from outside. Restore it from a copy"
                            )
                        copyfileobj(content, joined)
                except FileNotFoundError:
                    raise CheckpointError(
                        f"pending output file {part} is gone, so it cannot become part of {target}; somebody else "
                        "deleted or moved it. Put it back and start the job again"
                    ) from None
            sync_file(joined)


def _delete(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _committed_apart(group: list[FileCommittable]) -> bool:
    """The run that committed these first did not join files yet."""
    return any(os.path.exists(os.path.join(member.directory, member.final_name)) for member in group)
