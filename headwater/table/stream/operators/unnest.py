"""UNNEST: each row with each element of a collection of its own.

A table function is the same: its call gives an array of rows (`LATERAL TABLE(f(x))` is an Unnest of that call).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.plan.expressions import Column
from headwater.table.plan.nodes import Unnest
from headwater.table.stream.changes import Changes
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.operators.base import ChangesOperator


class UnnestOperator(ChangesOperator):
    """Stateless. `node` says what is unnested; `input` are the columns of its input, which may be cut off.

    Output columns are the input's, the elements' (one for ARRAY and MULTISET, one per field for ROWS, two for MAP), and
    the ordinal from 1 if it is asked for. `outer` keeps rows without elements, with NULLs.
    """

    def __init__(self, input: Sequence[Column], node: Unnest, columns: Sequence[Column], *, zone: str = "UTC") -> None:
        super().__init__(columns, zone)
        self.inputs = (tuple(input),)
        self.collection = node.collection
        self.kind, self.ordinality, self.outer = node.kind, node.ordinality, node.outer

    def open(self) -> None:
        self._collection = compiled(self.collection, self.inputs[0])
        self._schema = self.schema

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            self.emit(self._unnested(changes))

    def _unnested(self, changes: Changes) -> Changes:
        array = evaluated(self._collection, changes.rows, self.frame(len(changes)))
        lengths, places, elements = _elements(array, self.kind)
        repeats = np.maximum(lengths, 1) if self.outer else lengths
        parents = np.repeat(np.arange(len(changes)), repeats)
        within = np.arange(len(parents)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        missing = (lengths == 0)[parents]
        indexes = np.zeros(len(parents), np.int64)
        indexes[~missing] = places
        chosen = pa.array(indexes, pa.int64(), mask=missing)
        added = [each.take(chosen) if len(each) else pa.nulls(len(parents), each.type) for each in elements]
        if self.ordinality:
            added.append(pa.array(within + 1, pa.int32(), mask=missing))
        taken = changes.take(parents)
        return taken.with_rows(pa.RecordBatch.from_arrays([*taken.rows.columns, *added], schema=self._schema))


def _elements(array: pa.Array, kind: str) -> tuple[np.ndarray, np.ndarray, list[pa.Array]]:
    """How many elements each row has, the places of all of them in turn, and the columns that the places refer to."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(valid, np.diff(offsets), 0)
    firsts = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(offsets[:-1] - firsts, lengths)
    if kind == "MAP":
        return lengths, places, [array.keys, array.items]
    if kind == "MULTISET":
        counts = array.items.to_numpy(zero_copy_only=False)[places]
        parents = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(parents, counts, len(lengths)).astype(np.int64), np.repeat(places, counts), [array.keys]
    return lengths, places, list(array.values.flatten()) if kind == "ROWS" else [array.values]
