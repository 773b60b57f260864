"""CSV in blocks gives what the same lines give one by one, whatever stands in them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors import record_readers
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.stream.connectors import csv_blocks
from headwater.table.stream.connectors.csv_blocks import CsvBlockReader
from headwater.table.stream.jobs import planner_of
from headwater.table.stream.planner import StreamPlanner

COLUMNS = {"i": "INT", "b": "BIGINT", "s": "STRING", "x": "DOUBLE", "f": "FLOAT", "o": "BOOLEAN", "t": "TIMESTAMP(3)"}
COLUMNS |= {"l": "TIMESTAMP_LTZ(3)", "d": "DATE", "m": "TIME"}
GOOD = {
    "i": ["1", "-7", "", "007", " 3", "+4", "1_000"],
    "b": ["9223372036854775807", "", "12"],
    "s": ["", "word", '"a,b"', '"say ""x"""', '""', "ö", "0xff", "a b", '"T"', "NULL"],
    "x": ["1.5", "1e3", "nan", "inf", "", "-0.0", "3"],
    "f": ["0.1", "16777217", ""],
    "o": ["true", "FALSE", "True", "tRuE", ""],
    "t": ["2020-01-02 03:04:05", "2020-01-02T03:04:05.1239Z", "", "2020-02-31 00:00:00", "1969-12-31 23:59:59.999999"],
    "l": ["2020-01-02 03:04:05Z", "2020-01-02T03:04:05.123Z", ""],
    "d": ["2020-01-02", "", "2020-1-2"],
    "m": ["03:04:05", "", "03:04:05.123"],
}
BAD = {
    "i": ["x", "2147483648", "0x1F", "1.0"],
    "s": ['a"b"', '"a"b', '"open', "a,b", 'a"b'],
    "o": ["1", "yes"],
    "t": ["yesterday"],
}


def lines_of(seed: int, bad: float) -> list[str]:
    random_ = random.Random(seed)
    lines = []
    for _ in range(40):
        fields = []
        for name in COLUMNS:
            # Mostly what Arrow reads by itself: a block with one odd text is read one by one.
            of = GOOD[name][: 3 if seed % 2 else None]
            fields.append(random_.choice(BAD[name] if name in BAD and random_.random() < bad else of))
        lines.append(",".join(fields) + random_.choice(["\n", "\r\n"]))
        if random_.random() < 0.05:
            lines.append("\n")
    return lines


def read(folder: Path, text: str, wanted: str, options: str = "", batch: int = 20) -> tuple[Any, list[Any]]:
    """(rows or the error, positions after each batch)"""
    (folder / "a.csv").write_text(text, newline="")
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    tables.execute_sql(
        f"CREATE TABLE f ({columns}) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}'{options})"
    )
    query = tables.sql_query(f"SELECT {wanted} FROM f")._plan
    plan = planner_of(tables.get_config()._configuration, [query]).plan(query)
    (source,) = (each.source for each in plan.walk() if each.source is not None)
    (split,) = source.source.discover_splits(1, frozenset())
    reader = source.source.open_reader(split, None)
    assert isinstance(reader, CsvBlockReader)
    source.converter.open()
    rows: list[Any] = []
    positions: list[Any] = []
    try:
        while records := reader.read_batch(batch):
            converted = source.converter.convert(records, None, 0).rows
            assert converted.num_rows == records.rows <= batch
            rows += [tuple(map(repr, each.values())) for each in converted.to_pylist()] or [()] * converted.num_rows
            positions.append(reader.position())
    except HeadwaterError as error:
        return str(error), positions
    finally:
        reader.close()
    return rows, positions


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("options", ["", ", 'csv.null-literal' = 'NULL'", ", 'csv.ignore-parse-errors' = 'true'"])
def test_a_block_is_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: str) -> None:
    text = "".join(lines_of(seed, 0.02 if seed % 3 == 0 else 0))
    in_blocks = read(tmp_path, text, "*", options)
    monkeypatch.setattr(csv_blocks, "_WORTH_A_BLOCK", 1_000)
    assert read(tmp_path, text, "*", options) == in_blocks


@pytest.mark.parametrize(
    "text", ['a"b', '"a"b', '"a"" b"', 'a""', "0x1F", '"x\ny"', "a\rb", '"a" "b"', '"a,""', '""""', '""","']
)
@pytest.mark.parametrize("around", ["{0}", "1,2,{0},3,4,true,,,,", '1,2,"{0}",3,4,true,,,,', "{0},2,s,3,4,true,,,,"])
def test_odd_text_in_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, around: str) -> None:
    plain = "1,2,word,3,4,true,,,,\n"
    whole = plain * 10 + around.format(text) + "\n" + plain * 10
    in_blocks = read(tmp_path, whole, "*", batch=30)
    monkeypatch.setattr(csv_blocks, "_WORTH_A_BLOCK", 1_000)
    assert read(tmp_path, whole, "*", batch=30) == in_blocks


def test_plain_lines_are_read_by_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("read one by one")

    text = '1,2,"a, ""b""",0.5,,true,2020-01-02 03:04:05.123,2020-01-02 03:04:05Z,2020-01-02,\r\n' * 50
    monkeypatch.setattr(record_readers.SchemaLineReader, "_decode", never)
    rows, positions = read(tmp_path, text, "*", batch=25)
    assert len(rows) == 50 and rows[0][2] == repr('a, "b"')
    assert positions[0] == (len(text) // 2, 25)
    assert read(tmp_path, text, "b, i", batch=25)[0] == [("1", "2")] * 50
    assert read(tmp_path, text, "COUNT(*)", batch=25)[0] == [("1",)] * 50


def test_types_that_arrow_cannot_read_stay_with_rows(tmp_path: Path) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql(
        "CREATE TABLE f (i INT, d DECIMAL(10, 2)) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{tmp_path}')"
    )
    (tmp_path / "a.csv").write_text("1,2.345\n" * 20)
    plan = StreamPlanner().plan(tables.sql_query("SELECT d FROM f")._plan)
    (source,) = (each.source for each in plan.walk() if each.source is not None)
    (split,) = source.source.discover_splits(1, frozenset())
    reader = source.source.open_reader(split, None)
    assert not isinstance(reader, CsvBlockReader)
    rows = source.converter.convert(reader.read_batch(20), None, 0).rows
    assert rows.column(0).type == pa.int32() and rows.column(1).type == pa.decimal128(10, 2)
