"""Change data of a real PostgreSQL."""

from __future__ import annotations

import os
import pickle
import random
import threading
import time
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from headwater.common import Row, RowKind, WatermarkStrategy
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.postgres_cdc import (
    DebeziumChanges,
    PostgresIncrementalSource,
    SchemaChange,
    StartupOptions,
)
from headwater.datastream.connectors.postgres_cdc.reader import PostgresReader
from headwater.datastream.connectors.postgres_cdc.snapshot import Visibility
from headwater.testing import SOURCE_CHECKS, SourceCase, in_process
from tests.postgres_server import PostgresServer, postgres_server
from tests.unit.connectors.cdc import Table, kinds, read_until, start
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.postgres_cdc.changelog import CREATE, FULL, Writer, builder
from tests.waiting import wait_until

OWN_SLOT = "FROM pg_replication_slots WHERE database = current_database()"
FILL = "INSERT INTO items SELECT n, 'n' || n, n FROM generate_series(1, 300) n"


@pytest.mark.parametrize("key", ["number", "text"])
@pytest.mark.parametrize("seed", range(2))
def test_the_changelog_is_the_table_whatever_is_written_and_wherever_a_reader_begins(
    database: str, seed: int, key: str
) -> None:
    create = CREATE if key == "number" else CREATE.replace("id int", "id text")
    tables.run(database, create, FULL, FILL)
    source = builder(database).split_size(17).build()
    writer, dice, table = Writer(database, seed, key), random.Random(seed), Table()
    writer.start()
    (split,) = source.discover_splits(1, frozenset())
    reader, position = source.open_reader(split, None), None
    deadline = time.monotonic() + 1.5
    reopened = 0
    while time.monotonic() < deadline or reopened < 3 or writer.transactions < 20:
        if dice.randrange(6) == 0:
            # A failed epoch: what was read since the last checkpoint is forgotten.
            reader.read_batch(dice.randint(1, 30))
            reader.close()
            reader, reopened = source.open_reader(split, position), reopened + 1
        for row in reader.read_batch(dice.choice((1, 2, 3, 50, 500))) or []:
            table.apply(row)
        position = pickle.loads(pickle.dumps(reader.position()))
        if dice.randrange(10) == 0:
            source.checkpoint_committed({split.split_id: position})
    writer.stop()
    tables.run(database, "INSERT INTO items VALUES ('-1', 'last', 0)")

    def caught_up() -> bool:
        for row in reader.read_batch(1000) or []:
            table.apply(row)
        return reader.position().snapshot_done and any(values[1] == "last" for values in table.rows.values())

    wait_until(caught_up)
    reader.close()
    source.close()
    assert table.values() == sorted(tables.run(database, "SELECT * FROM items"), key=repr)


def test_every_kind_of_change(database: str) -> None:
    tables.run(database, CREATE, FULL, "INSERT INTO items VALUES (1, 'a', 1), (2, NULL, 2)")
    reader = start(builder(database).build())
    assert read_until(reader, lambda found: len(found) == 2) == [
        Row(id=1, name="a", price=Decimal("1.00")),
        Row(id=2, name=None, price=Decimal("2.00")),
    ]
    tables.run(database, "INSERT INTO items VALUES (3, 'c', 3)", "UPDATE items SET name = 'A' WHERE id = 1")
    tables.run(database, "DELETE FROM items WHERE id = 2", "UPDATE items SET id = 4 WHERE id = 3")
    found = read_until(reader, lambda found: len(found) >= 6)
    assert kinds(found) == ["+I3", "-U1", "+U1", "-D2", "-U3", "+U4"]
    assert found[1] == Row.of_kind(RowKind.UPDATE_BEFORE, id=1, name="a", price=Decimal("1.00"))
    reader.close()


