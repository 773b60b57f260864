"""Rows that replace each other by key become changes that tell what was there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.state.descriptors import ValueStateDescriptor
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.sink import ttl_config
from headwater.table.stream.rows import frozen_rows, thawed_rows


class UpsertOperator(EpochOperator):
    """Keeps the last row of each key. A row with weight +1 replaces it; one with -1, of which only the key counts,
    deletes it."""

    def __init__(self, columns: Sequence[Column], key: Sequence[int], ttl_ms: int | None = None) -> None:
        super().__init__([columns], columns)
        self.key = KeyColumns(key)
        self.ttl_ms = ttl_ms

    def open(self) -> None:
        super().open()
        descriptor = ValueStateDescriptor("row")
        if self.ttl_ms is not None:
            descriptor.enable_time_to_live(ttl_config(self.ttl_ms))
        self._row = self.backend.get_state(descriptor)

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0]
        last: dict[Any, Any] = {}  # {key: the row that it has at the end, or None}
        weights = changes.weight_array().tolist()
        for key, row, weight in zip(self.key.of(changes), frozen_rows(changes.rows), weights, strict=True):
            last[key] = row if weight > 0 else None
        gone: list[Any] = []
        come: list[Any] = []
        for key, row in last.items():
            self.backend.current_key = key
            before = self._row.value()
            if before == row:
                continue
            if before is not None:
                gone.append(before)
            if row is not None:
                come.append(row)
                self._row.update(row)
            else:
                self._row.clear()
        if gone or come:
            sums = np.repeat(np.array([-1, 1], np.int64), [len(gone), len(come)])
            self.emit(Changes(thawed_rows([*gone, *come], self.schema), sums))
