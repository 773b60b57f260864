"""Tables of SQL in databases: read once, looked up, and written exactly once, with real servers."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import HeadwaterError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import JobCrashed, in_process
from tests.postgres_server import jdbc_url
from tests.unit.connectors.jdbc.tables import run

TYPES = (
    "id INT, name STRING, ok BOOLEAN, f DOUBLE, d DECIMAL(10, 2), dt DATE, tm TIME, ts TIMESTAMP(6),"
    " l TIMESTAMP_LTZ(6), b BYTES"
)
SQL_TYPES = (
    "id int PRIMARY KEY, name text, ok boolean, f double precision, d numeric(10, 2), dt date, tm time, ts timestamp,"
    " l timestamptz, b bytea"
)
NULLS = ("STRING", "BOOLEAN", "DOUBLE", "DECIMAL(10, 2)", "DATE", "TIME", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "BYTES")
VALUES = (
    "(1, 'a', TRUE, CAST(1.5 AS DOUBLE), CAST(1.25 AS DECIMAL(10, 2)), DATE '2020-02-03', TIME '10:11:12', TIMESTAMP"
    " '2020-01-01 00:00:00.123456', TO_TIMESTAMP_LTZ(1500, 3), X'00ff'),"
    f" (2, {', '.join(f'CAST(NULL AS {each})' for each in NULLS)})"
)


@pytest.fixture
def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    return environment


def rows(tables: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with tables.execute_sql(query).collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


def create(tables: TableEnvironment, name: str, columns: str, url: str, more: str = "", table: str = "") -> None:
    tables.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' ="
        f" '{table or name}'{more})"
    )


@pytest.fixture(params=["postgres", "sqlite"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the tables t and u, of all types."""
    if request.param == "sqlite":
        with sqlite3.connect(tmp_path / "db") as connection:
            for name in "tu":
                connection.execute(f"CREATE TABLE {name} ({SQL_TYPES})")
        return f"jdbc:sqlite:{tmp_path}/db"
    uri = request.getfixturevalue("database")
    run(uri, f"CREATE TABLE t ({SQL_TYPES})", f"CREATE TABLE u ({SQL_TYPES})")
    return jdbc_url(uri)


def test_a_table_holds_rows_of_all_types(tables: TableEnvironment, anywhere: str) -> None:
    create(tables, "t", TYPES, anywhere)
    create(tables, "u", f"{TYPES}, PRIMARY KEY (id) NOT ENFORCED", anywhere)
    with in_process():
        expected = rows(tables, f"SELECT * FROM (VALUES {VALUES}) v")
        tables.execute_sql(f"INSERT INTO t VALUES {VALUES}").wait()
        assert rows(tables, "SELECT * FROM t") == expected
        for _ in range(2):  # with a key, the second time replaces
            tables.execute_sql("INSERT INTO u SELECT * FROM t").wait()
            assert rows(tables, "SELECT * FROM u") == expected
        assert rows(tables, "SELECT name, 1 FROM u WHERE id = 1") == [("a", 1)]


GENERATED = (
    "CREATE TABLE g (id INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence',"
    " 'fields.id.start' = '1', 'fields.id.end' = '60')"
)


@pytest.mark.parametrize("at", ["manifest-written", "sink-committed"])
def test_totals_are_replaced_and_deleted_once_over_a_crash(tables: TableEnvironment, database: str, at: str) -> None:
    """Groups grow, and leave the result when HAVING does not hold any more: the table is what the query says."""
    run(database, "CREATE TABLE totals (k int PRIMARY KEY, n bigint, UNIQUE (n, k))")
    tables.execute_sql(GENERATED)
    create(tables, "totals", "k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", jdbc_url(database))
    insert = (
        "INSERT INTO totals SELECT MOD(id, 5), COUNT(*) FROM g GROUP BY MOD(id, 5) HAVING MAX(id) < 59 OR COUNT(*) < 4"
    )
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=2, at=at)
        with pytest.raises(JobCrashed):
            tables.execute_sql(insert).wait()
        tables.execute_sql(insert).wait()
    assert sorted(run(database, "SELECT k, n FROM totals")) == [(1, 12), (2, 12), (3, 12)]


