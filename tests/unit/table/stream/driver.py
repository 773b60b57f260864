"""Drives one operator of SQL epoch by epoch, and adds up what it hands on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import cloudpickle
import numpy as np

from headwater.common.ids import MIN_WATERMARK
from headwater.operators.base import OperatorContext
from headwater.state.backends import make_keyed_backend
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.rows import frozen_rows, thawed_rows

Row = tuple[Any, ...]
Weighted = Iterable[tuple[Row, int]]


class Driver:
    """An operator with a state backend. `table` is the sum of all changes that it emitted."""

    def __init__(self, operator: Any, backend: str = "hashmap") -> None:
        self.operator = cloudpickle.loads(cloudpickle.dumps(operator))
        self.backend = make_keyed_backend(backend, "op", 128, range(128), None)
        self.context = OperatorContext("op", "op", 0, 1, 128, keyed_backend=self.backend)
        self.table: Counter[Row] = Counter()
        self.last: Counter[Row] = Counter()
        """What the last epoch emitted."""
        self.watermarks: list[int] = []
        self._epoch = 0
        self.operator.setup(self.context, self)
        self.operator.open()

    def epoch(self, *inputs: Weighted, watermark: int | None = None, now: int = 0, fail: bool = False) -> None:
        """Run one epoch. `fail`: run it once more before, and undo that."""
        if fail:
            before = self.operator.watermark_before, self.context.watermark
            self._run(inputs, watermark, now)
            self.operator.abort_epoch()
            self.backend.rollback_epoch()
            self.operator.watermark_before, self.context.watermark = before
        self._run(inputs, watermark, now)
        self.backend.commit_epoch(cut=False)
        self.table.update(self.last)
        self.table = Counter({row: count for row, count in self.table.items() if count})
        self._epoch += 1

    def _run(self, inputs: Sequence[Weighted], watermark: int | None, now: int) -> None:
        self.last = Counter()
        self.backend.begin_epoch()
        self.backend.processing_time_ms = now
        self.context.epoch = self._epoch
        self.operator.process_time(now)
        for index, rows in enumerate(inputs):
            rows = list(rows)
            if rows:
                middle = len(rows) // 2  # two chunks
                for part in (rows[:middle], rows[middle:]):
                    self.operator.process_batch([changes(part, self._columns(index))], None, index)
        if watermark is not None and watermark > self.context.watermark:
            self.operator.process_watermark(watermark)
        if hasattr(self.operator, "end_epoch"):
            self.operator.end_epoch()

    def _columns(self, index: int) -> Sequence[Column]:
        return tuple(self.operator.inputs[index])

    # -- Output

    def emit(self, values: list[Any], timestamps: Any) -> None:
        for each in values:
            assert each.weights is None or (each.weights != 0).all()
            assert each.rows.schema.equals(schema_of(self.operator.columns)), each.rows.schema
            for row, weight in zip(frozen_rows(each.rows), each.weight_array().tolist(), strict=True):
                self.last[row] += weight

    def emit_watermark(self, watermark: int) -> None:
        assert watermark > MIN_WATERMARK
        self.watermarks.append(watermark)


def changes(rows: Weighted, columns: Sequence[Column]) -> Changes:
    rows = list(rows)
    weights = np.array([weight for _, weight in rows], np.int64)
    batch = thawed_rows([row for row, _ in rows], schema_of(columns))
    return Changes(batch, None if (weights == 1).all() else weights)
