"""Which values may become values of another type: by themselves, by CAST, and what several types have in common."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.table.types import decimals
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot

_R = TypeRoot

_IMPLICIT: dict[TypeRoot, tuple[TypeRoot, ...]] = {
    _R.CHAR: (_R.CHAR,),
    _R.VARCHAR: t.STRING_ROOTS,
    _R.BOOLEAN: (_R.BOOLEAN,),
    _R.BINARY: (_R.BINARY,),
    _R.VARBINARY: t.BINARY_ROOTS,
    _R.TINYINT: (_R.TINYINT,),
    _R.SMALLINT: (_R.TINYINT, _R.SMALLINT),
    _R.INTEGER: (_R.TINYINT, _R.SMALLINT, _R.INTEGER),
    _R.BIGINT: t.INTEGER_ROOTS,
    _R.DECIMAL: (*t.INTEGER_ROOTS, _R.DECIMAL),
    _R.FLOAT: (*t.INTEGER_ROOTS, _R.DECIMAL, _R.FLOAT),
    _R.DOUBLE: t.NUMERIC_ROOTS,
    _R.DATE: (_R.DATE, _R.TIMESTAMP),
    _R.TIME: (_R.TIME, _R.TIMESTAMP),
    _R.TIMESTAMP: t.TIMESTAMP_ROOTS,
    _R.TIMESTAMP_LTZ: t.TIMESTAMP_ROOTS,
    _R.INTERVAL_YEAR_MONTH: (_R.INTERVAL_YEAR_MONTH,),
    _R.INTERVAL_DAY_TIME: (_R.INTERVAL_DAY_TIME,),
}
"""To which type goes what without a CAST."""

_EXPLICIT: dict[TypeRoot, tuple[TypeRoot, ...]] = {
    _R.BOOLEAN: (*t.STRING_ROOTS, *t.NUMERIC_ROOTS),
    _R.BINARY: (*t.STRING_ROOTS, *t.BINARY_ROOTS),
    _R.VARBINARY: t.STRING_ROOTS,
    **dict.fromkeys(t.NUMERIC_ROOTS, (*t.STRING_ROOTS, _R.BOOLEAN, *t.NUMERIC_ROOTS)),
    _R.DATE: (*t.STRING_ROOTS, *t.TIMESTAMP_ROOTS),
    _R.TIME: (*t.STRING_ROOTS, *t.TIMESTAMP_ROOTS),
    _R.TIMESTAMP: (*t.STRING_ROOTS, *t.TEMPORAL_ROOTS),
    _R.TIMESTAMP_LTZ: (*t.STRING_ROOTS, *t.TEMPORAL_ROOTS),
}
"""To which type goes what besides with a CAST. To CHAR and VARCHAR goes everything."""


def implicit_cast(source: LogicalType, target: LogicalType) -> bool:
    """Return True if a value of `source` may stand where `target` is needed. It may still be too large for it."""
    return _castable(source, target, explicit=False)


def can_cast(source: LogicalType, target: LogicalType) -> bool:
    """Return True if `CAST(source AS target)` is allowed. It may still fail for a value."""
    return _castable(source, target, explicit=True)


def _castable(source: LogicalType, target: LogicalType, explicit: bool) -> bool:
    if source.root is _R.NULL:
        return target.nullable or explicit
    if source.nullable and not target.nullable and not explicit:
        return False
    if isinstance(target, t.ArrayType) and isinstance(source, t.ArrayType):
        return _castable(source.element, target.element, explicit)
    if isinstance(target, t.MultisetType) and isinstance(source, t.MultisetType):
        return _castable(source.element, target.element, explicit)
    if isinstance(target, t.MapType) and isinstance(source, t.MapType):
        return _castable(source.key, target.key, explicit) and _castable(source.value, target.value, explicit)
    if isinstance(target, t.RowType) and isinstance(source, t.RowType):
        return len(source.fields) == len(target.fields) and all(
            _castable(one.type, other.type, explicit) for one, other in zip(source.fields, target.fields, strict=True)
        )
    if source.root in _IMPLICIT.get(target.root, ()):
        return True
    if not explicit:
        return False
    if t.is_string(target):
        return source.root is not _R.RAW
    return source.root in _EXPLICIT.get(target.root, ())


def common_type(types: Sequence[LogicalType]) -> LogicalType | None:
    """Return the type that holds the values of all `types` (of CASE, COALESCE, IN, UNION, ARRAY[...]), or None.

    It is nullable if one of them is. Of NULLs alone it is NULL.
    """
    known = [each for each in types if each.root is not _R.NULL]
    if not known:
        return t.NULL if types else None
    found = known[0].with_nullable(True)
    for each in known[1:]:
        merged = _merge(found, each.with_nullable(True))
        if merged is None:
            return None
        found = merged
    return found.with_nullable(len(known) < len(types) or any(each.nullable for each in known))


def _merge(one: LogicalType, other: LogicalType) -> LogicalType | None:
    if one == other:
        return one
    if t.is_numeric(one) and t.is_numeric(other):
        return _merge_numbers(one, other)
    if t.is_string(one) and t.is_string(other):
        assert isinstance(one, t.CharType | t.VarCharType) and isinstance(other, t.CharType | t.VarCharType)
        length = max(one.length, other.length)
        fixed = one.root is other.root is _R.CHAR and one.length == other.length
        return t.CharType(length=length) if fixed else t.VarCharType(length=length)
    if t.is_binary(one) and t.is_binary(other):
        assert isinstance(one, t.BinaryType | t.VarBinaryType) and isinstance(other, t.BinaryType | t.VarBinaryType)
        length = max(one.length, other.length)
        fixed = one.root is other.root is _R.BINARY and one.length == other.length
        return t.BinaryType(length=length) if fixed else t.VarBinaryType(length=length)
    if one.root in t.TIMESTAMP_ROOTS and other.root in t.TIMESTAMP_ROOTS:
        assert isinstance(one, t.TimestampType | t.LocalZonedTimestampType)
        assert isinstance(other, t.TimestampType | t.LocalZonedTimestampType)
        precision = max(one.precision, other.precision)
        zoned = _R.TIMESTAMP_LTZ in (one.root, other.root)
        return t.LocalZonedTimestampType(precision=precision) if zoned else t.TimestampType(precision=precision)
    if isinstance(one, t.TimeType) and isinstance(other, t.TimeType):
        return t.TimeType(precision=max(one.precision, other.precision))
    if one.root is other.root and t.is_interval(one):
        return t.YearMonthIntervalType() if one.root is _R.INTERVAL_YEAR_MONTH else t.DayTimeIntervalType()
    return _merge_nested(one, other)


def _merge_numbers(one: LogicalType, other: LogicalType) -> LogicalType:
    roots = {one.root, other.root}
    if roots & set(t.APPROXIMATE_ROOTS):
        return t.DOUBLE if _R.DOUBLE in roots or _R.DECIMAL in roots else t.FLOAT
    if _R.DECIMAL in roots:
        return decimals.widest([one, other])
    return max(one, other, key=lambda each: t.INTEGER_ROOTS.index(each.root))


def _merge_nested(one: LogicalType, other: LogicalType) -> LogicalType | None:
    if isinstance(one, t.ArrayType) and isinstance(other, t.ArrayType):
        element = common_type([one.element, other.element])
        return None if element is None else t.ArrayType(element=element)
    if isinstance(one, t.MultisetType) and isinstance(other, t.MultisetType):
        element = common_type([one.element, other.element])
        return None if element is None else t.MultisetType(element=element)
    if isinstance(one, t.MapType) and isinstance(other, t.MapType):
        key, value = common_type([one.key, other.key]), common_type([one.value, other.value])
        return None if key is None or value is None else t.MapType(key=key, value=value)
    if isinstance(one, t.RowType) and isinstance(other, t.RowType) and len(one.fields) == len(other.fields):
        fields = []
        for left, right in zip(one.fields, other.fields, strict=True):
            merged = common_type([left.type, right.type])
            if merged is None:
                return None
            fields.append(t.RowField(left.name, merged))
        return t.RowType(fields=tuple(fields))
    return None


def comparable_type(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """Return the type as which two values are compared, or None if they cannot be.

    Unlike elsewhere, a string compares with a date or time: it is read as one.
    """
    common = common_type([left, right])
    if common is not None:
        return common
    for text, other in ((left, right), (right, left)):
        if t.is_string(text) and t.is_temporal(other):
            return other.with_nullable(left.nullable or right.nullable)
    return None
