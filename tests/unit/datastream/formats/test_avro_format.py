"""Avro messages and files: round trips, evolution, bad values, damaged bytes."""

from __future__ import annotations

import io
import json
import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common import Row
from headwater.common.connector import drain
from headwater.common.errors import CheckpointError, ConfigurationError, SerializationError
from headwater.datastream.connectors.file_system import FileSource
from headwater.datastream.formats.avro import (
    AvroBulkWriters,
    AvroDeserializationSchema,
    AvroReaders,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    AvroSerializationSchema,
)
from headwater.datastream.formats.avro.files import CODECS

INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [
        {"name": "x", "type": "int"},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
EVERYTHING = json.dumps(
    {
        "type": "record",
        "name": "Everything",
        "namespace": "test",
        "fields": [
            {"name": "i", "type": "int"},
            {"name": "l", "type": ["null", "long"]},
            {"name": "f", "type": "float"},
            {"name": "d", "type": "double"},
            {"name": "b", "type": "boolean"},
            {"name": "s", "type": ["null", "string"]},
            {"name": "bytes", "type": "bytes"},
            {"name": "fixed", "type": {"type": "fixed", "name": "Four", "size": 4}},
            {"name": "enum", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
            {"name": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
            {"name": "instant", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "inner", "type": ["null", INNER]},
            {"name": "inners", "type": {"type": "array", "items": "Inner"}},
            {"name": "named", "type": {"type": "map", "values": ["null", "Inner"]}},
        ],
    }
)
NAMES = [field["name"] for field in json.loads(EVERYTHING)["fields"]]
SIMPLE = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"}]}'

moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
inners = st.builds(lambda x, when: Row(x=x, when=when), st.integers(-(2**31), 2**31 - 1), moments)
rows = st.builds(
    lambda *values: Row(**dict(zip(NAMES, values, strict=True))),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.floats(width=32, allow_nan=False),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none() | st.text(),
    st.binary(),
    st.binary(min_size=4, max_size=4),
    st.sampled_from(["RED", "BLUE"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30),
    st.dates(),
    st.times(),
    moments,
    st.none() | inners,
    st.lists(inners, max_size=3),
    st.dictionaries(st.text(max_size=5), st.none() | inners, max_size=3),
)


@given(rows)
def test_a_row_comes_back_as_it_was(row: Row) -> None:
    write = AvroRowSerializationSchema(avro_schema_string=EVERYTHING)
    read = AvroRowDeserializationSchema(avro_schema_string=EVERYTHING)
    assert read.deserialize(write.serialize(row)) == row


@given(rows)
def test_fastavro_itself_reads_the_same(row: Row) -> None:
    message = AvroRowSerializationSchema(avro_schema_string=EVERYTHING).serialize(row)
    record: Any = fastavro.schemaless_reader(io.BytesIO(message), fastavro.parse_schema(json.loads(EVERYTHING)), None)
    assert record["instant"] == row["instant"].replace(tzinfo=UTC)
    assert (record["i"], record["money"], record["s"]) == (row["i"], row["money"], row["s"])


def test_dicts_rows_and_tuples_are_the_same_message() -> None:
    write = AvroSerializationSchema.for_generic(AvroSchema.parse_string(SIMPLE))
    message = write.serialize({"id": 1, "name": "å"})
    assert message == write.serialize(Row(1, "å")) == write.serialize((1, "å")) == write.serialize(Row(name="å", id=1))
    read = AvroDeserializationSchema.for_generic(AvroSchema.parse_string(SIMPLE))
    assert read.deserialize(message) == {"id": 1, "name": "å"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"id": 1.5, "name": "a"}, r"field id: found float 1\.5; expected long"),
        ({"id": "2", "name": "a"}, "field id: found str '2'; expected long"),
        ({"id": True, "name": "a"}, "field id: found bool True; expected long"),
        ({"id": 2**63, "name": "a"}, "field id: 9223372036854775808 does not fit into long"),
        ({"id": 1, "name": None}, "field name: found NoneType None; expected str"),
        ({"id": 1}, "field name: found NoneType None; expected str"),
        ({"id": 1, "name": "a", "more": 1}, "the schema has no field 'more'"),
        ((1,), r"expected a record with the fields \['id', 'name'\]"),
        ("text", "found str 'text'; expected a record"),
    ],
)
def test_a_value_that_does_not_fit_is_named(value: Any, said: str) -> None:
    with pytest.raises(SerializationError, match=said):
        AvroSerializationSchema(AvroSchema.parse_string(SIMPLE)).serialize(value)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int", 2**31, "does not fit into int"),
        ("float", 1e300, "does not fit into float"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("1.234"),
            "does not fit into dec",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            Decimal("100"),
            "does not fit into dec",
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, 1.5, "expected a Decimal"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", r"expected one of \['A'\]"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc", "found 3 bytes; expected 2"),
        ({"type": "int", "logicalType": "date"}, datetime(2020, 1, 1), "expected date"),
        ({"type": "array", "items": "int"}, [1, "x"], "field v.1: found str 'x'"),
        ({"type": "map", "values": "int"}, {"k": None}, "field v.k: found NoneType"),
        (["null", "int", "string"], 1.5, "fits none of"),
    ],
)
def test_values_that_fastavro_would_change_or_refuse_in_riddles(kind: Any, value: Any, said: str) -> None:
    schema = AvroSchema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}))
    with pytest.raises(SerializationError, match=said):
        AvroSerializationSchema(schema).serialize({"v": value})


