"""Where records of a source become changes of a table. It runs with the source, in stage 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators.base import ChangesOperator


class Converter(ABC):
    """Turns the records of a source into rows of a table. Picklable; it keeps nothing between calls."""

    def open(self) -> None:
        """Prepare; called once in each process that converts."""

    @abstractmethod
    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        """The records as changes, with exactly the columns that the connector was asked for, in their order."""


class ToChangesOperator(ChangesOperator):
    """Converts batch by batch. `table` names the table in errors."""

    def __init__(self, converter: Converter, columns: Sequence[Column], table: str, zone: str = "UTC") -> None:
        super().__init__(columns, zone)
        self.converter = converter
        self.table = table

    def open(self) -> None:
        self.converter.open()
        self._required = [place for place, column in enumerate(self.columns) if not column.type.nullable]

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        changes = self.converter.convert(values, timestamps, self.context.processing_time_ms)
        for place in self._required:
            if changes.rows.column(place).null_count:
                column = self.columns[place]
                raise SqlError(
                    f"table '{self.table}': column '{column.name}' is {column.type.sql()}, and a row has NULL in it;"
                    " declare it without NOT NULL, or mend the source"
                )
        self.emit(changes)
