"""SQL and the Table API in batch mode: values, views, joins, groups, windows, sets, results as rows."""

import datetime
import decimal

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
t_env.get_config().set("parallelism.default", "1")

orders = t_env.from_elements(
    [
        (1, "ann", decimal.Decimal("10.50"), datetime.datetime(2020, 1, 1, 10, 0, 5)),
        (2, "bob", decimal.Decimal("20.25"), datetime.datetime(2020, 1, 1, 10, 0, 15)),
        (3, "ann", decimal.Decimal("5.00"), datetime.datetime(2020, 1, 1, 10, 1, 10)),
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
t_env.execute_sql("CREATE TEMPORARY VIEW people AS SELECT * FROM (VALUES ('ann', 30), ('bob', 40)) AS t (name, age)")


def show(title, table):
    with table.execute().collect() as rows:
        for row in rows:
            print(title, list(row))


show("select", orders.select(col("id") + 1, col("customer").upper_case, (col("amount") * 2).alias("twice")))
show("where", orders.where((col("id") > 1) & (col("customer") != "bob")))
show("group", orders.group_by(col("customer")).select(col("customer"), col("amount").sum, col("id").count))
people = t_env.from_path("people")
show("join", orders.join(people, col("customer") == col("name")).select(col("id"), col("age")))
late = orders.where(col("id") > 2)
show("outer", people.left_outer_join(late, col("customer") == col("name")).select(col("name"), col("id")))
show("union", orders.select(col("customer")).union(people.select(col("name"))))
show("minus", people.select(col("age")).minus(t_env.sql_query("SELECT 30")))
window = Tumble.over(lit(1).minutes).on(col("ts")).alias("w")
show("window", orders.window(window).group_by(col("w")).select(col("w").start, col("amount").sum))
show("sql", t_env.sql_query("SELECT customer, MAX(amount), COUNT(DISTINCT id) FROM orders GROUP BY customer"))
show("order", orders.order_by(col("amount").desc).fetch(2).select(col("id")))
print("names", t_env.list_views(), t_env.get_current_database())
