"""Aggregates of groups whose rows are all at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import AggregateCall, Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.numbering import Numbers, numbered
from headwater.table.stream.operators.aggregate_calls import GatheredCall
from headwater.table.stream.operators.aggregate_groups import GroupedChanges


class Gathered:
    """Computes a call for many groups at once, FILTER and DISTINCT included. Keeps nothing."""

    def __init__(self, call: AggregateCall, inputs: Sequence[Column]) -> None:
        self._call = GatheredCall(call, inputs)
        self._distinct = call.distinct

    def results(self, rows: pa.RecordBatch, numbers: Numbers, count: int, frame: Frame) -> pa.Array:
        """One result for each of `count` groups. `numbers`, which never goes down, has the group of each row."""
        grouped = GroupedChanges(Changes(rows), numbers, numbers[:0], [], frame)
        columns, _, numbers = self._call.values(grouped)
        if self._distinct:
            _, firsts = numbered([pa.array(numbers), *columns], len(numbers))
            columns = [column.take(pa.array(firsts)) for column in columns]
            numbers = numbers[firsts]
        offsets = np.searchsorted(numbers, np.arange(count + 1))
        return self._call.recipe.gather(columns, offsets, self._call.binding)
