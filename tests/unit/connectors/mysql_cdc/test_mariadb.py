"""Change data of a real MariaDB, and MariaDB as sink, source and lookup."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pymysql
import pytest

from headwater.common import Row, Types
from headwater.common.connector import CommitterContext
from headwater.common.errors import ConfigurationError, HeadwaterError, SerializationError
from headwater.datastream.connectors.jdbc import JdbcLookup, JdbcSink, JdbcSource
from headwater.datastream.connectors.mysql_cdc import (
    DebeziumChanges,
    MySqlSource,
    MySqlSourceBuilder,
    SchemaChange,
    StartupOptions,
)
from headwater.datastream.connectors.mysql_cdc.reader import MySqlReader
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import SINK_CHECKS, SOURCE_CHECKS, SinkCase, SourceCase, in_process
from headwater.testing.sink_contract import committer_of, write
from tests.mariadb_server import MariaDbServer, mariadb_server
from tests.unit.connectors.cdc import RandomWriter, Table, kinds, read_until, start
from tests.unit.connectors.jdbc import tables
from tests.waiting import wait_until

CREATE = "CREATE TABLE items (id int PRIMARY KEY, name varchar(20), price decimal(10, 2))"
FILL = "INSERT INTO items SELECT seq, concat('n', seq), seq FROM seq_1_to_300"


@pytest.fixture(scope="session")
def server() -> Iterator[MariaDbServer]:
    with mariadb_server() as server:
        yield server


@pytest.fixture
def database(server: MariaDbServer) -> str:
    return server.new_database()


def builder(server: MariaDbServer, database: str, *names: str) -> MySqlSourceBuilder:
    named = MySqlSource.builder().hostname(server.socket).username("root").database_list(database)
    return named.table_list(*(names or ("items",)))


class Writer(RandomWriter):
    insert = "INSERT INTO items VALUES (%(key)s, %(name)s, 1.5) ON DUPLICATE KEY UPDATE name = VALUES(name)"
    move = "UPDATE IGNORE items SET id = %(other)s WHERE id = %(key)s"

    def __init__(self, server: MariaDbServer, database: str, seed: int, key: str) -> None:
        connect = partial(pymysql.connect, unix_socket=server.socket, user="root", database=database)
        super().__init__(connect, seed, key)


@pytest.mark.parametrize("key", ["number", "text"])
def test_the_changelog_is_the_table_whatever_is_written_and_wherever_a_reader_begins(
    server: MariaDbServer, database: str, key: str
) -> None:
    binary = "id varchar(20) COLLATE utf8mb4_bin"
    server.run(database, CREATE if key == "number" else CREATE.replace("id int", binary), FILL)
    source = builder(server, database).split_size(17).build()
    writer, dice, table = Writer(server, database, 1, key), random.Random(1), Table()
    writer.start()
    (split,) = source.discover_splits(1, frozenset())
    reader, position, reopened = source.open_reader(split, None), None, 0
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline or reopened < 3 or writer.transactions < 20:
        if dice.randrange(6) == 0:
            # A failed epoch: what was read since the last checkpoint is forgotten.
            reader.read_batch(dice.randint(1, 30))
            reader.close()
            reader, reopened = source.open_reader(split, position), reopened + 1
        if dice.randrange(20) == 0:
            server.run(database, "FLUSH BINARY LOGS")
        for row in reader.read_batch(dice.choice((1, 2, 3, 50, 500))) or []:
            table.apply(row)
        position = pickle.loads(pickle.dumps(reader.position()))
    writer.stop()
    server.run(database, "INSERT INTO items VALUES ('-1', 'last', 0)")

    def caught_up() -> bool:
        for row in reader.read_batch(1000) or []:
            table.apply(row)
        return reader.position().snapshot_done and any(values[1] == "last" for values in table.rows.values())

    wait_until(caught_up)
    reader.close()
    assert table.values() == sorted(server.run(database, "SELECT * FROM items"), key=repr)


def test_every_kind_of_change_and_schema_changes(server: MariaDbServer, database: str) -> None:
    server.run(database, CREATE, "INSERT INTO items VALUES (1, 'a', 1), (2, NULL, 2)")
    reader = start(builder(server, database).include_schema_changes(True).build())
    assert read_until(reader, lambda found: len(found) == 2) == [
        Row(id=1, name="a", price=Decimal("1.00")),
        Row(id=2, name=None, price=Decimal("2.00")),
    ]
    server.run(database, "INSERT INTO items VALUES (3, 'c', 3)", "UPDATE items SET name = 'A' WHERE id = 1")
    server.run(database, "DELETE FROM items WHERE id = 2", "UPDATE items SET id = 4 WHERE id = 3")
    assert kinds(read_until(reader, lambda found: len(found) >= 6, 1)) == ["+I3", "-U1", "+U1", "-D2", "-U3", "+U4"]
    server.run(database, "ALTER TABLE items DROP price", "INSERT INTO items VALUES (5, 'e')")
    assert read_until(reader, lambda found: len(found) >= 2, 1) == [
        SchemaChange(f"{database}.items", ("id", "name")),
        Row(id=5, name="e"),
    ]
    reader.close()


def test_types_are_the_same_in_the_snapshot_and_in_the_log(server: MariaDbServer, database: str) -> None:
    server.run(
        database,
        "CREATE TABLE items (id bigint unsigned PRIMARY KEY, a float, b double, c timestamp(3), d datetime, e date, "
        "f time, g blob, h enum('x', 'y'), i longtext, j tinyint(1), k year)",
        "INSERT INTO items VALUES (18446744073709551615, 1.1, 1.1, '2024-01-01 00:00:00.5', '2024-01-01', "
        "'2024-01-01', '-01:02:03', x'00ff', 'y', 'ä', true, 2024)",
    )
    reader = start(builder(server, database).deserializer(DebeziumChanges()).build())
    (first,) = read_until(reader, bool)
    server.run(database, "UPDATE items SET j = 0")
    (second,) = read_until(reader, bool)
    reader.close()
    assert first["op"] == "r" and second["op"] == "u"
    assert second["before"] == first["after"]
    assert second["after"] == {**first["after"], "j": 0}
    assert first["after"]["id"] == (1 << 64) - 1
    assert first["after"]["c"] == datetime(2024, 1, 1, 0, 0, 0, 500000)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract_of_a_bounded_snapshot(
    check: Callable[[SourceCase], None], server: MariaDbServer, database: str
) -> None:
    server.run(database, CREATE, "INSERT INTO items SELECT seq, 'x', 1 FROM seq_1_to_12")
    rows = [Row(id=n, name="x", price=Decimal("1.00")) for n in range(1, 13)]
    make = builder(server, database).startup_options(StartupOptions.snapshot()).split_size(5).build
    check(SourceCase(make, rows, 1))


def test_only_what_comes_after_the_start_and_a_server_that_restarts(server: MariaDbServer, database: str) -> None:
    server.run(database, CREATE, "INSERT INTO items VALUES (1, 'a', 1)")
    reader = start(builder(server, database).startup_options(StartupOptions.latest()).build())
    assert not reader.read_batch(10)
    server.run(database, "DELETE FROM items WHERE id = 1")
    assert kinds(read_until(reader, bool)) == ["-D1"]
    server.stop()
    server.start()
    server.run(database, "INSERT INTO items VALUES (2, 'b', 1)")
    assert kinds(read_until(reader, bool)) == ["+I2"]
    reader.close()


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (("SELECT 1",), "has no table"),
        (("CREATE TABLE items (id int)",), "has no primary key"),
        (("CREATE TABLE items (id int PRIMARY KEY, a bit(3))",), "cannot be read: a \\(bit\\)"),
        ((CREATE, "SET GLOBAL binlog_row_metadata = MINIMAL"), "SET GLOBAL binlog_row_metadata = FULL"),
        ((CREATE, "SET GLOBAL binlog_format = STATEMENT"), "SET GLOBAL binlog_format = ROW"),
    ],
)
def test_what_cannot_be_read(server: MariaDbServer, database: str, statements: tuple[str, ...], words: str) -> None:
    server.run(database, *statements)
    try:
        with pytest.raises(HeadwaterError, match=words):
            builder(server, database).build().discover_splits(1, frozenset())
    finally:
        server.run(database, "SET GLOBAL binlog_row_metadata = FULL", "SET GLOBAL binlog_format = ROW")


def test_a_truncated_table_and_a_log_that_is_gone(server: MariaDbServer, database: str) -> None:
    server.run(database, CREATE, "INSERT INTO items VALUES (1, 'a', 1)")
    source = builder(server, database).build()
    reader = start(source)
    read_until(reader, bool)
    server.run(database, "TRUNCATE TABLE items")
    with pytest.raises(HeadwaterError, match="was truncated"):
        read_until(reader, lambda found: False)
    old = reader.position()
    skipping = MySqlReader(builder(server, database).on_truncate("skip").build().settings, old)
    server.run(database, "INSERT INTO items VALUES (2, 'b', 1)")
    assert kinds(read_until(skipping, bool)) == ["+I2"]
    skipping.close()
    server.run(database, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    ((now, *_),) = server.run(database, "SHOW MASTER STATUS")

    def purged() -> bool:
        server.run(database, f"PURGE BINARY LOGS TO '{now}'")  # not while a reader is about to leave it
        return len(server.run(database, "SHOW BINARY LOGS")) == 1

    wait_until(purged)
    with pytest.raises(HeadwaterError, match="is not there any more"):
        MySqlReader(source.settings, old).read_batch(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MySqlSource.builder().build(),
        lambda: MySqlSource.builder().table_list("x").build(),
        lambda: MySqlSource.builder().server_id("x"),
        lambda: MySqlSource.builder().split_size(0),
        lambda: MySqlSource.builder().startup_options(StartupOptions.committed()),
        lambda: MySqlSource.builder().deserializer(dict),  # type: ignore[arg-type]
        lambda: MySqlSource.builder().on_truncate("ignore"),
    ],
)
def test_settings_that_mean_nothing(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()


# --- sink, source, lookup


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_contract_of_the_sink(check: Callable[[SinkCase], None], server: MariaDbServer, database: str) -> None:
    server.run(database, "CREATE TABLE numbers (i bigint, text text)")
    check(
        SinkCase(
            tables.sink(server.url(database)),
            visible=lambda: server.run(database, "SELECT i, text FROM numbers"),
            shown=tuple,
            records=lambda start, stop: [(i, f"\\{i}'\n%ä" if i % 5 == 0 else f"t{i}") for i in range(start, stop)],
            whole_epochs=True,
        )
    )


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract_of_the_source(check: Callable[[SourceCase], None], server: MariaDbServer, database: str) -> None:
    server.run(database, CREATE, "INSERT INTO items SELECT seq, 'x', 1 FROM seq_1_to_12")
    rows = [Row(id=n, name="x", price=Decimal("1.00")) for n in range(1, 13)]
    make = JdbcSource.builder().set_db_url(server.url(database)).set_table("items").build
    check(SourceCase(make, rows, 2))


def test_look_ups_and_bad_statements(server: MariaDbServer, database: str) -> None:
    server.run(database, CREATE, FILL, "CREATE TABLE old (i bigint, text text) ENGINE = MyISAM")
    lookup = JdbcLookup(tables.options(server.url(database)), "items", ["id", "name"], ["price"])
    assert lookup.lookup([(1, "n1"), (1, "n2")]) == {(1, "n1"): [Row(price=Decimal("1.00"))], (1, "n2"): []}
    lookup.close()
    for sql, words in (
        ("INSERT INTO nothing (i, text) VALUES (?, ?)", "nothing' doesn't exist"),
        ("INSERT INTO items (id, nam) VALUES (?, ?)", "Unknown column 'nam'"),
        ("INSERT INTO old (i, text) VALUES (?, ?)", "no transactions"),
    ):
        case = SinkCase(tables.sink(server.url(database), sql), lambda: [])
        committer = case.sink.create_committer()
        with pytest.raises(HeadwaterError, match=words):
            committer.open(CommitterContext("job", "sink", "sink"))


def test_tables_of_sql_follow_look_up_and_write(server: MariaDbServer, database: str) -> None:
    """The changes of one table, with names from another, are a third: SQL's connectors mysql-cdc and jdbc."""
    server.run(
        database,
        CREATE,
        FILL,
        "CREATE TABLE names (id int PRIMARY KEY, title varchar(20), since time, ok bool)",
        "INSERT INTO names SELECT seq, concat('t', seq), '10:11:12', 1 FROM seq_1_to_300",
        "CREATE TABLE kinds (kind int PRIMARY KEY, n bigint, total decimal(20, 2))",
        "CREATE TABLE target (id int, title varchar(20), since time, ok bool)",
        "CREATE TABLE log (kind int, n bigint) ENGINE = MyISAM",
    )
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    url = f"jdbc:mysql:{database}?unix_socket={server.socket}&user=root"
    for name, columns in (
        ("kinds", "kind INT, n BIGINT, total DECIMAL(20, 2), PRIMARY KEY (kind) NOT ENFORCED"),
        ("names", "id INT, title STRING, since TIME, ok BOOLEAN"),
        ("target", "id INT, title STRING, since TIME, ok BOOLEAN"),
        ("log", "kind INT, n BIGINT, PRIMARY KEY (kind) NOT ENFORCED"),
    ):
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = '{name}')"
        )
    environment.execute_sql(
        "CREATE TABLE items (id INT, name STRING, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH"
        " ('connector' = 'mysql-cdc', 'jdbc.properties.sslMode' = 'preferred',"
        f" 'hostname' = '{server.socket}', 'username' = 'root', 'database-name' ="
        f" '{database}', 'table-name' = 'items')"
    )
    query = "SELECT MOD(id, 3), COUNT(*), SUM(price) FROM items GROUP BY MOD(id, 3)"
    with in_process(epoch_records=50):
        environment.execute_sql("INSERT INTO target SELECT * FROM names WHERE id < 3").wait()
        assert [row[1:] for row in sorted(server.run(database, "SELECT * FROM target"))] == [
            (f"t{each}", timedelta(hours=10, minutes=11, seconds=12), 1) for each in (1, 2)
        ]
        client = environment.execute_sql(f"INSERT INTO kinds {query}").get_job_client()
        assert client is not None
        server.run(database, "UPDATE items SET price = 1 WHERE id < 100", "DELETE FROM items WHERE id % 3 = 0")
        expected = server.run(database, query)
        wait_until(lambda: sorted(server.run(database, "SELECT * FROM kinds")) == sorted(expected), "the totals")
        client.cancel().result()
        for error in ("no transactions", "no primary or unique key"):
            with pytest.raises(HeadwaterError, match=error):
                environment.execute_sql("INSERT INTO log VALUES (1, 2)").wait()
            server.run(database, "ALTER TABLE log ENGINE = InnoDB")


