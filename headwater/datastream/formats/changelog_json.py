"""Changes of tables as Debezium, Canal and Maxwell tell them in JSON: Rows with a row kind.

An update is two rows: the row before (UPDATE_BEFORE) and after (UPDATE_AFTER). Written, an UPDATE_BEFORE is a deletion
and an UPDATE_AFTER an insertion, as in Flink: each message has one row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from headwater.common.errors import SerializationError, short_repr
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.type_system.information import TypeInformation
from headwater.common.types import Row, RowKind
from headwater.datastream.formats.json_rows import ENCODER, JsonRows, json_row_type
from headwater.datastream.formats.text_fields import fields_of

__all__ = [
    "CanalJsonDeserializationSchema",
    "CanalJsonSerializationSchema",
    "DebeziumJsonDeserializationSchema",
    "DebeziumJsonSerializationSchema",
    "MaxwellJsonDeserializationSchema",
    "MaxwellJsonSerializationSchema",
]

_DELETIONS: Final = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


class _Changes(DeserializationSchema):
    """One message is any number of changes: call `deserialize_all`, or `flat_map(schema.deserialize_all)`."""

    _format: str

    def __init__(self, type_info: TypeInformation | JsonRows, ignore_parse_errors: bool = False) -> None:
        """:param type_info: of the table's rows, made by `Types.ROW_NAMED`; or what makes the rows.
        :param ignore_parse_errors: a message that cannot be read has no changes.
        """
        self._rows = type_info if isinstance(type_info, JsonRows) else JsonRows(type_info)
        self._ignore_parse_errors = ignore_parse_errors

    def deserialize(self, message: bytes) -> Any:
        changes = self.deserialize_all(message)
        if len(changes) > 1:
            raise SerializationError(
                f"{self._format}: a message has {len(changes)} changes; call deserialize_all, which returns all of them"
            )
        return changes[0] if changes else None

    def deserialize_all(self, message: bytes) -> list[Any]:
        if not message:
            return []  # a tombstone: it lets Kafka forget the key, and changes nothing
        try:
            content = self._rows.decode(message)
            return [] if content is None else self._changes(_object(content, "the message"))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            if self._ignore_parse_errors:
                return []
            raise SerializationError(f"{self._format}: {short_repr(message)}: {error}") from None

    @abstractmethod
    def _changes(self, message: dict[str, Any]) -> list[Row]:
        """The changes; ValueError if the message is not as it should be."""

    def _row(self, content: Any, kind: RowKind, where: str) -> Row:
        row: Row = self._rows.row(_object(content, where))
        row.set_row_kind(kind)
        return row

    def _update(self, data: Any, old: Any) -> list[Row]:
        """The rows of an update that has the new row, and the old values of those fields that changed."""
        after = self._row(data, RowKind.UPDATE_AFTER, "'data'")
        before = self._row({**data, **_object(old, "'old'")}, RowKind.UPDATE_BEFORE, "'old'")
        return [before, after]


class DebeziumJsonDeserializationSchema(_Changes):
    """Messages of Debezium."""

    _format = "Debezium JSON"

    def __init__(
        self, type_info: TypeInformation | JsonRows, ignore_parse_errors: bool = False, schema_include: bool = False
    ) -> None:
        """:param schema_include: messages are {"schema": ..., "payload": ...}: Kafka Connect's schemas.enable."""
        super().__init__(type_info, ignore_parse_errors)
        self._schema_include = schema_include

    def _changes(self, message: dict[str, Any]) -> list[Row]:
        if self._schema_include:
            if message.get("payload") is None:
                return []
            message = _object(message["payload"], "'payload'")
        elif "payload" in message and "op" not in message:
            raise ValueError("the change is in 'payload'; pass schema_include=True")
        operation = message.get("op")
        if operation in ("c", "r"):
            return [self._row(message.get("after"), RowKind.INSERT, "'after'")]
        if operation == "d":
            return [self._row(self._before(message), RowKind.DELETE, "'before'")]
        if operation == "u":
            before = self._row(self._before(message), RowKind.UPDATE_BEFORE, "'before'")
            return [before, self._row(message.get("after"), RowKind.UPDATE_AFTER, "'after'")]
        raise ValueError(f"'op' is {operation!r}; expected c, r, u or d")

    @staticmethod
    def _before(message: dict[str, Any]) -> Any:
        before = message.get("before")
        if before is None:
            raise ValueError(
                f"'before' of an {message.get('op')!r} is missing; in Postgres the table needs REPLICA IDENTITY FULL"
            )
        return before