def test_rows_are_appended_once_over_a_crash(tables: TableEnvironment, database: str) -> None:
    run(database, "CREATE TABLE target (id int)")
    tables.execute_sql(GENERATED)
    create(tables, "target", "id INT", jdbc_url(database))
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=2, at="manifest-written")
        with pytest.raises(JobCrashed):
            tables.execute_sql("INSERT INTO target SELECT id FROM g").wait()
        tables.execute_sql("INSERT INTO target SELECT id FROM g").wait()
    assert sorted(run(database, "SELECT id FROM target")) == [(each,) for each in range(1, 61)]


@pytest.mark.parametrize("key", ["PRIMARY KEY", "UNIQUE NULLS DISTINCT", ""], ids=["key", "unique", "none"])
def test_a_scan_goes_on_where_it_was(tables: TableEnvironment, database: str, key: str) -> None:
    run(
        database,
        f"CREATE TABLE source (id int {key}, name text)",
        "INSERT INTO source SELECT i, 'n' || i FROM generate_series(1, 100) i",
        "CREATE TABLE target (id int, name text)",
    )
    for name in ("source", "target"):
        create(tables, name, "id INT, name STRING", jdbc_url(database))
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=2, at="manifest-written")
        with pytest.raises(JobCrashed):
            tables.execute_sql("INSERT INTO target SELECT id, name FROM (SELECT id, name FROM source) s").wait()
        tables.execute_sql("INSERT INTO target SELECT id, name FROM (SELECT id, name FROM source) s").wait()
    assert sorted(run(database, "SELECT id, name FROM target")) == [(each, f"n{each}") for each in range(1, 101)]


@pytest.mark.parametrize("cache", ["NONE", "PARTIAL", "FULL"])
def test_rows_are_looked_up(tables: TableEnvironment, database: str, cache: str) -> None:
    run(
        database,
        "CREATE TABLE names (id int, kind uuid, name json, ts timestamptz)",
        "INSERT INTO names SELECT i % 40, md5('x')::uuid, ('{\"n\": ' || i || '.10}')::json, now() FROM"
        " generate_series(1, 80) i",
    )
    tables.execute_sql(GENERATED)
    more = ", 'lookup.partial-cache.max-rows' = '10'" if cache == "PARTIAL" else ""
    columns = "id INT, kind STRING, name STRING"
    create(tables, "names", columns, jdbc_url(database), f", 'lookup.cache' = '{cache}'{more}")
    query = "SELECT g.id, n.name, n.kind FROM g LEFT JOIN names FOR SYSTEM_TIME AS OF g.p AS n ON g.id = n.id"
    with in_process():
        found = rows(tables, query)
    kind = "9dd4e461-268c-8034-f5c8-564e155c67a6"
    expected = [(each, f'{{"n": {each + more}.10}}', kind) for each in range(1, 40) for more in (0, 40)]
    assert found == sorted(expected + [(each, None, None) for each in range(40, 61)], key=repr)


def test_a_lookup_by_two_columns(tables: TableEnvironment, database: str) -> None:
    run(database, "CREATE TABLE names (id int, k text, v int)", "INSERT INTO names VALUES (1, 'a', 1), (1, 'b', 2)")
    tables.execute_sql(GENERATED)
    create(tables, "names", "id INT, k STRING, v INT", jdbc_url(database))
    query = "SELECT g.id, n.v FROM g JOIN names FOR SYSTEM_TIME AS OF g.p AS n ON g.id = n.id AND n.k = {}"
    with in_process():
        assert rows(tables, query.format("'b'")) == [(1, 2)]
        assert rows(tables, query.format("CAST(g.id AS STRING)")) == []


