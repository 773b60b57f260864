"""JSON and CSV of SQL tables: rounding, fields that do not fit, and values that they have no form for, as in Flink."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import HeadwaterError, SerializationError, SqlError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.catalog.objects import CatalogTable, Identifier, ResolvedSchema, TableColumn
from headwater.table.stream.connectors.contract import Field
from headwater.table.stream.connectors.formats import format_of
from headwater.table.stream.connectors.registry import context_of
from headwater.table.types.type_text import parse_type
from headwater.testing import in_process


def form(name: str, columns: dict[str, str], **options: str) -> Any:
    fields = tuple(Field(each, parse_type(kind)) for each, kind in columns.items())
    schema = ResolvedSchema(tuple(TableColumn(each.name, each.type) for each in fields))
    given = {"connector": "x", "format": name, **{f"{name}.{k.replace('_', '-')}": v for k, v in options.items()}}
    context = context_of(Identifier("c", "d", "t"), CatalogTable(schema, given), fields, "UTC")
    return format_of(context, "format", fields, lines=True)


def read(name: str, columns: dict[str, str], line: str, **options: str) -> Any:
    row = form(name, columns, **options).reader().deserialize(line.encode())
    return None if row is None else tuple(row)


@pytest.mark.parametrize(
    ("name", "line"), [("json", '{"d":12.345}'), ("json", '{"d":"12.345"}'), ("csv", "12.345"), ("csv", " 12.345 ")]
)
def test_decimals_are_rounded_half_up(name: str, line: str) -> None:
    assert read(name, {"d": "DECIMAL(10, 2)"}, line) == (Decimal("12.35"),)


def test_a_number_of_json_keeps_all_its_digits() -> None:
    line = '{"d":12345678901234567890.123456789012345675}'
    assert read("json", {"d": "DECIMAL(38, 17)"}, line) == (Decimal("12345678901234567890.12345678901234568"),)


FIELDS = {
    "id": "INT",
    "n": "INT",
    "ts": "TIMESTAMP(3)",
    "l": "TIMESTAMP_LTZ(3)",
    "d": "DECIMAL(5, 2)",
    "dt": "DATE",
    "t": "TIME(0)",
    "b": "BYTES",
}
BAD = {"n": "x", "ts": "garbage", "l": "garbage", "d": 12345.6, "dt": "2020-02-31", "t": "25:00:00", "b": "*"}


@pytest.mark.parametrize("field", BAD)
@pytest.mark.parametrize("name", ["json", "csv"])
def test_a_field_that_does_not_fit_is_null_or_an_error_that_names_it(name: str, field: str) -> None:
    columns = {"id": "INT", field: FIELDS[field]}
    value = f'"{BAD[field]}"' if isinstance(BAD[field], str) else BAD[field]
    line = f'{{"id":1,"{field}":{value}}}' if name == "json" else f"1,{BAD[field]}"
    assert read(name, columns, line, ignore_parse_errors="true") == (1, None)
    with pytest.raises(SerializationError) as error:
        read(name, columns, line)
    assert f"field '{field}' is {parse_type(FIELDS[field]).sql()}, found " in str(error.value)
    assert f"set '{name}.ignore-parse-errors' = 'true'" in str(error.value)


def test_fields_inside_of_others_are_null_one_by_one() -> None:
    columns = {"r": "ROW<a INT, b ROW<ts TIMESTAMP(3), s STRING>>", "a": "ARRAY<INT>", "m": "MAP<STRING, DATE>"}
    line = '{"r":{"a":"x","b":{"ts":"y","s":"z"}},"a":[1,"x",3],"m":{"k":"2020-01-01","l":"no"}}'
    r, a, m = read("json", columns, line, ignore_parse_errors="true")
    assert (r[0], tuple(r[1]), a, m) == (None, (None, "z"), [1, None, 3], {"k": datetime.date(2020, 1, 1), "l": None})
    with pytest.raises(SerializationError, match=r"field 'r\.a' is INT, found 'x'"):
        read("json", columns, line)


@pytest.mark.parametrize(
    ("name", "line", "lenient", "error"),
    [
        ("json", '{"id":1', None, "truncated"),
        ("json", "[1]", None, "expected an object"),
        ("csv", '1,"a', None, "unexpected end"),
        ("csv", "1,2,3", None, "3 fields where 2 were expected"),
        ("csv", "1", (1, None), "1 fields where 2 were expected"),
    ],
)
def test_a_line_that_is_no_row_is_left_out_or_an_error(
    name: str, line: str, lenient: tuple[Any, ...] | None, error: str
) -> None:
    columns = {"id": "INT", "s": "STRING"}
    assert read(name, columns, line, ignore_parse_errors="true") == lenient
    with pytest.raises(SerializationError, match=error):
        read(name, columns, line)


@pytest.mark.parametrize(
    ("line", "options", "row"),
    [
        (",", {}, ("", None)),
        ("NULL,NULL", {"null_literal": "NULL"}, (None, None)),
        (",1", {"null_literal": "NULL"}, ("", 1)),
        (",", {"null_literal": ""}, (None, None)),
    ],
)
def test_what_is_null_in_csv(line: str, options: dict[str, str], row: tuple[Any, ...]) -> None:
    assert read("csv", {"s": "STRING", "n": "INT"}, line, **options) == row


def test_fields_cannot_be_both_required_and_ignored() -> None:
    with pytest.raises(SqlError, match=r"fail-on-missing-field.*are both true"):
        form("json", {"id": "INT"}, ignore_parse_errors="true", fail_on_missing_field="true").reader()


@pytest.mark.parametrize("name", ["json", "csv", "debezium-json"])
def test_what_is_written_is_read_back(name: str) -> None:
    from headwater.common.types import Row

    columns = {"d": "DECIMAL(10, 2)", "f": "FLOAT", "x": "DOUBLE", "y": "DOUBLE", "b": "BYTES"}
    values = (Decimal("12.50"), 1.100000023841858, float("-inf"), 0.1, b"\x00hello")
    row = Row(*values)
    row.set_field_names(list(columns))
    found = form(name, columns)
    line = found.writer().serialize(row)
    expected = {
        "json": b'{"d":12.50,"f":1.1,"x":"-Infinity","y":0.1,"b":"AGhlbGxv"}',
        "csv": b"12.50,1.1,-Infinity,0.1,AGhlbGxv\n",
        "debezium-json": b'{"before":null,"after":{"d":12.50,"f":1.1,"x":"-Infinity","y":0.1,"b":"AGhlbGxv"},"op":"c"}',
    }
    assert line == expected[name]
    back = tuple(found.reader().deserialize(line.rstrip(b"\n")))
    assert back == (*values[:1], 1.1, *values[2:])


@pytest.mark.parametrize("name", ["json", "csv"])
def test_an_error_names_file_and_line(tmp_path: Path, name: str) -> None:
    lines = {"json": '{"ts":"2020-01-01 00:00:00"}\n{"ts":"garbage"}\n', "csv": "2020-01-01 00:00:00\ngarbage\n"}
    (tmp_path / "a").write_text(lines[name])
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql(
        f"CREATE TABLE t (ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'format' = '{name}',"
        f" 'path' = '{tmp_path}')"
    )
    with in_process(), pytest.raises(HeadwaterError) as error:
        tables.execute_sql("SELECT ts FROM t").wait()
    assert f"{tmp_path}/a" in str(error.value) and "line 2" in str(error.value)
    assert "field 'ts' is TIMESTAMP(3), found 'garbage'" in str(error.value)
