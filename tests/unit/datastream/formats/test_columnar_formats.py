"""Parquet and ORC: round trips of rows, splits by group, positions, other versions of a schema, damage."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.common import Row, Types
from headwater.common.configuration import Configuration
from headwater.common.connector import Source, Split, drain
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.connectors.bulk_writers import BulkWriterFactory, BulkWriters
from headwater.datastream.connectors.file_formats import FileFormat
from headwater.datastream.connectors.file_system import BulkFormat, FileSource
from headwater.datastream.formats.avro import AvroSchema
from headwater.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from headwater.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)

INNER = Types.ROW_NAMED(["x", "tags"], [Types.INT(), Types.LIST(Types.STRING())])
NAMES = ["i", "l", "d", "b", "s", "raw", "money", "day", "moment", "inner", "inners", "named"]
TYPE = Types.ROW_NAMED(
    NAMES,
    [
        Types.SHORT(), Types.LONG(), Types.DOUBLE(), Types.BOOLEAN(), Types.STRING(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIMESTAMP(), INNER,
        Types.LIST(INNER), Types.MAP(Types.STRING(), INNER),
    ],
)  # fmt: skip

inners = st.builds(
    lambda x, tags: Row(x=x, tags=tags),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.lists(st.text(max_size=5), max_size=3),
)
rows = st.builds(
    lambda *values: Row(**dict(zip(NAMES, values, strict=True))),
    *[
        st.none() | each
        for each in (
            st.integers(-(2**15), 2**15 - 1),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False),
            st.booleans(),
            st.text(),
            st.binary(),
            st.decimals(-(10**19), 10**19, places=6),
            st.dates(date(1900, 1, 1), date(2200, 1, 1)),
            st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
            inners,
            st.lists(st.none() | inners, max_size=3),
            st.dictionaries(st.text(max_size=5), st.none() | inners, max_size=3),
        )
    ],
)


def write(path: Path, factory: BulkWriterFactory, records: list[Any]) -> None:
    factory = cloudpickle.loads(cloudpickle.dumps(factory))
    with path.open("wb") as file:
        writer = factory.create(file)
        writer.add_batch(records)
        writer.finish()


def source_of(form: FileFormat, path: Path) -> Source:
    return cloudpickle.loads(cloudpickle.dumps(FileSource.for_bulk_file_format(form, str(path)).build()))


def read_split(source: Source, split: Split, batch: int = 1000) -> list[Any]:
    reader = source.open_reader(split, None)
    found = [record for records in drain(reader, batch) for record in records]
    reader.close()
    return found


def read(form: FileFormat, path: Path) -> list[Any]:
    source = source_of(form, path)
    return [record for split in source.discover_splits(1, frozenset()) for record in read_split(source, split)]


@given(st.lists(rows, min_size=1, max_size=5))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_rows_come_back_as_they_were(tmp_path: Path, kind: str, records: list[Row]) -> None:
    factory = ParquetBulkWriters.for_row_type(TYPE) if kind == "parquet" else OrcBulkWriters.for_row_type(TYPE)
    form = ParquetColumnarRowInputFormat(TYPE) if kind == "parquet" else OrcColumnarRowInputFormat(TYPE)
    write(tmp_path / "a", factory, records)
    assert read(form, tmp_path / "a") == records


@pytest.mark.parametrize(
    ("factory", "form"),
    [(BulkWriters.parquet(), BulkFormat.parquet_format()), (BulkWriters.orc(), BulkFormat.orc_format())],
)
def test_dicts_without_a_schema(tmp_path: Path, factory: BulkWriterFactory, form: BulkFormat) -> None:
    records = [{"i": i, "s": None if i % 3 else f"å{i}", "t": datetime(2024, 1, 1, 2, 3, 4, i)} for i in range(20)]
    write(tmp_path / "a", factory, records)
    assert read(form, tmp_path / "a") == records


@pytest.mark.parametrize(
    ("type_info", "value", "said"),
    [
        (Types.INT(), 1.5, r"field 'v' is int32, found float 1\.5"),
        (Types.INT(), True, "field 'v' is int32, found bool True"),
        (Types.BYTE(), 128, "field 'v' is int8, found int 128"),
        (Types.STRING(), 5, "field 'v' is string, found int 5"),
        (Types.BIG_DEC(), Decimal("1e30"), "field 'v' is decimal128"),
        (Types.LIST(Types.INT()), [1, 2.5], "field 'v' is list"),
        (INNER, {"y": 1}, "it has the field 'y'"),
        (INNER, (1, 2, 3), "it has 3 fields"),
    ],
)
def test_a_value_that_does_not_fit_is_named(tmp_path: Path, type_info: Any, value: Any, said: str) -> None:
    row_type = Types.ROW_NAMED(["id", "v"], [Types.INT(), type_info])
    for factory in (ParquetBulkWriters.for_row_type(row_type), OrcBulkWriters.for_row_type(row_type)):
        with pytest.raises(SerializationError, match=said):
            write(tmp_path / "a", factory, [(1, None), (2, value)])


def test_a_file_of_another_version(tmp_path: Path) -> None:
    table = pyarrow.table({"ID": pyarrow.array([1, 2], pyarrow.int32()), "gone": ["x", "y"]})
    pyarrow.parquet.write_table(table, tmp_path / "a")
    row_type = Types.ROW_NAMED(["id", "new"], [Types.LONG(), Types.STRING()])
    form = ParquetColumnarRowInputFormat(row_type, is_case_sensitive=False)
    assert read(form, tmp_path / "a") == [Row(id=1, new=None), Row(id=2, new=None)]
    assert read(ParquetColumnarRowInputFormat(row_type), tmp_path / "a") == [Row(id=None, new=None)] * 2
    narrow = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["gone"], [Types.INT()]))
    with pytest.raises(
        SerializationError, match=r"/a, Parquet group 0, after row 0 of it: column 'gone' is string, not int"
    ):
        read(narrow, tmp_path / "a")


def groups_file(path: Path, kind: str, groups: int = 6, rows_in_group: int = 10_000) -> list[dict[str, Any]]:
    records = [{"i": i, "s": f"text {i * 7919 % 10007}"} for i in range(groups * rows_in_group)]
    table = pyarrow.Table.from_pylist(records)
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=rows_in_group, compression="none")
    else:
        with pyarrow.orc.ORCWriter(path, stripe_size=100_000, compression="uncompressed") as writer:
            for start in range(0, len(records), 1000):
                writer.write(table.slice(start, 1000))
    return records


@pytest.mark.parametrize("kind", ["parquet", "orc"])
class TestSplits:
    def form(self, kind: str, **settings: Any) -> BulkFormat:
        return BulkFormat.parquet_format(**settings) if kind == "parquet" else BulkFormat.orc_format(**settings)

    def test_a_large_file_is_read_in_pieces(self, tmp_path: Path, kind: str) -> None:
        records = groups_file(tmp_path / "a", kind)
        source = source_of(self.form(kind, split_bytes=200_000), tmp_path / "a")
        splits = source.discover_splits(4, frozenset())
        assert len(splits) > 2
        assert len({split.split_id for split in splits}) == len(splits)
        assert [record for split in splits for record in read_split(source, split)] == records
        (whole,) = source_of(self.form(kind), tmp_path / "a").discover_splits(4, frozenset())
        assert whole.split_id == str(tmp_path / "a")

    def test_its_pieces_are_known_again(self, tmp_path: Path, kind: str) -> None:
        groups_file(tmp_path / "a", kind)
        form = self.form(kind, split_bytes=200_000)
        source = FileSource.for_bulk_file_format(form, str(tmp_path)).monitor_continuously(1000).build()
        known = frozenset(split.split_id for split in source.discover_splits(4, frozenset()))
        assert source.discover_splits(4, known) == []
        groups_file(tmp_path / "b", kind, groups=1)
        assert [split.payload.path for split in source.discover_splits(4, known)] == [str(tmp_path / "b")]
        # A checkpoint from before files were cut knows the file by its path.
        assert source.discover_splits(4, frozenset({str(tmp_path / "a"), str(tmp_path / "b")})) == []

    def test_reading_goes_on_at_every_position(self, tmp_path: Path, kind: str) -> None:
        records = groups_file(tmp_path / "a", kind, groups=3)
        source = source_of(self.form(kind, split_bytes=200_000), tmp_path / "a")
        found: list[Any] = []
        for split in source.discover_splits(4, frozenset()):
            position = None
            while True:
                reader = source.open_reader(split, position)
                batch = reader.read_batch(3_333)
                position = reader.position()
                reader.close()
                if batch is None:
                    break
                found += batch
        assert found == records

    def test_batches(self, tmp_path: Path, kind: str) -> None:
        records = groups_file(tmp_path / "a", kind, groups=2)
        source = source_of(self.form(kind, columns=["i"], batches=True), tmp_path / "a")
        (split,) = source.discover_splits(1, frozenset())
        position, found, sizes = None, [], []
        while True:
            reader = source.open_reader(split, position)
            batch = reader.read_batch(1)
            position = reader.position()
            reader.close()
            if batch is None:
                break
            assert isinstance(batch[0], pyarrow.RecordBatch)
            found += batch[0].column("i").to_pylist()
            sizes.append(batch[0].num_rows)
        assert found == [record["i"] for record in records]
        assert sizes == [
            each.num_rows for each in read_split(source, split)
        ]  # cut at the same rows, however it is read

    def test_damage(self, tmp_path: Path, kind: str) -> None:
        groups_file(tmp_path / "a", kind, groups=2)
        content = (tmp_path / "a").read_bytes()
        for size in (0, 3, 100, len(content) // 2, len(content) - 1):
            (tmp_path / "a").write_bytes(content[:size])
            with pytest.raises(SerializationError, match=f"file {tmp_path / 'a'} cannot be read as"):
                read(self.form(kind), tmp_path / "a")
            with pytest.raises(SerializationError, match=f"file {tmp_path / 'a'} cannot be read as"):
                read(self.form(kind, split_bytes=1), tmp_path / "a")

    def test_columns(self, tmp_path: Path, kind: str) -> None:
        groups_file(tmp_path / "a", kind, groups=1, rows_in_group=2)
        assert read(self.form(kind, columns=["s"]), tmp_path / "a") == [{"s": "text 0"}, {"s": "text 7919"}]
        with pytest.raises(SerializationError, match=r"no column 'q'; it has \['i', 's'\]"):
            read(self.form(kind, columns=["q"]), tmp_path / "a")
        with pytest.raises(ConfigurationError, match="expected names of columns"):
            self.form(kind, columns=[])


def test_a_flipped_bit_in_our_parquet_is_found(tmp_path: Path) -> None:
    row_type = Types.ROW_NAMED(["s"], [Types.STRING()])
    write(tmp_path / "a", ParquetBulkWriters.for_row_type(row_type), [("x" * 1000 + str(i),) for i in range(100)])
    content = bytearray((tmp_path / "a").read_bytes())
    content[60] ^= 1
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(SerializationError, match="Parquet group 0"):
        read(ParquetColumnarRowInputFormat(row_type), tmp_path / "a")


def test_positions_of_older_checkpoints_are_row_numbers(tmp_path: Path) -> None:
    records = groups_file(tmp_path / "a", "parquet", groups=3, rows_in_group=10)
    source = source_of(BulkFormat.parquet_format(), tmp_path / "a")
    (split,) = source.discover_splits(1, frozenset())
    for row in (0, 9, 10, 25, 30):
        reader = source.open_reader(split, row)
        assert [record for batch in drain(reader, 7) for record in batch] == records[row:]


def test_avro_records_in_parquet(tmp_path: Path) -> None:
    schema = AvroSchema(
        '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},'
        '{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-millis"}]},'
        '{"name":"tags","type":{"type":"array","items":"string"}},'
        '{"name":"in","type":{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}}]}'
    )
    records = [{"id": i, "at": None, "tags": ["a", "å"], "in": {"x": i}} for i in range(3)]
    write(tmp_path / "a", AvroParquetWriters.for_generic_record(schema), records)
    assert read(AvroParquetReaders.for_generic_record(schema), tmp_path / "a") == records
    for text, said in (
        ('{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}', "contains itself"),
        ('{"type":"record","name":"U","fields":[{"name":"u","type":["int","string"]}]}', "union of several types"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            AvroParquetWriters.for_generic_record(AvroSchema(text))


def test_types_that_have_no_column() -> None:
    for form in (ParquetBulkWriters.for_row_type, OrcBulkWriters.for_row_type):
        with pytest.raises(ConfigurationError, match=r"field 'x': .* has no form in a column"):
            form(Types.ROW_NAMED(["x"], [Types.PICKLED_BYTE_ARRAY()]))
        with pytest.raises(ConfigurationError, match="expected a type of rows"):
            form(Types.STRING())
    with pytest.raises(ConfigurationError, match="ORC has no times of day"):
        OrcBulkWriters.for_row_type(Types.ROW_NAMED(["t"], [Types.SQL_TIME()]))


def test_times_of_day_in_parquet(tmp_path: Path) -> None:
    row_type = Types.ROW_NAMED(["t"], [Types.SQL_TIME()])
    write(tmp_path / "a", ParquetBulkWriters.for_row_type(row_type), [(time(1, 2, 3, 4),)])
    assert read(ParquetColumnarRowInputFormat(row_type), tmp_path / "a") == [Row(t=time(1, 2, 3, 4))]


def test_orc_properties(tmp_path: Path) -> None:
    row_type = Types.ROW_NAMED(["t"], [Types.INT()])
    properties = Configuration()
    properties.set_string("orc.compress", "SNAPPY")
    write(tmp_path / "a", OrcBulkWriters.for_row_type(row_type, properties), [(1,)])
    assert pyarrow.orc.ORCFile(tmp_path / "a").compression == "SNAPPY"
    properties.set_string("orc.colour", "blue")
    with pytest.raises(ConfigurationError, match=r"unknown property 'orc\.colour'"):
        OrcBulkWriters.for_row_type(row_type, properties)


def test_row_types_of_the_table_api(tmp_path: Path) -> None:
    types = pytest.importorskip("headwater.table.types.data_types", reason="there is no Table API yet").DataTypes
    fields = {
        "i": (types.INT(), 1),
        "s": (types.STRING(), "å"),
        "d": (types.DECIMAL(10, 2), Decimal("1.25")),
        "t": (types.TIMESTAMP(3), datetime(2024, 1, 2, 3, 4, 5, 6000)),
        "a": (types.ARRAY(types.BIGINT()), [1, None]),
        "m": (types.MAP(types.STRING(), types.DOUBLE()), {"k": 0.5}),
        "r": (types.ROW([types.FIELD("x", types.DATE())]), Row(x=date(2024, 1, 2))),
        "b": (types.BYTES(), b"x"),
    }
    row_type = types.ROW([types.FIELD(name, of) for name, (of, _) in fields.items()])
    row = Row(**{name: value for name, (_, value) in fields.items()})
    write(tmp_path / "a", ParquetBulkWriters.for_row_type(row_type), [row])
    assert read(ParquetColumnarRowInputFormat(row_type), tmp_path / "a") == [row]
    write(tmp_path / "b", OrcBulkWriters.for_row_type(row_type), [row])
    assert read(OrcColumnarRowInputFormat(row_type), tmp_path / "b") == [row]
