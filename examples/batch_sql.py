"""SQL and the Table API in batch mode: orders joined with customers, counted per minute, the best customer per city.

headwater run examples/batch_sql.py
"""

from datetime import datetime
from decimal import Decimal

from headwater.table import DataTypes, EnvironmentSettings, TableEnvironment
from headwater.table.expressions import col

t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())

orders = t_env.from_elements(
    [
        (1, "ann", Decimal("10.50"), datetime(2026, 1, 1, 10, 0, 5)),
        (2, "bob", Decimal("20.25"), datetime(2026, 1, 1, 10, 0, 15)),
        (3, "ann", Decimal("5.00"), datetime(2026, 1, 1, 10, 1, 10)),
        (4, "cid", Decimal("99.99"), datetime(2026, 1, 1, 10, 1, 40)),
    ],
    DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.INT()),
            DataTypes.FIELD("customer", DataTypes.STRING()),
            DataTypes.FIELD("amount", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)),
        ]
    ),
)
t_env.create_temporary_view("orders", orders)
t_env.execute_sql(
    "CREATE TEMPORARY VIEW customers AS"
    " SELECT * FROM (VALUES ('ann', 'Berlin'), ('bob', 'Paris'), ('cid', 'Berlin')) AS t (name, city)"
)

print("turnover per minute")
t_env.execute_sql(
    """
    SELECT window_start, COUNT(*) AS orders, SUM(amount) AS turnover
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end
    ORDER BY window_start
    """
).print()

print("the best customer of each city")
t_env.execute_sql(
    """
    SELECT city, name, total FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY total DESC) AS place
      FROM (
        SELECT c.city, c.name, SUM(o.amount) AS total
        FROM orders o JOIN customers c ON o.customer = c.name
        GROUP BY c.city, c.name
      )
    ) WHERE place = 1 ORDER BY city
    """
).print()

print("the same table with the Table API")
big = orders.where(col("amount") > 6).select(col("customer"), (col("amount") * 2).alias("twice")).order_by(col("twice"))
big.print_schema()
for row in big.execute().collect():
    print(row)
