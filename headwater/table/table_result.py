"""What a statement gave."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from types import TracebackType
from typing import Any

import pyarrow as pa

from headwater.common.job_client import JobClient
from headwater.common.types import Row
from headwater.table.batch.rows import boxed, python_rows, tableau, texts_of
from headwater.table.catalog.objects import ResolvedSchema, TableColumn
from headwater.table.table_schema import TableSchema
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import BOOLEAN, STRING, RowField, RowType, VarCharType


class ResultKind(Enum):
    SUCCESS = "SUCCESS"
    SUCCESS_WITH_CONTENT = "SUCCESS_WITH_CONTENT"


class CloseableIterator:
    """Rows one after another; also a context manager."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Row:
        return next(self._rows)

    def next(self) -> Row:
        return next(self)

    def close(self) -> None:
        self._rows = iter(())

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TableResult:
    """The result of a statement: rows, or just that it is done. Batch statements have run when this exists."""

    def __init__(self, row_type: RowType, table: pa.Table, kind: ResultKind, wide: bool = True) -> None:
        self._row_type = row_type
        self._table = table
        self._kind = kind
        self._wide = wide
        """Columns are as wide as their types need, not as what is in them."""

    @staticmethod
    def done() -> TableResult:
        """Of a statement that gives nothing: `OK`."""
        return TableResult.of_text(["result"], [["OK"]], ResultKind.SUCCESS)

    @staticmethod
    def of_text(
        names: Sequence[str],
        rows: Sequence[Sequence[object]],
        kind: ResultKind = ResultKind.SUCCESS_WITH_CONTENT,
    ) -> TableResult:
        """Rows of text, as SHOW and DESCRIBE give them."""
        fields = []
        columns = []
        for place, name in enumerate(names):
            values = [row[place] for row in rows]
            type_ = BOOLEAN if values and all(isinstance(value, bool) for value in values) else STRING
            fields.append(RowField(name, type_))
            columns.append(pa.array(values, to_arrow(type_)))
        row_type = RowType(fields=tuple(fields), nullable=False)
        return TableResult(row_type, pa.table(columns, names=list(names)), kind, wide=False)

    def is_done(self) -> bool:
        """Whether the statement gave nothing but `OK`."""
        return self._kind is ResultKind.SUCCESS

    def get_result_kind(self) -> ResultKind:
        return self._kind

    def get_table_schema(self) -> TableSchema:
        """The names and types of the columns."""
        fields = self._row_type.fields
        return TableSchema.of([each.name for each in fields], [each.type for each in fields])

    def get_resolved_schema(self) -> ResolvedSchema:
        """The same as columns of a catalog."""
        return ResolvedSchema(tuple(TableColumn(each.name, each.type) for each in self._row_type.fields))

    def get_job_client(self) -> JobClient | None:
        """The handle on the job of a statement that runs on; None: what ran has ended."""
        return None

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait for the end. A batch statement has ended already, so this returns at once."""

    def collect(self) -> Any:
        """The rows, each a `Row` with its columns' names."""
        return CloseableIterator(python_rows(self._table, self._row_type))

    def to_arrow(self) -> pa.Table:
        return self._table

    def print(self) -> None:
        """Write the rows to standard output as a table of characters."""
        if self._kind is ResultKind.SUCCESS:
            print("OK")
            return
        rows = list(self.collect())
        lines = tableau(rows, self._row_type) if self._wide else self._narrow(rows)
        for line in lines:
            sys.stdout.write(f"{line}\n")

    def _narrow(self, rows: list[Row]) -> Iterator[str]:
        if not rows:
            yield "Empty set"
            return
        fields = self._row_type.fields
        if len(fields) == 1 and isinstance(fields[0].type, VarCharType) and any("\n" in row[0] for row in rows):
            for row in rows:
                yield row[0]
            return
        yield from boxed([each.name for each in fields], texts_of(rows, self._row_type, ""))
        yield f"{len(rows)} {'row' if len(rows) == 1 else 'rows'} in set"
