"""CREATE, ALTER, DROP, SHOW, DESCRIBE and USE on catalogs in memory."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common.configuration import Configuration
from headwater.common.errors import SqlError
from headwater.table import DataTypes, EnvironmentSettings, ResultKind, Schema, TableDescriptor, TableEnvironment
from headwater.table.catalog import Catalog
from headwater.table.udf import udf


@pytest.fixture
def environment() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def rows(environment: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with environment.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


TABLE = (
    "CREATE TABLE {} (id INT, price DECIMAL(10, 2) COMMENT 'in euro', twice AS price * 2, ts TIMESTAMP(3),"
    " WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED)"
    " COMMENT 'of goods' PARTITIONED BY (price) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'csv')"
)


def test_a_table_is_described(environment: TableEnvironment) -> None:
    assert environment.execute_sql(TABLE.format("t")).get_result_kind() is ResultKind.SUCCESS
    assert rows(environment, "DESCRIBE t") == [
        ("id", "INT", False, "PRI(id)", None, None),
        ("price", "DECIMAL(10, 2)", True, None, None, None),
        ("twice", "DECIMAL(21, 2)", True, None, "AS (`price` * 2)", None),
        ("ts", "TIMESTAMP(3)", True, None, None, "(`ts` - INTERVAL '5' SECOND)"),
    ]
    assert rows(environment, "SHOW COLUMNS FROM t LIKE '%i%'") == rows(environment, "DESCRIBE t")[:3]
    assert rows(environment, "SHOW COLUMNS FROM t NOT LIKE '%i%'") == rows(environment, "DESCRIBE t")[3:]


def test_show_create_gives_a_statement_that_makes_the_same_table(environment: TableEnvironment) -> None:
    environment.execute_sql(TABLE.format("t"))
    ((text,),) = rows(environment, "SHOW CREATE TABLE t")
    environment.execute_sql("DROP TABLE t")
    environment.execute_sql(text)
    assert rows(environment, "SHOW CREATE TABLE t") == [(text,)]
    environment.execute_sql("CREATE VIEW v (a) AS SELECT id + 1 FROM t WHERE price > 1")
    ((text,),) = rows(environment, "SHOW CREATE VIEW v")
    environment.execute_sql("DROP VIEW v")
    environment.execute_sql(text)
    assert rows(environment, "SHOW CREATE VIEW v") == [(text,)]


def test_names_of_one_two_and_three_parts(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE DATABASE other COMMENT 'x' WITH ('a' = 'b')")
    environment.execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory', 'default-database' = 'd')")
    for name in ("t", "other.t", "c.d.t"):
        environment.execute_sql(TABLE.format(name))
    assert rows(environment, "SHOW TABLES") == [("t",)]
    assert rows(environment, "SHOW TABLES FROM other") == [("t",)]
    assert rows(environment, "SHOW TABLES IN c.d LIKE 'x'") == []
    environment.execute_sql("USE CATALOG c")
    assert rows(environment, "SHOW CURRENT DATABASE") == [("d",)]
    assert rows(environment, "SHOW CURRENT CATALOG") == [("c",)]
    environment.execute_sql("USE default_catalog.other")
    assert (environment.get_current_catalog(), environment.get_current_database()) == ("default_catalog", "other")
    assert rows(environment, "SHOW CATALOGS") == [("c",), ("default_catalog",)]
    assert rows(environment, "SHOW DATABASES IN c") == [("d",)]
    assert environment.sql_query("SELECT c.d.t.id FROM c.d.t").get_schema().fields[0].name == "id"


def test_a_temporary_table_hides_the_permanent_one(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE t (a INT) WITH ('connector' = 'print')")
    environment.execute_sql("CREATE TEMPORARY TABLE t (b INT) WITH ('connector' = 'print')")
    assert [each.name for each in environment.from_path("t").get_schema().fields] == ["b"]
    with pytest.raises(SqlError, match="DROP TEMPORARY TABLE first"):
        environment.execute_sql("DROP TABLE t")
    environment.execute_sql("DROP TEMPORARY TABLE t")
    assert [each.name for each in environment.from_path("t").get_schema().fields] == ["a"]
    environment.execute_sql("DROP TABLE t")
    assert environment.list_tables() == []
    environment.execute_sql("DROP TABLE IF EXISTS t")


def test_if_not_exists_keeps_what_is_there(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE t (a INT) WITH ('connector' = 'print')")
    environment.execute_sql("CREATE TABLE IF NOT EXISTS t (b INT) WITH ('connector' = 'print')")
    environment.execute_sql("CREATE DATABASE IF NOT EXISTS default_database")
    environment.execute_sql("CREATE VIEW IF NOT EXISTS t AS SELECT 1 AS x")
    assert [each.name for each in environment.from_path("t").get_schema().fields] == ["a"]


def test_a_database_with_tables_is_dropped_by_cascade_only(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE DATABASE d")
    environment.execute_sql(TABLE.format("d.t"))
    with pytest.raises(SqlError, match="write CASCADE"):
        environment.execute_sql("DROP DATABASE d")
    environment.execute_sql("DROP DATABASE d CASCADE")
    assert environment.list_databases() == ["default_database"]


def test_like_takes_what_it_is_told(environment: TableEnvironment) -> None:
    environment.execute_sql(TABLE.format("t"))
    environment.execute_sql("CREATE TABLE u (extra INT) WITH ('path' = '/y') LIKE t (EXCLUDING WATERMARKS)")
    ((text,),) = rows(environment, "SHOW CREATE TABLE u")
    assert "'path' = '/y'" in text and "'format' = 'csv'" in text
    assert "WATERMARK" not in text and "PRIMARY KEY (`id`)" in text and "`extra` INT" in text
    environment.execute_sql("CREATE TABLE w WITH ('connector' = 'print') LIKE t (EXCLUDING ALL)")
    ((text,),) = rows(environment, "SHOW CREATE TABLE w")
    assert "twice" not in text and "PRIMARY" not in text and "csv" not in text and "PARTITIONED" not in text


def test_alter(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE t (a INT) WITH ('connector' = 'print', 'x' = '1', 'y' = '2')")
    environment.execute_sql("ALTER TABLE t SET ('x' = '3')")
    environment.execute_sql("ALTER TABLE t RESET ('y')")
    environment.execute_sql("ALTER TABLE t RENAME TO u")
    ((text,),) = rows(environment, "SHOW CREATE TABLE u")
    assert "'x' = '3'" in text and "'y'" not in text
    environment.execute_sql("CREATE VIEW v AS SELECT 1 AS a")
    environment.execute_sql("ALTER VIEW v AS SELECT 'x' AS b")
    assert rows(environment, "DESCRIBE v") == [("b", "CHAR(1)", False, None, None, None)]


def test_alter_of_columns(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE t (a INT, b STRING, c AS a + 1) WITH ('connector' = 'print')")
    for change in (
        "ADD (d TIMESTAMP(3) COMMENT 'when' FIRST, e DECIMAL(5, 2) AFTER a, f AS e * 2)",
        "ADD (WATERMARK FOR d AS d - INTERVAL '5' SECOND, PRIMARY KEY (a) NOT ENFORCED)",
        "MODIFY (b BIGINT FIRST, WATERMARK FOR d AS d)",
        "RENAME b TO g",
        "DROP c",
    ):
        environment.execute_sql(f"ALTER TABLE t {change}")
    assert rows(environment, "DESCRIBE t") == [
        ("g", "BIGINT", True, None, None, None),
        ("d", "TIMESTAMP(3)", True, None, None, "`d`"),
        ("a", "INT", False, "PRI(a)", None, None),
        ("e", "DECIMAL(5, 2)", True, None, None, None),
        ("f", "DECIMAL(16, 2)", True, None, "AS (`e` * 2)", None),
    ]
    environment.execute_sql("ALTER TABLE t DROP WATERMARK")
    environment.execute_sql("ALTER TABLE t DROP PRIMARY KEY")
    environment.execute_sql("ALTER TABLE t DROP (f, d)")
    assert [row[0] for row in rows(environment, "DESCRIBE t")] == ["g", "a", "e"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("ADD a BIGINT", "there is a column 'a'; MODIFY it"),
        ("MODIFY x INT", "there is no column 'x'"),
        ("ADD x INT AFTER y", "there is no column 'y'"),
        ("DROP a", "column 'c' is computed from 'a'"),
        ("RENAME a TO x", "column 'c' is computed from 'a'"),
        ("RENAME b TO c", "there is a column 'c'"),
        ("DROP ts", "the watermark needs 'ts'"),
        ("DROP k", "'k' is in the primary key"),
        ("DROP p", "the table is PARTITIONED BY 'p'"),
        ("ADD WATERMARK FOR ts AS ts", "the table has a watermark; MODIFY it"),
        ("ADD PRIMARY KEY (b) NOT ENFORCED", "the table has a primary key; MODIFY it"),
        ("MODIFY ts STRING", "a watermark needs TIMESTAMP"),
        ("MODIFY a STRING", r"'\+' does not take STRING and INT"),
    ],
)
def test_an_alteration_that_contradicts_the_table(environment: TableEnvironment, change: str, error: str) -> None:
    environment.execute_sql(
        "CREATE TABLE t (k INT, a INT, b STRING, c AS a + 1, ts TIMESTAMP(3), p STRING, WATERMARK FOR ts AS ts,"
        " PRIMARY KEY (k) NOT ENFORCED) PARTITIONED BY (p) WITH ('connector' = 'print')"
    )
    before = rows(environment, "DESCRIBE t")
    with pytest.raises(SqlError, match=error):
        environment.execute_sql(f"ALTER TABLE t {change}")
    assert rows(environment, "DESCRIBE t") == before


def test_functions_databases_and_catalogs_are_described(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE CATALOG c COMMENT 'mine' WITH ('type' = 'generic_in_memory')")
    environment.execute_sql("CREATE DATABASE c.d COMMENT 'yours' WITH ('x' = '1')")
    ((text,),) = rows(environment, "SHOW CREATE CATALOG c")
    environment.execute_sql("DROP CATALOG c")
    environment.execute_sql(text)
    environment.execute_sql("CREATE DATABASE c.d COMMENT 'yours' WITH ('x' = '1')")
    assert rows(environment, "DESCRIBE CATALOG c") == [
        ("name", "c"), ("type", "generic_in_memory"), ("comment", "mine"),
    ]  # fmt: skip
    found = rows(environment, "DESCRIBE DATABASE EXTENDED c.d")
    assert found == [("name", "d"), ("comment", "yours"), ("option:x", "1")]
    assert ("is system function", "true") in rows(environment, "DESCRIBE FUNCTION `UPPER`")
    environment.execute_sql("CREATE FUNCTION f AS 'tests.unit.table.catalog.test_statements.one' LANGUAGE PYTHON")
    assert ("is system function", "false") in rows(environment, "DESCRIBE FUNCTION f")
    environment.execute_sql("ALTER FUNCTION f AS 'tests.unit.table.catalog.test_statements.two' LANGUAGE PYTHON")
    assert environment.sql_query("SELECT f(1) AS x").get_schema().fields[0].type.sql() == "STRING"
    with pytest.raises(SqlError, match="there is no such function"):
        environment.execute_sql("ALTER FUNCTION g AS 'tests.unit.table.catalog.test_statements.two' LANGUAGE PYTHON")
    environment.execute_sql(
        "ALTER FUNCTION IF EXISTS g AS 'tests.unit.table.catalog.test_statements.two' LANGUAGE PYTHON"
    )


one = udf(lambda x: x, result_type="INT")
two = udf(lambda x: str(x), result_type="STRING")


def test_a_view_refers_to_what_was_current_when_it_was_made(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE t (a INT) WITH ('connector' = 'print')")
    environment.execute_sql("CREATE VIEW v AS SELECT a FROM t")
    environment.execute_sql("CREATE DATABASE d")
    environment.execute_sql("USE d")
    assert environment.sql_query("SELECT * FROM default_database.v").get_schema().fields[0].name == "a"


def test_a_view_that_contains_itself_is_an_error(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE VIEW a AS SELECT 1 AS x")
    environment.execute_sql("CREATE VIEW b AS SELECT x FROM a")
    environment.execute_sql("ALTER VIEW a AS SELECT x FROM b")
    with pytest.raises(SqlError, match="contains itself"):
        environment.sql_query("SELECT * FROM b")


def test_descriptors_make_the_same_tables(environment: TableEnvironment) -> None:
    schema = (
        Schema.new_builder()
        .column("id", DataTypes.INT())
        .column("price", "DECIMAL(10, 2)")
        .column_by_expression("twice", "price * 2")
        .column("ts", DataTypes.TIMESTAMP(3))
        .watermark("ts", "ts - INTERVAL '5' SECOND")
        .primary_key("id")
        .build()
    )
    descriptor = TableDescriptor.for_connector("filesystem").option("path", "/x").format("csv").schema(schema)
    environment.create_table("a", descriptor.partitioned_by("price").build())
    environment.execute_sql(TABLE.format("b"))
    assert rows(environment, "DESCRIBE a") == rows(environment, "DESCRIBE b")


def test_a_catalog_can_be_registered(environment: TableEnvironment) -> None:
    environment.register_catalog("mine", Catalog("mine"))
    environment.use_catalog("mine")
    assert environment.list_databases() == ["default"]
    assert environment.get_catalog("mine").get_default_database() == "default"


def test_settings(environment: TableEnvironment) -> None:
    environment.execute_sql("SET 'table.local-time-zone' = 'Asia/Tokyo'")
    assert environment.get_config().get_local_timezone() == "Asia/Tokyo"
    assert ("table.local-time-zone", "Asia/Tokyo") in rows(environment, "SET")


def test_a_configuration_chooses_the_mode() -> None:
    batch = TableEnvironment.create(Configuration.from_dict({"execution.runtime-mode": "BATCH"}))
    assert "Spark SQL" in batch.explain_sql("SELECT 1")
    assert "Physical Plan" in TableEnvironment.create(Configuration()).explain_sql("SELECT 1")
