"""The connector redis: each row is a hash with a field per column, under a key made of its primary key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.datastream.connectors.redis.lookup import RedisLookup
from headwater.datastream.connectors.redis.sink import RedisSink
from headwater.table.batch.rows import sql_text
from headwater.table.functions.casting.arrays import cast_column
from headwater.table.stream.connectors.contract import ChangelogMode, Connector, Field, TableContext, TableSink
from headwater.table.stream.connectors.lookup_options import CACHE_OPTIONS, lookup_cache
from headwater.table.stream.connectors.rows import RowsEncoder
from headwater.table.types import logical as t
from headwater.table.types.logical import STRING, LogicalType

_GO = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
_NESTED = (t.ArrayType, t.MapType, t.MultisetType, t.RowType, t.RawType)


class RedisConnector(Connector):
    """Writes and looks up; a table in Redis cannot be scanned."""

    def sink(self, context: TableContext) -> TableSink:
        keys = _keys(context)
        options = context.options
        options.ignored(*CACHE_OPTIONS)
        ttl = context.duration_ms("ttl")
        if ttl is not None and ttl < 1:
            raise context.error("'ttl' is longer than 0")
        sink = (
            RedisSink.builder()
            .set_url(options.required("url"))
            .set_command(commands)
            .set_delivery_guarantee(context.sink_guarantee())
            .build()
        )
        places = tuple(context.names.index(key) for key in keys)
        encoder = HashRows(context.names, context.types, prefix=_prefix(context), key=places, ttl_ms=ttl)
        return TableSink(sink, encoder, ChangelogMode.UPSERT, context.sink_parallelism())

    def lookup(self, context: TableContext, keys: Sequence[str]) -> Any:
        primary = _keys(context)
        context.options.ignored("sink.parallelism", "sink.delivery-guarantee", "ttl")
        if set(keys) != set(primary):
            raise context.error(f"rows are found by the whole primary key: join by {', '.join(primary)}, and no more")
        cache = lookup_cache(context)
        order = tuple(list(keys).index(key) for key in primary)
        types = tuple(next(f.type for f in context.fields if f.name == key) for key in primary)
        url = context.options.required("url")
        return HashLookup(url, _prefix(context), order, types, context.fields, str(context.identifier)), cache


def _prefix(context: TableContext) -> str:
    return context.options.text("key-prefix") or f"{context.identifier.name}:"


def _keys(context: TableContext) -> tuple[str, ...]:
    context.no_metadata()
    keys = context.schema.primary_key
    if not keys:
        raise context.error("rows have names in Redis: it needs a PRIMARY KEY (…) NOT ENFORCED")
    for each in context.fields:
        if isinstance(each.type, _NESTED):
            raise context.error(f"column '{each.name}': Redis has no {each.type.sql()}; write it as a STRING")
    return keys


def written(value: Any, type_: LogicalType) -> Any:
    """A value as Redis holds it: bytes, or SQL's text."""
    return value if isinstance(value, bytes) else sql_text(value, type_)


def redis_key(prefix: str, values: Sequence[Any], types: Sequence[LogicalType]) -> Any:
    """The key of a row. Several columns are joined by ':', so a ':' within them is '%3A': no two rows share a key."""
    if len(values) == 1:
        text = written(values[0], types[0])
        return prefix.encode() + text if isinstance(text, bytes) else prefix + text
    texts = [sql_text(value, type_) for value, type_ in zip(values, types, strict=True)]
    return prefix + ":".join(text.replace("%", "%25").replace(":", "%3A") for text in texts)


def commands(record: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The encoder has made them."""
    return record


@dataclass(frozen=True)
class HashRows(RowsEncoder):
    """Rows as commands of Redis. A NULL is a field that is not there."""

    prefix: str = ""
    key: tuple[int, ...] = ()
    ttl_ms: int | None = None

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        types = [self.types[at] for at in self.key]
        return [
            self._commands(row, redis_key(self.prefix, [row[at] for at in self.key], types))
            for row in super().encode(rows, kinds)
        ]

    def _commands(self, row: Any, key: Any) -> list[tuple[Any, ...]]:
        if row.get_row_kind() in _GO:
            return [("DEL", key)]
        there: list[Any] = []
        gone: list[str] = []
        for name, type_, value in zip(self.names, self.types, row, strict=True):
            if value is None:
                gone.append(name)
            else:
                there += (name, written(value, type_))
        found: list[tuple[Any, ...]] = [("HSET", key, *there)]
        if gone:
            found.append(("HDEL", key, *gone))
        if self.ttl_ms is not None:
            found.append(("PEXPIRE", key, self.ttl_ms))
        return found


class HashLookup:
    """Rows by their primary key, all keys in one round trip. `order`: where each part of it is in what is asked."""

    def __init__(
        self,
        url: str,
        prefix: str,
        order: tuple[int, ...],
        types: tuple[LogicalType, ...],
        fields: tuple[Field, ...],
        table: str,
    ) -> None:
        self._lookup = RedisLookup(url, _get_all, cache_size=0)
        self._prefix = prefix
        self._order = order
        self._types = types
        self._fields = fields
        self._table = table

    def open(self) -> None:
        """Ask for nothing: a server that is away, or a wrong password, is an error before the first row."""
        self._lookup.fetch([f"{self._prefix}"])

    def lookup(self, keys: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
        named = [redis_key(self._prefix, [key[at] for at in self._order], self._types) for key in keys]
        there = [(key, found) for key, found in zip(keys, self._lookup.fetch(named), strict=True) if found is not None]
        columns = [self._column(each, [found.get(each.name.encode()) for _, found in there]) for each in self._fields]
        return {key: [row] for (key, _), row in zip(there, zip(*columns, strict=True), strict=True)}

    def _column(self, field: Field, values: list[bytes | None]) -> list[Any]:
        if t.is_binary(field.type):
            return values
        what = f"table '{self._table}': column '{field.name}' is {field.type.sql()}, and a value in Redis does not fit"
        try:
            texts = pa.array([None if value is None else value.decode() for value in values], pa.string())
            found: list[Any] = cast_column(texts, STRING, field.type, "UTC").to_pylist()
        except (UnicodeDecodeError, SqlError, ValueError) as error:
            raise SqlError(f"{what}: {error}") from None
        return found


def _get_all(key: Any) -> tuple[Any, ...]:
    return ("HGETALL", key)