def test_types_large_values_and_debezium_dicts(database: str) -> None:
    tables.run(
        database,
        "CREATE TABLE items (id uuid PRIMARY KEY, a boolean, b bytea, c double precision, d date, e timestamp, "
        "f timestamptz, g jsonb, h int[], i text)",
        "ALTER TABLE items ALTER i SET STORAGE EXTERNAL",
        FULL,
        "INSERT INTO items VALUES ('00000000-0000-0000-0000-00000000000a', true, '\\x00ff', 1.5, '2024-02-29', "
        "'2024-02-29 01:02:03.5', '2024-02-29 01:02:03+01', '{\"a\": 1}', '{1,2}', repeat('x', 10000))",
    )
    source = builder(database).deserializer(DebeziumChanges()).build()
    reader = start(source)
    (first,) = read_until(reader, bool)
    tables.run(database, "UPDATE items SET a = false")
    (second,) = read_until(reader, bool)
    reader.close()
    assert first["op"] == "r" and first["before"] is None and first["source"]["table"] == "items"
    assert second["op"] == "u" and second["before"] == first["after"]
    assert second["after"] == {**first["after"], "a": False}  # also what the update did not touch
    after = first["after"]
    assert (after["b"], after["c"], after["d"]) == (b"\0\xff", 1.5, date(2024, 2, 29))
    assert after["e"] == datetime(2024, 2, 29, 1, 2, 3, 500000)
    assert after["f"] == datetime.fromisoformat("2024-02-29T00:02:03+00:00")
    assert (after["g"], after["h"], len(after["i"])) == ('{"a": 1}', "{1,2}", 10000)


def test_several_tables_and_schema_changes(database: str) -> None:
    tables.run(database, CREATE, FULL, "CREATE TABLE others (a int, b int, PRIMARY KEY (a, b))")
    tables.run(database, "ALTER TABLE others REPLICA IDENTITY FULL", "INSERT INTO others VALUES (1, 2)")
    reader = start(builder(database, "items", "public.others").include_schema_changes(True).build())
    assert read_until(reader, bool) == [("public.others", Row(a=1, b=2))]
    tables.run(database, "INSERT INTO items VALUES (1, 'a', 1)", "ALTER TABLE items ADD stock int DEFAULT 7")
    tables.run(database, "INSERT INTO items VALUES (2, 'b', 1, 3)", "ALTER TABLE items DROP price")
    tables.run(database, "INSERT INTO items VALUES (3, 'c', 5)")
    found = read_until(reader, lambda found: len(found) >= 5, batch=1)
    reader.close()
    assert found == [
        ("public.items", Row(id=1, name="a", price=Decimal("1.00"))),
        SchemaChange("public.items", ("id", "name", "price", "stock")),
        ("public.items", Row(id=2, name="b", price=Decimal("1.00"), stock=3)),
        SchemaChange("public.items", ("id", "name", "stock")),
        ("public.items", Row(id=3, name="c", stock=5)),
    ]
    assert reader.counters() == {"schemaChanges": 2}


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract_of_a_bounded_snapshot(check: Callable[[SourceCase], None], database: str) -> None:
    tables.run(database, CREATE, FULL, "INSERT INTO items SELECT n, 'x', 1 FROM generate_series(1, 12) n")
    rows = [Row(id=n, name="x", price=Decimal("1.00")) for n in range(1, 13)]
    make = builder(database).startup_options(StartupOptions.snapshot()).split_size(5).build
    check(SourceCase(make, rows, 1))


def test_only_what_comes_after_the_start(database: str) -> None:
    tables.run(database, CREATE, FULL, "INSERT INTO items VALUES (1, 'a', 1)")
    reader = start(builder(database).startup_options(StartupOptions.latest()).build())
    assert not reader.read_batch(10)
    tables.run(database, "INSERT INTO items VALUES (2, 'b', 1)", "DELETE FROM items WHERE id = 1")
    assert kinds(read_until(reader, lambda found: len(found) == 2)) == ["+I2", "-D1"]
    reader.close()


# --- the slot


def confirmed(database: str) -> Any:
    ((lsn,),) = tables.run(database, f"SELECT confirmed_flush_lsn - '0/0' {OWN_SLOT}")
    return int(lsn)


@pytest.mark.parametrize("reading", [True, False])
def test_checkpoints_move_the_slot_also_while_it_is_read(database: str, reading: bool) -> None:
    tables.run(database, CREATE, FULL, FILL)
    source = builder(database).build()
    reader = start(source)
    read_until(reader, lambda found: len(found) == 300)
    tables.run(database, "UPDATE items SET name = 'x'")
    read_until(reader, lambda found: len(found) == 600)
    position = reader.position()
    assert confirmed(database) < position.lsn
    if not reading:
        reader.close()
        wait_until(
            lambda: (
                tables.run(database, "SELECT active FROM pg_replication_slots WHERE database = current_database()")
                == [(False,)]
            )
        )
    source.checkpoint_committed({"changes": position})

    def moved() -> bool:
        if reading:
            reader.read_batch(10)
        return bool(confirmed(database) == position.lsn)

    wait_until(moved)
    reader.close()
    source.close()


