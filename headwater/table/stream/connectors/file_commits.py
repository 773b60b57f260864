"""Partitions of files that are declared complete: options sink.partition-commit.*, and a sink that writes _SUCCESS."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from headwater.common.connector import (
    CheckpointMoment,
    Committer,
    CommitterContext,
    ReusableSinkWriter,
    Selection,
    Sink,
    SinkWriter,
    WriterContext,
)
from headwater.common.errors import SqlError
from headwater.datastream.connectors.bucket_assigner import strftime_format
from headwater.datastream.connectors.file_committer import FileCommitter
from headwater.datastream.connectors.file_sink import FileSink
from headwater.datastream.connectors.part_files import GrowingPart
from headwater.table.batch.rows import sql_text
from headwater.table.stream.connectors.contract import TableContext
from headwater.table.stream.connectors.file_partitions import PartitionKeys
from headwater.table.stream.operators.partition_sink import PartitionCommit, PartitionDone

_COMMIT = "sink.partition-commit."
_EXTRACTOR = "partition.time-extractor."
SUCCESS = f"{_COMMIT}success-file.name"
SINK_OPTIONS = (
    *(f"{_COMMIT}{each}" for each in ("trigger", "delay", "policy.kind", "watermark-time-zone")),
    SUCCESS,
    *(f"{_EXTRACTOR}{each}" for each in ("kind", "timestamp-pattern", "timestamp-formatter")),
)


def partition_commit(context: TableContext, keys: PartitionKeys) -> PartitionCommit | None:
    """When partitions are complete; None: nobody asks."""
    options = context.options
    given = [each for each in SINK_OPTIONS if options.text(each) is not None]
    kind = options.text(f"{_COMMIT}policy.kind")
    if kind is None:
        if given:
            raise context.error(f"'{given[0]}' needs '{_COMMIT}policy.kind' = 'success-file'")
        return None
    if kind != "success-file":
        raise context.error(f"'{_COMMIT}policy.kind' = '{kind}': there is 'success-file', and no metastore")
    if not keys.fields:
        raise context.error(f"'{_COMMIT}policy.kind' is for tables PARTITIONED BY columns")
    trigger = options.text(f"{_COMMIT}trigger") or "process-time"
    if trigger not in ("process-time", "partition-time"):
        raise context.error(f"'{_COMMIT}trigger' = '{trigger}': there is process-time and partition-time")
    if (options.text(f"{_EXTRACTOR}kind") or "default") != "default":
        raise context.error(f"'{_EXTRACTOR}kind' is 'default' only")
    time_ms = partial(_time_ms, _extractor(context, keys)) if trigger == "partition-time" else None
    delay = context.duration_ms(f"{_COMMIT}delay", 0) or 0
    return PartitionCommit(tuple(each.name for each in keys.fields), delay, keys.directory, time_ms)


@dataclass(frozen=True)
class Extractor:
    """How a partition's values are a time."""

    keys: PartitionKeys
    pattern: str
    """With $name for the value of a column."""
    form: str | None
    """Of strptime; None: yyyy-MM-dd, with or without HH:mm:ss."""
    zone: str


def _extractor(context: TableContext, keys: PartitionKeys) -> Extractor:
    options = context.options
    pattern = options.text(f"{_EXTRACTOR}timestamp-pattern") or f"${keys.fields[0].name}"
    if not any(f"${each.name}" in pattern for each in keys.fields):
        raise context.error(f"'{_EXTRACTOR}timestamp-pattern' = '{pattern}' names no partition column, as $name")
    written = options.text(f"{_EXTRACTOR}timestamp-formatter")
    zone = options.text(f"{_COMMIT}watermark-time-zone") or "UTC"
    try:
        ZoneInfo(zone)
        form = None if written is None else strftime_format(written)
    except Exception as error:
        raise context.error(f"{error}") from None
    return Extractor(keys, pattern, form, zone)


