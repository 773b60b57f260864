"""CAST of whole columns, with Flink's results.

Integers wrap around when they are cut, floats stop at the integer's limits, decimals that do not fit become NULL,
text is trimmed. What cannot be read raises ComputationError, or is NULL for TRY_CAST.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError
from headwater.table.functions.casting import decimal_columns, from_text, to_text, zones
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot

_R = TypeRoot
_BITS = {_R.TINYINT: 8, _R.SMALLINT: 16, _R.INTEGER: 32, _R.BIGINT: 64}
_ISO_TIMESTAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?$"
_ISO_DATE = r"^\d{4}-\d\d-\d\d$"


def cast_column(
    column: pa.Array | pa.Scalar, source: LogicalType, target: LogicalType, zone: str, lenient: bool = False
) -> pa.Array | pa.Scalar:
    """Return the column as values of `target`. `lenient`: what cannot be cast is NULL."""
    if isinstance(column, pa.Scalar):
        return cast_column(pa.array([column.as_py()], column.type), source, target, zone, lenient)[0]
    if source.same_kind(target):
        return column
    if source.root is _R.NULL:
        return pa.nulls(len(column), to_arrow(target))
    return _Caster(source, target, zone, lenient).cast(column)


class _Caster:
    def __init__(self, source: LogicalType, target: LogicalType, zone: str, lenient: bool) -> None:
        self.source = source
        self.target = target
        self.zone = zone
        self.lenient = lenient
        self.kind = to_arrow(target)

    def cast(self, values: pa.Array) -> pa.Array:
        if t.is_string(self.target):
            return self._sized(_to_strings(values, self.source, self.zone))
        if t.is_binary(self.target):
            return self._sized_bytes(values.cast(pa.binary()))
        if t.is_string(self.source):
            return self._from_strings(values)
        if t.is_numeric(self.target):
            return self._to_number(values)
        if self.target.root is _R.BOOLEAN:
            zero = Decimal(0) if self.source.root is _R.DECIMAL else 0
            return pc.not_equal(values, pa.scalar(zero, values.type))
        if t.is_temporal(self.target):
            return self._to_time(values)
        if t.is_interval(self.target):
            return values
        return self._nested(values)

    def _sized(self, values: pa.Array) -> pa.Array:
        assert isinstance(self.target, t.CharType | t.VarCharType)
        length = self.target.length
        if isinstance(self.target, t.CharType):
            return pc.utf8_rpad(pc.utf8_slice_codeunits(values, 0, length), length, " ")
        return values if length == t.MAX_LENGTH else pc.utf8_slice_codeunits(values, 0, length)

    def _sized_bytes(self, values: pa.Array) -> pa.Array:
        assert isinstance(self.target, t.BinaryType | t.VarBinaryType)
        length, padded = self.target.length, isinstance(self.target, t.BinaryType)
        if length == t.MAX_LENGTH:
            return values
        cut = pc.binary_slice(values, 0, length)
        if not padded:
            return cut
        return _each(cut, lambda value: value.ljust(length, b"\0"), pa.binary())

    # text to values

    def _from_strings(self, values: pa.Array) -> pa.Array:
        fast = self._fast_from_strings(values)
        if fast is not None:
            return fast
        found = self._read(values, self._reader(), self._read_as())
        if self.target.root is _R.TIMESTAMP_LTZ:
            return zones.to_moment(found.cast(pa.timestamp(self.kind.unit)), self.zone)
        return found.cast(self.kind)

    def _fast_from_strings(self, values: pa.Array) -> pa.Array | None:
        """ISO text and plain integers, which Arrow reads by itself. None if there is anything else."""
        root = self.target.root
        if root in _BITS and _all_match(values, r"^-?\d{1,18}$"):
            numbers = values.cast(pa.int64())
            if root is _R.BIGINT:
                return numbers
            try:
                return numbers.cast(self.kind)
            except pa.ArrowInvalid:
                return None
        try:
            if root is _R.DATE and _all_match(values, _ISO_DATE):
                return values.cast(pa.date32())
            if isinstance(self.target, t.TimestampType) and _all_match(values, _ISO_TIMESTAMP):
                return _cut_time(values.cast(pa.timestamp("us")), self.target.precision).cast(self.kind)
        except pa.ArrowInvalid:  # the 31st of June
            return None
        return None

    def _reader(self) -> Callable[[str], Any]:
        target = self.target
        if target.root in _BITS:
            bits = _BITS[target.root]
            return lambda text: from_text.read_integer(text, bits)
        if isinstance(target, t.DecimalType):
            return lambda text: from_text.read_decimal(text, target.precision, target.scale)
        if isinstance(target, t.TimestampType | t.LocalZonedTimestampType):
            return lambda text: from_text.read_timestamp_us(text, target.precision)
        readers: dict[TypeRoot, Callable[[str], Any]] = {
            _R.BOOLEAN: from_text.read_boolean,
            _R.FLOAT: from_text.read_floating,
            _R.DOUBLE: from_text.read_floating,
            _R.DATE: from_text.read_date,
            _R.TIME: from_text.read_time_ms,
        }
        return readers[target.root]

    def _read_as(self) -> pa.DataType:
        """The Arrow type of what the reader returns."""
        numbers = {_R.DATE: pa.int32(), _R.TIME: pa.int32(), _R.TIMESTAMP: pa.timestamp("us")}
        numbers[_R.TIMESTAMP_LTZ] = pa.timestamp("us")
        numbers[_R.FLOAT] = pa.float64()
        return numbers.get(self.target.root, self.kind)

    def _read(self, values: pa.Array, read: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
        if not self.lenient:
            try:
                return _each(values, read, kind)
            except ValueError as error:
                raise ComputationError(f"CAST to {self.target.name()}: {error}; TRY_CAST gives NULL instead") from None

        def read_or_none(text: str) -> Any:
            try:
                return read(text)
            except ValueError:
                return None

        return _each(values, read_or_none, kind)

    # numbers

    def _to_number(self, values: pa.Array) -> pa.Array:
        source, target = self.source, self.target
        if source.root is _R.BOOLEAN:
            values, source = values.cast(pa.int8()), t.TINYINT
        if isinstance(target, t.DecimalType):
            if isinstance(source, t.DecimalType):
                return decimal_columns.fit(values, target)
            if t.is_integer(source):
                return decimal_columns.from_integers(values, target)
            return self._decimals_of_floats(values, target)
        if t.is_integer(target):
            if isinstance(source, t.DecimalType):
                return _wrap(_decimal_to_int64(values), self.kind)
            if t.is_integer(source):
                return _wrap(values, self.kind)
            return _saturate(values, self.kind)
        return values.cast(pa.float64(), safe=False).cast(self.kind, safe=False)

    def _decimals_of_floats(self, values: pa.Array, target: t.DecimalType) -> pa.Array:
        if self.lenient:
            values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))
        try:
            return decimal_columns.from_floating(values, target)
        except ArithmeticError as error:
            raise ComputationError(f"CAST to {target.name()}: {error}") from None

    # times

    def _to_time(self, values: pa.Array) -> pa.Array:
        root = self.target.root
        if self.source.root is _R.TIMESTAMP_LTZ and root is not _R.TIMESTAMP_LTZ:
            values = zones.to_local(values, self.zone)
        if root is _R.DATE:
            return pc.floor_temporal(values, unit="day").cast(pa.date32())
        if isinstance(self.target, t.TimeType):
            return self._to_time_of_day(values, self.target.precision)
        assert isinstance(self.target, t.TimestampType | t.LocalZonedTimestampType)
        unit = self.kind.unit
        if self.source.root is _R.TIME:
            values = values.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms"))
        if self.source.root is _R.TIMESTAMP_LTZ and root is _R.TIMESTAMP_LTZ:
            return _cut_time(values.cast(self.kind, safe=False), self.target.precision)
        local = _cut_time(values.cast(pa.timestamp(unit), safe=False), self.target.precision)
        return zones.to_moment(local, self.zone) if root is _R.TIMESTAMP_LTZ else local

    def _to_time_of_day(self, values: pa.Array, precision: int) -> pa.Array:
        if self.source.root is _R.TIME:
            millis = values.cast(pa.int32())
        else:
            day = pc.floor_temporal(values, unit="day")
            per_ms = {"us": 1000, "ns": 1_000_000}[values.type.unit]
            within = pc.subtract(values.cast(pa.int64()), day.cast(values.type).cast(pa.int64()))
            millis = pc.divide(within, per_ms).cast(pa.int32())
        unit = 10 ** max(0, 3 - precision)
        return pc.multiply(pc.divide(millis, unit), unit).cast(pa.int32()).cast(pa.time32("ms"))

    # nested values

    def _nested(self, values: pa.Array) -> pa.Array:
        source, target = self.source, self.target
        if isinstance(source, t.ArrayType) and isinstance(target, t.ArrayType):
            inner = self._inner(pc.list_flatten(values), source.element, target.element)
            return pa.ListArray.from_arrays(_offsets(values), inner, mask=values.is_null()).cast(self.kind)
        if isinstance(source, t.MapType) and isinstance(target, t.MapType):
            live = values.drop_null()
            keys = self._inner(live.keys, source.key, target.key)
            items = self._inner(live.items, source.value, target.value)
            offsets = _offsets(values, [len(each) if each is not None else 0 for each in values.to_pylist()])
            mapped = pa.MapArray.from_arrays(offsets, keys, items, mask=values.is_null())
            return mapped.cast(self.kind)
        if isinstance(source, t.RowType) and isinstance(target, t.RowType):
            fields = [
                self._inner(values.field(at), one.type, other.type)
                for at, (one, other) in enumerate(zip(source.fields, target.fields, strict=True))
            ]
            return pa.StructArray.from_arrays(fields, fields=list(self.kind), mask=values.is_null())
        return values.cast(self.kind)

    def _inner(self, values: pa.Array, source: LogicalType, target: LogicalType) -> pa.Array:
        return cast_column(values, source, target, self.zone, self.lenient)


def _each(values: pa.Array, function: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """Apply a Python function to every value that is not NULL."""
    return pa.array([None if value is None else function(value) for value in values.to_pylist()], kind)


def _all_match(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern), min_count=0).as_py())


def _offsets(values: pa.Array, lengths: list[int] | None = None) -> pa.Array:
    """Offsets of lists of the given lengths (those of `values`) without gaps."""
    if lengths is None:
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))), pa.int32())


def _cut_time(values: pa.Array, precision: int) -> pa.Array:
    """Cut digits off, towards the past."""
    finest = {"us": 6, "ns": 9}[values.type.unit]
    if precision >= finest:
        return values
    unit = 10 ** (finest - precision)
    numbers = values.cast(pa.int64())
    lower = pc.subtract(numbers, _floor_mod(numbers, unit))
    return lower.cast(values.type)


def _floor_mod(numbers: pa.Array, unit: int) -> pa.Array:
    found = np.mod(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), unit)
    return pa.array(found, pa.int64())


def _wrap(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Keep the low bits, as Java does."""
    if kind.bit_width >= values.type.bit_width:
        return values.cast(kind)
    return values.cast(kind, safe=False)