def test_a_quiet_table_does_not_keep_the_log(database: str) -> None:
    """Other tables are written: the reader asks for an epoch now and then, although it has no record."""
    tables.run(database, CREATE, FULL, "CREATE TABLE noise (a text)")
    source = builder(database).heartbeat_interval(50).build()
    reader = start(source)
    reader.read_batch(10)
    reader.read_batch(10)
    before = reader.position().lsn
    tables.run(database, "INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 3000)")
    read_end, write_end = os.pipe()
    try:
        assert reader.wait_readable(time.monotonic() + 30, read_end)
        assert reader.read_batch(10) == []
        assert reader.position().lsn - before > 1 << 20
        os.write(write_end, b"x")
        assert not reader.wait_readable(time.monotonic() + 30, read_end)
    finally:
        reader.close()
        os.close(read_end)
        os.close(write_end)


def test_a_new_reader_takes_the_slot_from_an_old_one_but_not_from_a_stranger(database: str) -> None:
    tables.run(database, CREATE, FULL, FILL)
    source = builder(database).build()
    zombie = start(source)
    read_until(zombie, lambda found: len(found) == 300)
    zombie.read_batch(10)
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], zombie.position())
    tables.run(database, "DELETE FROM items WHERE id = 1")
    assert isinstance(reader, PostgresReader)
    assert kinds(read_until(reader, bool)) == ["-D1"]
    reader.close()
    settings = builder(database).set_property("application_name", "stranger").build().settings
    other = PostgresReader(settings, reader.position())
    other.read_batch(1)
    with pytest.raises(HeadwaterError, match=r"in use by 'stranger'.*slot_name of its own"):
        while True:
            source.open_reader(source.discover_splits(1, frozenset())[0], reader.position()).read_batch(1)
    other.close()
    zombie.close()


def test_a_slot_that_is_gone_or_too_far_is_an_error(database: str) -> None:
    tables.run(database, CREATE, FULL, FILL)
    source = builder(database).build()
    reader = start(source)
    read_until(reader, lambda found: len(found) == 300)
    old = reader.position()
    tables.run(database, "UPDATE items SET name = 'x'")
    read_until(reader, lambda found: len(found) == 600)
    reader.close()
    slot = source.settings.slot
    wait_until(
        lambda: (
            tables.run(database, f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot}'") == [(False,)]
        )
    )
    tables.run(database, f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_insert_lsn())")
    with pytest.raises(HeadwaterError, match="behind the place where the job wants to go on"):
        source.open_reader(source.discover_splits(1, frozenset())[0], old).read_batch(1)
    tables.run(database, f"SELECT pg_drop_replication_slot('{slot}')")
    with pytest.raises(HeadwaterError, match=f"'{slot}' .* is gone"):
        PostgresReader(source.settings, old.__class__(old.lsn, tables=reader.position().tables)).read_batch(1)


# --- what goes wrong


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ((), "has no table 'public.items'"),
        (("CREATE TABLE items (id int)",), "has no primary key"),
        ((CREATE,), "ALTER TABLE .* REPLICA IDENTITY FULL"),
        (("CREATE VIEW items AS SELECT 1 AS id",), "no plain table"),
        ((CREATE, FULL, "CREATE PUBLICATION own"), "ALTER PUBLICATION .*own.* ADD TABLE"),
    ],
)
def test_tables_that_cannot_be_read(database: str, statements: tuple[str, ...], words: str) -> None:
    tables.run(database, "SELECT 1", *statements)
    make = builder(database)
    if "PUBLICATION own" in str(statements):
        make.publication_name("own")
    with pytest.raises(HeadwaterError, match=words):
        make.build().discover_splits(1, frozenset())


def test_a_server_without_logical_replication() -> None:
    with postgres_server() as server, pytest.raises(HeadwaterError, match="ALTER SYSTEM SET wal_level = 'logical'"):
        builder(server.new_database()).build().discover_splits(1, frozenset())


