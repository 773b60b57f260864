"""Rows that the table would refuse are refused by the writer, before a checkpoint promises them."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Row, Types
from headwater.common.connector import CommitterContext
from headwater.common.errors import SerializationError
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.connectors.jdbc import DeliveryGuarantee, JdbcSink
from headwater.testing.sink_contract import SinkCase, committer_of, write
from tests.postgres_server import jdbc_url
from tests.unit.connectors.jdbc import tables

LONG, TEXT, DECIMAL, DOUBLE = Types.LONG(), Types.STRING(), Types.BIG_DEC(), Types.DOUBLE()
INSERT = "INSERT INTO limited (v, w) VALUES (?, ?)"
INF = float("inf")


def commit(url: str, declared: TypeInformation, *values: Any, sql: str = INSERT, once: bool = True) -> None:
    guarantee = DeliveryGuarantee.EXACTLY_ONCE if once else DeliveryGuarantee.AT_LEAST_ONCE
    sink = JdbcSink.sink(sql, Types.ROW([declared, LONG]), tables.options(url), delivery_guarantee=guarantee)
    case = SinkCase(sink, lambda: [])
    committer = committer_of(case)
    committer.commit(write(case, [Row(value, at) for at, value in enumerate(values)], 1))


@pytest.mark.parametrize("once", [True, False], ids=["exactly-once", "at-least-once"])
@pytest.mark.parametrize(
    ("column", "declared", "good", "bad", "words"),
    [
        ("smallint", LONG, [32767, -32768, None], 32768, "'v' of table 'limited' is smallint, and .* range: 32768"),
        ("integer", LONG, [2**31 - 1, -(2**31)], -(2**31) - 1, "is integer, and"),
        ("bigint", Types.BIG_INT(), [2**63 - 1, -(2**63)], 2**63, "is bigint, and"),
        ("integer", DOUBLE, [1.5, -0.5, None], 2.0**31, "is integer, and"),
        ("integer", DOUBLE, [1.0], INF, "is integer, and"),
        ("numeric(5,2)", DECIMAL, [Decimal("-999.994"), Decimal("NaN")], Decimal("999.995"), "range"),
        ("numeric(2,-3)", LONG, [99499], 99500, "range"),
        ("numeric(3,5)", DECIMAL, [Decimal("0.00999")], Decimal("0.01"), "range"),
        ("varchar(3)", TEXT, ["abc", "äöü", "abc  ", None], "abcd", "at most 3 characters, and this one has 4"),
        ("char(3)", TEXT, ["a", "abc "], "ab d", "at most 3"),
        ("bigint NOT NULL", LONG, [1], None, "is bigint NOT NULL, and it takes no NULL: None; row: .None, 1"),
        ("varchar(3) NOT NULL", TEXT, ["a"], None, "takes no NULL"),
        ("text", TEXT, ["a" * 5000, None], "a\0b", "JdbcSink"),
    ],
)  # fmt: skip
def test_postgres(
    database: str, column: str, declared: TypeInformation, good: list[Any], bad: Any, words: str, once: bool
) -> None:
    tables.run(database, f"CREATE TABLE limited (v {column}, w bigint)")
    url = jdbc_url(database)
    commit(url, declared, *good, once=once)
    assert tables.run(database, "SELECT count(*) FROM limited") == [(len(good),)]
    if once or bad != "a\0b":
        with pytest.raises(SerializationError, match=words):
            commit(url, declared, good[0], bad, once=once)


def test_numbers_with_fractions_are_rounded_as_by_insert(database: str) -> None:
    tables.run(database, "CREATE TABLE limited (v integer, w bigint)")
    commit(jdbc_url(database), DOUBLE, 1.5, 2.5, 7.0, None)
    assert tables.run(database, "SELECT v FROM limited ORDER BY w") == [(2,), (2,), (7,), (None,)]


def test_a_trigger_may_fill_in_what_is_null(database: str) -> None:
    function = "CREATE FUNCTION filled() RETURNS trigger AS $$ BEGIN NEW.v := 0; RETURN NEW; END $$ LANGUAGE plpgsql"
    trigger = "CREATE TRIGGER t BEFORE INSERT ON limited FOR EACH ROW EXECUTE FUNCTION filled()"
    tables.run(database, "CREATE TABLE limited (v bigint NOT NULL, w bigint)", function, trigger)
    commit(jdbc_url(database), LONG, None)
    assert tables.run(database, "SELECT v FROM limited") == [(0,)]


def test_names_in_quotes(database: str) -> None:
    tables.run(database, 'CREATE TABLE "Limited" ("V" smallint, v bigint, w bigint)')
    sql = 'INSERT INTO "Limited" ("V", w) VALUES (?, ?)'
    with pytest.raises(SerializationError, match="'V' of table"):
        commit(jdbc_url(database), LONG, 1 << 20, sql=sql)
    commit(jdbc_url(database), LONG, 1 << 20, sql=sql.replace('"V"', "V"))


def test_a_resumed_job_sees_the_table_as_it_is_now(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i smallint, text text)")
    case = SinkCase(tables.sink(database), lambda: [])
    committer_of(case)
    with pytest.raises(SerializationError, match="smallint"):
        write(case, [Row(1 << 20, "a")], 1)
    tables.run(database, "ALTER TABLE numbers ALTER i TYPE bigint")
    resumed = case.sink.create_committer()
    resumed.open(CommitterContext("job1", "sink", "sink", case.files, resumed_epoch=1))
    resumed.commit(write(case, [Row(1 << 20, "a")], 2))
    resumed.close()
    assert tables.run(database, "SELECT i FROM numbers") == [(1 << 20,)]


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "limited.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE limited (v text NOT NULL, w integer PRIMARY KEY NOT NULL)")
    commit(f"jdbc:sqlite:{path}", TEXT, "a")
    with pytest.raises(SerializationError, match=r"'v' of table 'limited' is (TEXT|text) NOT NULL"):
        commit(f"jdbc:sqlite:{path}", TEXT, None, sql="INSERT INTO limited (V, w) VALUES (?, ?)")
