"""What a table of PostgreSQL has beside its columns decides how rows come: the result is that of the statements."""

from __future__ import annotations

import warnings
from typing import Any
from urllib.parse import urlsplit

import pytest

from headwater.common import Row, Types
from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.jdbc import DeliveryGuarantee, JdbcSink
from headwater.datastream.connectors.jdbc.copy_text import copy_text, rows_of
from headwater.testing.sink_contract import SinkCase, committer_of, write
from tests.postgres_server import jdbc_url
from tests.unit.connectors.jdbc import tables

CREATE = "CREATE TABLE numbers (i bigint UNIQUE, text text)"
DO_NOTHING = f"{tables.INSERT} ON CONFLICT (i) DO NOTHING"
LOOK = "SELECT i, text FROM numbers ORDER BY i, text"


@pytest.fixture
def role(database: str) -> str:
    """A user of its own that may make the table of marks."""
    name = f"user_{urlsplit(database).path[1:]}"
    tables.run(database, f"CREATE ROLE {name} LOGIN", f"GRANT CREATE ON SCHEMA public TO {name}")
    return name


def commit(url: str, sql: str, rows: list[Row], guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE) -> None:
    case = SinkCase(tables.sink(url, sql, guarantee), lambda: [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        committer = committer_of(case)
    committer.commit(write(case, rows, 1))


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
@pytest.mark.parametrize("sql", [tables.UPSERT, DO_NOTHING], ids=["update", "nothing"])
def test_rows_whose_key_is_null_conflict_with_none(database: str, sql: str, guarantee: DeliveryGuarantee) -> None:
    tables.run(database, CREATE)
    commit(database, sql, [Row(None, "a"), Row(1, "b"), Row(None, "c"), Row(1, "b"), Row(None, "a")], guarantee)
    assert tables.run(database, LOOK) == [(1, "b"), (None, "a"), (None, "a"), (None, "c")]


@pytest.mark.parametrize("keys", ["(i)", "(i) INCLUDE (text)"])
def test_nulls_that_are_not_distinct_conflict(database: str, keys: str) -> None:
    tables.run(database, CREATE.replace(" UNIQUE", ""), f"CREATE UNIQUE INDEX ON numbers {keys} NULLS NOT DISTINCT")
    commit(database, tables.UPSERT, [Row(None, "a"), Row(1, "b"), Row(None, "c")])
    assert tables.run(database, LOOK) == [(1, "b"), (None, "c")]


def test_a_key_of_several_columns_some_null(database: str) -> None:
    tables.run(database, "CREATE TABLE pairs (b int, a int, text text, UNIQUE (a, b))")
    sql = "INSERT INTO pairs (a, b, text) VALUES (?, ?, ?) ON CONFLICT (a, b) DO UPDATE SET text = EXCLUDED.text"
    types = Types.ROW([Types.INT(), Types.INT(), Types.STRING()])
    case = SinkCase(JdbcSink.sink(sql, types, tables.options(jdbc_url(database))), lambda: [])
    rows = [Row(1, None, "x"), Row(1, None, "y"), Row(1, 2, "x"), Row(1, 2, "y"), Row(None, None, "x")]
    committer_of(case).commit(write(case, rows, 1))
    found = tables.run(database, "SELECT a, b, text FROM pairs ORDER BY a, b, text")
    assert found == [(1, 2, "y"), (1, None, "x"), (1, None, "y"), (None, None, "x")]


@pytest.mark.parametrize("sql", [tables.INSERT, tables.UPSERT], ids=["insert", "upsert"])
def test_a_view(database: str, sql: str) -> None:
    tables.run(database, CREATE.replace("numbers", "base"), "CREATE VIEW numbers AS SELECT * FROM base")
    commit(database, sql, [Row(1, "a"), Row(2, "\\N\t\n\\"), Row(3, None)])
    assert tables.run(database, LOOK) == [(1, "a"), (2, "\\N\t\n\\"), (3, None)]


def test_rules_of_a_table_are_followed(database: str) -> None:
    rule = "CREATE RULE also AS ON INSERT TO numbers DO ALSO INSERT INTO log VALUES (NEW.i)"
    tables.run(database, CREATE, "CREATE TABLE log (i bigint)", rule)
    commit(database, tables.INSERT, [Row(1, "a"), Row(2, "b")])
    assert tables.run(database, "SELECT * FROM log ORDER BY i") == [(1,), (2,)]


def test_a_rule_that_is_made_while_the_job_runs_is_followed(database: str) -> None:
    tables.run(database, CREATE)
    case = SinkCase(tables.sink(database), lambda: [])
    committer = committer_of(case)
    committables = write(case, [Row(1, "a")], 1)
    tables.run(database, "CREATE RULE gone AS ON INSERT TO numbers DO INSTEAD NOTHING")
    committer.commit(committables)
    assert tables.run(database, LOOK) == []


def test_a_trigger_that_changes_the_key_of_an_upsert(database: str) -> None:
    function = "CREATE FUNCTION last_digit() RETURNS trigger AS $$ BEGIN NEW.i := NEW.i % 10; RETURN NEW; END $$"
    trigger = "CREATE TRIGGER t BEFORE INSERT ON numbers FOR EACH ROW EXECUTE FUNCTION last_digit()"
    tables.run(database, CREATE, f"{function} LANGUAGE plpgsql", trigger)
    commit(database, tables.UPSERT, [Row(1, "a"), Row(11, "b")])
    assert tables.run(database, LOOK) == [(1, "b")]


def test_a_trigger_of_a_partition_counts(database: str) -> None:
    function = (
        "CREATE FUNCTION noted() RETURNS trigger AS $$ BEGIN INSERT INTO log VALUES (NEW.text); RETURN NULL; END $$"
    )
    tables.run(
        database,
        "CREATE TABLE numbers (i bigint PRIMARY KEY, text text) PARTITION BY RANGE (i)",
        "CREATE TABLE low PARTITION OF numbers FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE log (text text)",
        f"{function} LANGUAGE plpgsql",
        "CREATE TRIGGER t AFTER INSERT OR UPDATE ON low FOR EACH ROW EXECUTE FUNCTION noted()",
    )
    commit(database, tables.UPSERT, [Row(1, "a"), Row(1, "b")])
    assert tables.run(database, "SELECT text FROM log ORDER BY text") == [("a",), ("b",)]


@pytest.mark.parametrize("sql", [tables.INSERT, tables.UPSERT], ids=["insert", "upsert"])
def test_row_level_security(database: str, role: str, sql: str) -> None:
    tables.run(
        database,
        CREATE,
        "ALTER TABLE numbers ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY all_rows ON numbers USING (true) WITH CHECK (true)",
        f"GRANT INSERT, SELECT, UPDATE ON numbers TO {role}",
    )
    commit(jdbc_url(database, role), sql, [Row(1, "a"), Row(2, "b")])
    assert tables.run(database, LOOK) == [(1, "a"), (2, "b")]


def test_an_upsert_of_a_user_who_may_make_no_temporary_tables(database: str, role: str) -> None:
    revoked = f"REVOKE TEMPORARY ON DATABASE {urlsplit(database).path[1:]} FROM PUBLIC"
    tables.run(database, CREATE, f"GRANT INSERT, SELECT, UPDATE ON numbers TO {role}", revoked)
    commit(jdbc_url(database, role), tables.UPSERT, [Row(1, "a"), Row(1, "b")])
    assert tables.run(database, LOOK) == [(1, "b")]


def test_an_upsert_of_a_user_who_may_not_select(database: str, role: str) -> None:
    tables.run(database, CREATE, f"GRANT INSERT ON numbers TO {role}", f"GRANT SELECT (i) ON numbers TO {role}")
    commit(jdbc_url(database, role), DO_NOTHING, [Row(1, "a"), Row(1, "b")])
    assert tables.run(database, LOOK) == [(1, "a")]


def test_the_slow_way_is_said_when_the_job_starts(database: str) -> None:
    tables.run(database, CREATE.replace("numbers", "base"), "CREATE VIEW numbers AS SELECT * FROM base")
    case = SinkCase(tables.sink(database), lambda: [])
    with pytest.warns(UserWarning, match="by single statements, not by COPY: it is no plain table"):
        committer_of(case)


def test_marks_that_cannot_be_set_are_found_when_the_job_starts(database: str, role: str) -> None:
    case = SinkCase(tables.sink(jdbc_url(database, role)), lambda: [])
    tables.run(database, CREATE, f"GRANT INSERT ON numbers TO {role}")
    committer_of(SinkCase(tables.sink(database), lambda: []))  # makes the table of marks, as its owner
    with pytest.raises(HeadwaterError, match=r"cannot set a mark in .* permission denied") as raised:
        committer_of(case)
    assert "grant SELECT, INSERT and UPDATE" in raised.value.__notes__[0]
    tables.run(database, f"GRANT SELECT, INSERT, UPDATE ON headwater_sink_marks TO {role}")
    committer_of(case)
    assert tables.run(database, "SELECT * FROM headwater_sink_marks") == []


@pytest.mark.parametrize("text", ["a", "", "\\N", "\\", "\\\\N", "\t\n\r", "\\t", "ä\x85\u2028"])
def test_copied_text_can_be_read_back(text: str) -> None:
    rows: list[tuple[Any, ...]] = [(text, 1, None), (None, None, text)]
    assert rows_of(copy_text(rows, 3)) == [(text, "1", None), (None, None, text)]
