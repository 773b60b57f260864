"""headwater: numbers from a generator, as rows, into a PostgreSQL table, exactly once.

Measured from the first record that reaches the first Python function to the end of the job, after the last commit.
"""

from __future__ import annotations

import psycopg

from benchmarks.headwater_job import headwater_environment
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Row, Types, WatermarkStrategy
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from tests.postgres_server import jdbc_url, postgres_server

ROW = Types.ROW([Types.LONG(), Types.STRING(), Types.DOUBLE()])


class ToRow(MapFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> Row:
        return Row(value, f"name of {value}", value / 8)


def main() -> None:
    options = arguments(records=1_000_000, parallelism=2, epoch="2 s", interval="2 s", engine="auto")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options, **{"execution.checkpointing.interval": options.interval})
    with postgres_server() as server:
        uri = server.new_database()
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("CREATE TABLE numbers (i bigint, name text, eighth double precision)")
        connected = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(jdbc_url(uri)).build()
        sink = JdbcSink.sink("INSERT INTO numbers (i, name, eighth) VALUES (?, ?, ?)", ROW, connected)
        stream = env.from_source(DataGeneratorSource(int, options.records), WatermarkStrategy.no_watermarks(), "in")
        stream.map(ToRow(stamps)).add_sink(sink)
        env.execute("postgres sink")
        stamps.stamp("ended")
        with psycopg.connect(uri) as connection:
            found = connection.execute("SELECT count(*), count(DISTINCT i) FROM numbers").fetchone()
        assert found == (options.records, options.records), found
    seconds = stamps.seconds_between("first", "ended")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
