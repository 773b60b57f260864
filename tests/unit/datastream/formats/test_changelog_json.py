"""Changes as Debezium, Canal and Maxwell tell them."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common import Encoder, Row, RowKind, Types
from headwater.common.connector import drain
from headwater.common.errors import SerializationError
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.formats.changelog_json import (
    CanalJsonDeserializationSchema,
    CanalJsonSerializationSchema,
    DebeziumJsonDeserializationSchema,
    DebeziumJsonSerializationSchema,
    MaxwellJsonDeserializationSchema,
    MaxwellJsonSerializationSchema,
)

TYPE = Types.ROW_NAMED(["id", "name", "weight"], [Types.INT(), Types.STRING(), Types.BIG_DEC()])
OLD = {"id": 1, "name": "scooter", "weight": 3.14}
NEW = {"id": 1, "name": "skoter å", "weight": 3.15}


def row(kind: RowKind, content: dict[str, Any]) -> Row:
    return Row.of_kind(kind, id=content["id"], name=content["name"], weight=Decimal(str(content["weight"])))


INSERT = [row(RowKind.INSERT, NEW)]
UPDATE = [row(RowKind.UPDATE_BEFORE, OLD), row(RowKind.UPDATE_AFTER, NEW)]
DELETE = [row(RowKind.DELETE, OLD)]

debezium = DebeziumJsonDeserializationSchema(TYPE)
canal = CanalJsonDeserializationSchema(TYPE)
maxwell = MaxwellJsonDeserializationSchema(TYPE)


def read(schema: DeserializationSchema, message: Any) -> list[Any]:
    return pickle.loads(pickle.dumps(schema)).deserialize_all(json.dumps(message).encode())


def test_debezium() -> None:
    about = {"source": {"db": "shop", "ts_ms": 1}, "ts_ms": 2}
    for operation in "cr":
        assert read(debezium, {"before": None, "after": NEW, "op": operation, **about}) == INSERT
    assert read(debezium, {"before": OLD, "after": NEW, "op": "u", **about}) == UPDATE
    assert read(debezium, {"before": OLD, "after": None, "op": "d", **about}) == DELETE
    wrapped = DebeziumJsonDeserializationSchema(TYPE, schema_include=True)
    assert read(wrapped, {"schema": {}, "payload": {"before": OLD, "after": NEW, "op": "u"}}) == UPDATE
    assert debezium.deserialize_all(b"") == debezium.deserialize_all(b"null") == read(wrapped, {"payload": None}) == []


def test_canal() -> None:
    def message(kind: str, rows: Any, old: Any = None, table: str = "t") -> dict[str, Any]:
        return {"data": rows, "old": old, "type": kind, "database": "shop", "table": table, "isDdl": False, "ts": 1}

    assert read(canal, message("INSERT", [NEW, NEW])) == INSERT * 2
    assert read(canal, message("DELETE", [OLD])) == DELETE
    old = {"name": OLD["name"], "weight": OLD["weight"]}
    assert read(canal, message("UPDATE", [NEW, NEW], [old, old])) == UPDATE * 2
    assert read(canal, message("CREATE", None)) == []
    some = CanalJsonDeserializationSchema(TYPE, database="shop", table="t")
    assert read(some, message("INSERT", [NEW])) == INSERT
    assert read(some, message("INSERT", [NEW], table="u")) == []
    for bad, said in (
        (message("TRUNCATE", None), "'type' is 'TRUNCATE'"),
        (message("UPDATE", [NEW], []), "'data' has 1 rows and 'old' 0"),
        (message("INSERT", NEW), "'data' is .* expected a list"),
    ):
        with pytest.raises(SerializationError, match=said):
            read(canal, bad)


def test_a_field_that_was_null_before_stays_null() -> None:
    before = {"name": None}
    for schema, message in (
        (canal, {"type": "UPDATE", "data": [NEW], "old": [before]}),
        (maxwell, {"type": "update", "data": NEW, "old": before}),
    ):
        found = read(schema, message)
        assert found[0]["name"] is None
        assert found[0]["weight"] == found[1]["weight"]


def test_maxwell() -> None:
    old = {"name": OLD["name"], "weight": OLD["weight"]}
    assert read(maxwell, {"type": "insert", "data": NEW, "xid": 7}) == INSERT
    assert read(maxwell, {"type": "bootstrap-insert", "data": NEW}) == INSERT
    assert read(maxwell, {"type": "update", "data": NEW, "old": old}) == UPDATE
    assert read(maxwell, {"type": "delete", "data": OLD}) == DELETE
    assert read(maxwell, {"type": "bootstrap-start", "data": {}}) == []
    with pytest.raises(SerializationError, match="'type' is 'table-drop'"):
        read(maxwell, {"type": "table-drop"})


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"{", "Debezium JSON: b'{': "),
        (b"[1]", r"the message is \[1\]; expected an object"),
        (b'{"op":"x"}', "'op' is 'x'; expected c, r, u or d"),
        (b'{"op":"u","before":null,"after":{}}', "REPLICA IDENTITY FULL"),
        (b'{"op":"c","after":7}', "'after' is 7; expected an object"),
        (b'{"op":"c","after":{"id":"many"}}', "field 'id': .*'many'"),
        (b'{"schema":{},"payload":{"op":"c"}}', "schema_include=True"),
    ],
)
def test_bad_messages(message: bytes, said: str) -> None:
    with pytest.raises(SerializationError, match=said):
        debezium.deserialize_all(message)
    assert DebeziumJsonDeserializationSchema(TYPE, ignore_parse_errors=True).deserialize_all(message) == []


def test_one_record_at_a_time() -> None:
    assert debezium.deserialize(json.dumps({"op": "c", "after": NEW}).encode()) == INSERT[0]
    assert debezium.deserialize(b"") is None
    with pytest.raises(SerializationError, match="a message has 2 changes; call deserialize_all"):
        debezium.deserialize(json.dumps({"op": "u", "before": OLD, "after": NEW}).encode())


PAIRS: list[tuple[SerializationSchema, DeserializationSchema]] = [
    (DebeziumJsonSerializationSchema(TYPE), debezium),
    (CanalJsonSerializationSchema(TYPE), canal),
    (MaxwellJsonSerializationSchema(TYPE), maxwell),
]
changes = st.builds(
    lambda kind, *values: Row.of_kind(kind, **dict(zip(["id", "name", "weight"], values, strict=True))),
    st.sampled_from(RowKind),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.text(),
    st.none() | st.decimals(-(10**9), 10**9, places=3),
)


@given(changes)
def test_what_is_written_is_read_as_deletion_or_insertion(change: Row) -> None:
    deleted = change.get_row_kind() in (RowKind.DELETE, RowKind.UPDATE_BEFORE)
    expected = Row(*change)
    expected.set_field_names(["id", "name", "weight"])
    expected.set_row_kind(RowKind.DELETE if deleted else RowKind.INSERT)
    for writer, reader in PAIRS:
        assert reader.deserialize_all(pickle.loads(pickle.dumps(writer)).serialize(change)) == [expected]


def test_what_does_not_fit_is_named() -> None:
    for writer, _ in PAIRS:
        with pytest.raises(SerializationError, match="expected a Row"):
            writer.serialize({"id": 1})
        with pytest.raises(SerializationError, match="does not fit the JSON fields"):
            writer.serialize(Row(1, 2))


def test_files_of_lines_with_changes(tmp_path: Path) -> None:
    encoder = Encoder.of_schema(MaxwellJsonSerializationSchema(TYPE))
    update = json.dumps({"type": "update", "data": NEW, "old": OLD}).encode()
    content = encoder.encode(INSERT[0]) + update + b"\r\n\n" + encoder.encode(DELETE[0])
    (tmp_path / "a").write_bytes(content)
    form = StreamFormat.schema_lines_format(maxwell)
    builder = FileSource.for_record_stream_format(form, str(tmp_path / "a"))
    source = builder.build()
    (split,) = source.discover_splits(1, frozenset())
    found, position = [], None
    while (reader := source.open_reader(split, position)) and (batch := reader.read_batch(1)):
        found += batch
        position = reader.position()
        reader.close()
    assert found == INSERT + UPDATE + DELETE
    (tmp_path / "a").write_bytes(content + b'{"type":"what"}\n')
    (split,) = source.discover_splits(1, frozenset())
    with pytest.raises(SerializationError, match=r"/a, line 5: Maxwell JSON"):
        list(drain(source.open_reader(split, None), 100))
    skipping = builder.set_bad_record_policy("skip").build()
    reader = skipping.open_reader(split, None)
    assert sum(map(len, drain(reader, 100))) == 4
    assert reader.counters() == {"bad_records_skipped": 1}


def test_a_record_of_two_lines_is_refused() -> None:
    class TwoLines(SerializationSchema):
        def serialize(self, value: Any) -> bytes:
            return b"a\nb"

    with pytest.raises(SerializationError, match="it is not one line"):
        Encoder.of_schema(TwoLines()).encode(1)
