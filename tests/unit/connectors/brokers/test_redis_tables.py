"""Tables of SQL in Redis, with a real server: rows are replaced and deleted exactly once, and looked up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from headwater.common.errors import HeadwaterError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import JobCrashed, in_process
from tests.unit.connectors.brokers.servers import redis_server

GENERATED = (
    "CREATE TABLE g (id INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence',"
    " 'fields.id.start' = '1', 'fields.id.end' = '60')"
)
TYPES = (
    "k STRING, ok BOOLEAN, f DOUBLE, d DECIMAL(10, 2), dt DATE, tm TIME(3), ts TIMESTAMP(6),"
    " l TIMESTAMP_LTZ(3), b BYTES"
)
VALUES = (
    "('a:b', TRUE, CAST(1.5 AS DOUBLE), CAST(1.25 AS DECIMAL(10, 2)), DATE '2020-02-03', TIME '10:11:12.250', TIMESTAMP"
    " '2020-01-01 00:00:00.123456', TO_TIMESTAMP_LTZ(1500, 3), X'00ff')"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    client = redis.Redis.from_url(url, decode_responses=True)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    environment.execute_sql(GENERATED)
    return environment


def create(tables: TableEnvironment, url: str, columns: str, more: str = "") -> None:
    tables.execute_sql(f"CREATE TABLE t ({columns}) WITH ('connector' = 'redis', 'url' = '{url}'{more})")


def rows(tables: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with tables.execute_sql(query).collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.parametrize("at", ["manifest-written", "sink-committed"])
def test_rows_are_replaced_and_deleted_over_a_crash(tables: TableEnvironment, url: str, client: Any, at: str) -> None:
    create(tables, url, "k INT, x STRING, n BIGINT, PRIMARY KEY (k, x) NOT ENFORCED", ", 'key-prefix' = 'n/'")
    insert = (
        "INSERT INTO t SELECT MOD(id, 5), 'a:%', NULLIF(COUNT(*), 12) FROM g GROUP BY MOD(id, 5)"
        " HAVING MAX(id) < 59 OR COUNT(*) < 4"
    )
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=2, at=at)
        with pytest.raises(JobCrashed):
            tables.execute_sql(insert).wait()
        tables.execute_sql(insert).wait()
    found = {key: client.hgetall(key) for key in client.keys("n/*")}
    assert found == {f"n/{each}:a%3A%25": {"k": str(each), "x": "a:%"} for each in (1, 2, 3)}


@pytest.mark.parametrize("cache", ["NONE", "PARTIAL"])
def test_what_was_written_is_looked_up(tables: TableEnvironment, url: str, client: Any, cache: str) -> None:
    more = f", 'lookup.cache' = '{cache}', 'lookup.partial-cache.max-rows' = '5', 'ttl' = '1 h'"
    create(tables, url, f"{TYPES}, n INT, PRIMARY KEY (k) NOT ENFORCED", more)
    query = (
        "SELECT g.id, t.* FROM (SELECT id, p, CASE WHEN id < 3 THEN 'a:b' ELSE 'c' END AS k FROM g WHERE id < 5) g LEFT"
        " JOIN t FOR SYSTEM_TIME AS OF g.p ON t.k = g.k"
    )
    with in_process():
        (expected,) = rows(tables, f"SELECT * FROM (VALUES {VALUES}) v")
        tables.execute_sql(f"INSERT INTO t SELECT v.*, CAST(NULL AS INT) FROM (VALUES {VALUES}) v").wait()
        found = rows(tables, query)
    assert found == [(1, *expected, None), (2, *expected, None), (3, *[None] * 10), (4, *[None] * 10)]
    assert 0 < client.pttl("t:a:b") <= 3_600_000


@pytest.mark.parametrize(
    ("columns", "more", "error"),
    [
        ("k INT, v INT", "", "needs a PRIMARY KEY"),
        ("k INT, v ARRAY<INT>, PRIMARY KEY (k) NOT ENFORCED", "", "Redis has no ARRAY<INT>"),
        ("k INT, v INT, PRIMARY KEY (k) NOT ENFORCED", ", 'keyprefix' = 'x'", "did you mean 'key-prefix'"),
        ("k INT, v INT, PRIMARY KEY (v) NOT ENFORCED", "", "by the whole primary key: join by v"),
        ("k INT, v INT, PRIMARY KEY (k) NOT ENFORCED", "", "column 'v' is INT, and a value in Redis does not fit"),
    ],
)
def test_what_cannot_be_looked_up_is_told(
    tables: TableEnvironment, url: str, client: Any, columns: str, more: str, error: str
) -> None:
    client.hset("t:1", mapping={"k": "1", "v": "one"})
    create(tables, url, columns, more)
    with in_process(), pytest.raises(HeadwaterError, match=error):
        rows(tables, "SELECT v FROM g JOIN t FOR SYSTEM_TIME AS OF g.p ON t.k = g.id")


def test_a_server_that_is_away_is_told_without_the_password(tables: TableEnvironment) -> None:
    create(tables, "redis://me:geheim@127.0.0.1:1/0", "k INT, PRIMARY KEY (k) NOT ENFORCED")
    with in_process(), pytest.raises(HeadwaterError, match="at Redis redis://me") as failed:
        tables.execute_sql("INSERT INTO t VALUES (1)").wait()
    with tables.execute_sql("SHOW CREATE TABLE t").collect() as found:
        shown = str(next(found)[0])
    assert "geheim" not in shown + str(failed.value) and "redis://me:******@" in shown
