"""Writes the windows of one series to an archive, exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.datastream.connectors.archive.closed_window import ClosedWindow, key_text, value_text
from headwater.datastream.connectors.archive.store import Archive, ArchiveStore, PreparedRows
from headwater.time.assigners_aligned import AlignedWindows


class SeriesSink(Sink):
    """Takes `ClosedWindow`s. The same window and key again replaces what is archived (a late record, a new version)."""

    def __init__(self, series: str, archive: Archive, windows: AlignedWindows) -> None:
        self.series = series
        self.archive = archive
        self.windows = windows

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _SeriesWriter(self.series, context)

    def create_committer(self) -> Committer:
        return _SeriesCommitter(self.archive)


class _SeriesWriter(SinkWriter):
    """Collects the rows of an epoch. They become durable with the manifest, as part of their committable."""

    def __init__(self, series: str, context: WriterContext) -> None:
        self._series = series
        self._context = context
        self._rows: list[tuple[str, int, int, str]] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        add = self._rows.append
        for window in values:
            if not isinstance(window, ClosedWindow):
                raise TypeMismatchError(
                    f"series '{self._series}' archives ClosedWindow records, found {type(window).__name__}: "
                    f"{short_repr(window)}; use as_queryable_series()"
                )
            key, start_ms, end_ms, value = window
            add((key_text(key), start_ms, end_ms, value_text(value)))

    def prepare_commit(self) -> list[Any]:
        rows, self._rows = self._rows, []
        if not rows:
            return []
        context = self._context
        return [PreparedRows.pack(context.job_id, self._series, context.partition, context.epoch, rows)]

    def abort(self) -> None:
        self._rows = []


class _SeriesCommitter(Committer):
    """Opens the archive at once, so that a place that cannot be used fails the job before it starts."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._store: ArchiveStore | None = archive.open()

    def commit(self, committables: list[Any]) -> None:
        if not committables:
            return
        if self._store is None:
            self._store = self._archive.open()
        try:
            self._store.commit(committables)
        except BaseException:
            self.close()  # the next try begins with a new connection
            raise

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()
