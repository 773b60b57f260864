"""WATERMARK FOR: the watermark of a split is the greatest value of an expression over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import SqlError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.state.descriptors import ListStateDescriptor
from headwater.table.plan.expressions import Column, Rex
from headwater.table.stream.changes import Changes
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.operators.base import ChangesOperator
from headwater.time.idleness import IdlenessTimer

_STATE = ListStateDescriptor("sql-watermark")


class WatermarkOperator(ChangesOperator):
    """Passes changes on, and behind them the watermark. The source's own watermarks end here, but for the last one."""

    split_scoped = True
    """Directly after a source, its state belongs to the split."""

    def __init__(
        self,
        columns: Sequence[Column],
        time: Column,
        expression: Rex,
        table: str,
        idle_timeout_ms: int | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__(columns, zone)
        self.time = time
        self.expression = expression
        self.table = table
        self.idle_timeout_ms = idle_timeout_ms

    def open(self) -> None:
        self._compiled = compiled(self.expression, self.columns)
        self._place = [column.id for column in self.columns].index(self.time.id)
        self._load()

    def _load(self) -> None:
        self._reload = False
        self._idleness = None if self.idle_timeout_ms is None else IdlenessTimer(self.idle_timeout_ms)
        self._idle = False
        self._watermark = MIN_WATERMARK
        backend = self.context.operator_backend
        for watermark, idle, idleness in [] if backend is None else backend.get_list_state(_STATE).get():
            self._watermark, self._idle = watermark, idle
            self.context.watermark = watermark
            if self._idleness is not None and idleness is not None:
                self._idleness.restore(idleness)

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        highest = self._watermark
        for changes in values:
            highest = max(highest, self._highest(changes))
            self.emit(changes)
        if self._idleness is not None:
            self._idleness.on_records(self.context.processing_time_ms)
        if self._idle:
            self._idle = False
            self.output.emit_idle(False)
        if highest > self._watermark:
            self._watermark = self.context.watermark = highest
            self.output.emit_watermark(highest)

    def _highest(self, changes: Changes) -> int:
        if changes.weights is not None:
            changes = changes.take(np.flatnonzero(changes.weights > 0))  # a deletion may have its key only
        if changes.rows.column(self._place).null_count:
            raise SqlError(
                f"table '{self.table}': a row has NULL in '{self.time.name}', its event time; filter such rows out"
                " before, or make the time a computed column with COALESCE"
            )
        found = pc.max(evaluated(self._compiled, changes.rows, self.frame(len(changes))))
        return MIN_WATERMARK if not found.is_valid else milliseconds_of(found)

    def process_watermark(self, watermark: int) -> None:
        if watermark == MAX_WATERMARK:
            super().process_watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        """Ignored: this operator decides itself when the split is idle."""

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        if self._reload:
            self._load()
        if self._idleness is not None:
            self._idle = self._idle or self._idleness.is_idle(now_ms)
        if self._idle:
            self.output.emit_idle(True)  # again in every epoch: another process may run the split now
        self._save()

    def prepare_commit(self) -> list[Any]:
        self._save()
        return []

    def _save(self) -> None:
        backend = self.context.operator_backend
        if backend is not None:
            idleness = None if self._idleness is None else self._idleness.state()
            backend.get_list_state(_STATE).update([(self._watermark, self._idle, idleness)])

    def abort_epoch(self) -> None:
        self._reload = True


def milliseconds_of(moment: pa.Scalar) -> int:
    """A timestamp as milliseconds since the epoch, rounded down."""
    per_milli = {"s": 0.001, "ms": 1, "us": 1000, "ns": 1_000_000}[moment.type.unit]
    return int(moment.value // per_milli)


class WatermarkDelayOperator(ChangesOperator):
    """Passes changes on, and watermarks that are `delay_ms` less."""

    def __init__(self, columns: Sequence[Column], delay_ms: int) -> None:
        super().__init__(columns)
        self.delay_ms = delay_ms

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self.output.emit(values, timestamps)

    def process_watermark(self, watermark: int) -> None:
        self.context.watermark = watermark
        self.output.emit_watermark(watermark if watermark == MAX_WATERMARK else watermark - self.delay_ms)