def test_the_branch_of_a_union_is_the_one_of_the_value() -> None:
    kind = ["null", "int", "double", "string", {"type": "array", "items": "int"}, "bytes"]
    schema = AvroSchema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}))
    write, read = AvroSerializationSchema(schema), AvroDeserializationSchema(schema)
    for value in (None, 1, 2.5, "x", [1, 2], b"xy"):
        assert read.deserialize(write.serialize({"v": value})) == {"v": value}


def test_a_record_that_contains_itself() -> None:
    text = '{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}'
    row = Row(v=1, next=Row(v=2, next=None))
    message = AvroRowSerializationSchema(avro_schema_string=text).serialize(row)
    assert AvroRowDeserializationSchema(avro_schema_string=text).deserialize(message) == row


@pytest.mark.parametrize("rows", [False, True])
def test_evolution(rows: bool) -> None:
    old = AvroSchema.parse_string(SIMPLE)
    new = AvroSchema(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "country", "type": "string", "default": "SE"},
                    {"name": "id", "type": "double"},
                    {"name": "label", "type": "string", "aliases": ["name"]},
                ],
            }
        )
    )
    message = AvroSerializationSchema(old).serialize((7, "a"))
    read = AvroDeserializationSchema(new, old, rows)
    expected = {"country": "SE", "id": 7.0, "label": "a"}
    assert read.deserialize(message) == (Row(**expected) if rows else expected)
    incompatible = AvroSchema(SIMPLE.replace('"long"', '"string"'))
    with pytest.raises(SerializationError, match="cannot be read as R"):
        AvroDeserializationSchema(incompatible, old).deserialize(message)


def test_damaged_messages() -> None:
    schema = AvroSchema.parse_string(SIMPLE)
    message = AvroSerializationSchema(schema).serialize((1, "some text"))
    read = AvroDeserializationSchema(schema)
    for cut in range(len(message)):
        with pytest.raises(SerializationError, match="cannot be read as R"):
            read.deserialize(message[:cut])
    with pytest.raises(SerializationError, match="it was written with another schema"):
        read.deserialize(message + b"x")


