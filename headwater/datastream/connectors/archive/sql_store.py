"""What the archives in SQL databases have in common. Statements are written once, with `%s` for an argument."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from headwater.datastream.connectors.archive.store import (
    ArchivedWindow,
    ArchiveStore,
    CommitPlan,
    Markers,
    PreparedRows,
    plan_commit,
)

MARK: Final = (
    "INSERT INTO headwater_commits (writer, partition, epoch) VALUES (%s, %s, %s) "
    "ON CONFLICT (writer, partition) DO UPDATE SET epoch = excluded.epoch"
)
REPLACE: Final = (
    "ON CONFLICT (series, key, start_ms, end_ms) DO UPDATE "
    "SET value = excluded.value, writer = excluded.writer, epoch = excluded.epoch"
)
READ: Final = (
    "SELECT start_ms, end_ms, CAST(value AS text), job_id, epoch FROM headwater_windows AS w "
    "JOIN headwater_writers USING (writer) "
    "WHERE w.series = %s AND key = %s AND start_ms < %s AND end_ms > %s ORDER BY start_ms, end_ms LIMIT %s"
)


class SqlStore(ArchiveStore):
    """A connection to a database with the three tables."""

    @abstractmethod
    def _query(self, statement: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Return all rows of the result; [] if it has none."""

    def _begin_commit(self, prepared: list[PreparedRows]) -> tuple[int, CommitPlan]:
        """Within a transaction that holds the series' lock: return the job's writer, and what is to be written."""
        job_id, series = prepared[0].job_id, prepared[0].series
        writers = self._query(
            "SELECT writer, job_id FROM headwater_writers WHERE series = %s ORDER BY writer", (series,)
        )
        writer = next((writer for writer, job in writers if job == job_id), None)
        epochs = self._query("SELECT partition, epoch FROM headwater_commits WHERE writer = %s", (writer,))
        plan = plan_commit(prepared, Markers(writers[-1][1] if writers else None, writer is not None, dict(epochs)))
        if writer is None:
            insert = "INSERT INTO headwater_writers (series, job_id) VALUES (%s, %s) RETURNING writer"
            writer = self._query(insert, (series, job_id))[0][0]
        return writer, plan

    def read(self, series: str, key: str, from_ms: int, to_ms: int, most: int) -> list[ArchivedWindow]:
        return [ArchivedWindow(*row) for row in self._query(READ, (series, key, to_ms, from_ms, most))]