@pytest.mark.parametrize(
    ("columns", "more", "error"),
    [
        ("id INT", ", 'scan.fetchsize' = '1'", "did you mean 'scan.fetch-size'"),
        ("id INT", ", 'scan.fetch-size' = '-1'", "no whole number of at least 0"),
        ("id INT", ", 'scan.partition.column' = 'id'", "go together"),
        ("id INT", ", 'scan.auto-commit' = 'true'", "'scan.auto-commit' is 'false' only"),
        ("id INT", ", 'connection.max-retry-timeout' = '1 s'", "'connection.max-retry-timeout' is not there"),
        ("id MAP<INT, INT>", "", "no type that the database has"),
        ("nam STRING", "", "has no column 'nam'; did you mean 'name'"),
        ("name INT", "", "column 'name' of table 't' is of another type in the database, and INT was declared"),
        ("id STRING", "", "column 'id' of table 't' is integer in the database, and STRING was declared"),
        ("ts TIMESTAMP_LTZ(3)", "", "is timestamp in the database, and TIMESTAMP_LTZ"),
        ("d DECIMAL(10, 1)", "", "1.25 has more than 1 digits"),
        ("big INT", "", "column 'big' is INT, and a value does not fit"),
    ],
)
def test_what_cannot_be_read_is_told(
    tables: TableEnvironment, database: str, columns: str, more: str, error: str
) -> None:
    run(
        database,
        "CREATE TABLE t (id int, name text, ts timestamp, d numeric(10, 2), big bigint)",
        "INSERT INTO t VALUES (1, 'a', now(), 1.25, 10000000000)",
    )
    create(tables, "t", columns, jdbc_url(database), more)
    with in_process(), pytest.raises(HeadwaterError, match=error):
        rows(tables, "SELECT * FROM t")


@pytest.mark.parametrize(
    ("columns", "query", "error"),
    [
        ("id INT, v BIGINT, PRIMARY KEY (v) NOT ENFORCED", "VALUES (1, 2)", "no unique or exclusion constraint"),
        ("id INT, w BIGINT", "VALUES (1, 2)", "w"),
        ("id INT, v STRING", "VALUES (1, 'x')", "of type bigint"),
        ("id INT, ts TIMESTAMP(3)", "VALUES (1, LOCALTIMESTAMP)", "is timestamptz in the database"),
        ("id INT, v BIGINT", "SELECT 1, COUNT(*) FROM g", "only takes new rows"),
    ],
)
def test_what_cannot_be_written_is_told(
    tables: TableEnvironment, database: str, columns: str, query: str, error: str
) -> None:
    run(database, "CREATE TABLE t (id int PRIMARY KEY, v bigint, ts timestamptz)")
    tables.execute_sql(GENERATED)
    create(tables, "t", columns, jdbc_url(database))
    with in_process(), pytest.raises(HeadwaterError, match=error):
        tables.execute_sql(f"INSERT INTO t {query}").wait()
    assert run(database, "SELECT * FROM t") == []


def test_a_secret_is_shown_to_nobody(tables: TableEnvironment, database: str, postgres: Any) -> None:
    url = jdbc_url(database, "nobody").replace("?", "?password=geheim&")
    create(tables, "t", "id INT", url, ", 'password' = 'geheim', 'username' = 'nobody'")
    with tables.execute_sql("SHOW CREATE TABLE t").collect() as found:
        texts = [str(next(found)[0]), tables.explain_sql("SELECT * FROM t")]
    with pytest.raises(HeadwaterError, match="reserved word") as misspelled:
        create(tables, "t", "at INT", url, ", 'password' = 'geheim'")
    texts.append(str(misspelled.value))
    with in_process(), pytest.raises(HeadwaterError, match="nobody") as failed:
        rows(tables, "SELECT * FROM t")
    assert all("geheim" not in text for text in (*texts, str(failed.value)))
    assert "'password' = '******'" in texts[0]


