"""Records per second and core of the formats, in one process: the same five fields, as messages and in files."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from benchmarks.workload import arguments, report
from headwater.common import Types
from headwater.common.connector import drain
from headwater.datastream.connectors.file_system import BulkFormat, FileSource
from headwater.datastream.formats.avro import (
    AvroDeserializationSchema,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
)
from headwater.datastream.formats.json import JsonRowDeserializationSchema
from headwater.datastream.formats.parquet import ParquetColumnarRowInputFormat

TYPE = Types.ROW_NAMED(
    ["id", "name", "amount", "note", "ok"],
    [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.STRING(), Types.BOOLEAN()],
)
SCHEMA = (
    '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"},'
    '{"name":"amount","type":"double"},{"name":"note","type":["null","string"]},{"name":"ok","type":"boolean"}]}'
)
TURNS = 5


def record(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"user {number % 1000}", "amount": number / 7, "note": None, "ok": number % 2 == 0}


def per_message(decode: Callable[[bytes], Any], messages: list[bytes]) -> Callable[[], int]:
    def run() -> int:
        for message in messages:
            decode(message)
        return len(messages)

    return run


def per_file(form: Any, path: str) -> Callable[[], int]:
    def run() -> int:
        source = FileSource.for_bulk_file_format(form, path).build()
        (split,) = source.discover_splits(1, frozenset())
        reader = source.open_reader(split, None)
        count = 0
        for records in drain(reader, 2048):
            first = records[0]
            count += sum(each.num_rows for each in records) if isinstance(first, pyarrow.RecordBatch) else len(records)
        reader.close()
        return count

    return run


def main() -> None:
    count = arguments(records=100_000).records
    records = [record(number) for number in range(count)]
    lines = [json.dumps(each).encode() for each in records]
    avro = list(map(AvroRowSerializationSchema(avro_schema_string=SCHEMA).serialize, records))
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "a.parquet"))
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
        runs = {
            "json_loads": per_message(json.loads, lines),
            "json_rows": per_message(JsonRowDeserializationSchema.builder().type_info(TYPE).build().deserialize, lines),
            "avro_dicts": per_message(AvroDeserializationSchema(AvroSchema(SCHEMA)).deserialize, avro),
            "avro_rows": per_message(AvroRowDeserializationSchema(avro_schema_string=SCHEMA).deserialize, avro),
            "parquet_dicts": per_file(BulkFormat.parquet_format(), path),
            "parquet_rows": per_file(ParquetColumnarRowInputFormat(TYPE), path),
            "parquet_batches": per_file(BulkFormat.parquet_format(batches=True), path),
        }
        rates: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(TURNS):  # in turns: a shared machine that is slow for a while is slow for all
            for name, run in runs.items():
                started = time.process_time()
                rates[name].append(run() / (time.process_time() - started))
    bare = rates["json_loads"]
    facts = {name: statistics.median(found) for name, found in rates.items()}
    for name in ("json_rows", "avro_dicts", "avro_rows"):
        turns = zip(rates[name], bare, strict=True)
        facts[f"{name}_ratio"] = statistics.median(rate / reference for rate, reference in turns)
    report(**facts)


if __name__ == "__main__":
    main()
