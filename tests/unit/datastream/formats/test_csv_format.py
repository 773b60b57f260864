"""CSV with a schema: files of Rows, messages of Rows, and what bad input gets."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common import Row, Types
from headwater.common.connector import drain
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.connectors.file_system import FileSource
from headwater.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
    CsvSchemaBuilder,
)


def orders() -> CsvSchemaBuilder:
    return CsvSchema.builder().add_number_column("id").add_string_column("name").add_boolean_column("paid")


def read(schema: CsvSchema, text: str, path: Path, *, policy: str = "fail", batch: int = 2) -> list[Any]:
    """All records, by a reader that is thrown away after each batch."""
    path.write_text(text, newline="")
    builder = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(path))
    source = cloudpickle.loads(cloudpickle.dumps(builder.set_bad_record_policy(policy).build()))
    (split,) = source.discover_splits(1, frozenset())
    found: list[Any] = []
    position = None
    while True:
        reader = source.open_reader(split, position)
        records = next(iter(drain(reader, batch)), None)
        position = reader.position()
        reader.close()
        if not records:
            return found
        found += records


def written(schema: CsvSchema, *batches: list[Any]) -> str:
    file = io.BytesIO()
    writer = CsvBulkWriters.for_schema(schema).create(file)
    for batch in batches:
        writer.add_batch(batch)
    writer.finish()
    return file.getvalue().decode()


class TestReading:
    def test_records_are_rows_with_names_and_types(self, tmp_path: Path) -> None:
        (first, second) = read(orders().build(), '1,Ann,true\n-2,"Bo, jr.",FALSE\n', tmp_path / "a.csv")
        assert first == Row(id=1, name="Ann", paid=True)
        assert second.as_dict() == {"id": -2, "name": "Bo, jr.", "paid": False}

    def test_types_of_numbers_and_arrays(self, tmp_path: Path) -> None:
        schema = (
            CsvSchema.builder()
            .add_number_column("d", Types.DOUBLE())
            .add_number_column("e", Types.BIG_DEC())
            .add_array_column("l", "#", Types.INT())
            .set_column_separator("|")
            .build()
        )
        assert [list(row) for row in read(schema, "1.5|0.10|1#2\n2|3|\n", tmp_path / "a.csv")] == [
            [1.5, Decimal("0.10"), [1, 2]],
            [2.0, Decimal(3), []],
        ]

    def test_the_header_is_skipped_in_every_reader(self, tmp_path: Path) -> None:
        text = "a,b,c\n" + "".join(f"{i},n{i},true\n" for i in range(7))
        rows = read(orders().set_use_header().build(), text, tmp_path / "a.csv")
        assert [row.id for row in rows] == list(range(7))
        rows = read(orders().set_skip_first_data_row().build(), text, tmp_path / "b.csv")
        assert [row.id for row in rows] == list(range(7))

    def test_a_strict_header_must_be_that_of_the_schema(self, tmp_path: Path) -> None:
        schema = orders().set_use_header().set_strict_headers().build()
        assert len(read(schema, "id,name,paid\n1,a,true\n", tmp_path / "a.csv")) == 1
        with pytest.raises(SerializationError, match=r"has the columns \['id', 'paid', 'name'\]"):
            read(schema, "id,paid,name\n1,true,a\n", tmp_path / "b.csv")

    def test_comments_are_no_records_but_text_within_quotes_is_none(self, tmp_path: Path) -> None:
        schema = orders().set_allow_comments().set_use_header().build()
        text = '# made today\nid,name,paid\n#one\n1,"a\n# not a comment",true\n#\n2,#b,true\n# end\n'
        for batch in (1, 2, 100):
            rows = read(schema, text, tmp_path / "a.csv", batch=batch)
            assert [row.name for row in rows] == ["a\n# not a comment", "#b"]

    def test_none_is_what_the_schema_says(self, tmp_path: Path) -> None:
        (row,) = read(orders().set_null_value("-").build(), "-,-,-\n", tmp_path / "a.csv")
        assert list(row) == [None, None, None]
        (row,) = read(orders().build(), ",,\n", tmp_path / "b.csv")
        assert list(row) == [None, "", None]

    def test_without_quotes_and_with_escapes(self, tmp_path: Path) -> None:
        schema = orders().disable_quote_char().set_escape_char("\\").build()
        (row,) = read(schema, '1,"a\\,b,true\n', tmp_path / "a.csv")
        assert row.name == '"a,b'

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("x,a,true", "column 'id'"),
            ("1,a", "2 fields where 3 were expected"),
            ("1,a,maybe", "neither true nor false"),
            (f"{2**63},a,true", "does not fit into 64 bits"),
        ],
    )
    def test_a_bad_line_is_named_or_skipped(self, tmp_path: Path, line: str, problem: str) -> None:
        text = f"1,a,true\n{line}\n3,c,true\n"
        with pytest.raises(SerializationError, match="line 2") as caught:
            read(orders().build(), text, tmp_path / "a.csv")
        assert problem in str(caught.value)
        assert [row.id for row in read(orders().build(), text, tmp_path / "b.csv", policy="skip")] == [1, 3]


class TestWriting:
    def test_rows_dicts_and_tuples(self) -> None:
        rows = [Row(paid=True, name="Ann", id=1), {"id": 2, "name": "a,b", "paid": None}, (3, 'say "x"', False)]
        assert written(orders().build(), rows) == '1,Ann,true\n2,"a,b",\n3,"say ""x""",false\n'

    def test_header_once_per_file_and_line_end(self) -> None:
        schema = orders().set_use_header().set_line_separator("\r\n").set_null_value("nil").build()
        assert written(schema, [(1, None, True)], [(2, "b", True)]) == "id,name,paid\r\n1,nil,true\r\n2,b,true\r\n"

    @pytest.mark.parametrize("record", [(1, "a"), {"id": 1}, Row(id=1, other=2), 5])
    def test_a_record_that_does_not_fit_is_shown(self, record: Any) -> None:
        with pytest.raises(SerializationError, match="does not fit the CSV columns"):
            written(orders().build(), [record])

    def test_what_cannot_be_written_without_quotes_is_an_error(self) -> None:
        with pytest.raises(SerializationError, match="quote or an escape character"):
            written(orders().disable_quote_char().build(), [(1, "a,b", True)])


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"))


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXT, st.booleans(), st.lists(st.integers(0, 9)))))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    schema = orders().add_array_column("l", ";", Types.INT()).build()
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    assert [tuple(row) for row in read(schema, written(schema, records), path)] == records


