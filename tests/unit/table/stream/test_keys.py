"""An edge sends each row to the partition that owns its key, however keys are hashed."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

from headwater.state.keys.key_groups import key_group, partition_of_key_group
from headwater.table.stream.changes import Changes
from headwater.table.stream.keys import KeyColumns

INTEGERS: list[Any] = [0, -1, -2, 7, 2**31, -(2**31), 2**60]
COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "integers": (INTEGERS, pa.int64()),
    "large integers": ([*INTEGERS, 2**61 - 1, 2**63 - 1, -(2**63)], pa.int64()),
    "small integers": ([1, -1, 127], pa.int8()),
    "with NULL": ([*INTEGERS, None], pa.int64()),
    "texts": (["", "a", "ö", None], pa.string()),
    "floats": ([0.0, -0.0, 1.0, float("nan"), None], pa.float64()),
    "booleans": ([True, False], pa.bool_()),
    "times": ([datetime.datetime(2020, 1, day) for day in range(1, 9)], pa.timestamp("us")),
    "dates": ([datetime.date(1969, 12, day) for day in range(1, 9)], pa.date32()),
}


@pytest.mark.parametrize("rows", [5, 500])
@pytest.mark.parametrize(
    "names", [*([name] for name in COLUMNS), ["integers", "texts"], ["times", "floats"], []], ids=str
)
def test_rows_go_to_the_owner_of_their_key(names: list[str], rows: int) -> None:
    random_ = random.Random(rows)
    arrays = [pa.array(random_.choices(COLUMNS[name][0], k=rows), COLUMNS[name][1]) for name in names]
    fields = [*(str(place) for place in range(len(arrays))), "number"]
    changes = Changes(pa.RecordBatch.from_arrays([*arrays, pa.array(range(rows))], names=fields))
    keys = KeyColumns(range(len(names)))
    parts = keys.split(changes, 128, 3)
    for target, part in parts:
        owners = {partition_of_key_group(key_group(key, 128), 128, 3) for key in keys.of(part)}
        assert owners == {target}
    numbers = [part.rows.column(len(names)).to_pylist() for _, part in parts]
    assert all(each == sorted(each) for each in numbers)
    assert sorted(number for each in numbers for number in each) == list(range(rows))