@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("id > 3 AND id <> 7", '"id" > 3 AND "id" <> 7'),
        ("5 >= id", '"id" <= 5'),
        (
            "id BETWEEN 3 AND 6 AND kind IN ('x', '9dd4e461-268c-8034-f5c8-564e155c67a6')",
            '"id" BETWEEN 3 AND 6 AND "kind"::text IN (\'x\'',
        ),
        ("id NOT IN (1, 2)", ""),
        ("name = 'it''s' OR id IS NULL", "(\"name\"::text = 'it''s' OR \"id\" IS NULL)"),
        ("name > 'b'", ""),
        ("name = 'a%'", ""),
        ("id < 4 AND UPPER(name) = 'X'", '"id" < 4'),
        ("(id = 1 AND name < 'c') OR dt = DATE '2020-01-02'", '(("id" = 1) OR "dt" = \'2020-01-02\')'),
        ("id = 1 OR name < 'c'", ""),
        ("id + 1 = 3", ""),
    ],
)
def test_filters_go_to_the_database_and_change_nothing(
    tables: TableEnvironment, database: str, condition: str, pushed: str
) -> None:
    run(
        database,
        "CREATE TABLE t (id int, name text COLLATE \"C\", dt date, kind uuid DEFAULT md5('x')::uuid)",
        "INSERT INTO t (id, name, dt) SELECT nullif(i, 9), (ARRAY['x', 'it''s', 'a%', 'b', NULL])[1 + i % 5], date"
        " '2020-01-01' + i FROM generate_series(1, 20) i",
    )
    create(tables, "t", "id INT, name STRING, dt DATE, kind STRING", jdbc_url(database))
    query = f"SELECT id, name FROM t WHERE {condition}"
    plan = tables.explain_sql(query)
    assert f", filter=[{pushed}" in plan if pushed else "filter=[" not in plan
    twice = tables.explain_sql(f"{query} UNION ALL SELECT id, name FROM t WHERE id = 2")
    assert "filter=[" not in twice, "both scans must see the same rows"
    expected = run(database, query.replace("kind IN", "kind::text IN"))
    with in_process():
        assert rows(tables, query) == sorted(expected, key=repr)


def test_ranges_have_all_rows(tables: TableEnvironment, database: str) -> None:
    run(database, "CREATE TABLE t (id int, v int)", "INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 100) i")
    more = (
        ", 'scan.partition.column' = 'v', 'scan.partition.num' = '3', 'scan.partition.lower-bound' = '2',"
        " 'scan.partition.upper-bound' = '6', 'scan.fetch-size' = '7'"
    )
    create(tables, "t", "id INT", jdbc_url(database), more)
    with in_process(epoch_records=10):
        assert rows(tables, "SELECT id FROM t") == sorted(((each,) for each in range(1, 101)), key=repr)


def test_rows_as_they_come_are_the_same_table(tables: TableEnvironment, database: str) -> None:
    run(database, "CREATE TABLE totals (k int PRIMARY KEY, n bigint)")
    tables.execute_sql(GENERATED)
    more = (
        ", 'sink.delivery-guarantee' = 'at-least-once', 'sink.buffer-flush.interval' = '1 ms',"
        " 'sink.buffer-flush.max-rows' = '1', 'sink.parallelism' = '1'"
    )
    create(tables, "totals", "k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", jdbc_url(database), more)
    with in_process(epoch_records=10) as here:
        here.fail_attempt(epoch=2)
        tables.execute_sql(
            "INSERT INTO totals SELECT MOD(id, 5), COUNT(*) FROM g GROUP BY MOD(id, 5)"
            " HAVING COUNT(*) < 4 OR MAX(id) < 59"
        ).wait()
    assert sorted(run(database, "SELECT k, n FROM totals")) == [(1, 12), (2, 12), (3, 12)]