@pytest.mark.parametrize(
    ("column", "declared", "good", "bad", "words"),
    [
        ("tinyint", Types.INT(), [127, -128, None], 128, "is tinyint.*range"),
        ("smallint unsigned", Types.INT(), [65535, 0], -1, "unsigned.*range"),
        ("bigint unsigned", Types.BIG_INT(), [2**64 - 1], 2**64, "unsigned.*range"),
        ("decimal(5,2)", Types.BIG_DEC(), [Decimal("999.99")], Decimal("1000"), "range"),
        ("varchar(3)", Types.STRING(), ["äöü", None], "abcd", "at most 3 characters"),
        ("varchar(3) NOT NULL", Types.STRING(), ["a"], None, "takes no NULL"),
        ("int NOT NULL AUTO_INCREMENT PRIMARY KEY", Types.INT(), [None, 5], 2**31 - 1 << 1, "range|integer|INT"),
    ],
)
def test_rows_that_the_table_would_refuse_are_refused_by_the_writer(
    server: MariaDbServer, database: str, column: str, declared: Any, good: list[Any], bad: Any, words: str
) -> None:
    server.run(database, f"CREATE TABLE limited (v {column}, w int)")
    sql, types = "INSERT INTO `limited` (`v`, w) VALUES (?, ?)", Types.ROW([declared, Types.INT()])
    case = SinkCase(JdbcSink.sink(sql, types, tables.options(server.url(database))), lambda: [])
    committer = committer_of(case)
    committer.commit(write(case, [Row(value, 1) for value in good], 1))
    assert len(server.run(database, "SELECT * FROM limited")) == len(good)
    with pytest.raises(SerializationError, match=words):
        write(case, [Row(bad, 1)], 2)


def test_a_row_that_the_database_refuses_at_the_commit_is_named(server: MariaDbServer, database: str) -> None:
    server.run(database, "CREATE TABLE numbers (i bigint, text varchar(9), CONSTRAINT not_37 CHECK (i <> 37))")
    case = SinkCase(tables.sink(server.url(database)), lambda: [])
    with pytest.raises(HeadwaterError, match=r"table numbers refuses the row \[37, 't'\]: .*not_37"):
        committer_of(case).commit(write(case, [Row(i, "t") for i in range(50)], 1))
    assert server.run(database, "SELECT count(*) FROM numbers") == [(0,)]
