"""Rows are numbered alike, one by one and by column, and netted as a dict of rows would."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.table.stream import numbering
from headwater.table.stream.changes import Changes
from headwater.table.stream.rows import frozen_rows

KINDS = {
    pa.int64(): st.sampled_from([0, 1, -1]),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, 1.5]),
    pa.string(): st.sampled_from(["", "a", "NaN"]),
    pa.timestamp("us"): st.sampled_from([0, 1]),
    pa.decimal128(10, 2): st.sampled_from([Decimal("1.00"), Decimal("2.50")]),
    pa.list_(pa.float64()): st.sampled_from([[], [math.nan], [0.0, None]]),
    pa.null(): st.none(),
}


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    rows = draw(st.integers(0, 20))
    columns = [pa.array(draw(st.lists(KINDS[kind] | st.none(), min_size=rows, max_size=rows)), kind) for kind in kinds]
    return pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(kinds))])


@given(batches(), st.data())
def test_both_ways_give_the_same(batch: pa.RecordBatch, data: st.DataObject) -> None:
    rows = batch.num_rows
    weights = data.draw(st.lists(st.sampled_from([1, -1, 2]), min_size=rows, max_size=rows))
    expected = Counter[object]()
    for row, weight in zip(frozen_rows(batch), weights, strict=True):
        expected[row] += weight
    found = []
    for limit in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(numbering, "_WORTH_A_VECTOR", limit)
            found.append([each.tolist() for each in numbering.numbered(batch.columns, rows)])
            netted = Changes(batch, np.array(weights, np.int64)).netted()
        totals = zip(frozen_rows(netted.rows), netted.weight_array().tolist(), strict=True)
        assert dict(totals) == {row: weight for row, weight in expected.items() if weight}
    assert found[0] == found[1]
