"""What a statement gave that runs on: a job, and for a query its changelog."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from headwater.common.errors import HeadwaterError
from headwater.common.job_client import JobClient
from headwater.common.types import RowKind
from headwater.datastream.closeable_iterator import CloseableIterator
from headwater.table.batch.rows import changelog_tableau
from headwater.table.stream.connectors.rows import column_of
from headwater.table.table_result import ResultKind, TableResult
from headwater.table.types.logical import RowType


class JobResult(TableResult):
    """The result of INSERT on streams: a job that runs. It has one row, of how many rows were written: -1, unknown."""

    def __init__(self, row_type: RowType, table: pa.Table, client: JobClient) -> None:
        super().__init__(row_type, table, ResultKind.SUCCESS_WITH_CONTENT)
        self._client = client

    def get_job_client(self) -> JobClient | None:
        return self._client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait for the job's end, and raise what made it fail. HeadwaterError if it still runs after `timeout_ms`."""
        done = self._client.get_job_execution_result()
        try:
            done.result(None if timeout_ms is None else timeout_ms / 1000)
        except TimeoutError as error:
            if done.done():
                raise
            raise HeadwaterError(f"the job still runs after {timeout_ms} ms; it goes on") from error


class QueryResult(TableResult):
    """The result of a query on streams: its changelog, as its epochs end. Read it once: collect() or print()."""

    def __init__(self, row_type: RowType, rows: CloseableIterator) -> None:
        empty = pa.table({})
        super().__init__(row_type, empty, ResultKind.SUCCESS_WITH_CONTENT)
        self._rows = rows

    def get_job_client(self) -> JobClient | None:
        return self._rows.get_job_client()

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait for the first row, or for the end: what Flink waits for, too."""
        self._rows.has_next(None if timeout_ms is None else timeout_ms / 1000)

    def collect(self) -> Any:
        """The rows, each with its kind (`row.get_row_kind()`). Close the iterator to stop the job."""
        return self._rows

    def to_arrow(self) -> pa.Table:
        """The table that the whole changelog adds up to. Waits for the end of the input: for bounded ones."""
        held: dict[str, tuple[Any, int]] = {}  # {a row as text: (the row, how often it is there)}
        with self._rows as rows:
            for row in rows:
                text = repr(tuple(row))
                weight = -1 if row.get_row_kind() in (RowKind.DELETE, RowKind.UPDATE_BEFORE) else 1
                held[text] = (row, held.get(text, (row, 0))[1] + weight)
        left = [row for row, count in held.values() for _ in range(count)]
        columns = [
            column_of([row[place] for row in left], each.type, f"column '{each.name}'")
            for place, each in enumerate(self._row_type.fields)
        ]
        return pa.table(columns, names=[each.name for each in self._row_type.fields])

    def print(self) -> None:
        """Write the changelog to standard output, with the kind of each change in the column `op`."""
        with self._rows as rows:
            for line in changelog_tableau(rows, self._row_type):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
