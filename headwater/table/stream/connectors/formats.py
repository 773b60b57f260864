"""Formats of messages and lines: rows of SQL as JSON, CSV, Avro, raw values, or changes of Debezium and its kin.

The formats are those of DataStream; JSON and CSV are read as SQL does (`text_formats`). Times are written, and travel
through Avro, as text.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import SqlError
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.typeinfo import TypeInformation, Types
from headwater.common.types import Row, RowKind
from headwater.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from headwater.datastream.formats.changelog_json import (
    CanalJsonDeserializationSchema,
    CanalJsonSerializationSchema,
    DebeziumJsonDeserializationSchema,
    DebeziumJsonSerializationSchema,
    MaxwellJsonDeserializationSchema,
    MaxwellJsonSerializationSchema,
)
from headwater.datastream.formats.csv import CsvRowSerializationSchema
from headwater.datastream.formats.csv_schema import CsvDialect, one_character
from headwater.datastream.formats.json import JsonRowSerializationSchema
from headwater.datastream.formats.raw import RawSchema
from headwater.table.batch.options import nearest
from headwater.table.functions.casting.arrays import cast_column
from headwater.table.stream.connectors.contract import ChangelogMode, Field, TableContext
from headwater.table.stream.connectors.field_values import written
from headwater.table.stream.connectors.rows import RowsEncoder, column_of
from headwater.table.stream.connectors.text_formats import ColumnRows, CsvReader, JsonReader, PlainWriter, row_type
from headwater.table.types import logical as t
from headwater.table.types.logical import STRING, LogicalType
from headwater.table.types.type_information import to_type_information

FORMATS = ("avro", "canal-json", "csv", "debezium-json", "json", "maxwell-json", "raw")
CHANGELOGS = ("canal-json", "debezium-json", "maxwell-json")


@dataclass(frozen=True)
class Format:
    """How rows of some fields are written and read. `prefix` stands before its options: '', 'key.' or 'value.'."""

    name: str
    fields: tuple[Field, ...]
    context: TableContext
    prefix: str = ""
    lines: bool = False
    """Rows stand in lines of a file."""

    @property
    def mode(self) -> ChangelogMode:
        return ChangelogMode.ALL if self.name in CHANGELOGS else ChangelogMode.APPEND

    def _key(self, option: str) -> str:
        return f"{self.prefix}{self.name}.{option}"

    def reader(self) -> DeserializationSchema:
        """A schema that gives Rows of the fields. None: no row."""
        options = self.context.options
        if self.name == "raw":
            return RawReader(RawSchema(*self._raw()))
        if self.name == "avro":
            return AvroRowDeserializationSchema(avro_schema_string=avro_schema(self.fields))
        option = self._key("ignore-parse-errors")
        ignore = options.flag(option)
        if self.name == "csv":
            return CsvReader(self.fields, self.csv_dialect, ignore, option)
        self._json_options()
        strict = options.flag(self._key("fail-on-missing-field"))
        if strict and ignore:
            raise self.context.error(
                f"'{self._key('fail-on-missing-field')}' and '{option}' are both true: a field that is missing is"
                " either an error or NULL"
            )
        if self.name == "json":
            return JsonReader(self.fields, strict, ignore, option)
        rows = ColumnRows(row_type(self.fields), False, ignore)
        if self.name == "debezium-json":
            return DebeziumJsonDeserializationSchema(rows, ignore, options.flag(self._key("schema-include")))
        if self.name == "canal-json":
            database, table = options.text(self._key("database.include")), options.text(self._key("table.include"))
            return CanalJsonDeserializationSchema(rows, ignore, database, table)
        return MaxwellJsonDeserializationSchema(rows, ignore)

    def writer(self) -> SerializationSchema:
        """A schema that takes Rows whose times are texts."""
        if self.name == "raw":
            return RawWriter(RawSchema(*self._raw()), self.fields[0].name)
        if self.name == "avro":
            return AvroRowSerializationSchema(avro_schema_string=avro_schema(self.fields))
        return PlainWriter(self._text_writer(row_info(self.fields)), self.fields)

    def _text_writer(self, type_info: TypeInformation) -> SerializationSchema:
        if self.name == "csv":
            return self._csv_writer(type_info)
        self._json_options()
        if self.name == "json":
            return JsonRowSerializationSchema.builder().with_type_info(type_info).build()
        if self.name == "debezium-json":
            return DebeziumJsonSerializationSchema(type_info)
        if self.name == "canal-json":
            return CanalJsonSerializationSchema(type_info)
        return MaxwellJsonSerializationSchema(type_info)

    def _json_options(self) -> None:
        options = self.context.options
        standard = options.text(self._key("timestamp-format.standard")) or "SQL"
        if standard not in ("SQL", "ISO-8601"):
            raise self.context.error(f"'{self._key('timestamp-format.standard')}' is SQL or ISO-8601")
        options.ignored(self._key("map-null-key.mode"), self._key("ignore-parse-errors"))
        options.ignored(self._key("fail-on-missing-field"), self._key("schema-include"))

    @property
    def iso(self) -> bool:
        """Times are written as ISO-8601 has them. They are read either way."""
        return self.context.options.text(self._key("timestamp-format.standard")) == "ISO-8601"

    @property
    def csv_dialect(self) -> CsvDialect:
        """How lines are read."""
        options = self.context.options
        given: dict[str, Any] = {}
        for option, key in _CHARACTERS.items():
            value = options.text(self._key(option))
            if value is not None:
                given[key] = one_character(f"'{self._key(option)}'", value)
        if options.flag(self._key("disable-quote-character")):
            given["quote"] = None
        null = options.text(self._key("null-literal"))
        separator = options.text(self._key("array-element-delimiter"))
        comments = options.flag(self._key("allow-comments"))
        return CsvDialect(
            **given, null=null, array_separator=";" if separator is None else separator, comments=comments
        )

    def _csv_writer(self, type_info: TypeInformation) -> SerializationSchema:
        options = self.context.options
        builder = CsvRowSerializationSchema.Builder(type_info)
        if not self.lines:
            builder = builder.set_line_delimiter("")
        if delimiter := options.text(self._key("field-delimiter")):
            builder = builder.set_field_delimiter(delimiter)
        if options.flag(self._key("disable-quote-character")):
            builder = builder.disable_quote_character()
        elif quote := options.text(self._key("quote-character")):
            builder = builder.set_quote_character(quote)
        if escape := options.text(self._key("escape-character")):
            builder = builder.set_escape_character(escape)
        if null := options.text(self._key("null-literal")):
            builder = builder.set_null_literal(null)
        options.ignored(self._key("ignore-parse-errors"), self._key("allow-comments"))
        return builder.build()

    def _raw(self) -> tuple[TypeInformation, str, str]:
        if len(self.fields) != 1:
            raise self.context.error(f"format 'raw' has one column, this table has {len(self.fields)}")
        options = self.context.options
        charset = options.text(self._key("charset")) or "UTF-8"
        return to_type_information(self.fields[0].type), charset, options.text(self._key("endianness")) or "big-endian"


_CHARACTERS = {"field-delimiter": "delimiter", "quote-character": "quote", "escape-character": "escape"}


def format_of(
    context: TableContext,
    key: str,
    fields: Sequence[Field],
    prefix: str = "",
    lines: bool = False,
    columnar: Sequence[str] = (),
) -> Format:
    """The format that the option `key` names. `columnar`: what else could be there, which the caller has looked for."""
    name = context.options.required(key)
    if name not in FORMATS:
        known = (*FORMATS, *columnar)
        raise context.error(
            f"there is no format '{name}' for '{key}'{nearest(name, known)} (there is {', '.join(known)})"
        )
    return Format(name, tuple(fields), context, prefix, lines)


@dataclass(frozen=True)
class TextRows(RowsEncoder):
    """Rows whose times are texts, as formats write them."""

    iso: bool = False

    def encode(self, rows: pa.RecordBatch, kinds: Sequence[RowKind]) -> list[Any]:
        found = super().encode(rows, kinds)
        for row in found:
            for place, type_ in enumerate(self.types):
                row[place] = written(row[place], type_, self.iso)
        return found


class RawReader(DeserializationSchema):
    def __init__(self, schema: RawSchema) -> None:
        self._schema = schema

    def deserialize(self, message: bytes) -> Any:
        return Row(self._schema.deserialize(message))


class RawWriter(SerializationSchema):
    def __init__(self, schema: RawSchema, name: str) -> None:
        self._schema = schema
        self._name = name

    def serialize(self, value: Any) -> Any:
        return self._schema.serialize(value[self._name])


# -- Times as text


def _as_text(type_: LogicalType) -> LogicalType:
    """The type as it travels: times are text, bytes are base64."""
    if t.is_temporal(type_) or isinstance(type_, t.BinaryType | t.VarBinaryType):
        return STRING
    match type_:
        case t.RowType():
            return t.RowType(fields=tuple(t.RowField(each.name, _as_text(each.type)) for each in type_.fields))
        case t.ArrayType():
            return t.ArrayType(element=_as_text(type_.element))
        case t.MapType():
            return t.MapType(key=_as_text(type_.key), value=_as_text(type_.value))
        case t.MultisetType():
            return t.MapType(key=_as_text(type_.element), value=t.INT)
    return type_


def row_info(fields: Sequence[Field]) -> TypeInformation:
    return Types.ROW_NAMED(
        [each.name for each in fields], [to_type_information(_as_text(each.type)) for each in fields]
    )


def read_column(values: list[Any], type_: LogicalType, zone: str, what: str) -> pa.Array:
    """A column of values that a format gave: times are texts there."""
    if t.is_temporal(type_) and any(isinstance(value, str) for value in values):
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return read_times(texts, type_, zone, what)
    return column_of([_timed(value, type_) for value in values], type_, what)


def read_times(texts: pa.Array, type_: LogicalType, zone: str, what: str) -> pa.Array:
    """Dates and times of texts as formats have them. An empty one is NULL."""
    if pc.any(pc.equal(texts, ""), min_count=0).as_py():
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    zoned = isinstance(type_, t.LocalZonedTimestampType)
    if (zoned or isinstance(type_, t.TimestampType)) and pc.any(_like_iso(texts), min_count=0).as_py():
        texts = pc.replace_substring(pc.replace_substring_regex(texts, "Z$", ""), "T", " ")
    try:
        return cast_column(texts, STRING, type_, "UTC" if zoned else zone)
    except Exception as error:
        raise SqlError(f"{what} is {type_.sql()}, and a text does not fit: {error}") from None


def _like_iso(texts: pa.Array) -> pa.Array:
    return pc.or_(pc.match_substring(texts, "T"), pc.ends_with(texts, "Z"))


def _timed(value: Any, type_: LogicalType) -> Any:
    """Times inside of arrays, maps and rows."""
    if value is None:
        return None
    match type_:
        case t.RowType():
            items = [value.get(each.name) for each in type_.fields] if isinstance(value, dict) else list(value)
            return [_timed(item, each.type) for item, each in zip(items, type_.fields, strict=True)]
        case t.ArrayType():
            return [_timed(each, type_.element) for each in value]
        case t.MapType():
            return {_timed(k, type_.key): _timed(v, type_.value) for k, v in value.items()}
        case t.TimestampType() if isinstance(value, str):
            return datetime.datetime.fromisoformat(value.removesuffix("Z"))
        case t.LocalZonedTimestampType() if isinstance(value, str):
            return datetime.datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=datetime.UTC)
        case t.DateType() if isinstance(value, str):
            return datetime.date.fromisoformat(value)
        case t.TimeType() if isinstance(value, str):
            return datetime.time.fromisoformat(value)
    return value


# -- Avro


def avro_schema(fields: Sequence[Field]) -> str:
    """The Avro schema that Flink makes of a table's columns."""
    return json.dumps(_avro_record("record", [(each.name, each.type) for each in fields]))


def _avro_record(name: str, fields: Sequence[tuple[str, LogicalType]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": each, "type": _avro(type_, f"{name}_{each}"), **({"default": None} if type_.nullable else {})}
            for each, type_ in fields
        ],
    }


_AVRO = {
    t.TypeRoot.BOOLEAN: "boolean",
    t.TypeRoot.TINYINT: "int",
    t.TypeRoot.SMALLINT: "int",
    t.TypeRoot.INTEGER: "int",
    t.TypeRoot.BIGINT: "long",
    t.TypeRoot.FLOAT: "float",
    t.TypeRoot.DOUBLE: "double",
    t.TypeRoot.BINARY: "bytes",
    t.TypeRoot.VARBINARY: "bytes",
}


def _avro(type_: LogicalType, name: str) -> Any:
    found: Any = _AVRO.get(type_.root, "string")  # times travel as text
    match type_:
        case t.DecimalType():
            found = {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
        case t.RowType():
            found = _avro_record(name, [(each.name, each.type) for each in type_.fields])
        case t.ArrayType():
            found = {"type": "array", "items": _avro(type_.element, name)}
        case t.MapType():
            found = {"type": "map", "values": _avro(type_.value, name)}
    return ["null", found] if type_.nullable else found