class CanalJsonDeserializationSchema(_Changes):
    """Messages of Canal. Those of other databases and tables are left out if `database` and `table` are given."""

    _format = "Canal JSON"

    def __init__(
        self,
        type_info: TypeInformation | JsonRows,
        ignore_parse_errors: bool = False,
        database: str | None = None,
        table: str | None = None,
    ) -> None:
        super().__init__(type_info, ignore_parse_errors)
        self._wanted = {name: value for name, value in (("database", database), ("table", table)) if value is not None}

    def _changes(self, message: dict[str, Any]) -> list[Row]:
        kind = message.get("type")
        if kind == "CREATE" or any(message.get(name) != value for name, value in self._wanted.items()):
            return []
        if kind not in ("INSERT", "UPDATE", "DELETE"):
            raise ValueError(f"'type' is {kind!r}; expected INSERT, UPDATE or DELETE")
        rows = _list(message.get("data"), "'data'")
        if kind != "UPDATE":
            row_kind = RowKind.INSERT if kind == "INSERT" else RowKind.DELETE
            return [self._row(row, row_kind, "'data'") for row in rows]
        old = _list(message.get("old"), "'old'")
        if len(old) != len(rows):
            raise ValueError(f"'data' has {len(rows)} rows and 'old' {len(old)}")
        return [each for row, before in zip(rows, old, strict=True) for each in self._update(row, before)]


class MaxwellJsonDeserializationSchema(_Changes):
    """Messages of Maxwell, those of its bootstrap included."""

    _format = "Maxwell JSON"

    def _changes(self, message: dict[str, Any]) -> list[Row]:
        kind = message.get("type")
        if kind in ("insert", "bootstrap-insert"):
            return [self._row(message.get("data"), RowKind.INSERT, "'data'")]
        if kind == "delete":
            return [self._row(message.get("data"), RowKind.DELETE, "'data'")]
        if kind == "update":
            return self._update(_object(message.get("data"), "'data'"), message.get("old"))
        if kind in ("bootstrap-start", "bootstrap-complete"):
            return []
        raise ValueError(f"'type' is {kind!r}; expected insert, update or delete")


class _ChangeWriter(SerializationSchema):
    """One message of one Row, whose kind says what happened."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type = json_row_type(type_info)
        self._names = self._type.get_field_names()

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, Row):
            raise SerializationError(f"changes: expected a Row, found {short_repr(value)}")
        try:
            content = dict(zip(self._names, fields_of(value, self._names), strict=True))
            message = self._message(content, value.get_row_kind() in _DELETIONS)
            return ENCODER.encode(message)
        except (KeyError, TypeError, ValueError, NotImplementedError) as error:
            raise SerializationError(
                f"record {short_repr(value)} does not fit the JSON fields {self._names}: {error}"
            ) from error

    @abstractmethod
    def _message(self, content: Mapping[str, Any], deleted: bool) -> dict[str, Any]: ...


class DebeziumJsonSerializationSchema(_ChangeWriter):
    """Messages that Debezium's readers understand."""

    def _message(self, content: Mapping[str, Any], deleted: bool) -> dict[str, Any]:
        if deleted:
            return {"before": content, "after": None, "op": "d"}
        return {"before": None, "after": content, "op": "c"}


class CanalJsonSerializationSchema(_ChangeWriter):
    """Messages that Canal's readers understand."""

    def _message(self, content: Mapping[str, Any], deleted: bool) -> dict[str, Any]:
        return {"data": [content], "type": "DELETE" if deleted else "INSERT"}


class MaxwellJsonSerializationSchema(_ChangeWriter):
    """Messages that Maxwell's readers understand."""

    def _message(self, content: Mapping[str, Any], deleted: bool) -> dict[str, Any]:
        return {"data": content, "type": "delete" if deleted else "insert"}


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {short_repr(value, 60)}; expected an object")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {short_repr(value, 60)}; expected a list")
    return value
