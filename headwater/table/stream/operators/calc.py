"""Projections and filters: one operator for a whole chain of them, vectorised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.evaluate import Compiled, compiled, evaluated
from headwater.table.stream.operators.base import ChangesOperator


@dataclass(frozen=True)
class Keep:
    """Keep the rows where the condition is true."""

    condition: Rex


@dataclass(frozen=True)
class Compute:
    """Compute new columns from those before."""

    items: tuple[tuple[Column, Rex], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.items)


Step = Keep | Compute


class CalcOperator(ChangesOperator):
    """Runs `steps` on rows of the columns `input`. Stateless: changes leave as they come."""

    def __init__(
        self, input: Sequence[Column], steps: Sequence[Step], columns: Sequence[Column], zone: str = "UTC"
    ) -> None:
        super().__init__(columns, zone)
        self.input = tuple(input)
        self.steps = tuple(steps)

    def open(self) -> None:
        self._program: list[tuple[list[Compiled], pa.Schema | None]] = []
        columns: Sequence[Column] = self.input
        for step in self.steps:
            if isinstance(step, Keep):
                self._program.append(([compiled(step.condition, columns)], None))
            else:
                self._program.append(([compiled(rex, columns) for _, rex in step.items], schema_of(step.columns)))
                columns = step.columns

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            self.emit(self.computed(changes))

    def computed(self, changes: Changes) -> Changes:
        for expressions, schema in self._program:
            frame = self.frame(len(changes))
            if schema is None:
                changes = changes.filter(evaluated(expressions[0], changes.rows, frame))
                continue
            arrays = [evaluated(each, changes.rows, frame) for each in expressions]
            changes = changes.with_rows(batch_of(arrays, schema, len(changes)))
        return changes


def batch_of(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """A batch of these columns; one without columns keeps its number of rows."""
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
