"""The value of a query of at most one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.functions.aggregation import AggregateRecipe, Offsets
from headwater.table.functions.definition import Binding, BoundArgument, FunctionDefinition, FunctionKind, Signature


def _bind(arguments: Sequence[BoundArgument]) -> Signature:
    kind = arguments[0].type
    return Signature(kind.with_nullable(True), (kind,))


def _gather(arrays: Sequence[pa.Array], offsets: Offsets, binding: Binding) -> pa.Array:
    counts = np.diff(offsets)
    if (counts > 1).any():
        raise SqlError(
            f"a query that is used as a value gave {int(counts.max())} rows, it may give one at most;"
            " add a condition, an aggregate such as MAX, or LIMIT 1"
        )
    return arrays[0].take(pa.array(offsets[:-1], pa.int64(), mask=counts == 0))


SINGLE_VALUE = FunctionDefinition(
    "$SINGLE_VALUE",
    "aggregate",
    _bind,
    "$SINGLE_VALUE(a)",
    "The only value of a group; an error if there are several rows.",
    FunctionKind.AGGREGATE,
    recipe=AggregateRecipe(_gather),
)
