"""A job on Spark that numbers readings and writes them to PostgreSQL: `python -m tests.recovery.jdbc_job SETTINGS`.

The database is in the environment variable `HEADWATER_TEST_DATABASE`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

from headwater.common import Row, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from tests.recovery.driver import run
from tests.recovery.job import CountReadings, reading
from tests.unit.connectors.jdbc import tables

DATABASE = "HEADWATER_TEST_DATABASE"


def build(env: StreamExecutionEnvironment, records: int, output: str) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda each, _: each[1])
    readings = env.from_source(DataGeneratorSource(reading, records), strategy, "readings")
    numbered = readings.key_by(lambda value: value[0]).process(CountReadings())
    rows = numbered.filter(lambda line: line[0] == "reading").map(lambda line: Row(line[2], line[1]), tables.ROW)
    rows.add_sink(tables.sink(os.environ[DATABASE]))


def expected(records: int) -> Counter[tuple[int, str]]:
    """What must be in the table."""
    found: Counter[tuple[int, str]] = Counter()
    numbers: Counter[str] = Counter()
    for index in range(records):
        sensor = reading(index)[0]
        numbers[sensor] += 1
        found[numbers[sensor], sensor] += 1
    return found


if __name__ == "__main__":
    run(sys.argv[1], "readings to PostgreSQL", build)
