"""The sink against a real PostgreSQL: what goes wrong, and what crashes cost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from datetime import time as clock_time
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from headwater.common import Row, Types
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError, SerializationError
from headwater.common.time import Instant
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.jdbc import (
    DeliveryGuarantee,
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from headwater.datastream.connectors.jdbc import (
    postgres as dialect,
)
from headwater.datastream.connectors.jdbc.database import open_database
from headwater.testing import STEPS, JobCrashed, in_process
from headwater.testing.sink_contract import SinkCase, committer_of, write
from tests.postgres_server import PostgresServer, jdbc_url
from tests.unit.connectors.jdbc import tables

RECORDS = 200


def count_job(sink: JdbcSink) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_sequence(0, RECORDS - 1)
    keyed = numbers.map(lambda n: (n % 7, 1)).key_by(lambda pair: pair[0])
    counted = keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))
    counted.map(lambda pair: Row(pair[0], str(pair[1])), tables.ROW).add_sink(sink)
    env.execute("count")


COUNTED = sorted((key, str(number)) for key in range(7) for number in range(1, len(range(key, RECORDS, 7)) + 1))


@pytest.mark.parametrize("at", STEPS)
def test_a_crash_at_each_step_writes_each_row_once(database: str, at: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    with in_process(epoch_records=40) as here:
        here.crash_job(epoch=2, at=at)
        with pytest.raises(JobCrashed):
            count_job(tables.sink(database))
        count_job(tables.sink(database))
    assert sorted(tables.run(database, "SELECT i, text FROM numbers")) == COUNTED


@pytest.mark.parametrize("after", [False, True], ids=["before-commit", "after-commit"])
def test_a_connection_that_breaks_in_a_commit(database: str, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """The database commits, or not, and the answer is lost: the mark says which."""
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    connect = dialect.Postgres.connect
    broken = []

    def breaking(self: dialect.Postgres, purpose: str = "") -> Any:
        connection = connect(self, purpose)
        commit = connection.commit

        def commit_and_break() -> None:
            wrote = connection.execute("SELECT count(*) FROM numbers").fetchone()[0]
            if wrote and len(broken) < 2:
                broken.append(wrote)
                if after:
                    commit()
                connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            commit()

        connection.commit = commit_and_break
        return connection

    monkeypatch.setattr(dialect.Postgres, "connect", breaking)
    with in_process(epoch_records=40):
        count_job(tables.sink(database))
    assert len(broken) == 2
    assert sorted(tables.run(database, "SELECT i, text FROM numbers")) == COUNTED


def test_a_restart_of_the_database_costs_only_time(postgres: PostgresServer) -> None:
    database = postgres.new_database()
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    with in_process(epoch_records=40) as here:
        here.call(lambda job: postgres.restart(), epoch=2, at="manifest-written")
        count_job(tables.sink(database))
    assert sorted(tables.run(database, "SELECT i, text FROM numbers")) == COUNTED


def test_upserts_keep_the_last_row_of_each_key(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint PRIMARY KEY, text text)")
    with in_process(epoch_records=40):
        count_job(tables.sink(database, tables.UPSERT))
    assert dict(tables.run(database, "SELECT * FROM numbers")) == {k: str(len(range(k, RECORDS, 7))) for k in range(7)}


def test_at_least_once_writes_as_it_goes(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    execution = JdbcExecutionOptions.builder().with_batch_size(10).with_batch_interval_ms(5).build()
    with in_process(epoch_records=40) as here:
        here.fail_attempt(epoch=1)
        count_job(tables.sink(database, guarantee=DeliveryGuarantee.AT_LEAST_ONCE, execution=execution))
    found = tables.run(database, "SELECT i, text FROM numbers")
    assert set(found) == set(COUNTED) and len(found) > len(COUNTED)
    assert tables.run(database, "SELECT to_regclass('headwater_sink_marks')") == [(None,)]


def test_all_types(database: str) -> None:
    tables.run(
        database,
        "CREATE TABLE all_types (a smallint, b integer, c bigint, d double precision, e numeric, f boolean, g text, "
        "h bytea, i date, j time, k timestamp, l timestamptz, m text[], n jsonb, o bigint[])",
    )
    names = list("abcdefghijklmno")
    types = [
        Types.SHORT(), Types.INT(), Types.LONG(), Types.DOUBLE(), Types.BIG_DEC(), Types.BOOLEAN(), Types.STRING(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.INSTANT(),
        Types.OBJECT_ARRAY(Types.STRING()), Types.MAP(Types.STRING(), Types.INT()), Types.LIST(Types.LONG()),
    ]  # fmt: skip
    stamp = datetime(2024, 2, 29, 1, 2, 3, 456789)
    values: list[Any] = [
        -1, 2, 1 << 40, 1.5, Decimal("1.10"), True, 'a\\N\t"\n{ä', b"\0\xff\\", date(2024, 2, 29), clock_time(1, 2, 3),
        stamp, Instant(1_700_000_000, 5000), ['x"', "\\y,{}", "", "NULL"], {"k": 1}, [1, 2],
    ]  # fmt: skip
    for sql in (
        f"INSERT INTO all_types ({', '.join(names)}) VALUES ({', '.join('?' * 15)})",
        f"INSERT INTO all_types SELECT {', '.join('?' * 13)}, ?::jsonb, ?",
    ):
        made = JdbcSink.sink(sql, Types.ROW(types), tables.options(jdbc_url(database)))
        case = SinkCase(made, lambda: [])
        committer_of(case).commit(write(case, [Row(*values), Row(*[None] * 15)], 1))
    first, nulls, *again = tables.run(database, "SELECT * FROM all_types")
    assert again == [first, nulls]
    assert nulls == (None,) * 15
    expected = [*values]
    expected[11] = datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=5)
    assert list(first) == expected


# --- what goes wrong


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("INSERT INTO nothing (i, text) VALUES (?, ?)", 'relation "nothing" does not exist'),
        ("INSERT INTO numbers (i, txt) VALUES (?, ?)", 'column "txt" of relation "numbers" does not exist'),
        ("INSERT INTO numbers (text, i) VALUES (?, ?)", "value 1 of the statement is of type text"),
        ("INSERT INTO numbers (i, text) VALUES (?, ?", "syntax error"),
    ],
)
@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
def test_a_statement_that_cannot_run(database: str, sql: str, words: str, guarantee: DeliveryGuarantee) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    with in_process(), pytest.raises(HeadwaterError) as raised:
        count_job(tables.sink(database, sql, guarantee))
    assert words in str(raised.value) and "PostgreSQL database 'test_" in str(raised.value)
    assert not isinstance(raised.value, ExternalSystemError)


def test_rights_that_are_missing(database: str) -> None:
    tables.run(
        database,
        "CREATE TABLE numbers (i bigint, text text)",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON numbers TO reader",
    )
    with in_process(), pytest.raises(HeadwaterError, match="cannot make the table of marks") as raised:
        count_job(tables.sink(jdbc_url(database, "reader")))
    assert "GRANT" in raised.value.__notes__[0].upper()
    tables.run(database, "GRANT CREATE ON SCHEMA public TO reader")
    with in_process(), pytest.raises(HeadwaterError, match="permission denied for table numbers"):
        count_job(tables.sink(jdbc_url(database, "reader")))


def test_a_wrong_password_is_an_error_without_it(postgres: PostgresServer) -> None:
    database = postgres.new_database()
    tables.run(database, "DROP ROLE IF EXISTS guarded", "CREATE ROLE guarded LOGIN PASSWORD 'right'")
    ((hba,),) = tables.run(database, "SHOW hba_file")
    with open(hba) as file:
        rules = file.read()
    with open(hba, "w") as file:
        file.write(f"local all guarded scram-sha-256\n{rules}")
    tables.run(database, "SELECT pg_reload_conf()")
    url = jdbc_url(database).replace("&user=postgres", "")
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_user_name("guarded")
    made = JdbcSink.sink(tables.INSERT, tables.ROW, builder.with_password("wrong-one").build())
    with in_process(), pytest.raises(HeadwaterError, match="password authentication failed") as raised:
        count_job(made)
    assert "wrong-one" not in str(raised.value) + repr(made)


def test_tls_is_libpqs() -> None:
    url = "jdbc:postgresql://localhost/x?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem"
    found = open_database(tables.options(url), "test").connection_settings()  # type: ignore[attr-defined]
    assert {name: value for name, value in found.items() if name.startswith("ssl")} == {
        "sslmode": "verify-full", "sslrootcert": "/ca.pem", "sslcert": "/c.pem", "sslkey": "/k.pem",
    }  # fmt: skip


def test_a_wrong_host_is_an_error_within_seconds() -> None:
    made = tables.sink("jdbc:postgresql://localhost:1/x?connect_timeout=2")
    with in_process(), pytest.raises(HeadwaterError, match=r"PostgreSQL database 'x' at localhost:1: .*refused"):
        count_job(made)


def test_secrets_are_looked_up_where_they_are_used(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    made = tables.sink(jdbc_url(database, "${env:DB_USER}"))
    with in_process(), pytest.raises(ConfigurationError, match="DB_USER"):
        count_job(made)
    monkeypatch.setenv("DB_USER", "postgres")
    with in_process():
        count_job(made)
    assert len(tables.run(database, "SELECT 1 FROM numbers")) == RECORDS


@pytest.mark.parametrize("value", [Row("one", "a"), Row(1 << 70, "a"), Row(1, "a\0b"), Row(1, "\ud800"), Row(1)])
def test_a_row_that_does_not_fit_is_refused_before_a_checkpoint_promises_it(database: str, value: Row) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    writes: Callable[[], Any] = lambda: write(SinkCase(tables.sink(database), lambda: []), [value], 1)  # noqa: E731
    with pytest.raises(SerializationError, match="JdbcSink"):
        writes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tables.sink("jdbc:h2:mem"), "no database that headwater knows"),
        (lambda: tables.sink("jdbc:sqlite:/x", "INSERT INTO t VALUES (?)"), "1 values .* 2 fields"),
        (
            lambda: JdbcSink.sink("INSERT INTO t VALUES (?)", Types.INT(), tables.options("jdbc:sqlite:/x")),
            "type of rows",
        ),
        (
            lambda: JdbcSink.sink(tables.INSERT, tables.ROW, JdbcConnectionOptions.JdbcConnectionOptionsBuilder()),
            "build()",
        ),  # type: ignore[arg-type]
        (lambda: tables.sink("jdbc:sqlite:/x", guarantee=DeliveryGuarantee.NONE), "AT_LEAST_ONCE"),
        (lambda: JdbcExecutionOptions.builder().with_batch_size(0), "at least 1"),
        (lambda: tables.options("postgres://x"), "with_url"),
    ],
)
def test_options_that_mean_nothing(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()


def test_a_stopped_driver_cannot_block_the_next_one(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that hangs in its commit holds the lock of the mark: its session is ended."""
    monkeypatch.setattr(dialect, "LOCK_SECONDS", 1)
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    case = SinkCase(tables.sink(database), lambda: [])
    committables = write(case, [Row(1, "a")], 1)
    zombie = committer_of(case)
    writes = zombie._write  # type: ignore[attr-defined]
    holds, goes_on = threading.Event(), threading.Event()

    def hanging(connection: Any, group: Any) -> None:
        key = zombie._key(group[0])  # type: ignore[attr-defined]
        zombie._database.lock_mark(connection, key)  # type: ignore[attr-defined]
        holds.set()
        assert goes_on.wait(30)
        writes(connection, group)

    monkeypatch.setattr(zombie, "_write", hanging)
    errors: list[Exception] = []

    def commit() -> None:
        try:
            zombie.commit(committables)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    assert holds.wait(30)
    committer_of(case).commit(committables)
    goes_on.set()
    thread.join()
    assert tables.run(database, "SELECT * FROM numbers") == [(1, "a")]
