"""What every source must keep (`headwater.testing.source_contract`), for those of headwater."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from headwater.common import Row, Types
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import BulkFormat, FileSource, StreamFormat
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.formats.avro import AvroReaders
from headwater.datastream.formats.json import JsonRowDeserializationSchema
from headwater.testing.source_contract import SOURCE_CHECKS, SourceCase


def text_lines() -> list[str]:
    return [
        "plain",
        "",
        "räksmörgås",
        "trailing space ",
        "tab\there",
        *(f"line {i}" for i in range(40)),
        "no line feed",
    ]


def text_case(tmp_path: Path, name: str, compress: Callable[[bytes], bytes]) -> SourceCase:
    path = tmp_path / name
    path.write_bytes(compress("\n".join(text_lines()).encode()))
    make = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build
    return SourceCase(make, text_lines(), 1)


def collection(tmp_path: Path) -> SourceCase:
    items: list[Any] = [*range(40), "text", None, ("a", 1), {"k": [1]}]
    return SourceCase(lambda: CollectionSource(items), items, 1)


def empty_collection(tmp_path: Path) -> SourceCase:
    return SourceCase(lambda: CollectionSource([]), [], 1)


def number_sequence(tmp_path: Path) -> SourceCase:
    return SourceCase(lambda: NumberSequenceSource(-5, 37), list(range(-5, 38)), 2)


def one_number(tmp_path: Path) -> SourceCase:
    return SourceCase(lambda: NumberSequenceSource(3, 3), [3], 1)


def generator(tmp_path: Path) -> SourceCase:
    return SourceCase(lambda: DataGeneratorSource(lambda i: (i, i * i), 43), [(i, i * i) for i in range(43)], 2)


def text_files(tmp_path: Path) -> SourceCase:
    (tmp_path / "in/below").mkdir(parents=True)
    for number, name in enumerate(["a.txt", "b.txt", "below/c.txt", "empty.txt"]):
        lines = [f"{name} {i}\r\n" for i in range(10 * number)] if name != "empty.txt" else []
        (tmp_path / "in" / name).write_text("".join(lines), newline="")
    for name in [".hidden", "_SUCCESS", "x.inprogress", "y.tmp", "below/.part-0.txt"]:
        (tmp_path / "in" / name).write_text("must not be read\n")
    make = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / "in")).build
    expected = [f"b.txt {i}" for i in range(10)] + [f"below/c.txt {i}" for i in range(20)]
    return SourceCase(make, expected, 4)


def text_in_pieces(tmp_path: Path) -> SourceCase:
    """Some pieces are shorter than a line, and one begins where a line does."""
    lines = ["", "12345678", "a" * 30, "b", "", "ä" * 7, "c" * 9, "the last one has no line end"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    form = StreamFormat.text_line_format(split_bytes=10)
    return SourceCase(FileSource.for_record_stream_format(form, str(tmp_path)).build, lines)


def json_lines(tmp_path: Path) -> SourceCase:
    records = [{"i": i, "s": "å" * (i % 3), "n": None, "l": [1, 2.5]} for i in range(45)]
    text = "".join(json.dumps(record) + ("\n\n" if record["i"] == 7 else "\n") for record in records)
    (tmp_path / "a.jsonl").write_text("\ufeff" + text)
    source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(tmp_path / "*.jsonl"))
    return SourceCase(source.build, records, 1)


def csv_file(tmp_path: Path) -> SourceCase:
    records = [{"id": str(i), "text": f'say "{i}",\nthen\r\ngo {i}' if i % 3 == 0 else f"t{i}"} for i in range(45)]
    with open(tmp_path / "a.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"])
        writer.writeheader()
        writer.writerows(records)
    source = FileSource.for_record_stream_format(StreamFormat.csv_format(), str(tmp_path / "a.csv"))
    return SourceCase(source.build, records, 1)


def csv_gz_without_header(tmp_path: Path) -> SourceCase:
    rows = [(str(i), "two\nlines") for i in range(45)]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("".join(f'{a};"{b}"\n' for a, b in rows).encode()))
    form = StreamFormat.csv_format(header=False, delimiter=";")
    return SourceCase(FileSource.for_record_stream_format(form, str(tmp_path / "a.csv.gz")).build, rows, 1)


def parquet(tmp_path: Path) -> SourceCase:
    import pyarrow
    import pyarrow.parquet

    records = [{"i": i, "s": f"text {i}" if i % 4 else None, "l": [i]} for i in range(45)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet", row_group_size=10)
    make = FileSource.for_bulk_file_format(BulkFormat.parquet_format(), str(tmp_path / "a.parquet")).build
    return SourceCase(make, records, 1)


def orc(tmp_path: Path) -> SourceCase:
    import pyarrow
    import pyarrow.orc

    records = [{"i": i, "s": f"text {i}" if i % 4 else None, "l": [i]} for i in range(45)]
    pyarrow.orc.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.orc")
    make = FileSource.for_bulk_file_format(BulkFormat.orc_format(), str(tmp_path / "a.orc")).build
    return SourceCase(make, records, 1)


def parquet_in_pieces(tmp_path: Path) -> SourceCase:
    import pyarrow
    import pyarrow.parquet

    records = [{"i": i} for i in range(45)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet", row_group_size=10)
    form = BulkFormat.parquet_format(split_bytes=1)
    return SourceCase(FileSource.for_bulk_file_format(form, str(tmp_path / "a.parquet")).build, records, 5)


def avro(tmp_path: Path) -> SourceCase:
    import fastavro

    schema = {"type": "record", "name": "R", "fields": [{"name": "i", "type": "int"}, {"name": "s", "type": "string"}]}
    records = [{"i": i, "s": f"text {i}"} for i in range(45)]
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, records, sync_interval=40)
    form = AvroReaders.for_generic_record()
    return SourceCase(FileSource.for_bulk_file_format(form, str(tmp_path / "a.avro")).build, records, 1)


def json_rows(tmp_path: Path) -> SourceCase:
    row_type = Types.ROW_NAMED(["i", "s"], [Types.INT(), Types.STRING()])
    schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    (tmp_path / "a").write_text("".join(json.dumps({"i": i, "s": f"å{i}"}) + "\n" for i in range(45)))
    form = StreamFormat.schema_lines_format(schema)
    source = FileSource.for_record_stream_format(form, str(tmp_path / "a"))
    return SourceCase(source.build, [Row(i=i, s=f"å{i}") for i in range(45)], 1)


CASES: dict[str, Callable[[Path], SourceCase]] = {
    "collection": collection,
    "empty collection": empty_collection,
    "number sequence": number_sequence,
    "one number": one_number,
    "generator": generator,
    "text in pieces": text_in_pieces,
    "text": lambda path: text_case(path, "a.txt", lambda content: content),
    "text.gz": lambda path: text_case(path, "a.txt.gz", gzip.compress),
    "text.bz2": lambda path: text_case(path, "a.txt.bz2", bz2.compress),
    "text.zst, two frames": lambda path: text_case(
        path,
        "a.txt.zst",
        lambda text: zstandard.compress(text[:20]) + zstandard.compress(text[20:]),
    ),
    "text files": text_files,
    "json lines": json_lines,
    "csv": csv_file,
    "csv.gz without header": csv_gz_without_header,
    "parquet": parquet,
    "parquet in pieces": parquet_in_pieces,
    "orc": orc,
    "avro": avro,
    "json rows": json_rows,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> SourceCase:
    return CASES[request.param](tmp_path)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SourceCase], None], case: SourceCase) -> None:
    check(case)
