"""The Table API builds the plans that SQL builds. None of these tests runs Spark: they compare plans."""

from __future__ import annotations

import datetime
import decimal
import inspect
import re

import pytest

from headwater.common.errors import SqlError
from headwater.common.types import Row
from headwater.table import (
    DataTypes,
    EnvironmentSettings,
    Over,
    Session,
    Slide,
    SqlDialect,
    StreamTableEnvironment,
    Table,
    TableConfig,
    TableDescriptor,
    TableEnvironment,
    TableSchema,
    Tumble,
)
from headwater.table.expression import (
    Expression,
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from headwater.table.expression_functions import SqlFunctions
from headwater.table.expressions import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    and_,
    array,
    call,
    coalesce,
    col,
    concat,
    concat_ws,
    current_time,
    date_format,
    if_then_else,
    json_array,
    json_object,
    json_string,
    lag,
    lit,
    local_timestamp,
    log,
    map_,
    map_from_arrays,
    negative,
    not_,
    null_of,
    or_,
    rand_integer,
    range_,
    row_interval,
    timestamp_diff,
    to_timestamp,
    unix_timestamp,
    with_all_columns,
    with_columns,
    without_columns,
)
from headwater.table.functions.registry import lookup
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


@pytest.mark.parametrize(
    ("preceding", "following", "frame"),
    [
        (None, None, ""),
        (UNBOUNDED_RANGE, None, "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        (UNBOUNDED_ROW, CURRENT_ROW, "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        (row_interval(2), CURRENT_ROW, "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        (lit(5).minutes, CURRENT_RANGE, "RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND CURRENT ROW"),
    ],
)
def test_over_windows(
    preceding: Expression | None, following: Expression | None, frame: str, orders: Table, environment: TableEnvironment
) -> None:
    window = Over.partition_by(col("name")).order_by(col("ts"))
    framed = window if preceding is None else window.preceding(preceding)
    framed = framed if following is None else framed.following(following)  # type: ignore[union-attr]
    table = orders.over_window(framed.alias("w")).select(
        col("id"), col("price").sum.over(col("w")), col("id").count.distinct.over(col("w")).alias("n")
    )
    over = f"OVER (PARTITION BY name ORDER BY ts {frame})"
    same(table, f"SELECT id, SUM(price) {over}, COUNT(DISTINCT id) {over} AS n FROM orders", environment)


def test_over_windows_without_partitions_and_two_of_them(orders: Table, environment: TableEnvironment) -> None:
    table = orders.over_window(
        Over.order_by(col("ts")).alias("a"), Over.order_by(col("ts")).preceding(row_interval(1)).alias("b")
    ).select(col("id").max.over(col("a")), lag(col("id")).over(col("a")), col("id").max.over(col("b")))
    same(
        table,
        "SELECT MAX(id) OVER (ORDER BY ts), LAG(id, 1) OVER (ORDER BY ts), MAX(id) OVER (ORDER BY ts ROWS 1 PRECEDING)"
        " FROM orders",
        environment,
    )


def test_mistakes_with_over_windows(orders: Table) -> None:
    window = Over.order_by(col("ts"))
    with pytest.raises(SqlError, match="both count rows, or both time"):
        window.preceding(row_interval(1)).following(CURRENT_RANGE)
    with pytest.raises(SqlError, match="expected row_interval"):
        window.preceding(lit(3))
    with pytest.raises(SqlError, match="two windows are called 'w'"):
        orders.over_window(window.alias("w"), window.alias("w"))
    with pytest.raises(SqlError, match="there is no window 'v' in WINDOW"):
        orders.over_window(window.alias("w")).select(col("id").sum.over(col("v")))
    with pytest.raises(SqlError, match=r"over\(\) is of an aggregate"):
        col("id").over(col("w"))


def test_columns_chosen_together(orders: Table, environment: TableEnvironment) -> None:
    same(orders.select(with_columns(range_("name", "ts"))), "SELECT name, price, ts FROM orders", environment)
    same(orders.select(with_columns(range_(1, 2), col("ts"))), "SELECT id, name, ts FROM orders", environment)
    same(orders.select(without_columns(col("id"), 3)), "SELECT name, ts FROM orders", environment)
    same(orders.select(with_all_columns()), "SELECT * FROM orders", environment)
    same(orders.select(concat(with_columns("name", "name"))), "SELECT CONCAT(name, name) FROM orders", environment)
    same(
        orders.group_by(with_columns("id", "name")).select(with_columns("id", "name")),
        "SELECT id, name FROM orders GROUP BY id, name",
        environment,
    )
    with pytest.raises(SqlError, match="there is no column 7: the table has 4"):
        orders.select(with_columns(7))


def test_every_method_of_the_table_calls_a_function_that_is_there() -> None:
    calls = [
        getattr(col("a"), name) if isinstance(member, property) else getattr(col("a"), name)(*_arguments(member))
        for name, member in vars(SqlFunctions).items()
        if not name.startswith("_") and name not in _INTERVALS
    ]
    assert len(calls) > 100
    assert not [each.node.name for each in calls if lookup(each.node.name[0]) is None]  # type: ignore[attr-defined]


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_INTERVALS = {*_UNITS, *(f"{unit}s" for unit in _UNITS)}


def _arguments(method: object) -> list[int]:
    parameters = list(inspect.signature(method).parameters.values())[1:]  # type: ignore[arg-type]
    return [
        1 for each in parameters if each.default is inspect.Parameter.empty and each.kind is not each.VAR_POSITIONAL
    ]


JSON = "JSON_VALUE(name, '$.a' RETURNING INT DEFAULT 1 ON EMPTY ERROR ON ERROR)"
QUERY = "JSON_QUERY(name, '$.a' WITH CONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY NULL ON ERROR)"


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (col("name").sha2(256), "SHA2(name, 256)"),
        (col("name").left(2), "LEFT(name, 2)"),
        (col("name").substring(2), "SUBSTRING(name FROM 2)"),
        (col("name").locate("x", 2), "LOCATE(name, 'x', 2)"),
        (col("name").regexp_extract("(a)", 1), "REGEXP_EXTRACT(name, '(a)', 1)"),
        (col("name").ltrim("x"), "LTRIM(name, 'x')"),
        (col("name").trim_leading("x"), "TRIM(LEADING 'x' FROM name)"),
        (col("name").trim(), "TRIM(name)"),
        (col("name").like("a%", "|"), "name LIKE 'a%' ESCAPE '|'"),
        (col("name").concat("x"), "name || 'x'"),
        (col("id").log(2), "LOG(2, id)"),
        (2 ** col("id"), "POWER(2, id)"),
        (abs(col("id")), "ABS(id)"),
        (col("name").split(",").array_join("-"), "ARRAY_JOIN(SPLIT(name, ','), '-')"),
        (array(1, 2).array_concat(array(3), array(4)), "ARRAY_CONCAT(ARRAY[1, 2], ARRAY[3], ARRAY[4])"),
        (map_("a", 1).map_keys, "MAP_KEYS(MAP['a', 1])"),
        (col("ts") + lit(1500).millis, "ts + INTERVAL '1.500' SECOND"),
        (col("ts") + lit(2).quarters, "ts + INTERVAL '2' QUARTER"),
        (col("ts").extract(TimeIntervalUnit.HOUR), "EXTRACT(HOUR FROM ts)"),
        (timestamp_diff(TimePointUnit.DAY, col("ts"), col("ts")), "TIMESTAMPDIFF(DAY, ts, ts)"),
        (col("name").is_json(), "name IS JSON"),
        (col("name").json_exists("$.a", JsonExistsOnError.TRUE), "JSON_EXISTS(name, '$.a' TRUE ON ERROR)"),
        (
            col("name").json_value(
                "$.a", DataTypes.INT(), JsonValueOnEmptyOrError.DEFAULT, 1, JsonValueOnEmptyOrError.ERROR
            ),
            JSON,
        ),
        (col("name").json_value("$.a"), "JSON_VALUE(name, '$.a' RETURNING STRING)"),
        (
            col("name").json_query("$.a", JsonQueryWrapper.CONDITIONAL_ARRAY, JsonQueryOnEmptyOrError.EMPTY_ARRAY),
            QUERY,
        ),
        (json_object(JsonOnNull.ABSENT, "k", col("id")), "JSON_OBJECT('k' VALUE id ABSENT ON NULL)"),
        (json_array(JsonOnNull.NULL, 1, col("id")), "JSON_ARRAY(1, id NULL ON NULL)"),
        (json_string(col("id")), "JSON_STRING(id)"),
        (current_time(), "CURRENT_TIME"),
        (local_timestamp(), "LOCALTIMESTAMP"),
        (to_timestamp("2020", "yyyy"), "TO_TIMESTAMP('2020', 'yyyy')"),
        (date_format(col("ts"), "yyyy"), "DATE_FORMAT(ts, 'yyyy')"),
        (unix_timestamp("2020-01-01 00:00:00"), "UNIX_TIMESTAMP('2020-01-01 00:00:00')"),
        (rand_integer(10, 3), "RAND_INTEGER(3, 10)"),
        (concat_ws("-", col("name"), "b"), "CONCAT_WS('-', name, 'b')"),
        (map_from_arrays(array(1), array(2)), "MAP_FROM_ARRAYS(ARRAY[1], ARRAY[2])"),
        (negative(col("id")), "-id"),
        (log(col("id")), "LN(id)"),
    ],
)
def test_functions_as_in_sql(expression: Expression, sql: str, orders: Table, environment: TableEnvironment) -> None:
    same(orders.select(expression), f"SELECT {sql} FROM orders", environment)


