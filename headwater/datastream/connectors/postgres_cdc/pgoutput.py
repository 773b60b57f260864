"""Messages of PostgreSQL's logical replication (pgoutput, protocol 1), decoded. Pure.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

_LENGTH: Final = struct.Struct(">I").unpack_from
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")
_EPOCH_MS: Final = 946_684_800_000
"""PostgreSQL counts microseconds since 2000-01-01."""
UNCHANGED: Final = object()
"""Stands for a large value that an update did not touch, and the log therefore does not have."""

Convert = Callable[[bytes], Any]


def unix_ms(postgres_us: int) -> int:
    return postgres_us // 1000 + _EPOCH_MS


def _text(raw: bytes) -> str:
    return raw.decode()


def _bytes(raw: bytes) -> bytes:
    return bytes.fromhex(raw[2:].decode())


def _bool(raw: bytes) -> bool:
    return raw == b"t"


def _decimal(raw: bytes) -> Decimal:
    return Decimal(raw.decode())


def _or_text(parse: Callable[[str], Any]) -> Convert:
    """For times: infinity, and years before Christ, stay texts."""

    def convert(raw: bytes) -> Any:
        text = raw.decode()
        try:
            return parse(text)
        except ValueError:
            return text

    return convert


CONVERTERS: Final[dict[int, Convert]] = {
    16: _bool,
    17: _bytes,
    20: int,
    21: int,
    23: int,
    26: int,
    700: float,
    701: float,
    1082: _or_text(date.fromisoformat),
    1083: _or_text(time.fromisoformat),
    1114: _or_text(datetime.fromisoformat),
    1184: _or_text(datetime.fromisoformat),
    1700: _decimal,
}
"""{oid of a type: from its text}. All other types come as their text."""


def converter(oid: int) -> Convert:
    return CONVERTERS.get(oid, _text)


@dataclass(frozen=True)
class Relation:
    """A table, as the log describes it before its first change."""

    oid: int
    name: str
    """schema.table"""
    identity: str
    """f: changes have the whole old row"""
    columns: tuple[str, ...]
    converters: tuple[Convert, ...]
    names: list[str]
    """The columns, for rows to share."""


@dataclass(frozen=True)
class Begin:
    final_lsn: int
    timestamp_ms: int
    xid: int


def parse_begin(data: bytes) -> Begin:
    final_lsn, timestamp, xid = _BEGIN.unpack_from(data, 1)
    return Begin(final_lsn, unix_ms(timestamp), xid)


def parse_commit(data: bytes) -> int:
    """Return the place behind the transaction."""
    end_lsn: int = _COMMIT.unpack_from(data, 1)[2]
    return end_lsn


def parse_relation(data: bytes) -> Relation:
    (oid,) = _LENGTH(data, 1)
    schema, _, rest = data[5:].partition(b"\0")
    table, _, rest = rest.partition(b"\0")
    identity, count = chr(rest[0]), int.from_bytes(rest[1:3], "big")
    at, columns, converters = 3, [], []
    for _ in range(count):
        end = rest.index(b"\0", at + 1)
        columns.append(rest[at + 1 : end].decode())
        converters.append(converter(_LENGTH(rest, end + 1)[0]))
        at = end + 9
    name = f"{schema.decode() or 'pg_catalog'}.{table.decode()}"
    return Relation(oid, name, identity, tuple(columns), tuple(converters), columns)


def parse_message(data: bytes) -> tuple[str, bytes]:
    """Return prefix and content of a message of pg_logical_emit_message."""
    prefix, _, rest = data[10:].partition(b"\0")
    return prefix.decode(), rest[4:]


def parse_row(data: bytes, at: int, relation: Relation) -> tuple[list[Any], int]:
    """Return the values of the row that begins at `at`, and where it ends."""
    values: list[Any] = []
    add = values.append
    at += 2  # the number of columns
    for convert in relation.converters:
        kind = data[at]
        if kind == 116:  # t: text
            start = at + 5
            at = start + _LENGTH(data, at + 1)[0]
            add(convert(data[start:at]))
        else:
            add(None if kind == 110 else UNCHANGED)  # n, u
            at += 1
    return values, at


def parse_change(data: bytes, relation: Relation) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the row before and after an insert, update or delete. Needs REPLICA IDENTITY FULL for the former."""
    kind = data[0]
    if kind == 73:  # I
        return None, parse_row(data, 6, relation)[0]
    before: list[Any] | None = None
    at = 5
    if data[at] in (79, 75):  # O, K
        before, at = parse_row(data, at + 1, relation)
    if kind == 68:  # D
        return before, None
    after, _ = parse_row(data, at + 1, relation)
    if before is not None and UNCHANGED in after:
        after = [old if new is UNCHANGED else new for old, new in zip(before, after, strict=True)]
    return before, after
