"""Tables of SQL that follow tables of PostgreSQL: joins and totals are what the database says, whatever dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from headwater.common.errors import HeadwaterError, SqlError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import JobCrashed, in_process
from tests.postgres_server import jdbc_url
from tests.unit.connectors.jdbc.tables import run
from tests.waiting import wait_until

CUSTOMERS = "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
ORDERS = "id INT, customer INT, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED"
JOINED = "SELECT c.id, c.name, COUNT(o.id), SUM(o.price) FROM customers c LEFT JOIN orders o ON o.customer = c.id"


@pytest.fixture
def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    return environment


@pytest.fixture
def shop(database: str) -> str:
    run(
        database,
        "CREATE TABLE customers (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10, 2))",
        "CREATE TABLE totals (id int PRIMARY KEY, name text, n bigint, total numeric)",
        "ALTER TABLE customers REPLICA IDENTITY FULL",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO customers SELECT i, 'c' || i FROM generate_series(1, 20) i",
        "INSERT INTO orders SELECT i, i % 25, i * 1.5 FROM generate_series(1, 200) i",
    )
    return database


def follow(tables: TableEnvironment, database: str, name: str, columns: str, more: str = "", table: str = "") -> None:
    address = urlsplit(database)
    tables.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'postgres-cdc', 'hostname' ="
        f" '{parse_qs(address.query)['host'][0]}', 'username' = 'postgres', 'password' = 'geheim', 'database-name' ="
        f" '{address.path[1:]}', 'schema-name' = 'public', 'table-name' = '{table or name}', 'slot.name' ="
        f" '{name}_{address.path[1:]}'{more})"
    )


@contextmanager
def running(tables: TableEnvironment, insert: str) -> Iterator[None]:
    client = tables.execute_sql(insert).get_job_client()
    assert client is not None
    try:
        yield
    finally:
        client.cancel().result()


def test_a_join_of_two_tables_is_what_the_database_says_over_a_crash(tables: TableEnvironment, shop: str) -> None:
    follow(tables, shop, "customers", CUSTOMERS, ", 'scan.incremental.snapshot.chunk.size' = '7'")
    follow(tables, shop, "orders", ORDERS, ", 'decoding.plugin.name' = 'pgoutput', 'changelog-mode' = 'all'")
    tables.execute_sql(
        "CREATE TABLE totals (id INT, name STRING, n BIGINT, total DECIMAL(38, 2), PRIMARY KEY (id) NOT ENFORCED) WITH"
        f" ('connector' = 'jdbc', 'url' = '{jdbc_url(shop)}', 'table-name' = 'public.totals')"
    )
    insert = f"INSERT INTO totals {JOINED} GROUP BY c.id, c.name"

    def right() -> bool:
        written = run(shop, "SELECT * FROM totals ORDER BY id")
        return bool(written == run(shop, f"{JOINED} GROUP BY c.id ORDER BY c.id"))

    with in_process(epoch_records=30) as here:
        here.crash_job(epoch=3, at="manifest-written")
        with pytest.raises(JobCrashed):
            tables.execute_sql(insert).wait()
        run(
            shop,
            "UPDATE orders SET price = price + 1, customer = 3 WHERE id % 7 = 0",
            "DELETE FROM customers WHERE id > 15",
            "UPDATE customers SET name = upper(name) WHERE id % 2 = 0",
        )
        with running(tables, insert):
            wait_until(right, "the join")
            run(
                shop,
                "BEGIN; DELETE FROM orders WHERE id % 5 = 0; UPDATE customers SET id = 100 WHERE id = 1; COMMIT",
                "INSERT INTO orders VALUES (1000, 100, 7)",
            )
            wait_until(right, "the join after changes")
    assert len(run(shop, "SELECT * FROM totals")) == 15


def test_the_time_of_a_change_is_metadata(tables: TableEnvironment, shop: str) -> None:
    metadata = "since TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL, t STRING METADATA FROM 'table_name' VIRTUAL"
    follow(tables, shop, "customers", f"{CUSTOMERS}, {metadata}")
    with (
        in_process(),
        tables.execute_sql("SELECT t, COUNT(*), MAX(since) AS m FROM customers GROUP BY t").collect() as rows,
    ):
        last: Any = next(row for row in rows if row[1] == 20)
        assert last[0] == "customers" and last[2].year == 1970
        run(shop, "UPDATE customers SET name = 'x' WHERE id < 5", "DELETE FROM customers WHERE id > 10")
        last = next(row for row in rows if row[1] == 10)
        assert last[2].year > 2000


@pytest.mark.parametrize(
    ("columns", "more", "error"),
    [
        ("id INT, name STRING", "", "needs the PRIMARY KEY"),
        (CUSTOMERS, ", 'slot-name' = 'x'", "did you mean 'slot.name'"),
        (CUSTOMERS, ", 'changelog-mode' = 'upsert'", "REPLICA IDENTITY FULL"),
        (CUSTOMERS, ", 'decoding.plugin.name' = 'wal2json'", "there is 'pgoutput'"),
        (CUSTOMERS, ", 'scan.startup.mode' = 'earliest'", "there is initial, latest-offset"),
        (CUSTOMERS, ", 'connect.timeout' = '1 s'", "'connect.timeout' is not there"),
        ("id INT, nam STRING, PRIMARY KEY (id) NOT ENFORCED", "", "did you mean 'name'"),
        ("id INT, name INT, PRIMARY KEY (id) NOT ENFORCED", "", "INT was declared"),
        ("id INT, name STRING, PRIMARY KEY (name) NOT ENFORCED", "", "have the primary key \\(id\\)"),
    ],
)
def test_what_cannot_be_followed_is_told(
    tables: TableEnvironment, shop: str, columns: str, more: str, error: str
) -> None:
    follow(tables, shop, "customers", columns, more)
    with in_process(), pytest.raises(HeadwaterError, match=error) as failed:
        tables.execute_sql("SELECT * FROM customers").print()
    assert "geheim" not in str(failed.value)
    assert run(shop, "SELECT * FROM pg_replication_slots WHERE database = current_database()") == []


def test_a_column_that_is_gone_is_told(tables: TableEnvironment, shop: str) -> None:
    follow(tables, shop, "customers", CUSTOMERS)
    with in_process(), tables.execute_sql("SELECT * FROM customers").collect() as rows:
        for _ in range(20):
            next(rows)
        run(shop, "ALTER TABLE customers RENAME COLUMN name TO title", "INSERT INTO customers VALUES (99, 'x')")
        with pytest.raises(SqlError, match="has no column 'name' any more; it has id, title"):
            next(rows)
