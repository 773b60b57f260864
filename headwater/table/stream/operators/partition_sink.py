"""Rows for a table of partitions, and for each partition the moment from which on readers may take it as complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.timers import TimerQueue
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.sink import Encoder


@dataclass(frozen=True)
class PartitionDone:
    """A record for the sink: the rows of this directory before it are all that the trigger waited for."""

    directory: str


@dataclass(frozen=True)
class PartitionCommit:
    """When a partition is complete. Picklable."""

    key: tuple[str, ...]
    """The columns that are directories."""
    delay_ms: int
    directory: Callable[[Sequence[Any]], str]
    """Of the values of these columns."""
    time_ms: Callable[[Sequence[Any]], int] | None
    """The partition's own time; None: processing time counts, from its first row on."""


class PartitionSinkOperator(EpochOperator):
    """Hands inserted rows to the sink, keyed by partition; behind them `PartitionDone`, once per partition that is due.

    A row that comes later opens its partition again. When the input ends, all partitions are due.
    """

    def __init__(self, columns: Sequence[Column], encoder: Encoder, commit: PartitionCommit) -> None:
        super().__init__([columns], columns)
        self.encoder = encoder
        self.commit = commit
        names = [column.name for column in columns]
        self.places = tuple(names.index(name) for name in commit.key)
        self.key = KeyColumns(self.places)

    def open(self) -> None:
        super().open()
        self.encoder.open()
        self._directory = self.backend.get_state(ValueStateDescriptor("directory"))

    def finish(self, taken: list[Changes]) -> None:
        changes = taken[0]
        if len(changes):
            weights = changes.weight_array()
            if weights.min() < 0:
                raise SqlError("a row was taken back in a query that the planner took for append-only")
            rows = changes.rows.take(pa.array(np.repeat(np.arange(len(changes)), weights), pa.int64()))
            self.output.emit(self.encoder.encode(rows, [RowKind.INSERT] * rows.num_rows), None)
            self._open_partitions(changes)
        for _, key, _ in list(self._timers.pop_due(self._now())):
            self.backend.current_key = key
            directory = self._directory.value()
            if directory is not None:
                self._directory.clear()
                self.output.emit([PartitionDone(directory)], None)

    def _open_partitions(self, changes: Changes) -> None:
        firsts: dict[Any, int] = {}
        for place, key in enumerate(self.key.of(changes)):
            firsts.setdefault(key, place)
        for key, place in firsts.items():
            self.backend.current_key = key
            if self._directory.value() is not None:
                continue
            values = [changes.rows.column(each)[place].as_py() for each in self.places]
            self._directory.update(self.commit.directory(values))
            now = self.context.processing_time_ms
            # An event time must have passed, as in Flink.
            start = now if self.commit.time_ms is None else self.commit.time_ms(values) + 1
            self._timers.register(start + self.commit.delay_ms, key)

    @property
    def _timers(self) -> TimerQueue:
        return self.backend.processing_timers if self.commit.time_ms is None else self.backend.event_timers

    def _now(self) -> int:
        event_time = self.commit.time_ms is not None or self.ended
        return self.context.watermark if event_time else self.context.processing_time_ms

    def next_event_timer(self) -> int | None:
        return self.backend.event_timers.peek()

    def next_processing_timer(self) -> int | None:
        return self.backend.processing_timers.peek()
