"""The Table API builds the plans that SQL builds. None of these tests runs Spark: they compare plans."""

from __future__ import annotations

import datetime
import decimal
import re

import pytest

from headwater.common.errors import SqlError
from headwater.common.types import Row
from headwater.table import DataTypes, EnvironmentSettings, Session, Slide, Table, TableEnvironment, Tumble
from headwater.table.expressions import and_, array, call, coalesce, col, concat, if_then_else, lit, not_, null_of, or_
from headwater.table.plan.explain import explain


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    schema = DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.INT()),
            DataTypes.FIELD("name", DataTypes.STRING()),
            DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)),
        ]
    )
    orders = environment.from_elements([(1, "a", decimal.Decimal("1.50"), datetime.datetime(2020, 1, 1))], schema)
    environment.create_temporary_view("orders", orders)
    environment.create_temporary_view("people", environment.from_elements([("a", 30)], ["who", "age"]))
    return environment


def same(table: Table, sql: str, environment: TableEnvironment) -> None:
    """The two have the same columns and, as far as people see it, the same plan."""
    other = environment.sql_query(sql)
    assert table.get_schema() == other.get_schema()
    assert simplified(explain(table._plan)) == simplified(explain(other._plan))


def simplified(plan: str) -> str:
    """Without nodes that only pass columns on: each method makes one."""
    lines = [line.strip().removeprefix("+- ") for line in plan.splitlines()]
    return "\n".join(line for line in lines if not re.fullmatch(r"Calc\(select=\[(\w+, )*\w+\]\)", line))


@pytest.fixture
def orders(environment: TableEnvironment) -> Table:
    return environment.from_path("orders")


@pytest.fixture
def people(environment: TableEnvironment) -> Table:
    return environment.from_path("people")


def test_select(orders: Table, environment: TableEnvironment) -> None:
    table = orders.select(col("id"), (col("id") + 1).alias("following_id"), orders.name.upper_case, lit("x"))
    same(table, "SELECT id, id + 1 AS following_id, UPPER(name), 'x' FROM orders", environment)


def test_operators(orders: Table, environment: TableEnvironment) -> None:
    table = orders.select(
        (2 * col("id") - 1) / 3,
        col("id") % 2,
        -col("id"),
        (col("id") > 1) & ~(col("name") == "a") | (col("id") != 2),
        col("id").between(1, 5),
        col("name").in_("a", "b"),
        col("name").like("a%"),
        col("name").is_null,
        col("id").cast(DataTypes.BIGINT()),
    )
    same(
        table,
        "SELECT (2 * id - 1) / 3, MOD(id, 2), -id, id > 1 AND NOT name = 'a' OR id <> 2, id BETWEEN 1 AND 5,"
        " name IN ('a', 'b'), name LIKE 'a%', name IS NULL, CAST(id AS BIGINT) FROM orders",
        environment,
    )


def test_functions(orders: Table, environment: TableEnvironment) -> None:
    table = orders.select(
        coalesce(col("id"), 0),
        concat(col("name"), "!"),
        if_then_else(col("id") > 1, "x", "y"),
        array(1, 2),
        and_(True, True, False),
        or_(col("id") == 1, not_(True)),
        null_of(DataTypes.INT()),
        call("ABS", col("id")),
        col("ts").extract("YEAR"),
        col("ts") + lit(1).hours,
    )
    same(
        table,
        "SELECT COALESCE(id, 0), CONCAT(name, '!'), CASE WHEN id > 1 THEN 'x' ELSE 'y' END, ARRAY[1, 2],"
        " TRUE AND TRUE AND FALSE, id = 1 OR NOT TRUE, CAST(NULL AS INT), ABS(id), EXTRACT(YEAR FROM ts),"
        " ts + INTERVAL '1' HOUR FROM orders",
        environment,
    )


def test_where_and_group_by(orders: Table, environment: TableEnvironment) -> None:
    table = (
        orders.where(col("id") > 1)
        .group_by(col("name"))
        .select(col("name"), col("price").sum.alias("total"), col("id").count, col("id").count.distinct)
    )
    sql = "SELECT name, SUM(price) AS total, COUNT(id), COUNT(DISTINCT id) FROM orders WHERE id > 1 GROUP BY name"
    same(table, sql, environment)


def test_whole_table_aggregates(orders: Table, environment: TableEnvironment) -> None:
    same(orders.select(col("id").max, col("price").avg), "SELECT MAX(id), AVG(price) FROM orders", environment)


def test_joins(orders: Table, people: Table, environment: TableEnvironment) -> None:
    for method, kind in (
        ("join", "JOIN"), ("left_outer_join", "LEFT JOIN"), ("right_outer_join", "RIGHT JOIN"),
        ("full_outer_join", "FULL JOIN"),
    ):  # fmt: skip
        table = getattr(orders, method)(people, col("name") == col("who"))
        same(table, f"SELECT * FROM orders {kind} people ON name = who", environment)
    same(orders.join(people).where(col("name") == col("who")),
         "SELECT * FROM orders JOIN people ON TRUE WHERE name = who", environment)  # fmt: skip


def test_a_join_of_equal_names_is_an_error(orders: Table) -> None:
    with pytest.raises(SqlError, match="both tables have a column 'id'"):
        orders.join(orders, col("id") == col("id"))
    again = orders.rename_columns(*(col(name).alias(f"{name}2") for name in ("id", "name", "price", "ts")))
    joined = orders.join(again, col("id") == col("id2"))
    ids = [column.id for column in joined._plan.columns]
    assert len(ids) == len(set(ids)) == 8


