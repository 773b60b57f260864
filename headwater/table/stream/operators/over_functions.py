"""Functions with OVER, computed for all rows of many groups at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.functions.aggregation import Fold
from headwater.table.functions.arguments import to_parameter
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import AggregateCall, Column, WindowCall
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.operators.aggregate_calls import FoldedCall, combined, empty_accumulator
from headwater.table.stream.operators.aggregate_gather import Gathered
from headwater.table.stream.operators.over_frames import Frames
from headwater.table.stream.operators.sort_order import Sorted, order_codes, order_columns, sorted_groups
from headwater.table.types.arrow import to_arrow

_EXPANDED = 1 << 20
"""How many rows of frames are laid out at a time, where frames cannot be folded."""


class OverCall:
    """A call with OVER."""

    def __init__(self, call: WindowCall, inputs: Sequence[Column]) -> None:
        self._call = call
        self.order = order_columns(call.order_by, inputs)
        self._arguments = [compiled(each, inputs) for each in call.call.arguments]
        self.aggregate = None if call.call.name in WINDOW_FUNCTIONS else FrameAggregate(call.call, inputs)

    def results(self, rows: pa.RecordBatch, numbers: np.ndarray, frame: Frame) -> pa.Array:
        """A value for each row. `numbers` has its group; of equal order, rows are in order of coming."""
        found = sorted_groups(numbers, order_codes(rows, self.order))
        frames = Frames(found, rows, self.order)
        if self.aggregate is None:
            computed = self._window_function(rows, found, frames, frame)
        else:
            bounds = frames.bounds(self._call.frame, bool(self._call.order_by))
            computed = self.aggregate.results(rows.take(pa.array(found.order)), *bounds, frame)
        return in_order_of_coming(computed, found)

    def _window_function(self, rows: pa.RecordBatch, found: Sorted, frames: Frames, frame: Frame) -> pa.Array:
        name, binding = self._call.call.name, self._call.call.binding
        sizes = frames.ends - frames.starts
        before = frames.places - frames.starts
        match name:
            case "ROW_NUMBER" | "RANK" | "DENSE_RANK":
                return pa.array(found.of_kind(name))
            case "PERCENT_RANK":
                return pa.array((found.ranks() - 1) / np.maximum(sizes - 1, 1))
            case "CUME_DIST":
                return pa.array((frames.next_peers - frames.starts) / sizes)
            case "NTILE":
                small, larger = np.divmod(sizes, binding.literal(0))  # the first `larger` buckets have one row more
                of_larger = larger * (small + 1)
                behind = larger + (before - of_larger) // np.maximum(small, 1)
                return pa.array(np.where(before < of_larger, before // (small + 1), behind) + 1)
        distance = binding.literal(1, 1)
        places = frames.places + (-distance if name == "LAG" else distance)
        inside = (places >= frames.starts) & (places < frames.ends)
        ordered = rows.take(pa.array(found.order))
        values = self._argument(0, ordered, frame).take(pa.array(np.where(inside, places, 0)))
        default = self._argument(2, ordered, frame) if len(self._arguments) > 2 else pa.scalar(None, values.type)
        return pc.if_else(pa.array(inside), values, default)

    def _argument(self, place: int, rows: pa.RecordBatch, frame: Frame) -> pa.Array:
        binding = self._call.call.binding
        given = evaluated(self._arguments[place], rows, frame)
        return to_parameter(given, binding.arguments[place].type, binding.arg_types[place], frame)


class FrameAggregate:
    """An aggregate over frames of sorted rows."""

    def __init__(self, call: AggregateCall, inputs: Sequence[Column]) -> None:
        recipe = call.binding.function.recipe
        assert recipe is not None, f"{call.name} is no aggregate"
        extreme = recipe.folds and not recipe.retractable(call.binding)
        self.folds = recipe.folds and (extreme or not call.distinct)
        self.call = FoldedCall(call, inputs, keeps_values=False) if self.folds else None
        self._gathered = Gathered(call, inputs)
        self._result = to_arrow(call.binding.result_type)

    def results(self, rows: pa.RecordBatch, begins: np.ndarray, ends: np.ndarray, frame: Frame) -> pa.Array:
        """The results of frames, given as places in `rows`."""
        if self.call is not None:
            return self.call.finish(self.accumulated(rows, begins, ends, frame))
        if not len(begins):
            return pa.array([], self._result)
        parts, first = [], 0
        reach = np.cumsum(ends - begins)
        while first < len(begins):
            laid_out = reach[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(reach, laid_out + _EXPANDED, "right")))
            sizes = ends[first:last] - begins[first:last]
            numbers = np.repeat(np.arange(last - first), sizes)
            within = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            taken = rows.take(pa.array(begins[first:last][numbers] + within))
            parts.append(self._gathered.results(taken, numbers, last - first, frame))
            first = last
        return pa.concat_arrays(parts)

    def accumulated(self, rows: pa.RecordBatch, begins: np.ndarray, ends: np.ndarray, frame: Frame) -> list[pa.Array]:
        """The accumulators of frames: each is put together from runs of 1, 2, 4, ... rows, so that none is subtracted.

        That is exact for doubles, and the same for sums and extremes.
        """
        assert self.call is not None
        return [_accumulated(column, fold, begins, ends) for column, fold in self.call.contributions_of(rows, frame)]


def _accumulated(runs: pa.Array, fold: Fold, begins: np.ndarray, ends: np.ndarray) -> pa.Array:
    """`runs` has a contribution for each row."""
    lengths, at = ends - begins, begins.copy()
    found: pa.Array | None = None
    length = 1
    empty = pa.repeat(empty_accumulator(fold, runs.type), len(begins))
    while length <= int(lengths.max(initial=0)):
        uses = (lengths & length) != 0
        if uses.any():
            found = empty if found is None else found
            added = combined(found, runs.take(pa.array(np.where(uses, at, 0))), fold)
            found = pc.if_else(pa.array(uses), added, found)
            at += np.where(uses, length, 0)
        # A run of twice the length; those that would reach over the end are never used.
        further = np.minimum(np.arange(len(runs)) + length, len(runs) - 1)
        runs = combined(runs, runs.take(pa.array(further)), fold)
        length *= 2
    return empty if found is None else found


def in_order_of_coming(computed: pa.Array, found: Sorted) -> pa.Array:
    """Values of sorted rows, put back to where the rows were."""
    back = np.empty(len(found.order), np.int64)
    back[found.order] = np.arange(len(back))
    return computed.take(pa.array(back))
