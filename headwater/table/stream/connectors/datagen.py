"""The datagen connector: sequences and random rows, made from their index, so that a replay makes the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.connectors.contract import Connector, TableContext, TableSource
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot

_RANGES = {
    TypeRoot.TINYINT: (-128, 127),
    TypeRoot.SMALLINT: (-32_768, 32_767),
    TypeRoot.INTEGER: (-(2**31), 2**31 - 1),
    TypeRoot.BIGINT: (-(2**63), 2**63 - 1),
    TypeRoot.FLOAT: (-3.4e38, 3.4e38),
    TypeRoot.DOUBLE: (-1.7e308, 1.7e308),
}
_TEXT_LENGTH = 100
_COLLECTION_LENGTH = 3
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Randoms = np.ndarray[Any, Any]


def randoms(indices: np.ndarray[Any, Any], salt: int) -> Randoms:
    """64 random bits for each index: SplitMix64. The same index and salt give the same bits."""
    with np.errstate(over="ignore"):
        z = (indices.astype(np.uint64) + np.uint64(salt)) * _MULTIPLIER
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def salt_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def unit(bits: Randoms) -> Randoms:
    """Numbers in [0, 1)."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True)
class FieldSpec:
    """How one column is made."""

    name: str
    type: LogicalType
    kind: str
    start: int = 0
    low: float = 0
    high: float = 0
    length: int = _TEXT_LENGTH
    var_len: bool = False
    null_rate: float = 0.0
    max_past_ms: int = 0

    def column(self, indices: np.ndarray[Any, Any], salt: int, now_ms: int) -> pa.Array:
        kind = to_arrow(self.type)
        if self.kind == "sequence":
            found = pa.array(indices + self.start, pa.int64())
            return found.cast(pa.string() if pa.types.is_string(kind) else kind)
        salt ^= salt_of(self.name)
        found = self._random(self.type, randoms(indices, salt), now_ms)
        if self.null_rate:
            nulls = unit(randoms(indices, salt ^ 0x5DEECE66D)) < self.null_rate
            found = found.take(pa.array(np.arange(len(indices)), pa.int64(), mask=nulls))
        return found

    def _random(self, type_: LogicalType, bits: Randoms, now_ms: int) -> pa.Array:
        kind = to_arrow(type_)
        count = len(bits)
        if t.is_integer(type_):
            low, high = (int(self.low), int(self.high)) if type_ is self.type else _bounds(type_)
            span = high - low + 1
            values = bits.astype(np.int64) if span > 2**63 else (bits % np.uint64(span)).astype(np.int64) + low
            return pa.array(values, pa.int64()).cast(kind)
        match type_:
            case t.FloatType() | t.DoubleType():
                low, high = (self.low, self.high) if type_ is self.type else _bounds(type_)
                return pa.array(low + unit(bits) * high - unit(bits) * low, pa.float64()).cast(kind)
            case t.DecimalType():
                least, most = self.low, self.high
                scale = 10**type_.scale
                values = np.floor((least + unit(bits) * (most - least)) * scale)
                return pa.array([Decimal(int(each)).scaleb(-type_.scale) for each in values], kind)
            case t.BooleanType():
                return pa.array((bits & np.uint64(1)).astype(bool))
            case t.CharType() | t.VarCharType():
                return pa.array([each.hex()[:n] for each, n in self._bytes(bits)], kind)
            case t.BinaryType() | t.VarBinaryType():
                return pa.array([each[:n] for each, n in self._bytes(bits)], kind)
            case t.TimestampType() | t.LocalZonedTimestampType():
                past = (unit(bits) * self.max_past_ms).astype(np.int64)
                return pa.array((now_ms - past) * 1000, pa.int64()).cast(pa.timestamp("us")).cast(kind)
            case t.DateType():
                past = (unit(bits) * self.max_past_ms).astype(np.int64)
                return pa.array(((now_ms - past) // 86_400_000).astype(np.int32)).cast(kind)
            case t.TimeType():
                return pa.array((bits % np.uint64(86_400_000)).astype(np.int32)).cast(kind)
            case t.ArrayType():
                inner = self._random(type_.element, randoms(_spread(bits), 1), now_ms)
                offsets = np.arange(count + 1, dtype=np.int32) * _COLLECTION_LENGTH
                return pa.ListArray.from_arrays(pa.array(offsets), inner).cast(kind)
            case t.MapType():
                keys = self._random(type_.key, randoms(_spread(bits), 2), now_ms)
                values = self._random(type_.value, randoms(_spread(bits), 3), now_ms)
                offsets = np.arange(count + 1, dtype=np.int32) * _COLLECTION_LENGTH
                return pa.MapArray.from_arrays(pa.array(offsets), keys, values).cast(kind)
            case t.RowType():
                inner_columns = [
                    self._random(each.type, randoms(bits, salt_of(each.name)), now_ms) for each in type_.fields
                ]
                return pa.StructArray.from_arrays(inner_columns, fields=list(kind))
        raise TypeError(f"datagen makes no {type_.sql()}")

    def _bytes(self, bits: Randoms) -> list[tuple[bytes, int]]:
        words = -(-self.length // 8)
        parts = np.stack([randoms(bits, 17 + word) for word in range(max(words, 1))], axis=1)
        raw = parts.tobytes()
        size = parts.shape[1] * 8
        lengths = (
            (1 + (randoms(bits, 5) % np.uint64(max(self.length, 1)))).tolist()
            if self.var_len
            else [self.length] * len(bits)
        )
        return [(raw[at * size : (at + 1) * size], n) for at, n in enumerate(lengths)]


def _spread(bits: Randoms) -> Randoms:
    with np.errstate(over="ignore"):
        return np.repeat(bits, _COLLECTION_LENGTH) + np.tile(np.arange(_COLLECTION_LENGTH, dtype=np.uint64), len(bits))


def _bounds(type_: LogicalType) -> tuple[Any, Any]:
    if isinstance(type_, t.DecimalType):
        most = 10 ** (type_.precision - type_.scale) - 1
        return -most, most
    return _RANGES[type_.root]


@dataclass(frozen=True)
class DatagenConverter(Converter):
    """Records are indices."""

    fields: tuple[FieldSpec, ...]
    salt: int

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        indices = np.array(records, np.int64)
        arrays = [each.column(indices, self.salt, now_ms) for each in self.fields]
        schema = schema_of(self.fields)
        return Changes(pa.RecordBatch.from_arrays(arrays, schema=schema))


def same(index: int) -> int:
    return index


class DatagenConnector(Connector):
    data_options = ()

    def source(self, context: TableContext) -> TableSource:
        context.no_metadata()
        options = context.options
        for column in context.schema.columns:  # options of columns that are not read are known, too
            if column.is_physical():
                _spec(context, column.name, column.type)
        fields = tuple(_spec(context, each.name, each.type) for each in context.fields)
        every = tuple(_spec(context, c.name, c.type) for c in context.schema.columns if c.is_physical())
        given = options.number("number-of-rows")
        lengths = [] if given is None else [int(given)]
        for each in every:
            if each.kind == "sequence":
                lengths.append(int(each.high) - each.start + 1)
        rate = options.number("rows-per-second", 10_000)
        parallelism = options.number("scan.parallelism")
        count = min(lengths) if lengths else None
        source = DataGeneratorSource(same, count, rate_per_second=float(rate) if rate and rate > 0 else None)
        salt = salt_of(str(context.identifier))
        fixed = None if parallelism is None else int(parallelism)
        return TableSource(source, DatagenConverter(fields, salt), parallelism=fixed)


def _spec(context: TableContext, name: str, type_: LogicalType) -> FieldSpec:
    options = context.options
    kind = options.text(f"fields.{name}.kind", "random") or "random"
    if kind not in ("random", "sequence"):
        raise context.error(f"'fields.{name}.kind' is random or sequence, found '{kind}'")
    if kind == "sequence":
        start, end = options.number(f"fields.{name}.start"), options.number(f"fields.{name}.end")
        if start is None or end is None or end < start:
            raise context.error(f"a sequence needs 'fields.{name}.start' and 'fields.{name}.end' after it")
        if not (t.is_numeric(type_) or isinstance(type_, t.VarCharType | t.CharType)):
            raise context.error(f"column '{name}' is {type_.sql()}: a sequence is of numbers or texts")
        return FieldSpec(name, type_, kind, start=int(start), high=float(end))
    number: Callable[..., float | None] = options.number
    low: Any = 0
    high: Any = 0
    if t.is_numeric(type_):
        low, high = _bounds(type_)
        low, high = number(f"fields.{name}.min", low), number(f"fields.{name}.max", high)
        if high < low:
            raise context.error(f"'fields.{name}.max' is less than 'fields.{name}.min'")
    past = context.duration_ms(f"fields.{name}.max-past", 0) if t.is_temporal(type_) else 0
    default = _TEXT_LENGTH
    if isinstance(type_, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType) and type_.length < t.MAX_LENGTH:
        default = min(type_.length, _TEXT_LENGTH) if isinstance(type_, t.VarCharType) else type_.length
    length = number(f"fields.{name}.length", default)
    rate = float(number(f"fields.{name}.null-rate", 0) or 0)
    if not 0 <= rate <= 1:
        raise context.error(f"'fields.{name}.null-rate' is between 0 and 1, found {rate}")
    if rate and not type_.nullable:
        raise context.error(f"column '{name}' is {type_.sql()}: it cannot have 'fields.{name}.null-rate'")
    spec = FieldSpec(
        name,
        type_,
        kind,
        low=low,
        high=high,
        length=int(length or 0),
        var_len=options.flag(f"fields.{name}.var-len"),
        null_rate=rate,
        max_past_ms=past or 0,
    )
    try:
        spec.column(np.zeros(1, np.int64), 0, 0)
    except TypeError as error:
        raise context.error(f"column '{name}': {error}") from None
    return spec
