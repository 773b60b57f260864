"""How operators compute an aggregate: pure data and vectorised functions, no loop over rows.

There are two ways. *Folding* keeps accumulator columns per group: each row contributes a value to each of them, and
contributions are added (or the least or greatest is kept); a row that is taken back contributes with weight -1.
*Gathering* recomputes the groups that changed from all their rows: right for every aggregate, the only way for some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.functions.casting.decimal_columns import WIDE_DIGITS, fit
from headwater.table.types.logical import DecimalType, LogicalType

if TYPE_CHECKING:
    from headwater.table.functions.definition import Binding

Offsets = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Where each group's rows begin, and after the last group the number of rows."""


class Fold(Enum):
    """How contributions to an accumulator column become one value. NULL contributes nothing to MIN and MAX."""

    ADD = "add"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class AccumulatorColumn:
    """One column of a group's state. Before the first contribution it is 0 (ADD) or NULL (MIN, MAX).

    A NULL in an ADD column means that the sum overflowed: it stays NULL, and the result is NULL.
    """

    name: str
    type: LogicalType
    fold: Fold = Fold.ADD


Accumulators = Callable[["Binding"], tuple[AccumulatorColumn, ...]]
Contribute = Callable[[Sequence[pa.Array], pa.Array, "Binding"], tuple[pa.Array, ...]]
"""(arguments, weights, binding): what each row adds to each accumulator column. A weight is +1 for a row that comes and
-1 for one that is taken back, or how many of them there are."""
Finish = Callable[[Sequence[pa.Array], "Binding"], pa.Array]
"""The results, one per group, from the accumulator columns."""
Gather = Callable[[Sequence[pa.Array], Offsets, "Binding"], pa.Array]
"""(arguments, offsets, binding): the results, one per group, from all rows. They are sorted by group, and within a
group in the order in which they came."""


@dataclass(frozen=True)
class AggregateRecipe:
    """How an aggregate is computed. Two states of a group merge by folding one's columns into the other's."""

    gather: Gather
    accumulators: Accumulators | None = None
    contribute: Contribute | None = None
    finish: Finish | None = None
    ordered: bool = False
    """Whether the result depends on the order of the rows."""

    @property
    def folds(self) -> bool:
        return self.contribute is not None

    def retractable(self, binding: Binding) -> bool:
        """Whether rows can be taken back by folding: all columns are sums."""
        if self.accumulators is None:
            return False
        return all(each.fold is Fold.ADD for each in self.accumulators(binding))


def gather_by_folding(accumulators: Accumulators, contribute: Contribute, finish: Finish) -> Gather:
    """Make the recomputation of an aggregate that folds: fold all rows anew."""

    def gather(arrays: Sequence[pa.Array], offsets: Offsets, binding: Binding) -> pa.Array:
        rows = int(offsets[-1])
        weights = pa.array(np.ones(rows, np.int64))
        values = contribute(arrays, weights, binding)
        columns = accumulators(binding)
        groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        folded = [
            fold_groups(value, groups, len(offsets) - 1, column.fold)
            for value, column in zip(values, columns, strict=True)
        ]
        return finish(folded, binding)

    return gather


def fold_groups(values: pa.Array, groups: np.ndarray, count: int, fold: Fold) -> pa.Array:
    """Fold the rows of each group. `groups` has the group's number of each row; some of `count` groups may have none.

    A decimal sum that needs more digits than its type has is NULL, and must stay so.
    """
    kernel = {Fold.ADD: "sum", Fold.MIN: "min", Fold.MAX: "max"}[fold]
    kind = values.type
    wide = pa.decimal256(WIDE_DIGITS, kind.scale) if pa.types.is_decimal(kind) and fold is Fold.ADD else kind
    table = pa.table({"group": pa.array(groups, pa.int64()), "value": values.cast(wide)})
    options = pc.ScalarAggregateOptions(skip_nulls=fold is not Fold.ADD)
    found = table.group_by("group").aggregate([("value", kernel, options)])
    result = found[f"value_{kernel}"].combine_chunks()
    if fold is Fold.ADD:
        result = (
            fit(result, DecimalType(precision=kind.precision, scale=kind.scale))
            if wide is not kind
            else result.cast(kind, safe=False)
        )
    return _placed(result, found["group"].combine_chunks().to_numpy(), count, fold)


def _placed(values: pa.Array, places: np.ndarray, count: int, fold: Fold) -> pa.Array:
    """Put each group's value at its place; groups without rows get an empty accumulator."""
    empty = pa.scalar(None, values.type) if fold is not Fold.ADD else _zero(values.type)
    order = np.full(count, len(values), np.int64)
    order[places] = np.arange(len(values))
    return pa.concat_arrays([values, pa.repeat(empty, 1)]).take(pa.array(order))


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)