def _time_ms(extractor: Extractor, values: Sequence[Any]) -> int:
    text = extractor.pattern
    named = zip(extractor.keys.fields, values, strict=True)
    for each, value in sorted(named, key=lambda pair: -len(pair[0].name)):  # $day is no $d
        text = text.replace(f"${each.name}", sql_text(value, each.type))
    try:
        if extractor.form is None:
            found = datetime.datetime.fromisoformat(text)
        else:
            found = datetime.datetime.strptime(text, extractor.form)
    except ValueError as error:
        raise SqlError(
            f"table '{extractor.keys.table}': partition {extractor.keys.directory(values)} has no time: '{text}' by"
            f" '{_EXTRACTOR}timestamp-pattern': {error}"
        ) from None
    return int(found.replace(tzinfo=ZoneInfo(extractor.zone)).timestamp() * 1000)


# -- The sink


@dataclass(frozen=True)
class SuccessFile:
    """A committable: the directory's files are complete."""

    directory: str


class CommittingFileSink(Sink):
    """A FileSink whose records may be `PartitionDone`, too: then a file `name` appears in the directory, behind all
    files with the rows before it."""

    def __init__(self, inner: FileSink, name: str) -> None:
        self._inner = inner
        self._name = name

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(self._inner.create_writer(context))

    def create_committer(self) -> Committer:
        committer = self._inner.create_committer()
        assert isinstance(committer, FileCommitter)
        return _Committer(committer, self._name)

    def __repr__(self) -> str:
        return repr(self._inner)


class _Writer(ReusableSinkWriter):
    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._done: list[SuccessFile] = []

    def begin_epoch(self, context: WriterContext) -> None:
        self._done = []
        self._inner.begin_epoch(context)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        rows = [value for value in values if not isinstance(value, PartitionDone)]
        self._done += (SuccessFile(value.directory) for value in values if isinstance(value, PartitionDone))
        if rows:
            self._inner.write_batch(rows, None)

    def prepare_commit(self) -> list[Any]:
        done, self._done = self._done, []
        return [*self._inner.prepare_commit(), *done]

    def make_durable(self) -> None:
        self._inner.make_durable()

    def abort(self) -> None:
        self._done = []
        self._inner.abort()

    def close(self) -> None:
        self._inner.close()


class _Committer(Committer):
    """Shows the files of a complete partition, also those that would still grow, and then the mark."""

    def __init__(self, inner: FileCommitter, name: str) -> None:
        self._inner = inner
        self._name = name

    def open(self, context: CommitterContext) -> None:
        self._inner.open(context)

    def select(self, prepared: list[Any], held: list[Any], moment: CheckpointMoment) -> Selection:
        files = [each for each in prepared if not isinstance(each, SuccessFile)]
        marks = [each for each in prepared if isinstance(each, SuccessFile)]
        found = self._inner.select(files, held, moment)
        store = self._inner.store
        complete = {f"{store.base_path}/{each.directory}" for each in marks}
        due, kept = list(found.due), []
        for each in found.held:
            if each.files()[0].directory in complete:
                due += each.whole(appends=store.appends) if isinstance(each, GrowingPart) else each.whole()
            else:
                kept.append(each)
        return Selection([*due, *marks], kept, found.again_ms)

    def commit(self, committables: list[Any]) -> None:
        self._inner.commit([each for each in committables if not isinstance(each, SuccessFile)])
        store = self._inner.store
        directories = [f"{store.base_path}/{each.directory}" for each in committables if isinstance(each, SuccessFile)]
        for directory in directories:
            if not store.exists(f"{directory}/{self._name}"):
                store.touch(f"{directory}/{self._name}")
        store.sync(directories)

    def holding(self, held: list[Any]) -> None:
        self._inner.holding(held)

    def find_leftovers(self, job_id: str) -> list[Any]:
        return self._inner.find_leftovers(job_id)

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        self._inner.delete_leftovers(leftovers)

    def close(self) -> None:
        self._inner.close()
