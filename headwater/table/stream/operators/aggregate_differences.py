"""What changes between two results of the same keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.stream.changes import Changes
from headwater.table.stream.rows import frozen_column


def difference(
    keys: Sequence[pa.Array],
    before: Sequence[pa.Array],
    after: Sequence[pa.Array],
    was: np.ndarray,
    is_: np.ndarray,
    schema: pa.Schema,
) -> Changes:
    """The changes from `before` to `after`, columns with one row per key. `was`, `is_`: whether the row is there."""
    changed = was != is_
    for old, new in zip(before, after, strict=True):
        changed |= differs(old, new)
    gone, come = np.flatnonzero(was & changed), np.flatnonzero(is_ & changed)
    parts = [
        pa.RecordBatch.from_arrays([column.take(pa.array(places)) for column in (*keys, *values)], schema=schema)
        if len(schema)
        else pa.RecordBatch.from_struct_array(pa.array([{}] * len(places), pa.struct([])))
        for places, values in ((gone, before), (come, after))
    ]
    if not len(gone):
        return Changes(parts[1])
    rows = pa.Table.from_batches(parts, schema).combine_chunks().to_batches()[0]
    return Changes(rows, np.repeat(np.array([-1, 1], np.int64), [len(gone), len(come)]))


def differs(one: pa.Array, other: pa.Array) -> np.ndarray:
    """Where two columns differ, as GROUP BY sees it: NULL is NULL, NaN is NaN."""
    kind = one.type
    if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        pairs = zip(frozen_column(one), frozen_column(other), strict=True)
        return np.fromiter((a != b for a, b in pairs), np.bool_, len(one))
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    nulls = pc.xor(one.is_null(), other.is_null())
    return np.asarray(pc.or_(unequal, nulls).to_numpy(zero_copy_only=False))
