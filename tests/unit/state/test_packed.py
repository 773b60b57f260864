"""Columns of a snapshot, packed and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.state.snapshot.packed import packed, packed_array, packed_repeat, packed_rows, unpacked

_EDGES = [0, 127, 128, -128, -129, 2**15 - 1, -(2**15), 2**15, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("one", _EDGES)
@pytest.mark.parametrize("other", [0, -1, 200])
def test_integers_take_the_bytes_that_they_need(one: int, other: int) -> None:
    kind, content = packed_array(np.array([one, other, 1], np.int64))
    assert unpacked((kind, content)) == [one, other, 1]
    needed = next(
        size for size in (1, 2, 4, 8) if all(-(2 ** (8 * size - 1)) <= n < 2 ** (8 * size - 1) for n in (one, other))
    )
    assert len(content) == 3 * needed


@pytest.mark.parametrize("values", [[1.5, -0.0], [float("inf")], []])
def test_other_numbers_stay_as_they_are(values: list[float]) -> None:
    assert unpacked(packed_array(np.array(values))) == values
    assert unpacked(packed_array(np.array(values, np.float32))) == values


def test_rows_of_packed_columns() -> None:
    valid = np.array([True, False, True])
    columns = [packed_repeat("x", 3), packed_array(np.array([5, 0, -7]), valid), [None, "a", (1,)]]
    assert unpacked(packed_rows(columns)) == [("x", 5, None), ("x", None, "a"), ("x", -7, (1,))]


@pytest.mark.parametrize(
    "column", [[], [1, "a"], [(1, 2)] * 9, [("<i8", b"")] * 9, [()] * 9, [(1,), (1, 2)] * 9], ids=repr
)
def test_lists_are_what_they_were(column: list[Any]) -> None:
    assert unpacked(packed(column)) == column
