"""Rows in the form that state keeps."""

from __future__ import annotations

import math
import pickle

import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.stream.rows import frozen_rows, thawed_rows

NANS = [{"x": float("nan"), "y": "NaN"}, None]


def test_rows_survive_freezing() -> None:
    schema = pa.schema(
        [
            ("0", pa.timestamp("us")),
            ("1", pa.float64()),
            ("2", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))),
            ("3", pa.map_(pa.string(), pa.int32())),
            ("4", pa.decimal128(10, 2)),
            ("5", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))),
        ]
    )
    batch = pa.RecordBatch.from_pylist(
        [
            {"0": 5, "1": float("nan"), "2": [{"a": 1, "b": None}], "3": [("x", 1)], "4": 1, "5": NANS},
            {"0": None, "1": None, "2": None, "3": None, "4": None, "5": None},
        ],
        schema,
    )
    rows = frozen_rows(batch)
    assert rows == frozen_rows(batch)
    again = thawed_rows(pickle.loads(pickle.dumps(rows)), schema)
    assert frozen_rows(again) == rows and len({*rows}) == 2
    assert pc.is_nan(again.column(1))[0].as_py() is True
    (nested, nothing), _ = again.column(5).to_pylist()
    assert math.isnan(nested["x"]) and nested["y"] == "NaN" and nothing is None
