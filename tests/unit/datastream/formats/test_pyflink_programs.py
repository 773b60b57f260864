"""Programs as PyFlink's documentation shows them for these formats, on headwater, in process."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.compat import pyflink_imports

PROGRAM = '''
from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.avro import (
    AvroBulkWriters, AvroInputFormat, AvroSchema, GenericRecordAvroTypeInfo,
)
from pyflink.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters

schema = AvroSchema.parse_string("""{"type": "record", "name": "R", "fields": [
    {"name": "id", "type": "int"}, {"name": "tags", "type": {"type": "array", "items": "string"}}]}""")


def environment():
    from pyflink.common import Configuration
    configuration = Configuration()
    configuration.set_string("headwater.master", "in-process")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


for name, writers in (("avro", AvroBulkWriters), ("parquet", AvroParquetWriters)):
    env = environment()
    records = [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": []}]
    stream = env.from_collection(records, type_info=Types.PICKLED_BYTE_ARRAY())
    sink = FileSink.for_bulk_format(f"{directory}/{name}", writers.for_generic_record(schema)).build()
    stream.map(lambda e: e, output_type=GenericRecordAvroTypeInfo(schema)).sink_to(sink)
    env.execute()

env = environment()
stream = env.create_input(AvroInputFormat(f"{directory}/avro", schema))
found = list(stream.map(lambda e: e["id"]).execute_and_collect())
env = environment()
source = FileSource.for_record_stream_format(
    AvroParquetReaders.for_generic_record(schema), f"{directory}/parquet"
).build()
stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "parquet-source")
found += list(stream.map(lambda e: len(e["tags"])).execute_and_collect())
'''


def test_generic_records_in_avro_and_parquet_files(tmp_path: Path) -> None:
    pyflink_imports.install()
    names: dict[str, object] = {"directory": str(tmp_path), "__name__": "program"}
    try:
        exec(compile(PROGRAM, "program", "exec"), names)
    finally:
        pyflink_imports.uninstall()
    assert sorted(names["found"]) == [0, 1, 1, 2]  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"])
def test_names_that_pyflinks_package_passes_on(name: str) -> None:
    pyflink_imports.install()
    try:
        exec(f"from pyflink.common import {name}", {})
    finally:
        pyflink_imports.uninstall()