def _saturate(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floats to integers as Java does: NaN is 0, beyond the limits the limit; to 8 and 16 bits by way of 32."""
    limits = np.iinfo(np.int64 if kind == pa.int64() else np.int32)
    mask = values.is_null().to_numpy(zero_copy_only=False)
    numbers = np.trunc(np.nan_to_num(pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.float64)))
    low, high = numbers <= float(limits.min), numbers >= float(limits.max)
    with np.errstate(invalid="ignore"):
        whole = np.where(low | high, 0, numbers).astype(np.int64)
    whole = np.where(low, limits.min, np.where(high, limits.max, whole))
    return _wrap(pa.array(whole, pa.int64(), mask=mask), kind)


def _decimal_to_int64(values: pa.Array) -> pa.Array:
    """Cut the fraction off and keep the low 64 bits."""
    try:
        return decimal_columns.to_integers(values, pa.int64())
    except pa.ArrowInvalid:

        def low_bits(value: Any) -> int:
            return ((int(value) + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)

        return _each(values, low_bits, pa.int64())


def _to_strings(values: pa.Array, source: LogicalType, zone: str) -> pa.Array:
    root = source.root
    if t.is_string(source):
        return values
    if t.is_binary(source):
        return _each(values, lambda value: value.decode("utf-8", "replace"), pa.string())
    if root is _R.BOOLEAN:
        return pc.utf8_upper(values.cast(pa.string()))
    if root in _BITS or root in (_R.DECIMAL, _R.DATE):
        return _plain_decimals(values) if root is _R.DECIMAL else values.cast(pa.string())
    if root in t.APPROXIMATE_ROOTS:
        return _each(values, lambda value: to_text.write_floating(value, root is _R.FLOAT), pa.string())
    if isinstance(source, t.TimeType):
        text = values.cast(pa.string())
        return pc.utf8_slice_codeunits(text, 0, 8 + (1 + min(3, source.precision) if source.precision else 0))
    if isinstance(source, t.TimestampType | t.LocalZonedTimestampType):
        local = zones.to_local(values, zone) if root is _R.TIMESTAMP_LTZ else values
        text = local.cast(pa.timestamp(values.type.unit)).cast(pa.string())
        return pc.utf8_slice_codeunits(text, 0, 19 + (1 + source.precision if source.precision else 0))
    if root is _R.INTERVAL_YEAR_MONTH:
        return _each(values, to_text.write_months, pa.string())
    if root is _R.INTERVAL_DAY_TIME:
        return _each(values.cast(pa.int64()), to_text.write_duration_us, pa.string())
    return _nested_text(values, source, zone)


def _plain_decimals(values: pa.Array) -> pa.Array:
    """Without an exponent."""
    text = values.cast(pa.string())
    if not pc.any(pc.match_substring(text, "E"), min_count=0).as_py():
        return text
    return _each(values, lambda value: format(value, "f"), pa.string())


def _nested_text(values: pa.Array, source: LogicalType, zone: str) -> pa.Array:
    """`[1, 2]`, `{a=1}`, `(1, a)`; a NULL within is the word NULL."""

    def texts(inner: list[Any], kind: LogicalType) -> list[str]:
        found = _to_strings(pa.array(inner, to_arrow(kind)), kind, zone).to_pylist()
        return ["NULL" if each is None else each for each in found]

    def write(value: Any) -> str:
        if isinstance(source, t.ArrayType):
            return f"[{', '.join(texts(value, source.element))}]"
        if isinstance(source, t.RowType):
            parts = (texts([value[each.name]], each.type)[0] for each in source.fields)
            return f"({', '.join(parts)})"
        key, item = (source.key, source.value) if isinstance(source, t.MapType) else (_element(source), t.INT)
        keys, items = texts([each for each, _ in value], key), texts([each for _, each in value], item)
        return "{" + ", ".join(f"{one}={other}" for one, other in zip(keys, items, strict=True)) + "}"

    return _each(values, write, pa.string())


def _element(source: LogicalType) -> LogicalType:
    assert isinstance(source, t.MultisetType)
    return source.element
