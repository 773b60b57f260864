"""Adds data files to a table exactly once: with a mark in the same commit that says up to which epoch they are there.

The mark belongs to the job's id and the sink's uid. A commit that is repeated, after a lost answer or by another
driver, reads the table first and finds it. Two drivers at once: the table takes one commit after the other, the second
one fails, reads the table again and finds the mark (docs/decisions/0029-output-that-is-held.md).
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import xxhash

from headwater.common.connector import CheckpointMoment, Committer, CommitterContext, Selection
from headwater.common.errors import CheckpointError, ExternalSystemError
from headwater.datastream.connectors.columnar.parquet import ParquetFile
from headwater.datastream.connectors.lake.writer import LakeFile, TableLayout, statistics
from headwater.datastream.connectors.spool_notes import first_note

log = logging.getLogger(__name__)

TRIES: Final = 20
"""How often a commit is tried again that others were quicker than."""


class OthersWereQuickerError(Exception):
    """The table has changed since it was read: read it again."""


@dataclass(frozen=True)
class CommitSettings:
    """What a builder says about commits."""

    min_interval_ms: int = 0
    joins_small_files: bool = False
    adds_columns: bool = False


class LakeCommitter(Committer):
    """Runs in the driver. It moves names of files, and joins small ones if it is asked to."""

    def __init__(self, layout: TableLayout, settings: CommitSettings) -> None:
        self.layout = layout
        self._settings = settings
        self._context = CommitterContext("job", "sink", "sink")
        self._tokens: dict[str, str] = {}  # {job id: token}

    def open(self, context: CommitterContext) -> None:
        self._context = context
        present = self.present_schema()
        new = [field.with_nullable(True) for field in self.layout.schema if field.name not in present.names]
        if new and self._settings.adds_columns:
            self.add_columns(new)

    def select(self, prepared: list[Any], held: list[Any], moment: CheckpointMoment) -> Selection:
        """Hold files until the interval has passed since the first of them was written."""
        files: list[LakeFile] = [*held, *prepared]
        if not files or moment.final or any(file.job_id != self._context.job_id for file in files):
            return Selection(list(files))
        until_ms = min(file.written_ms for file in files) + self._settings.min_interval_ms
        if until_ms <= moment.now_ms or sum(file.size for file in files) >= self.layout.target_file_bytes:
            return Selection(list(files))
        return Selection([], list(files), until_ms)

    def commit(self, committables: list[Any]) -> None:
        for job_id in sorted({file.job_id for file in committables}):
            self._commit(job_id, [file for file in committables if file.job_id == job_id])

    def _commit(self, job_id: str, files: list[LakeFile]) -> None:
        files = sorted(files, key=lambda file: (file.epoch, file.path))
        mark = self._mark(job_id, files[0])
        epoch = max(file.epoch for file in files)
        added: list[LakeFile] | None = None
        for _ in range(TRIES):
            visible = self.read_mark(mark)
            if visible is not None and visible >= epoch:
                break
            if added is None:
                self._check(files)
                added = self._joined(files) if self._settings.joins_small_files else files
            try:
                self.append(added, mark, epoch)
                break
            except OthersWereQuickerError as error:
                log.info("%s: another writer was quicker (%s); trying again", self.layout.kind, error)
        else:
            raise ExternalSystemError(
                f"{self.layout.kind} table {self.layout.store.base_path} took the commits of other writers {TRIES} "
                "times while this one waited"
            )
        if self._settings.joins_small_files:
            for group in self._groups(files):
                for part in group:
                    with contextlib.suppress(OSError):
                        self.layout.store.delete(self._place(part))

    # --- the table format's part

    @abstractmethod
    def present_schema(self) -> Any:
        """Return the table's pyarrow.Schema."""

    @abstractmethod
    def add_columns(self, fields: Sequence[Any]) -> None:
        """Add these pyarrow.Fields to the table."""

    @abstractmethod
    def read_mark(self, mark: str) -> int | None:
        """Read the table anew, and return the epoch up to which output is there; None: there is none."""

    @abstractmethod
    def append(self, files: Sequence[LakeFile], mark: str, epoch: int) -> None:
        """Add files and set the mark, in one commit on the table that `read_mark` has read, or raise
        OthersWereQuickerError."""

    # --- the mark

    def _mark(self, job_id: str, first: LakeFile) -> str:
        """Return the mark's name. A part of it is noted with the checkpoints (`first_note` says why)."""
        if job_id not in self._tokens:
            new = xxhash.xxh64_hexdigest(first.path.encode())
            self._tokens[job_id] = first_note(self._context.files, f"mark-{job_id}", new.encode()).decode()
        uid = xxhash.xxh64_hexdigest(self._context.operator_uid.encode())
        return f"headwater-{job_id}-{uid}-{self._tokens[job_id]}"

    # --- files

    def _place(self, file: LakeFile) -> str:
        return f"{self.layout.store.base_path}/{file.path}"

    def _check(self, files: Sequence[LakeFile]) -> None:
        for file in files:
            size = self.layout.store.size(self._place(file))
            if size != file.size:
                found = "is gone" if size is None else f"has {size:,} bytes, its manifest says {file.size:,}"
                raise CheckpointError(
                    f"data file {self._place(file)} {found}; somebody else deleted or changed it before it became part "
                    "of the table. Restore it from a copy and start the job again"
                )

    def _groups(self, files: Sequence[LakeFile]) -> list[list[LakeFile]]:
        """Files to join: several of one partition, none of them large."""
        limit = self.layout.target_file_bytes
        by_partition: dict[Any, list[LakeFile]] = {}
        groups: list[list[LakeFile]] = []
        for file in files:
            if file.size * 2 > limit:
                continue
            group = by_partition.setdefault(file.partition, [])
            if sum(each.size for each in group) + file.size > limit:
                groups.append(group)
                group = by_partition[file.partition] = []
            group.append(file)
        groups += by_partition.values()
        return [group for group in groups if len(group) > 1]

    def _joined(self, files: list[LakeFile]) -> list[LakeFile]:
        """Return the same rows in fewer files."""
        groups = self._groups(files)
        apart = {file.path for group in groups for file in group}
        return [*(file for file in files if file.path not in apart), *map(self._join, groups)]

    def _join(self, group: list[LakeFile]) -> LakeFile:
        import pyarrow

        folder, slash, _ = group[0].path.rpartition("/")
        # No other try has the name: a driver that wakes up late must not touch a file that is part of the table.
        path = f"{folder}{slash}joined-{uuid.uuid4().hex}.parquet"
        store = self.layout.store
        metadata: list[Any] = []
        draft = store.create(f"{store.base_path}/{path}")
        schema = self.layout.file_schema
        writer = self.layout.open_writer(draft.file, schema, metadata)
        for file in group:
            with store.open(self._place(file)) as content:
                parquet = ParquetFile(content)
                for number in range(parquet.groups):
                    writer.write_table(pyarrow.Table.from_batches(parquet.batches(number, None)).cast(schema))
        writer.close()
        size = draft.complete()
        store.sync([f"{store.base_path}/{folder}"])
        return replace(
            group[-1], path=path, size=size, rows=sum(file.rows for file in group), stats=statistics(metadata[0])
        )
