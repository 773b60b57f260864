"""What every source must keep, whichever it is.

A reader may be thrown away after any batch and opened again at its position, in another process, by a source that was
pickled on the way: together they read every record once.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import zstandard

from headwater.common import Row, Types
from headwater.common.connector import Source, Split
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import BulkFormat, FileSource, StreamFormat
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.formats.avro import AvroReaders
from headwater.datastream.formats.json import JsonRowDeserializationSchema


@dataclass
class Case:
    make: Callable[[], Source]
    records: list[Any]
    """All of them, in order for each split."""
    splits: int
    """How many there are at parallelism 2."""


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


def text_case(tmp_path: Path, name: str, compress: Callable[[bytes], bytes]) -> Case:
    path = tmp_path / name
    path.write_bytes(compress("\n".join(text_lines()).encode()))
    make = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build
    return Case(make, text_lines(), 1)


def collection(tmp_path: Path) -> Case:
    items: list[Any] = [*range(40), "text", None, ("a", 1), {"k": [1]}]
    return Case(lambda: CollectionSource(items), items, 1)


def empty_collection(tmp_path: Path) -> Case:
    return Case(lambda: CollectionSource([]), [], 1)


def number_sequence(tmp_path: Path) -> Case:
    return Case(lambda: NumberSequenceSource(-5, 37), list(range(-5, 38)), 2)


def one_number(tmp_path: Path) -> Case:
    return Case(lambda: NumberSequenceSource(3, 3), [3], 1)


def generator(tmp_path: Path) -> Case:
    return Case(lambda: DataGeneratorSource(lambda i: (i, i * i), 43), [(i, i * i) for i in range(43)], 2)


def text_files(tmp_path: Path) -> Case:
    (tmp_path / "in/below").mkdir(parents=True)
    for number, name in enumerate(["a.txt", "b.txt", "below/c.txt", "empty.txt"]):
        lines = [f"{name} {i}\r\n" for i in range(10 * number)] if name != "empty.txt" else []
        (tmp_path / "in" / name).write_text("".join(lines), newline="")
    for name in [".hidden", "_SUCCESS", "x.inprogress", "y.tmp", "below/.part-0.txt"]:
        (tmp_path / "in" / name).write_text("must not be read\n")
    make = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / "in")).build
    expected = [f"b.txt {i}" for i in range(10)] + [f"below/c.txt {i}" for i in range(20)]
    return Case(make, expected, 4)


def json_lines(tmp_path: Path) -> Case:
    records = [{"i": i, "s": "å" * (i % 3), "n": None, "l": [1, 2.5]} for i in range(45)]
    text = "".join(json.dumps(record) + ("\n\n" if record["i"] == 7 else "\n") for record in records)
    (tmp_path / "a.jsonl").write_text("\ufeff" + text)
    source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(tmp_path / "*.jsonl"))
    return Case(source.build, records, 1)


def csv_file(tmp_path: Path) -> Case:
    records = [{"id": str(i), "text": f'say "{i}",\nthen\r\ngo {i}' if i % 3 == 0 else f"t{i}"} for i in range(45)]
    with open(tmp_path / "a.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"])
        writer.writeheader()
        writer.writerows(records)
    source = FileSource.for_record_stream_format(StreamFormat.csv_format(), str(tmp_path / "a.csv"))
    return Case(source.build, records, 1)


def csv_gz_without_header(tmp_path: Path) -> Case:
    rows = [(str(i), "two\nlines") for i in range(45)]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("".join(f'{a};"{b}"\n' for a, b in rows).encode()))
    form = StreamFormat.csv_format(header=False, delimiter=";")
    return Case(FileSource.for_record_stream_format(form, str(tmp_path / "a.csv.gz")).build, rows, 1)


def parquet(tmp_path: Path) -> Case:
    import pyarrow
    import pyarrow.parquet

    records = [{"i": i, "s": f"text {i}" if i % 4 else None, "l": [i]} for i in range(45)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet", row_group_size=10)
    make = FileSource.for_bulk_file_format(BulkFormat.parquet_format(), str(tmp_path / "a.parquet")).build
    return Case(make, records, 1)


def orc(tmp_path: Path) -> Case:
    import pyarrow
    import pyarrow.orc

    records = [{"i": i, "s": f"text {i}" if i % 4 else None, "l": [i]} for i in range(45)]
    pyarrow.orc.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.orc")
    make = FileSource.for_bulk_file_format(BulkFormat.orc_format(), str(tmp_path / "a.orc")).build
    return Case(make, records, 1)


def parquet_in_pieces(tmp_path: Path) -> Case:
    import pyarrow
    import pyarrow.parquet

    records = [{"i": i} for i in range(45)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet", row_group_size=10)
    form = BulkFormat.parquet_format(split_bytes=1)
    return Case(FileSource.for_bulk_file_format(form, str(tmp_path / "a.parquet")).build, records, 5)


def avro(tmp_path: Path) -> Case:
    import fastavro

    schema = {"type": "record", "name": "R", "fields": [{"name": "i", "type": "int"}, {"name": "s", "type": "string"}]}
    records = [{"i": i, "s": f"text {i}"} for i in range(45)]
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, records, sync_interval=40)
    form = AvroReaders.for_generic_record()
    return Case(FileSource.for_bulk_file_format(form, str(tmp_path / "a.avro")).build, records, 1)


def json_rows(tmp_path: Path) -> Case:
    row_type = Types.ROW_NAMED(["i", "s"], [Types.INT(), Types.STRING()])
    schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    (tmp_path / "a").write_text("".join(json.dumps({"i": i, "s": f"å{i}"}) + "\n" for i in range(45)))
    form = StreamFormat.schema_lines_format(schema)
    source = FileSource.for_record_stream_format(form, str(tmp_path / "a"))
    return Case(source.build, [Row(i=i, s=f"å{i}") for i in range(45)], 1)


CASES: dict[str, Callable[[Path], Case]] = {
    "collection": collection,
    "empty collection": empty_collection,
    "number sequence": number_sequence,
    "one number": one_number,
    "generator": generator,
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
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return CASES[request.param](tmp_path)


def countable(records: list[Any]) -> Counter[str]:
    return Counter(map(repr, records))


def read_in_task(source: Source, split: Split, position: Any, budget: int, batch: int) -> tuple[list[Any], Any, bool]:
    """What one epoch does with one split: everything crosses a pickle on its way to the task, and back."""
    planned = source.plan_read(split, position, budget) if hasattr(source, "plan_read") else split
    there, split_there, position_there = cloudpickle.loads(cloudpickle.dumps((source, planned, position)))
    reader = there.open_reader(split_there, position_there)
    records: list[Any] = []
    ended = False
    try:
        while len(records) < budget:
            got = reader.read_batch(min(batch, budget - len(records)))
            if got is None:
                ended = True
            if not got:
                break
            assert len(got) <= min(batch, budget - len(records))
            records += got
        return records, cloudpickle.loads(cloudpickle.dumps(reader.position())), ended
    finally:
        reader.close()


def read_split(source: Source, split: Split, budget: int, batch: int) -> list[Any]:
    records: list[Any] = []
    position = None
    for _ in range(10_000):
        got, position, ended = read_in_task(source, split, position, budget, batch)
        records += got
        if ended:
            return records
    raise AssertionError("the split never ends")


@pytest.mark.parametrize(("budget", "batch"), [(1, 1), (7, 3), (10, 10), (100_000, 4)])
def test_epochs_of_any_size_read_every_record_once(case: Case, budget: int, batch: int) -> None:
    source = case.make()
    splits = source.discover_splits(2, frozenset())
    assert len(splits) == case.splits
    read = [record for split in splits for record in read_split(source, split, budget, batch)]
    assert countable(read) == countable(case.records)
    if len(splits) == 1:
        assert read == case.records


def test_resuming_at_each_position_gives_exactly_the_rest(case: Case) -> None:
    source = case.make()
    for split in source.discover_splits(2, frozenset()):
        everything = read_split(source, split, 100_000, 1000)
        for cut in range(len(everything) + 1):
            head, position, _ = read_in_task(source, split, None, cut, 5)
            assert head == everything[:cut]
            restarted = case.make()  # the program was started again
            rest, _, ended = read_in_task(restarted, split, position, 100_000, 1000)
            assert rest == everything[cut:]
            assert ended


def test_an_epoch_that_is_repeated_reads_the_same(case: Case) -> None:
    source = case.make()
    for split in source.discover_splits(2, frozenset()):
        _, position, _ = read_in_task(source, split, None, 4, 4)
        first = read_in_task(source, split, position, 5, 2)
        again = read_in_task(source, split, position, 5, 5)
        assert first[:2] == again[:2]


def test_a_split_is_offered_once(case: Case) -> None:
    source = case.make()
    ids = [split.split_id for split in source.discover_splits(2, frozenset())]
    assert len(set(ids)) == len(ids)
    assert case.make().discover_splits(5, frozenset(ids)) == []


def test_split_ids_are_the_same_when_the_program_is_started_again(case: Case) -> None:
    first, second = (case.make().discover_splits(2, frozenset()) for _ in range(2))
    assert [split.split_id for split in first] == [split.split_id for split in second]


def test_with_parallelism_one_the_order_is_that_of_the_input(case: Case) -> None:
    source = case.make()
    read = [record for split in source.discover_splits(1, frozenset()) for record in read_split(source, split, 9, 4)]
    assert read == case.records


def test_bounded_sources_say_so(case: Case) -> None:
    assert case.make().bounded
