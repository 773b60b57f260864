"""headwater: the changes of a PostgreSQL table, which wait in its log, to a counter.

Half of the changes are inserts, half are updates, each of which is two rows; a transaction has a thousand changes.
Measured from the job's first commit with changes to the one with the last; changes are counted, not rows.
"""

from __future__ import annotations

import time

import psycopg

from benchmarks.headwater_job import CountingSink, headwater_environment
from benchmarks.workload import StampDir, arguments, report
from headwater.common import WatermarkStrategy
from headwater.datastream.connectors.postgres_cdc import PostgresIncrementalSource, StartupOptions
from tests.postgres_server import postgres_server

PER_TRANSACTION = 1000


def write(uri: str, changes: int) -> None:
    insert = "INSERT INTO items SELECT n, 'item ' || n, n FROM generate_series(%s::int, %s) n"
    update = "UPDATE items SET price = price + 1 WHERE id BETWEEN %s AND %s"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        for first in range(0, changes // 2, PER_TRANSACTION):
            for statement in (insert, update):
                connection.execute(statement, (first, min(first + PER_TRANSACTION, changes // 2) - 1))


def main() -> None:
    options = arguments(records=1_000_000, parallelism=2, epoch="2 s", interval="2 s", engine="auto")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options, **{"execution.checkpointing.interval": options.interval})
    with postgres_server() as server:
        server.set_and_restart(wal_level="logical")
        uri = server.new_database()
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("CREATE TABLE items (id int PRIMARY KEY, name text, price int)")
            connection.execute("ALTER TABLE items REPLICA IDENTITY FULL")
        builder = PostgresIncrementalSource.builder().hostname(uri.partition("host=")[2]).username("postgres")
        source = builder.database(uri.partition("?")[0].rpartition("/")[2])
        source.startup_options(StartupOptions.committed())
        made = source.table_list("public.items").slot_name("bench").build()
        made.discover_splits(1, frozenset())  # the slot keeps what is written now
        write(uri, options.records)
        env.from_source(made, WatermarkStrategy.no_watermarks(), "items").sink_to(CountingSink(stamps))
        began = time.time()
        client = env.execute_async("postgres changes")
        rows = options.records * 3 // 2
        while sum(int(stamp["outputs"]) for stamp in stamps.read("commit")) < rows:
            assert time.time() - began < 600
            time.sleep(0.2)
        client.cancel().result()
    commits = [stamp for stamp in stamps.read("commit") if stamp["outputs"]]
    seconds = float(commits[-1]["at"]) - float(commits[0]["at"])
    counted = sum(int(stamp["outputs"]) for stamp in commits[1:]) * 2 // 3
    report(records=options.records, seconds=seconds, rate=counted / seconds if seconds else 0.0)


if __name__ == "__main__":
    main()