def test_set_operations(orders: Table, people: Table, environment: TableEnvironment) -> None:
    names, others = orders.select(col("name")), people.select(col("who"))
    for method, words in (
        ("union", "UNION"), ("union_all", "UNION ALL"), ("intersect", "INTERSECT"), ("intersect_all", "INTERSECT ALL"),
        ("minus", "EXCEPT"), ("minus_all", "EXCEPT ALL"),
    ):  # fmt: skip
        same(getattr(names, method)(others), f"SELECT name FROM orders {words} SELECT who FROM people", environment)


def test_order_and_limit(orders: Table, environment: TableEnvironment) -> None:
    same(orders.order_by(col("id").desc, col("name")).limit(3, 1),
         "SELECT * FROM orders ORDER BY id DESC, name LIMIT 3 OFFSET 1", environment)  # fmt: skip
    same(
        orders.order_by(col("id")).offset(2).fetch(5), "SELECT * FROM orders ORDER BY id LIMIT 5 OFFSET 2", environment
    )
    same(orders.limit(3), "SELECT * FROM orders LIMIT 3", environment)


def test_columns(orders: Table, environment: TableEnvironment) -> None:
    same(orders.add_columns((col("id") + 1).alias("x")), "SELECT *, id + 1 AS x FROM orders", environment)
    same(orders.add_or_replace_columns((col("id") + 1).alias("id")), "SELECT id + 1 AS id, name, price, ts FROM orders",
         environment)  # fmt: skip
    same(orders.drop_columns(col("price"), "ts"), "SELECT id, name FROM orders", environment)
    assert [each.name for each in orders.rename_columns(col("id").alias("x")).get_schema().fields][:2] == ["x", "name"]
    assert [each.name for each in orders.alias("a", "b").get_schema().fields] == ["a", "b", "price", "ts"]
    same(orders.select(col("name")).distinct(), "SELECT DISTINCT name FROM orders", environment)


def test_windows(orders: Table, environment: TableEnvironment) -> None:
    tumble = orders.window(Tumble.over(lit(10).minutes).on(col("ts")).alias("w")).group_by(col("w"), col("name"))
    same(
        tumble.select(col("name"), col("w").start, col("w").end.alias("e"), col("id").sum),
        "SELECT name, TUMBLE_START(ts, INTERVAL '10' MINUTE), TUMBLE_END(ts, INTERVAL '10' MINUTE) AS e, SUM(id)"
        " FROM orders GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE), name",
        environment,
    )
    slide = Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("ts")).alias("w")
    same(
        orders.window(slide).group_by(col("w")).select(col("id").count),
        "SELECT COUNT(id) FROM orders GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)",
        environment,
    )
    session = Session.with_gap(lit(5).minutes).on(col("ts")).alias("w")
    same(
        orders.window(session).group_by(col("w"), col("name")).select(col("w").start),
        "SELECT SESSION_START(ts, INTERVAL '5' MINUTE) FROM orders GROUP BY name, SESSION(ts, INTERVAL '5' MINUTE)",
        environment,
    )
    with pytest.raises(SqlError, match=r"must name the window: col\('w'\)"):
        orders.window(session).group_by(col("name"))


def test_mistakes(orders: Table) -> None:
    with pytest.raises(SqlError, match="there is no column 'nam'; did you mean 'name'"):
        orders.select(col("nam"))
    with pytest.raises(AttributeError, match="there is no column or method 'nam'"):
        _ = orders.nam
    with pytest.raises(SqlError, match="instead of and, or, not"):
        _ = col("id") > 1 and col("id") < 3
    with pytest.raises(SqlError, match="is no constant of SQL"):
        lit(object())
    with pytest.raises(SqlError, match="there is no column 'x'"):
        orders.drop_columns(col("x"))


def test_values_get_pyflinks_types(environment: TableEnvironment) -> None:
    table = environment.from_elements([(1, "a", 1.5, True, [1], {"k": 1}, Row(x=1)), (None,) * 7])
    assert [(each.name, each.type.sql()) for each in table.get_schema().fields] == [
        ("_1", "BIGINT"), ("_2", "STRING"), ("_3", "DOUBLE"), ("_4", "BOOLEAN"), ("_5", "ARRAY<BIGINT>"),
        ("_6", "MAP<STRING, BIGINT>"), ("_7", "ROW<`x` BIGINT>"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "schema", "error"),
    [
        ([], None, "needs a schema with types"),
        ([(1,), (2, 3)], ["a"], "row 1 has 2 values, the schema 1 columns"),
        ([(1, 2)], ["a"], "1 names for rows of 2 values"),
        ([(None,)], ["a"], "column 'a' has only None"),
        ([(1,), ("x",)], ["a"], "BIGINT, STRING do not go together"),
        ([(None,)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT(False))]), "is INT NOT NULL and gets None"),
        ([("x",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]), "column 'a' is INT"),
        ([(2**40,)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]), "column 'a' is INT"),
        ([(object(),)], ["a"], "SQL has no type for"),
    ],
)
def test_values_that_do_not_fit(rows: list[object], schema: object, error: str, environment: TableEnvironment) -> None:
    with pytest.raises(SqlError, match=re.escape(error)):
        environment.from_elements(rows, schema)  # type: ignore[arg-type]


def test_print_schema(orders: Table, capsys: pytest.CaptureFixture[str]) -> None:
    orders.print_schema()
    assert (
        capsys.readouterr().out
        == "(\n  `id` INT,\n  `name` STRING,\n  `price` DECIMAL(10, 2),\n  `ts` TIMESTAMP(3)\n)\n"
    )
