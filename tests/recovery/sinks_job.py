"""A job on Spark that numbers readings and writes them to several sinks: `python -m tests.recovery.sinks_job SETTINGS`.

Where they are, the environment variable `HEADWATER_TEST_SINKS` says: {"redis": URL, "nats": URL, "lakes": DIRECTORY}.
"""

from __future__ import annotations

import json
import os
import sys

from headwater.common import Encoder, SimpleStringSchema, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink
from headwater.datastream.connectors.nats import NatsSink
from headwater.datastream.connectors.redis import RedisSink
from tests.recovery.driver import run
from tests.recovery.job import CountReadings, reading
from tests.recovery.lake_driver import make_sink

PLACES = "HEADWATER_TEST_SINKS"


def build(env: StreamExecutionEnvironment, records: int, output: str) -> None:
    places = json.loads(os.environ[PLACES])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda each, _: each[1])
    readings = env.from_source(DataGeneratorSource(reading, records), strategy, "readings")
    numbered = readings.key_by(lambda value: value[0]).process(CountReadings())
    rows = numbered.filter(lambda line: line[0] == "reading").map(lambda line: {"key": line[1], "n": line[2]})
    texts = rows.map(lambda row: f"{row['key']} {row['n']}")
    for kind in ("delta", "iceberg"):
        rows.sink_to(make_sink(kind, f"{places['lakes']}/{kind}")).name(kind)
    texts.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build()).name("files")
    texts.sink_to(
        RedisSink.builder().set_url(places["redis"]).set_command(lambda text: ("RPUSH", "out", text)).build()
    ).name("redis")
    nats = NatsSink.builder().set_url(places["nats"]).set_stream("OUT").set_subject("out")
    texts.sink_to(nats.set_value_serializer(SimpleStringSchema()).build()).name("nats")


if __name__ == "__main__":
    run(sys.argv[1], "readings to several sinks", build)
