"""Each method of an expression is the function of SQL that it stands for."""

from __future__ import annotations

import datetime
import decimal

import pytest

from headwater.table import DataTypes, EnvironmentSettings, Expression, Schema, TableDescriptor, TableEnvironment
from headwater.table.expressions import array, col, lit
from headwater.table.plan.explain import explain

METHODS = [
    (col("name").is_not_null, "name IS NOT NULL"),
    ((col("id") > 1).is_true, "(id > 1) IS TRUE"),
    ((col("id") > 1).is_false, "(id > 1) IS FALSE"),
    ((col("id") > 1).is_not_true, "(id > 1) IS NOT TRUE"),
    ((col("id") > 1).is_not_false, "(id > 1) IS NOT FALSE"),
    (col("id").not_between(1, 2), "id NOT BETWEEN 1 AND 2"),
    (col("name").similar("a|b"), "name SIMILAR TO 'a|b'"),
    (col("name").if_null("x"), "COALESCE(name, 'x')"),
    (col("id").ln, "LN(id)"),
    (col("id").sqrt, "SQRT(id)"),
    (col("id").abs, "ABS(id)"),
    (col("id") ** 2, "POWER(id, 2)"),
    (col("price").round(1), "ROUND(price, 1)"),
    (col("price").floor(), "FLOOR(price)"),
    (col("ts").ceil("HOUR"), "CEIL(ts TO HOUR)"),
    (col("name").lower_case, "LOWER(name)"),
    (col("name").init_cap, "INITCAP(name)"),
    (col("name").char_length, "CHAR_LENGTH(name)"),
    (col("name").substring(1, 2), "SUBSTRING(name, 1, 2)"),
    (col("name").substr(2), "SUBSTRING(name, 2)"),
    (col("name").trim(), "TRIM(name)"),
    (col("name").ltrim(), "LTRIM(name)"),
    (col("name").rtrim(), "RTRIM(name)"),
    (col("name").replace("a", "b"), "REPLACE(name, 'a', 'b')"),
    (col("name").regexp_replace("a+", "b"), "REGEXP_REPLACE(name, 'a+', 'b')"),
    (col("name").regexp_extract("(a)(b)", 2), "REGEXP_EXTRACT(name, '(a)(b)', 2)"),
    (col("name").split_index(",", 1), "SPLIT_INDEX(name, ',', 1)"),
    (col("name").lpad(5, "x"), "LPAD(name, 5, 'x')"),
    (col("name").rpad(5, "x"), "RPAD(name, 5, 'x')"),
    (col("name").repeat(2), "REPEAT(name, 2)"),
    (col("name").md5, "MD5(name)"),
    (col("name").sha256, "SHA256(name)"),
    (lit("a").position(col("name")), "POSITION('a' IN name)"),
    (lit("2020-01-01").to_date, "CAST('2020-01-01' AS DATE)"),
    (col("ts") + lit(2).weeks, "ts + INTERVAL '2' WEEK"),
    (col("ts") - lit(-3).days, "ts - INTERVAL -'3' DAY"),
    (col("name").try_cast(DataTypes.INT()), "TRY_CAST(name AS INT)"),
    (array(1, 2).at(1), "ARRAY[1, 2][1]"),
    (array(1, 2).cardinality, "CARDINALITY(ARRAY[1, 2])"),
    ((col("id") > 1).then("a", "b"), "CASE WHEN id > 1 THEN 'a' ELSE 'b' END"),
    (lit(1.5), "1.5e0"),
    (lit(decimal.Decimal("1.50")), "1.50"),
    (lit(datetime.date(2020, 1, 2)), "DATE '2020-01-02'"),
    (lit(datetime.timedelta(hours=-1)), "INTERVAL -'0 1:00:00.000000' DAY TO SECOND"),
    (col("id").first_value, "FIRST_VALUE(id)"),
    (col("id").last_value, "LAST_VALUE(id)"),
    (col("name").list_agg(";"), "LISTAGG(name, ';')"),
    (col("id").array_agg, "ARRAY_AGG(id)"),
    (col("id").stddev_pop, "STDDEV_POP(id)"),
    (col("id").var_samp, "VAR_SAMP(id)"),
    (col("id").collect, "COLLECT(id)"),
]


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.execute_sql(
        "CREATE TABLE orders (id INT, name STRING, price DECIMAL(10, 2), ts TIMESTAMP(3))"
        " WITH ('connector' = 'datagen', 'number-of-rows' = '1')"
    )
    return environment


@pytest.mark.parametrize(("expression", "sql"), METHODS, ids=[sql for _, sql in METHODS])
def test_a_method_is_the_function_of_sql(expression: Expression, sql: str, environment: TableEnvironment) -> None:
    ours = environment.from_path("orders").select(expression)
    theirs = environment.sql_query(f"SELECT {sql} FROM (SELECT * FROM orders)")
    assert ours.get_schema() == theirs.get_schema()
    assert explain(ours._plan) == explain(theirs._plan)


def test_objects_of_the_catalog_by_methods(environment: TableEnvironment) -> None:
    schema = Schema.new_builder().from_fields(["a"], [DataTypes.INT()]).build()
    descriptor = TableDescriptor.for_connector("datagen").option("number-of-rows", 3).schema(schema).build()
    environment.create_temporary_table("made", descriptor)
    environment.create_view("seen", environment.from_path("orders"))
    assert "made" in environment.list_temporary_tables() and "seen" not in environment.list_temporary_views()
    assert environment.from_descriptor(descriptor).get_schema() == environment.from_path("made").get_schema()
    assert environment.drop_temporary_table("made") and environment.drop_view("seen")
    assert not environment.drop_table("made") and not environment.drop_temporary_view("seen")
