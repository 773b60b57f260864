"""Two PostgreSQL tables, joined for as long as they change, into a third: in SQL. Starts a PostgreSQL server by itself.

Whatever is done to customers and orders, the table `totals` follows: rows are replaced by key, and deleted.
"""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import psycopg
from postgres_changes import run, server

from headwater.table import EnvironmentSettings, TableEnvironment


def print_totals(uri: str, expected: int) -> None:
    """Wait until the orders in the totals are so many, and print them."""
    deadline = time.monotonic() + 120
    with psycopg.connect(uri, autocommit=True) as connection:
        while True:
            rows = connection.execute("SELECT customer, orders, total FROM totals ORDER BY customer").fetchall()
            if sum(orders for _, orders, _ in rows) == expected:
                break
            assert time.monotonic() < deadline, f"the totals are {rows}"
            time.sleep(0.05)
    for customer, orders, total in rows:
        print(f"{customer}: {orders} orders, {total}")


def main() -> None:
    with server() as uri:
        run(
            uri,
            "CREATE TABLE customers (id int PRIMARY KEY, name text)",
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10, 2))",
            "CREATE TABLE totals (customer text PRIMARY KEY, orders bigint, total numeric(38, 2))",
            "ALTER TABLE customers REPLICA IDENTITY FULL",
            "ALTER TABLE orders REPLICA IDENTITY FULL",
            "INSERT INTO customers VALUES (1, 'ann'), (2, 'bob')",
            "INSERT INTO orders VALUES (1, 1, 10), (2, 1, 2.50), (3, 2, 7)",
        )
        address = urlsplit(uri)
        host, database = parse_qs(address.query)["host"][0], address.path[1:]
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "1")
        for table, columns in (
            ("customers", "id INT, name STRING"),
            ("orders", "id INT, customer INT, price DECIMAL(10, 2)"),
        ):
            t_env.execute_sql(
                f"""
                CREATE TABLE {table} ({columns}, PRIMARY KEY (id) NOT ENFORCED) WITH (
                  'connector' = 'postgres-cdc', 'hostname' = '{host}', 'username' = 'postgres',
                  'database-name' = '{database}', 'schema-name' = 'public', 'table-name' = '{table}',
                  'slot.name' = 'totals_{table}'
                )
                """
            )
        t_env.execute_sql(
            f"""
            CREATE TABLE totals (
              customer STRING, orders BIGINT, total DECIMAL(38, 2), PRIMARY KEY (customer) NOT ENFORCED
            ) WITH (
              'connector' = 'jdbc', 'url' = 'jdbc:postgresql:{database}?host={host}', 'username' = 'postgres',
              'table-name' = 'totals'
            )
            """
        )
        job = t_env.execute_sql(
            """
            INSERT INTO totals
            SELECT c.name, COUNT(*), SUM(o.price) FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name
            """
        ).get_job_client()
        assert job is not None
        print_totals(uri, expected=3)
        print("an order comes, a price changes, bob's order goes")
        run(
            uri,
            "INSERT INTO orders VALUES (4, 1, 30)",
            "UPDATE orders SET price = 11 WHERE id = 1",
            "DELETE FROM orders WHERE id = 3",
            "INSERT INTO orders VALUES (5, 1, 1)",
        )
        print_totals(uri, expected=4)
        job.cancel().result()


if __name__ == "__main__":
    main()