def test_a_truncated_table_is_an_error_unless_told_otherwise(database: str) -> None:
    tables.run(database, CREATE, FULL, "INSERT INTO items VALUES (1, 'a', 1)")
    source = builder(database).build()
    reader = start(source)
    read_until(reader, bool)
    tables.run(database, "TRUNCATE items")
    with pytest.raises(HeadwaterError, match="was truncated"):
        read_until(reader, lambda found: False)
    tables.run(database, "INSERT INTO items VALUES (2, 'b', 1)")
    position = reader.position()
    source = builder(database).on_truncate("skip").build()
    skipping = source.open_reader(source.discover_splits(1, frozenset())[0], position)
    assert isinstance(skipping, PostgresReader)
    assert kinds(read_until(skipping, bool)) == ["+I2"]
    skipping.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: builder("postgresql:///x?host=/y").slot_name("Not-a-slot").build(),
        lambda: builder("postgresql:///x?host=/y").decoding_plugin_name("wal2json"),
        lambda: builder("postgresql:///x?host=/y").split_size(0),
        lambda: builder("postgresql:///x?host=/y").startup_options("initial"),  # type: ignore[arg-type]
        lambda: builder("postgresql:///x?host=/y").deserializer(dict),  # type: ignore[arg-type]
        lambda: builder("postgresql:///x?host=/y").on_truncate("ignore"),
        lambda: builder("postgresql:///x?host=/y").heartbeat_interval(0),
        lambda: PostgresIncrementalSource.builder().database("x").build(),
        lambda: PostgresIncrementalSource.builder().table_list("x").build(),
    ],
)
def test_settings_that_mean_nothing(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_transaction_numbers_wrap_around() -> None:
    late = Visibility((3 << 32) + 5, (3 << 32) + 10, frozenset([(3 << 32) + 7]))
    assert [late.sees(xid) for xid in (4, 5, 7, 9, 10, 11)] == [True, True, False, True, False, False]
    assert late.sees((1 << 32) - 1)  # of the turn before
    early = Visibility((3 << 32) - 2, (3 << 32) - 1, frozenset())
    assert not early.sees(3)  # of the next turn


# --- whole jobs


def test_a_restart_of_the_server_costs_only_time(postgres: PostgresServer, database: str) -> None:
    tables.run(database, CREATE, FULL, FILL)
    reader = start(builder(database).build())
    read_until(reader, lambda found: len(found) == 300)
    reader.read_batch(1)
    postgres.restart()
    tables.run(database, "DELETE FROM items WHERE id = 7")
    assert kinds(read_until(reader, bool)) == ["-D7"]
    reader.close()


def test_a_job_that_crashes_goes_on(database: str) -> None:
    tables.run(database, CREATE, FULL, FILL)
    source = builder(database).startup_options(StartupOptions.snapshot()).split_size(40).build()
    with in_process(epoch_records=50) as here:
        here.fail_attempt(epoch=2)
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "items")
        assert sorted(row.id for row in stream.execute_and_collect()) == list(range(1, 301))
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM pg_publication").fetchone() == (1,)


def test_a_transaction_that_the_log_shows_before_queries_see_it(database: str) -> None:
    """A commit that waits for a standby is in the log already. Its change must not fall between log and chunk."""
    tables.run(database, CREATE, FULL, "INSERT INTO items SELECT n, 'old', n FROM generate_series(1, 4) n")
    reader, table = start(builder(database).split_size(2).build()), Table()
    for row in reader.read_batch(2) or []:
        table.apply(row)
    tables.run(database, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    change = "UPDATE items SET name = 'new' WHERE id = 4"
    waiting = threading.Thread(target=tables.run, args=(database, change))
    try:
        wait_until(lambda: tables.run(database, "SHOW synchronous_standby_names") == [("nobody",)])
        waiting.start()
        asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()"
        wait_until(lambda: tables.run(database, asked) == [(1,)])
        release = threading.Timer(
            0.5,
            lambda: tables.run(database, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"),
        )
        release.start()
        assert tables.run(database, "SELECT name FROM items WHERE id = 4") == [("old",)]
        for row in read_until(reader, lambda found: len(found) >= 2):
            table.apply(row)
        release.join()
    finally:
        tables.run(database, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        waiting.join()
    for _ in range(20):
        for row in reader.read_batch(10) or []:
            table.apply(row)
    reader.close()
    assert table.values() == sorted(tables.run(database, "SELECT * FROM items"), key=repr)