def test_fields_as_attributes(environment: TableEnvironment) -> None:
    address = environment.from_elements([(Row(city="x", street=Row(number=1)),)], ["address"])
    environment.create_temporary_view("addresses", address)
    same(
        address.select(address.address.city, col("address").street.number),
        "SELECT a.address.city, a.address.street.number FROM addresses AS a",
        environment,
    )
    with pytest.raises(SqlError, match="there is no field 'uper_case'"):
        address.select(col("address").uper_case)


def test_a_table_in_the_text_of_sql(orders: Table, environment: TableEnvironment) -> None:
    chosen = orders.where(col("id") > 1)
    assert str(chosen) == str(chosen)
    same(environment.sql_query(f"SELECT id FROM {chosen}"), "SELECT id FROM orders WHERE id > 1", environment)
    assert str(orders) != str(chosen)


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


def test_settings_and_schemas_of_pyflink() -> None:
    config = TableConfig.get_default()
    config.set_idle_state_retention(datetime.timedelta(minutes=90))
    assert config.get_idle_state_retention() == datetime.timedelta(minutes=90)
    assert config.to_map() == {"table.exec.state.ttl": "5400000 ms"}
    assert config.get_python_executable() is None and config.get_sql_dialect() == SqlDialect.DEFAULT
    with pytest.raises(SqlError, match="one dialect of SQL"):
        config.set_sql_dialect(SqlDialect.HIVE)
    schema = TableSchema.builder().field("a", DataTypes.INT()).field("b", DataTypes.STRING()).build()
    assert schema.get_field_names() == ["a", "b"] and schema.copy() == schema


def test_a_pipeline_knows_its_table(orders: Table, environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE target (n BIGINT) WITH ('connector' = 'blackhole')")
    numbers = environment.sql_query("SELECT CAST(1 AS BIGINT) AS n")
    known = numbers.insert_into("target").get_sink_identifier()
    assert known is not None and known.to_list() == ["default_catalog", "default_database", "target"]
    described = TableDescriptor.for_connector("blackhole").build()
    assert numbers.insert_into(described).get_sink_identifier() is None


def test_modules_of_pyflink_pass_on_what_it_has_there() -> None:
    from headwater.table.table_environment import StreamTableEnvironment as Again
    from headwater.table.types import Row as RowAgain

    assert Again is StreamTableEnvironment and RowAgain is Row
    with pytest.raises(ImportError):
        from headwater.table.table_environment import Nothing  # type: ignore[attr-defined] # noqa: F401
