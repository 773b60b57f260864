"""Changes of rows, and the records that are made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from headwater.common.types import Row, RowKind, named_row


@dataclass(frozen=True)
class SchemaChange:
    """A table has other columns from here on. Emitted, if asked for, before the first row that has them."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where a change comes from."""

    database: str
    table: str
    """schema.table, or database.table"""
    position: str
    """In the log, for people. Empty for a row of the snapshot."""
    timestamp_ms: int
    snapshot: bool = False


class ChangeFormat(ABC):
    """Makes records of changes. Picklable."""

    @abstractmethod
    def records(
        self, kind: str, names: list[str], before: list[Any] | None, after: list[Any] | None, place: Place
    ) -> list[Any]:
        """Return the records of one change. `kind` is as Debezium has it: r (read), c, u or d.

        The lists of values are the format's to keep; `names` is shared.
        """


class RowChanges(ChangeFormat):
    """Rows with row kinds: an update is two of them. With several tables, pairs (table, row)."""

    def __init__(self, *, with_table: bool = False) -> None:
        self._with_table = with_table

    def records(
        self, kind: str, names: list[str], before: list[Any] | None, after: list[Any] | None, place: Place
    ) -> list[Any]:
        rows: list[Row] = []
        if before is not None:
            rows.append(named_row(before, names, RowKind.DELETE if after is None else RowKind.UPDATE_BEFORE))
        if after is not None:
            rows.append(named_row(after, names, RowKind.INSERT if before is None else RowKind.UPDATE_AFTER))
        return [(place.table, row) for row in rows] if self._with_table else rows


class DebeziumChanges(ChangeFormat):
    """Dicts as Debezium has them: {"op", "before", "after", "ts_ms", "source": {"db", "schema", "table", ...}}."""

    def records(
        self, kind: str, names: list[str], before: list[Any] | None, after: list[Any] | None, place: Place
    ) -> list[Any]:
        schema, _, table = place.table.rpartition(".")
        source = {
            "db": place.database,
            "schema": schema,
            "table": table,
            "position": place.position,
            "snapshot": place.snapshot,
            "ts_ms": place.timestamp_ms,
        }
        return [
            {
                "op": kind,
                "before": None if before is None else dict(zip(names, before, strict=True)),
                "after": None if after is None else dict(zip(names, after, strict=True)),
                "ts_ms": place.timestamp_ms,
                "source": source,
            }
        ]
