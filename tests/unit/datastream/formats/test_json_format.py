"""JSON messages with a declared type."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import cloudpickle
import pytest

from headwater.common import Row, Types
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

TYPE = Types.ROW_NAMED(
    ["id", "price", "name", "day", "tags", "by_key", "inner"],
    [
        Types.INT(),
        Types.BIG_DEC(),
        Types.STRING(),
        Types.SQL_DATE(),
        Types.LIST(Types.DOUBLE()),
        Types.MAP(Types.STRING(), Types.BOOLEAN()),
        Types.ROW_NAMED(["x"], [Types.LONG()]),
    ],
)
ROW = Row(
    id=1,
    price=Decimal("0.1000"),
    name="å",
    day=datetime.date(2026, 2, 3),
    tags=[1.0, None],
    by_key={"a": True},
    inner=Row(x=2),
)
MESSAGE = (
    '{"id":1,"price":0.1000,"name":"å","day":"2026-02-03","tags":[1,null],"by_key":{"a":true},"inner":{"x":2},"more":1}'
).encode()


def reader(**asked: bool) -> JsonRowDeserializationSchema:
    builder = JsonRowDeserializationSchema.builder().type_info(TYPE)
    if asked.get("strict"):
        builder.fail_on_missing_field()
    if asked.get("lenient"):
        builder.ignore_parse_errors()
    schema: JsonRowDeserializationSchema = cloudpickle.loads(cloudpickle.dumps(builder.build()))
    return schema


def test_fields_become_values_of_their_types() -> None:
    found = reader().deserialize(MESSAGE)
    assert found == ROW and found.get_field_names() == TYPE.get_field_names()
    assert str(found.price) == "0.1000"


def test_what_is_written_is_read() -> None:
    writer = JsonRowSerializationSchema.builder().with_type_info(TYPE).build()
    assert reader().deserialize(writer.serialize(ROW)) == ROW
    assert json.loads(writer.serialize(ROW.as_dict())) == json.loads(writer.serialize(tuple(ROW)))


def test_missing_fields_are_none_or_errors() -> None:
    assert list(reader().deserialize(b'{"id":1}')) == [1] + [None] * 6
    with pytest.raises(SerializationError, match="'price' is missing"):
        reader(strict=True).deserialize(b'{"id":1}')


@pytest.mark.parametrize(
    "message", [b"", b"[1]", b"{", b"\xff", b'{"id":"x"}', b'{"id":1.5}', b'{"id":true}', b'{"inner":{"x":[]}}']
)
def test_bad_messages_are_errors_or_none(message: bytes) -> None:
    with pytest.raises(SerializationError, match="JSON: "):
        reader().deserialize(message)
    assert reader(lenient=True).deserialize(message) is None


def test_a_json_schema_says_the_type() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "number"},
            "when": {"type": "string", "format": "date"},
            "list": {"type": ["array", "null"], "items": {"type": "integer"}},
            "inner": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
        },
    }
    built = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema)).build()
    found = built.deserialize(b'{"n":1.50,"when":"2026-02-03","list":[1],"inner":{"ok":false}}')
    assert list(found) == [Decimal("1.50"), datetime.date(2026, 2, 3), [1], Row(ok=False)]


@pytest.mark.parametrize(
    "schema",
    ["", "[]", '{"type":"string"}', '{"type":"object"}', '{"type":"object","properties":{"a":{"oneOf":[]}}}'],
)
def test_a_json_schema_that_says_no_type(schema: str) -> None:
    with pytest.raises(ConfigurationError, match="json_schema"):
        JsonRowDeserializationSchema.builder().json_schema(schema)


@pytest.mark.parametrize("record", [{"id": 1}, (1, 2), 5, (object(), 1, 1, 1, 1, 1, 1)])
def test_a_record_that_does_not_fit_is_shown(record: Any) -> None:
    with pytest.raises(SerializationError, match="does not fit the JSON fields"):
        JsonRowSerializationSchema.builder().with_type_info(TYPE).build().serialize(record)


def test_a_builder_needs_a_type_of_rows() -> None:
    with pytest.raises(TypeError):
        JsonRowSerializationSchema.builder().build()
    with pytest.raises(ConfigurationError, match=r"Types\.ROW"):
        JsonRowDeserializationSchema.builder().type_info(Types.STRING())


def test_numbers_and_texts_as_flink_reads_them() -> None:
    """Compared with Flink 2.3, which reads 1.5 as the whole number 1, and 1 and "yes" as false: errors here."""

    def read(type_info: Any, message: bytes) -> Any:
        schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["v"], [type_info])).build()
        return schema.deserialize(b'{"v":' + message + b"}")[0]

    for message, text in (
        (b"1.10", "1.1"), (b'{"a":1.50}', '{"a":1.5}'), (b"true", "true"), (b"[1,2]", "[1,2]"), (b"1e3", "1000.0"),
        (b"12345678901234567890", "12345678901234567890"),
    ):  # fmt: skip
        assert read(Types.STRING(), message) == text
    for message in (b"7", b"7.0", b'"7"', b'" 7"', b"70e-1"):
        assert read(Types.LONG(), message) == read(Types.SHORT(), message) == 7
    assert read(Types.DOUBLE(), b"1") == 1.0
    assert read(Types.BIG_DEC(), b"0.1000000000000000055") == Decimal("0.1000000000000000055")
    for type_info, message in (
        (Types.LONG(), b"1.5"), (Types.LONG(), b"true"), (Types.BOOLEAN(), b"1"), (Types.BOOLEAN(), b'"yes"'),
        (Types.DOUBLE(), b'"x"'), (Types.LONG(), b"9223372036854775808"), (Types.BYTE(), b"128"),
    ):  # fmt: skip
        with pytest.raises(SerializationError, match="field 'v'"):
            read(type_info, message)
