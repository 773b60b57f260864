"""How many digits the result of decimal arithmetic has: the rules of SQL Server, which Flink follows."""

from __future__ import annotations

from headwater.table.types.logical import MAX_DECIMAL_PRECISION, DecimalType, LogicalType, TypeRoot

MINIMUM_ADJUSTED_SCALE = 6
"""A result that needs too many digits keeps at least so many after the point."""

_DIGITS_OF_INTEGER = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INTEGER: 10, TypeRoot.BIGINT: 19}


def as_decimal(of: LogicalType) -> DecimalType:
    """Return the decimal that holds every value of an exact number's type."""
    if isinstance(of, DecimalType):
        return of
    return DecimalType(precision=_DIGITS_OF_INTEGER[of.root], scale=0, nullable=of.nullable)


def _adjusted(precision: int, scale: int) -> DecimalType:
    """Fit into 38 digits. Digits after the point go first, down to six of them."""
    if precision <= MAX_DECIMAL_PRECISION:
        return DecimalType(precision=precision, scale=scale)
    before_point = precision - scale
    kept = max(MAX_DECIMAL_PRECISION - before_point, min(scale, MINIMUM_ADJUSTED_SCALE))
    return DecimalType(precision=MAX_DECIMAL_PRECISION, scale=kept)


def plus(left: DecimalType, right: DecimalType) -> DecimalType:
    """The type of a sum or a difference."""
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return _adjusted(precision, scale)


def times(left: DecimalType, right: DecimalType) -> DecimalType:
    return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def divide(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(MINIMUM_ADJUSTED_SCALE, left.scale + right.precision + 1)
    return _adjusted(left.precision - left.scale + right.scale + scale, scale)


def modulo(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    return _adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def total(of: DecimalType) -> DecimalType:
    """The type of SUM."""
    return DecimalType(precision=MAX_DECIMAL_PRECISION, scale=of.scale)


def mean(of: DecimalType) -> DecimalType:
    """The type of AVG: the quotient of the sum and a count of 20 digits."""
    return divide(total(of), DecimalType(precision=20, scale=0))


def rounded(of: DecimalType, digits: int) -> DecimalType:
    """The type of ROUND to a known number of digits."""
    if digits >= of.scale:
        return of
    if digits < 0:
        return DecimalType(precision=min(MAX_DECIMAL_PRECISION, 1 + of.precision - of.scale), scale=0)
    return DecimalType(precision=1 + of.precision - of.scale + digits, scale=digits)


def widest(types: list[LogicalType]) -> DecimalType:
    """Return the smallest decimal that holds the values of all exact types, as far as 38 digits go."""
    decimals = [as_decimal(each) for each in types]
    scale = max(each.scale for each in decimals)
    before_point = max(each.precision - each.scale for each in decimals)
    if before_point + scale <= MAX_DECIMAL_PRECISION:
        return DecimalType(precision=before_point + scale, scale=scale)
    before_point = min(before_point, MAX_DECIMAL_PRECISION)
    return DecimalType(precision=MAX_DECIMAL_PRECISION, scale=MAX_DECIMAL_PRECISION - before_point)
