"""A job on Spark that numbers readings and writes them to all sinks: `python -m tests.recovery.sinks_job SETTINGS`.

Where they are, the environment variable `HEADWATER_TEST_SINKS` says:
{"kafka": SERVERS, "postgres": URI, "redis": URL, "nats": URL, "lakes": DIRECTORY}.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter

from headwater.common import Encoder, Row, SimpleStringSchema, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink
from headwater.datastream.connectors.nats import NatsSink
from headwater.datastream.connectors.redis import RedisSink
from tests.recovery.driver import run
from tests.recovery.job import CountReadings, reading
from tests.recovery.lake_driver import make_sink
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.kafka import clients

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
    rows.map(lambda row: Row(row["n"], row["key"]), tables.ROW).add_sink(tables.sink(places["postgres"])).name("table")
    texts.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build()).name("files")
    texts.sink_to(clients.sink(places["kafka"])).name("kafka")
    texts.sink_to(
        RedisSink.builder().set_url(places["redis"]).set_command(lambda text: ("RPUSH", "out", text)).build()
    ).name("redis")
    nats = NatsSink.builder().set_url(places["nats"]).set_stream("OUT").set_subject("out")
    texts.sink_to(nats.set_value_serializer(SimpleStringSchema()).build()).name("nats")


def expected(records: int) -> Counter[tuple[str, int]]:
    """What must be in each of them."""
    numbers: Counter[str] = Counter()
    for index in range(records):
        numbers[reading(index)[0]] += 1
    return Counter((sensor, n) for sensor, count in numbers.items() for n in range(1, count + 1))


if __name__ == "__main__":
    run(sys.argv[1], "readings to several sinks", build)
