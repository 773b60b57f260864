"""From files to files and to the screen, as one job: a STATEMENT SET that reads the orders once.

Damaged amounts are counted, large orders go into files by country, exactly once, and a running total is printed as its
changelog.
"""

import json
import tempfile
from pathlib import Path

from headwater.table import EnvironmentSettings, TableEnvironment

ORDERS = [
    {"id": 1, "country": "de", "amount": "120.50"},
    {"id": 2, "country": "fr", "amount": "15.00"},
    {"id": 3, "country": "de", "amount": "a lot"},
    {"id": 4, "country": "fr", "amount": "99.99"},
    {"id": 5, "country": "de", "amount": "7.25"},
    {"id": 6, "country": "fr", "amount": "250.00"},
]

with tempfile.TemporaryDirectory() as folder:
    inbox = Path(folder, "inbox")
    inbox.mkdir()
    (inbox / "orders.json").write_text("".join(json.dumps(order) + "\n" for order in ORDERS), encoding="utf-8")

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    t_env.execute_sql(
        f"""
        CREATE TABLE orders (id INT, country STRING, amount STRING) WITH (
          'connector' = 'filesystem', 'path' = '{inbox}', 'format' = 'json'
        )
        """
    )
    t_env.execute_sql(
        "CREATE VIEW clean AS SELECT id, country, TRY_CAST(amount AS DECIMAL(10, 2)) AS amount FROM orders"
    )
    t_env.execute_sql(
        f"""
        CREATE TABLE big_orders (id INT, amount DECIMAL(10, 2), country STRING) PARTITIONED BY (country) WITH (
          'connector' = 'filesystem', 'path' = '{folder}/big', 'format' = 'csv'
        )
        """
    )
    t_env.execute_sql(
        "CREATE TABLE totals (country STRING, orders BIGINT, damaged BIGINT, total DECIMAL(38, 2))"
        " WITH ('connector' = 'print')"
    )
    job = t_env.execute_sql(
        """
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO big_orders SELECT id, amount, country FROM clean WHERE amount > 90;
          INSERT INTO totals
            SELECT country, COUNT(*), COUNT(*) FILTER (WHERE amount IS NULL), SUM(amount) FROM clean GROUP BY country;
        END
        """
    )
    job.wait()
    for file in sorted(Path(folder, "big").glob("*/*")):
        for line in sorted(file.read_text(encoding="utf-8").splitlines()):
            print(f"{file.parent.name}: {line}")
