"""The kinds of rows that a sink gets: found for all keys at once as for each alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.common.types import RowKind
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.operators.sink import ChangelogSinkOperator, Encoder
from headwater.table.types import logical as t

COLUMNS = (Column(1, "k", t.BIGINT), Column(2, "v", t.BIGINT))


class Kinds(Encoder):
    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        return []


@pytest.mark.parametrize("key", [[0], None])
@pytest.mark.parametrize("upsert", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_all_keys_at_once(seed: int, upsert: bool, key: list[int] | None) -> None:
    random_ = random.Random(seed)
    rows = [(k, v) for k in range(200) for v in random_.choice([(-1,), (1,), (-1, 1)])]
    random_.shuffle(rows)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column) for column in zip(*rows, strict=True)], schema=schema_of(COLUMNS)
    )
    changes = Changes(batch, np.array([v for _, v in rows], np.int64))
    operator = ChangelogSinkOperator(COLUMNS, Kinds(), key, upsert)
    found = operator._at_once(changes)
    assert found is not None
    places, kinds = operator._one_by_one(changes)
    assert (found[0].tolist(), found[1]) == (places, kinds)


def test_several_rows_of_a_key_are_left_to_the_other_way() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 1]), pa.array([5, 6])], schema=schema_of(COLUMNS))
    operator = ChangelogSinkOperator(COLUMNS, Kinds(), [0])
    assert operator._at_once(Changes(batch)) is None
    assert operator._at_once(Changes(batch.slice(1), np.array([2], np.int64))) is None


class Taken(Encoder):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int | None]] = []

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        columns = (column.to_pylist() for column in rows.columns)
        self.rows += [(kind.name, *row) for kind, row in zip(kinds, zip(*columns, strict=True), strict=True)]
        return []


@pytest.mark.parametrize("upsert", [False, True])
def test_what_goes_and_comes_again_is_no_change(upsert: bool) -> None:
    rows = [(1, 5, -1), (2, None, -1), (3, 7, -1), (4, None, -1), (1, 5, 1), (2, None, 1), (3, 8, 1), (4, 0, 1)]
    keys, values, weights = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(values)], schema=schema_of(COLUMNS))
    operator = ChangelogSinkOperator(COLUMNS, taken := Taken(), [0], upsert)
    operator.output = Nowhere()  # type: ignore[assignment]
    operator.finish([Changes(batch, np.array(weights, np.int64))])
    gone = [] if upsert else [("UPDATE_BEFORE", 3, 7), ("UPDATE_BEFORE", 4, None)]
    expected = [*gone, ("UPDATE_AFTER", 3, 8), ("UPDATE_AFTER", 4, 0)]
    assert sorted(taken.rows, key=str) == sorted(expected, key=str)


class Nowhere:
    def emit(self, values: list[Any], timestamps: Any) -> None: ...
