"""Operators that hold results of a window until it is over. The window's end is part of the key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.state.heap.key_index import IntegerKeys, some_of
from headwater.state.keys.key_groups import groups_of_integers, key_group
from headwater.state.timers import TimerQueue
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.late_rows import LateDrop
from headwater.table.stream.operators.windows_time import clock_of, last_ms

_SHARED = "all keys of the group"
"""The namespace of a timer that stands for more keys than its own."""


class HeldWindows:
    """Tells which windows are over, which rows are late, and keeps a timer for each key that is held.

    `end` is the column of the window's end, one of the columns that `keys` are. Event time, or processing time.
    `zoned`: bounds are local times (see `windows_time`). When the input ends, all windows are over.

    If the operator can tell its keys at once (`stored`), keys that are integers have no timers of their own: one timer
    of a key group stands for all its keys in windows with that end (`_SHARED`). `shared` says to set such timers;
    whoever finds one understands it, since a savepoint may come from another backend.
    """

    def __init__(
        self,
        operator: EpochOperator,
        keys: KeyColumns,
        end: Column,
        event_time: bool,
        zoned: bool,
        stored: Callable[[], Sequence[Any]] | None = None,
        shared: bool = False,
    ) -> None:
        self._operator = operator
        self._stored, self._shared = stored, shared
        self._column = [column.id for column in operator.inputs[0]].index(end.id)
        self._place = keys.places.index(self._column)
        self._single = len(keys.places) == 1
        self._event_time = event_time
        self._zoned = zoned
        self._clock_ms = clock_of(operator.zone, zoned)
        self._late = LateDrop(operator, operator.keeps_late)

    def in_time(self, changes: Changes) -> Changes:
        """Leave out rows of windows that were over before the epoch."""
        if not self._event_time or not len(changes):
            return changes
        ends = changes.rows.column(self._column).cast(pa.int64()).to_numpy()
        late = last_ms(ends, self._operator.zone, self._zoned) <= self._operator.watermark_before
        if not late.any():
            return changes
        self._late.drop(changes.take(np.flatnonzero(late)), self._operator.inputs[0])
        return changes.take(np.flatnonzero(~late))

    def over(self, keys: Sequence[Any]) -> np.ndarray:
        """Whether the window of each key is over now."""
        return self._last_ms(keys) <= self._now()

    def update(self, keys: Sequence[Any], was: np.ndarray, is_: np.ndarray) -> None:
        """Set timers for the keys that are held now and were not; delete those of the others."""
        if self._shared and isinstance(keys, IntegerKeys):
            self._share(keys.take(np.flatnonzero(is_ & ~was)))
            return
        timers, ends = self._timers, self._last_ms(keys).tolist()
        for place in np.flatnonzero(is_ & ~was).tolist():
            timers.register(ends[place], keys[place])
        for place in np.flatnonzero(was & ~is_).tolist():
            timers.delete(ends[place], keys[place])

    def hold(self, keys: Sequence[Any]) -> None:
        """Set timers for keys that may have one."""
        for key, end in zip(keys, self._last_ms(keys).tolist(), strict=True):
            self._timers.register(end, key)

    def _share(self, keys: IntegerKeys) -> None:
        if not len(keys):
            return
        most = self._operator.context.max_parallelism
        groups = groups_of_integers(keys.arrays, most)
        if groups is None:
            groups = np.array([key_group(key, most) for key in keys])
        ends = self._last_ms(keys)
        order = np.lexsort((groups, ends))
        ends, groups = ends[order], groups[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (ends[1:] != ends[:-1]) | (groups[1:] != groups[:-1])
        for end, key in zip(ends[first].tolist(), keys.take(order[first]), strict=True):
            self._timers.register(end, key, _SHARED)

    def due(self) -> list[Any]:
        """Take out the keys that are held and whose window is over."""
        return list(self.batch_due())

    def batch_due(self) -> Sequence[Any]:
        """As `due`, kept as arrays if the keys are."""
        timers = list(self._timers.pop_due(self._now()))
        if not timers or not (self._shared or any(namespace == _SHARED for _, _, namespace in timers)):
            return [key for _, key, _ in timers]
        assert self._stored is not None
        keys = self._stored()
        return some_of(keys, np.flatnonzero(self.over(keys)))

    @property
    def _timers(self) -> TimerQueue:
        backend = self._operator.backend
        return backend.event_timers if self._event_time else backend.processing_timers

    def _now(self) -> int:
        context = self._operator.context
        return context.watermark if self._event_time or self._operator.ended else context.processing_time_ms

    def _last_ms(self, keys: Sequence[Any]) -> np.ndarray:
        """The last millisecond of the window of each key."""
        if isinstance(keys, IntegerKeys):
            return last_ms(keys.arrays[self._place], self._operator.zone, self._zoned)
        ends = keys if self._single else (key[self._place] for key in keys)
        return np.fromiter((self._clock_ms(end) - 1 for end in ends), np.int64, len(keys))
