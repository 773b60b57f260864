"""Tables and queries as sources, and look-ups, against a real PostgreSQL and SQLite."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Row, WatermarkStrategy
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.time import Time
from headwater.datastream import AsyncDataStream, StreamExecutionEnvironment
from headwater.datastream.connectors.jdbc import JdbcLookup, JdbcLookupFunction, JdbcSource
from headwater.testing import SOURCE_CHECKS, SourceCase, in_process
from tests.postgres_server import PostgresServer, jdbc_url
from tests.unit.connectors.jdbc import tables

ROWS = [Row(i=number, text=f"t{number // 3}") for number in range(12)]
FILL = "INSERT INTO numbers SELECT n, 't' || n / 3 FROM generate_series(0, 11) n"


def by_key(url: str) -> JdbcSource:
    return JdbcSource.builder().set_db_url(url).set_table("numbers").set_result_set_fetch_size(4).build()


def by_query(url: str) -> JdbcSource:
    query = JdbcSource.builder().set_db_url(url).set_sql("SELECT i, text FROM numbers WHERE text LIKE 't%' ORDER BY i;")
    return query.build()


def with_ties(url: str) -> JdbcSource:
    builder = JdbcSource.builder().set_db_url(url).set_sql("SELECT i, text, i / 5 AS part FROM numbers")
    return builder.set_partition_column("part", 1, 1, 2).build()


@pytest.mark.parametrize("make", [by_key, by_query, with_ties])
@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SourceCase], None], make: Callable[[str], JdbcSource], database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i int PRIMARY KEY, text text)", FILL)
    ties = make is with_ties
    records = [Row(i=row.i, text=row.text, part=row.i // 5) for row in ROWS] if ties else ROWS
    check(SourceCase(lambda: make(jdbc_url(database)), records))


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract_on_sqlite(check: Callable[[SourceCase], None], tmp_path: Path) -> None:
    path = tmp_path / "numbers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE numbers (i integer PRIMARY KEY, text text)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", [tuple(row) for row in ROWS])
    check(SourceCase(lambda: by_key(f"jdbc:sqlite:{path}"), ROWS, 2))


def test_rows_outside_of_the_bounds_are_read_and_null_is_refused(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i int, text text)", FILL)
    builder = JdbcSource.builder().set_db_url(jdbc_url(database)).set_sql("SELECT * FROM numbers")
    source = builder.set_partition_column("i", 4, 6, 3).build()
    with in_process(epoch_records=5):
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        assert sorted(row.i for row in stream.execute_and_collect()) == list(range(12))
    tables.run(database, "INSERT INTO numbers VALUES (NULL, 'lost')")
    with pytest.raises(HeadwaterError, match="'i' is NULL in 1 rows"):
        source.discover_splits(1, frozenset())


def test_a_key_of_two_columns_and_a_table_without_one(database: str) -> None:
    tables.run(
        database,
        "CREATE TABLE pairs (b text, a int, PRIMARY KEY (b, a))",
        "INSERT INTO pairs SELECT 'x' || n % 3, n FROM generate_series(0, 8) n",
        "CREATE TABLE heap AS SELECT * FROM pairs",
    )
    for table in ("pairs", "heap"):
        source = JdbcSource.builder().set_db_url(jdbc_url(database)).set_table(table).build()
        (split,) = source.discover_splits(4, frozenset())
        found: list[Any] = []
        position = None
        while (rows := source.open_reader(split, position).read_batch(2)) is not None:
            reader = source.open_reader(split, position)
            assert reader.read_batch(2) == rows
            position = reader.position()
            found += rows
            reader.close()
        assert sorted(row.a for row in found) == list(range(9))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda url: JdbcSource.builder().set_db_url(url).set_table("nothing").build(), "nothing"),
        (lambda url: JdbcSource.builder().set_db_url(url).set_sql("SELECT x FROM numbers").build(), "column"),
        (
            lambda url: (
                JdbcSource.builder().set_db_url(url).set_table("numbers").set_partition_column("x", 0, 1, 2).build()
            ),
            "no column 'x'",
        ),
    ],
)
def test_what_cannot_be_read(make: Callable[[str], JdbcSource], words: str, database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i int PRIMARY KEY, text text)")
    with pytest.raises(HeadwaterError, match=words):
        make(jdbc_url(database)).discover_splits(1, frozenset())


def test_settings_that_mean_nothing() -> None:
    builder = JdbcSource.builder().set_db_url("jdbc:sqlite:/x")
    for wrong in (
        builder.build,
        lambda: builder.set_partition_column("a", 3, 2, 1),
        lambda: builder.set_partition_column("a", 3, 4, 0),
        lambda: builder.set_result_set_fetch_size(0),
        lambda: builder.set_table("a").set_sql("SELECT 1").build(),
        lambda: JdbcLookup(tables.options("jdbc:sqlite:/x"), "t", [], ["a"]),
    ):
        with pytest.raises(ConfigurationError):
            wrong()


# --- look-ups


def test_look_ups_are_batched_and_cached(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i int, text text)", FILL)
    lookup = JdbcLookup(tables.options(jdbc_url(database)), "numbers", ["i"], ["text"], cache_max_rows=3)
    assert lookup.lookup([1, 99, 1]) == {1: [Row(text="t0")], 99: []}
    tables.run(database, "UPDATE numbers SET text = 'new' WHERE i = 1")
    assert lookup.lookup([1, 99]) == {1: [Row(text="t0")], 99: []}
    assert (lookup.hits, lookup.misses) == (2, 2)
    lookup.lookup([2, 3, 4])  # pushes 1 and 99 out
    assert lookup.lookup([1]) == {1: [Row(text="new")]}
    again = pickle.loads(pickle.dumps(lookup))
    assert again.lookup([1]) == {1: [Row(text="new")]}
    for each in (lookup, again):
        each.close()


def test_expired_rows_are_asked_for_again_and_keys_may_have_several_columns_and_rows(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i int, text text)", FILL, FILL)
    lookup = JdbcLookup(
        tables.options(jdbc_url(database)), "numbers", ["text", "i"], ["i"], cache_max_rows=10, cache_expire_ms=0
    )
    for _ in range(2):
        assert lookup.lookup([("t0", 1), ("t1", 1), (None, 1)]) == {
            ("t0", 1): [Row(i=1), Row(i=1)],
            ("t1", 1): [],
            (None, 1): [],
        }
    assert lookup.hits == 0
    lookup.close()


def test_a_look_up_survives_a_restart_of_the_database_and_says_that_it_is_away(postgres: PostgresServer) -> None:
    database = postgres.new_database()
    tables.run(database, "CREATE TABLE numbers (i int, text text)", FILL)
    lookup = JdbcLookup(tables.options(jdbc_url(database)), "numbers", ["i"], ["text"])
    assert lookup.lookup([5]) == {5: [Row(text="t1")]}
    postgres.restart()
    assert lookup.lookup([5]) == {5: [Row(text="t1")]}
    postgres.stop()
    try:
        with pytest.raises(ExternalSystemError, match="cannot connect"):
            lookup.lookup([5])
    finally:
        postgres.start()


def test_a_stream_is_joined_without_waiting_for_each_record(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i int, text text)", FILL)
    lookup = JdbcLookup(tables.options(jdbc_url(database)), "numbers", ["i"], ["text"], cache_max_rows=100)
    function = JdbcLookupFunction(lookup, lambda n: n % 14, lambda n, rows: [(n, row.text) for row in rows])
    with in_process(epoch_records=50):
        env = StreamExecutionEnvironment.get_execution_environment()
        joined = AsyncDataStream.ordered_wait(env.from_sequence(0, 199), function, Time.seconds(30), 20)
        found = list(joined.execute_and_collect())
    assert sorted(found) == [(n, f"t{n % 14 // 3}") for n in range(200) if n % 14 < 12]
