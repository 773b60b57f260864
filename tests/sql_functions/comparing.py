"""Compare what an engine computed with what Flink gave."""

from __future__ import annotations

import json
import math
from collections.abc import Set
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.table.types.logical import LogicalType, TypeRoot
from tests.sql_functions import samples

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "recorded.json").read_text("utf-8"))
CLOSE = 1e-11
CLOSE_SINGLE = 1e-6
"""Java's and numpy's sines differ in the last digits."""


def canonical_values(values: pa.Array, kind: LogicalType) -> list[Any]:
    return [samples.canonical(each, kind) for each in values.to_pylist()]


def same(one: list[Any], other: list[Any], kind: LogicalType, skipped: Set[int] = frozenset()) -> bool:
    """Equal but for the skipped rows; floats nearly so."""
    one, other = ([each for at, each in enumerate(values) if at not in skipped] for values in (one, other))
    if kind.root not in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        return one == other
    tolerance = CLOSE if kind.root is TypeRoot.DOUBLE else CLOSE_SINGLE
    return len(one) == len(other) and all(_close(*pair, tolerance) for pair in zip(one, other, strict=True))


def _close(one: str | None, other: str | None, tolerance: float) -> bool:
    if one is None or other is None:
        return one is other
    left, right = float(one), float(other)
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or math.isclose(left, right, rel_tol=tolerance, abs_tol=0)
