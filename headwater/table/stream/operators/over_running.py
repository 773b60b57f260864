"""Calls with OVER whose windows begin with the first row: they keep how far they are, not rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.ttl.config import StateTtlConfig
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column, WindowCall
from headwater.table.stream.operators.aggregate_calls import combined
from headwater.table.stream.operators.aggregate_state import ColumnState
from headwater.table.stream.operators.groups import Groups
from headwater.table.stream.operators.over_frames import Frames
from headwater.table.stream.operators.over_functions import OverCall, in_order_of_coming
from headwater.table.stream.operators.sort_order import order_codes, order_columns, sorted_groups

RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


class RunningAggregate:
    """An aggregate that folds, from the first row to the current one (and with RANGE, its peers)."""

    @staticmethod
    def fits(call: WindowCall, made: OverCall) -> bool:
        frame = call.frame
        running = frame is None or (frame.start.kind == "UNBOUNDED PRECEDING" and frame.end.kind == "CURRENT ROW")
        return running and made.aggregate is not None and made.aggregate.folds

    def __init__(
        self,
        call: WindowCall,
        made: OverCall,
        backend: KeyedStateBackend,
        ttl: StateTtlConfig | None,
    ) -> None:
        assert made.aggregate is not None and made.aggregate.call is not None
        self._call, self._order, self._aggregate = call, made.order, made.aggregate
        self._fold = made.aggregate.call
        unit = "range" if call.frame is None else call.frame.unit.lower()
        self.meaning = unit, self._fold.meaning
        kinds = [each.kind for each in self._fold.kept]
        empty = tuple(each.empty for each in self._fold.kept)
        self._state = ColumnState(backend, f"{unit}-{self._fold.meaning}", kinds, empty, ttl)

    def results(self, keys: list[Any], groups: Groups, frame: Frame) -> pa.Array:
        """The results of new rows, all of which are behind those before; brings the state up to date."""
        found = sorted_groups(groups.numbers(), order_codes(groups.rows, self._order))
        frames = Frames(found, groups.rows, self._order)
        bounds = frames.bounds(self._call.frame, True)
        rows = groups.rows.take(pa.array(found.order))
        added = self._aggregate.accumulated(rows, *bounds, frame)
        entries = self._state.entries(keys)
        before = self._state.columns(entries)
        folds = [fold for _, fold in self._fold.contributions_of(rows.slice(0, 0), frame)]
        after = [
            combined(old.take(pa.array(found.numbers)), new, fold)
            for old, new, fold in zip(before, added, folds, strict=True)
        ]
        lasts = pa.array(groups.offsets[1:] - 1)
        self._state.write(keys, entries, [column.take(lasts) for column in after], [True] * len(keys))
        return in_order_of_coming(self._fold.finish(after), found)


class RunningRank:
    """ROW_NUMBER, RANK or DENSE_RANK: keeps how many rows there were, and how many different times."""

    def __init__(
        self,
        kind: str,
        backend: KeyedStateBackend,
        inputs: Sequence[Column],
        call: WindowCall,
        ttl: StateTtlConfig | None,
    ) -> None:
        self._kind = kind
        self.meaning = kind, ""
        self._order = order_columns(call.order_by, inputs)
        self._state = ColumnState(backend, f"last-{kind.lower()}", [pa.int64()], (0,), ttl)

    def results(self, keys: list[Any], groups: Groups, frame: Frame) -> pa.Array:
        found = sorted_groups(groups.numbers(), order_codes(groups.rows, self._order))
        ranks = found.of_kind(self._kind)
        entries = self._state.entries(keys)
        before = self._state.columns(entries)[0].to_numpy()
        sizes = np.diff(groups.offsets)
        lasts = groups.offsets[1:] - 1
        after = before + (ranks[lasts] if self._kind == "DENSE_RANK" else sizes)
        self._state.write(keys, entries, [pa.array(after)], [True] * len(keys))
        return in_order_of_coming(pa.array(ranks + before[found.numbers]), found)
