"""Orders in euros at the rate of their time: a temporal join, FOR SYSTEM_TIME AS OF an event time.

Rates come as rows of a log, so a view makes versions of them: the newest row of each currency, as of any time. An order
waits until both watermarks have passed it; then its rate is known for good, and the result only has insertions.
"""

import tempfile
from pathlib import Path

from headwater.table import EnvironmentSettings, TableEnvironment

ORDERS = """\
1,USD,10.00,2026-05-01 09:00:00
2,GBP,20.00,2026-05-01 09:04:00
3,USD,30.00,2026-05-01 09:06:00
4,SEK,40.00,2026-05-01 09:07:00
5,USD,50.00,2026-05-01 09:11:00
"""
RATES = """\
USD,0.90,2026-05-01 08:00:00
GBP,1.15,2026-05-01 08:00:00
USD,0.92,2026-05-01 09:05:00
GBP,1.17,2026-05-01 09:05:00
USD,0.95,2026-05-01 09:10:00
"""

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")

with tempfile.TemporaryDirectory() as folder:
    for name, rows in (("orders", ORDERS), ("rates", RATES)):
        (Path(folder) / name).mkdir()
        (Path(folder) / name / "1.csv").write_text(rows)
    t_env.execute_sql(
        f"""
        CREATE TABLE orders (
          id INT, currency STRING, price DECIMAL(10, 2), ts TIMESTAMP(3),
          WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
        ) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/orders')
        """
    )
    t_env.execute_sql(
        f"""
        CREATE TABLE rates (
          currency STRING, rate DECIMAL(10, 2), ts TIMESTAMP(3),
          WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
        ) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/rates')
        """
    )
    t_env.execute_sql(
        """
        CREATE VIEW versioned_rates AS
        SELECT currency, rate, ts FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS place FROM rates
        ) WHERE place = 1
        """
    )
    t_env.execute_sql(
        """
        SELECT o.id, o.currency, o.price, r.rate, CAST(o.price * r.rate AS DECIMAL(10, 2)) AS euros
        FROM orders AS o
        LEFT JOIN versioned_rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency
        """
    ).print()