def test_settings_travel(tmp_path: Path) -> None:
    schema = AvroSchema.parse_string(SIMPLE)
    for made in (
        AvroRowSerializationSchema(avro_schema_string=SIMPLE),
        AvroSerializationSchema(schema),
        AvroBulkWriters.for_generic_record(schema),
        AvroReaders.for_rows(schema),
    ):
        assert type(cloudpickle.loads(cloudpickle.dumps(made))) is type(made)
    copy = pickle.loads(pickle.dumps(AvroRowDeserializationSchema(avro_schema_string=SIMPLE)))
    assert copy.deserialize(AvroSerializationSchema(schema).serialize((1, "a"))) == Row(id=1, name="a")
    assert pickle.loads(pickle.dumps(schema)) == schema
    (tmp_path / "r.avsc").write_text(SIMPLE)
    assert AvroSchema.parse_file(str(tmp_path / "r.avsc")) == schema


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ('{"type":"record","name":"R","fields":[{"name":"x","type":"nonsense"}]}', "cannot be used.*nonsense"),
        ('{"type":"record","fields":[]}', "cannot be used"),
    ],
)
def test_bad_schemas(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        AvroSchema.parse_string(text)


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected the schema of a record"):
        AvroSerializationSchema(AvroSchema.parse_string('"string"'))
    with pytest.raises(ConfigurationError, match="is a Java class"):
        AvroRowSerializationSchema(record_class="org.example.Order")
    with pytest.raises(TypeError, match="should be specified"):
        AvroRowDeserializationSchema()


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'headwater\[avro\]'"):
        AvroSchema.parse_string(SIMPLE)


class TestFiles:
    def write(self, path: Path, records: list[Any], codec: str = "null", schema: str = SIMPLE) -> None:
        with path.open("wb") as file:
            writer = AvroBulkWriters.for_generic_record(AvroSchema.parse_string(schema), codec).create(file)
            for start in range(0, len(records), 7):
                writer.add_batch(records[start : start + 7])
            writer.finish()

    def read(self, path: Path, schema: AvroSchema | None = None, *, rows: bool = False, batch: int = 3) -> list[Any]:
        form = AvroReaders.for_rows(schema) if rows else AvroReaders.for_generic_record(schema)
        source = FileSource.for_bulk_file_format(form, str(path)).build()
        (split,) = source.discover_splits(1, frozenset())
        reader = source.open_reader(split, None)
        found = [record for records in drain(reader, batch) for record in records]
        assert reader.read_batch(1) is None
        reader.close()
        return found

    @pytest.mark.parametrize("codec", CODECS)
    def test_round_trip(self, tmp_path: Path, codec: str) -> None:
        records = [{"id": i, "name": "räksmörgås" * i} for i in range(50)]
        self.write(tmp_path / "a.avro", records, codec)
        assert self.read(tmp_path / "a.avro") == records
        assert list(fastavro.reader((tmp_path / "a.avro").open("rb"))) == records
        assert self.read(tmp_path / "a.avro", rows=True) == [Row(**record) for record in records]

    def test_a_file_without_records(self, tmp_path: Path) -> None:
        self.write(tmp_path / "a.avro", [])
        assert self.read(tmp_path / "a.avro") == []

    def test_files_of_other_versions(self, tmp_path: Path) -> None:
        self.write(tmp_path / "a.avro", [(1, "a")])
        text = SIMPLE.replace('{"name":"id"', '{"name":"more","type":["null","int"],"default":null},{"name":"id"')
        assert self.read(tmp_path / "a.avro", AvroSchema(text)) == [{"more": None, "id": 1, "name": "a"}]

    def test_damage_anywhere_is_told(self, tmp_path: Path) -> None:
        """Cut at every byte: nothing is lost in silence, but whole blocks at the end, which the format cannot tell."""
        records = [{"id": i, "name": f"name {i}"} for i in range(20)]
        path = tmp_path / "a.avro"
        with path.open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(json.loads(SIMPLE)), records, sync_interval=50)
        content = path.read_bytes()
        whole = 0
        for size in range(len(content)):
            path.write_bytes(content[:size])
            try:
                found = self.read(path)
                whole += 1
                assert content[:size].endswith(content[-16:])  # between two blocks
                assert found == records[: len(found)]
            except SerializationError as error:
                assert str(path) in str(error)
        assert 1 <= whole <= 20
        flipped = bytearray(content)
        flipped[-3] ^= 255
        path.write_bytes(flipped)
        with pytest.raises(SerializationError, match="does not end with the file's mark"):
            self.read(path)
        path.write_bytes(b"no avro at all")
        with pytest.raises(SerializationError, match="does not begin as an Avro file does"):
            self.read(path)

    def test_a_replaced_file_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "a.avro"
        self.write(path, [(1, "a")])
        source = FileSource.for_bulk_file_format(AvroReaders.for_generic_record(), str(path)).build()
        (split,) = source.discover_splits(1, frozenset())
        self.write(path, [(1, "another one")])
        with pytest.raises(CheckpointError, match="was replaced while the job reads it"):
            source.open_reader(split, None)

    def test_a_value_that_does_not_fit(self, tmp_path: Path) -> None:
        with pytest.raises(SerializationError, match="field id: found str 'x'; expected long"):
            self.write(tmp_path / "a.avro", [("x", "a")])

    def test_all_types(self, tmp_path: Path) -> None:
        moment = datetime(2024, 2, 29, 12, 30, 15, 123456)
        row = Row(1, None, 0.5, 0.1, True, "å", b"\0", b"abcd", "RED", Decimal("12.3400"), date(2024, 2, 29),
                  time(1, 2, 3, 4), moment, None, [Row(x=1, when=moment)], {"k": None})  # fmt: skip
        row.set_field_names(NAMES)
        self.write(tmp_path / "a.avro", [row], schema=EVERYTHING)
        assert self.read(tmp_path / "a.avro", rows=True) == [row]