class TestMessages:
    TYPE = Types.ROW_NAMED(["id", "tags"], [Types.INT(), Types.LIST(Types.STRING())])

    def test_there_and_back(self) -> None:
        writer = CsvRowSerializationSchema.Builder(self.TYPE).set_field_delimiter("|").set_line_delimiter("").build()
        reader = CsvRowDeserializationSchema.Builder(self.TYPE).set_field_delimiter("|").build()
        writer, reader = cloudpickle.loads(cloudpickle.dumps((writer, reader)))
        row = Row(id=1, tags=["a", "b|c"])
        assert writer.serialize(row) == b'1|"a;b|c"'
        assert reader.deserialize(writer.serialize(row)) == row

    def test_bad_messages(self) -> None:
        builder = CsvRowDeserializationSchema.Builder(self.TYPE)
        for message in (b"x,a", b"1", b"\xff", b'1,"a', b""):
            with pytest.raises(SerializationError, match="CSV: "):
                builder.build().deserialize(message)
        lenient = builder.set_ignore_parse_errors(True).build()
        assert lenient.deserialize(b"x,a") is None

    def test_the_type_must_be_a_row(self) -> None:
        with pytest.raises(ConfigurationError, match=r"Types\.ROW"):
            CsvRowSerializationSchema.Builder(Types.INT())


class TestSchema:
    def test_size_and_columns_of_another(self) -> None:
        one = orders().build()
        both = CsvSchema.builder().add_string_column("first").add_columns_from(one)
        assert (len(one), both.size(), both.clear_columns().size()) == (3, 4, 0)

    @pytest.mark.parametrize(
        ("build", "problem"),
        [
            (lambda: CsvSchema.builder().build(), "no columns"),
            (lambda: orders().add_string_column("id"), "there twice"),
            (lambda: orders().add_number_column("n", Types.STRING()), "not a type of numbers"),
            (lambda: orders().add_array_column("n", ";", Types.LIST(Types.INT())), "element of an array"),
            (lambda: orders().set_column_separator(",,"), "one character"),
            (lambda: orders().set_any_property_name("rest"), "fixed number"),
            (lambda: CsvReaderFormat.for_schema("a,b"), "CsvSchema.builder"),  # type: ignore[arg-type]
        ],
    )
    def test_settings_that_make_no_sense(self, build: Any, problem: str) -> None:
        with pytest.raises(ConfigurationError, match=problem):
            build()
