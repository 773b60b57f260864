"""Columns of decimals: rounding half up, and NULL where 38 digits (or fewer, as declared) do not suffice."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.types.logical import DecimalType

WIDE_DIGITS = 76


def fit(values: pa.Array, target: DecimalType) -> pa.Array:
    """Round decimals half up to the target's scale; what needs more digits than it has becomes NULL."""
    kind = pa.decimal128(target.precision, target.scale)
    source = values.type
    if source == kind:
        return values
    if source.scale <= target.scale and source.precision - source.scale <= target.precision - target.scale:
        return values.cast(kind)
    scale = max(source.scale, target.scale)
    wide = values.cast(pa.decimal256(min(WIDE_DIGITS, source.precision + scale - source.scale + 1), source.scale))
    if source.scale > target.scale:
        wide = pc.round(wide, target.scale, "half_towards_infinity")
    return _bounded(wide, target.precision - target.scale).cast(kind, safe=False)


def _bounded(wide: pa.Array, digits: int) -> pa.Array:
    """NULL where there are more than so many digits before the point."""
    if wide.type.precision - wide.type.scale <= digits:
        return wide
    limit = pa.scalar(Decimal(10) ** digits, wide.type)
    return pc.if_else(pc.less(pc.abs(wide), limit), wide, pa.scalar(None, wide.type))


def from_integers(values: pa.Array, target: DecimalType) -> pa.Array:
    return fit(values.cast(pa.int64()).cast(pa.decimal128(19, 0)), target)


def from_floating(values: pa.Array, target: DecimalType) -> pa.Array:
    """Each float becomes the number that it prints as a DOUBLE. NaN and infinities raise ArithmeticError."""
    context = decimal.Context(prec=100)
    unit = Decimal(1).scaleb(-target.scale)
    limit = Decimal(10) ** (target.precision - target.scale)
    found: list[Decimal | None] = []
    for value in values.to_pylist():
        if value is None:
            found.append(None)
            continue
        number = Decimal(repr(value))
        if not number.is_finite():
            raise ArithmeticError(f"{value} is no decimal")
        if abs(number) >= limit * 10:
            found.append(None)
            continue
        rounded = number.quantize(unit, decimal.ROUND_HALF_UP, context)
        found.append(rounded if abs(rounded) < limit else None)
    return pa.array(found, pa.decimal128(target.precision, target.scale))


def to_integers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cut the fraction off."""
    whole = pc.trunc(values)
    return whole.cast(pa.decimal256(WIDE_DIGITS, 0), safe=False).cast(kind)
