"""Every mistake in a query has its place in the text, what is wrong, and what could be meant."""

from __future__ import annotations

import pytest

from headwater.common.errors import SqlError
from headwater.table import EnvironmentSettings, TableEnvironment

TABLES = (
    "CREATE TABLE t (id INT, name STRING, price DECIMAL(10, 2), ts TIMESTAMP(3), r ROW<x INT>, arr ARRAY<INT>)"
    " WITH ('connector' = 'datagen', 'number-of-rows' = '1')",
    "CREATE TABLE u (id INT NOT NULL, city STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '1')",
    "CREATE TABLE sink (a INT, b STRING) WITH ('connector' = 'blackhole')",
    "CREATE VIEW v AS SELECT id FROM t",
)


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for statement in TABLES:
        environment.execute_sql(statement)
    return environment


CASES = [
    ("SELECT nam FROM t", "column 8: there is no column 'nam'; did you mean 'name'?"),
    ("SELECT id FROM tt", "there is no table 'tt'; did you mean 't'?"),
    ("SELECT x.id FROM t", "there is no table 'x' in this query for 'x.id'; there is t"),
    ("SELECT id FROM t, u", "'id' means 2 columns; write table.id"),
    ("SELECT NAME FROM t", "there is no column 'NAME'; did you mean 'name'?"),
    ("SELECT r.y FROM t", "there is no field 'y' in ROW<`x` INT> (there is x)"),
    ("SELECT name.y FROM t", "'y' is no field: STRING has no fields"),
    ("SELECT UPER(name) FROM t", "there is no function 'UPER'; did you mean UPPER?"),
    ("SELECT id + name FROM t", "column 8: "),
    ("SELECT id FROM t WHERE name", "WHERE needs a BOOLEAN, got STRING"),
    ("SELECT id FROM t WHERE COUNT(*) > 1", "COUNT: an aggregate may not stand in WHERE"),
    ("SELECT id, COUNT(*) FROM t", "column 'id' in SELECT is neither grouped by nor in an aggregate"),
    ("SELECT name FROM t GROUP BY id", "column 'name' in SELECT is neither grouped by nor in an aggregate"),
    ("SELECT SUM(COUNT(*)) FROM t", "COUNT: an aggregate may not stand in another one"),
    ("SELECT id FROM t GROUP BY id HAVING name = 'x'", "column 'name' in HAVING is neither grouped by"),
    ("SELECT ROW_NUMBER() FROM t", "ROW_NUMBER needs OVER"),
    ("SELECT RANK() OVER (PARTITION BY id) FROM t", "RANK needs an ORDER BY in OVER"),
    ("SELECT id FROM t WHERE ROW_NUMBER() OVER (ORDER BY id) = 1", "a function with OVER may not stand in WHERE"),
    ("SELECT UPPER(name) OVER (ORDER BY id) FROM t", "UPPER is no aggregate: it takes no OVER"),
    ("SELECT SUM(id) OVER w FROM t", "there is no window 'w' in WINDOW (there is none)"),
    ("SELECT SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM t", "ends (PRECEDING) before"),
    ("SELECT SUM(id) OVER (ORDER BY id RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW) FROM t",
     "does not fit ORDER BY INT"),
    ("SELECT id FROM t ORDER BY 2", "ORDER BY 2: there are 1 columns"),
    ("SELECT DISTINCT id FROM t ORDER BY name", "ORDER BY of SELECT DISTINCT takes selected columns only"),
    ("SELECT id FROM t LIMIT 'x'", "LIMIT needs a number of rows"),
    ("SELECT id FROM t UNION SELECT city FROM u", "UNION: column 1 is INT on the left, STRING on the right"),
    ("SELECT id, name FROM t UNION SELECT city FROM u", "the left side has 2 columns, the right side 1"),
    ("VALUES (1), (2, 3)", "a row of VALUES has 2 values, the first has 1"),
    ("VALUES (1), ('x')", "have no type in common; CAST one of them"),
    ("SELECT DATE '2020-13-01'", "'2020-13-01' is no DATE; write it as DATE '2020-12-31'"),
    ("SELECT INTERVAL 'x' DAY", "'x' is no interval; write it as INTERVAL '10' DAY"),
    ("SELECT CAST(id AS DECIMAL(50, 2)) FROM t", "precision 50 is not in 1..38"),
    ("SELECT CAST(arr AS INT) FROM t", "column 8: "),
    ("SELECT * FROM t JOIN u USING (name)", "USING: column 'name' is not in both tables"),
    ("SELECT * FROM t CROSS JOIN UNNEST(name) AS x (y)", "UNNEST needs an ARRAY, a MAP or a MULTISET, got STRING"),
    ("SELECT * FROM t CROSS JOIN UNNEST(arr) AS x (y, z)", "'x' names 2 columns, UNNEST gives 1"),
    ("SELECT * FROM (SELECT id FROM t) AS x (a, b)", "'x' names 2 columns, there are 1"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(id), INTERVAL '1' DAY))", "needs a time column: 'id' is INT"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts)))", "TUMBLE needs SIZE"),
    ("SELECT * FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' DAY, INTERVAL '3' DAY))", "multiple of the slide"),
    ("SELECT * FROM TABLE(TUMBEL(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY))", "there is no table function 'TUMBEL'"),
    ("SELECT TUMBLE_START(ts, INTERVAL '1' DAY) FROM t", "TUMBLE_START needs TUMBLE(…) in GROUP BY"),
    ("SELECT TUMBLE_START(ts, INTERVAL '2' DAY) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' DAY)", "is of another window"),
    ("SELECT (SELECT id, name FROM t) FROM u", "a query as a value has one column, this one has 2"),
    ("SELECT id FROM u WHERE id IN (SELECT id, name FROM t)", "IN compares 1 value(s) with 2 column(s)"),
    ("SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01 00:00:00'", "stands on the right side of a join"),
    ("WITH w (a, b) AS (SELECT 1) SELECT * FROM w", "'w' names 2 columns, its query has 1"),
    ("SELECT GROUPING(name) FROM t GROUP BY id", "GROUPING takes expressions of GROUP BY"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "error"), CASES, ids=[case[0] for case in CASES])
def test_a_mistake_has_its_place(sql: str, error: str, environment: TableEnvironment) -> None:
    with pytest.raises(SqlError) as raised:
        environment.sql_query(sql)
    text = str(raised.value)
    assert error in text
    assert text.startswith("line 1, column ") and text.endswith("^")


STATEMENTS = [
    ("INSERT INTO nowhere SELECT 1", "line 1, column 13: there is no table 'nowhere'"),
    ("INSERT INTO v SELECT 1", "is a view: nothing can be inserted into it"),
    ("INSERT INTO sink SELECT id FROM t", "the query has 1 columns (id INT), the table 2 (a INT, b STRING)"),
    ("INSERT INTO sink SELECT name, id FROM t", "column 'a' is INT, the query gives STRING; CAST it"),
    ("INSERT INTO sink (aa) SELECT id FROM t", "table has no column 'aa' to insert into; did you mean 'a'?"),
    ("INSERT INTO sink (a, a) SELECT id, id FROM t", "column 'a' is named twice"),
    ("INSERT INTO sink PARTITION (x = 1) SELECT 1, 'a'", "'x' is no partition column (there is none)"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'print')", "'default_catalog.default_database.t' exists"),
    ("CREATE TABLE x (a INT, PRIMARY KEY (a)) WITH ('connector' = 'print')", "Write PRIMARY KEY (…) NOT ENFORCED"),
    ("CREATE TABLE x (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH ('connector' = 'print')", "'b', which is no column"),
    ("CREATE TABLE x (a INT, WATERMARK FOR a AS a) WITH ('connector' = 'print')", "a watermark needs TIMESTAMP(3)"),
    ("CREATE TABLE x (a INT, b AS c + 1) WITH ('connector' = 'print')", "there is no column 'c'"),
    ("CREATE TABLE x (a INT) PARTITIONED BY (b) WITH ('connector' = 'print')", "PARTITIONED BY names 'b'"),
    ("CREATE TABLE x LIKE nowhere", "there is no table 'nowhere'"),
    ("CREATE VIEW x (a, b) AS SELECT 1", "the view names 2 columns, its query has 1"),
    ("CREATE CATALOG c WITH ('type' = 'hive')", "the type of a catalog is 'generic_in_memory', found 'hive'"),
    ("CREATE FUNCTION f AS 'a.B'", "functions here are of Python"),
    ("DROP TABLE v", "there is no table 'default_catalog.default_database.v'; it is a view"),
    ("DROP TABLE tt", "there is no table 'default_catalog.default_database.tt'; did you mean 't'?"),
    ("USE nowhere", "catalog 'default_catalog' has no database 'nowhere'"),
    ("USE CATALOG nowhere", "there is no catalog 'nowhere'; there are default_catalog"),
    ("DESCRIBE nowhere", "there is no table 'nowhere'"),
    ("SHOW CREATE VIEW t", "'t' is a table"),
    ("ALTER TABLE t DROP idd", "there is no column 'idd'"),
    ("DROP DATABASE default_database", "is in use"),
    ("SELECT /*+ BROADCST(u) */ id FROM u", "there is no hint 'BROADCST'; did you mean 'BROADCAST'?"),
    ("SELECT /*+ BROADCAST(uu) */ id FROM u", "BROADCAST: there is no 'uu' in FROM (there is u); did you mean 'u'?"),
    ("SELECT /*+ STATE_TTL('x' = '1d') */ id FROM u", "STATE_TTL: there is no 'x' in FROM (there is u)"),
    ("SELECT id FROM u /*+ OPTION('a' = 'b') */", "there is no hint 'OPTION' for a table; did you mean 'OPTIONS'?"),
    ("SELECT id FROM v /*+ OPTIONS('a' = 'b') */", "is a view, which has no options"),
    ("SELECT /*+ LOOKUP('table' = 'u') */ id FROM u", "LOOKUP: 'u' is not joined FOR SYSTEM_TIME AS OF"),
    ("SELECT /*+ LOOKUP('tabel' = 'u') */ id FROM u", "LOOKUP has no option 'tabel'; did you mean 'table'?"),
    ("SELECT /*+ LOOKUP('async' = 'true') */ id FROM u", "LOOKUP needs the option 'table'"),
    ("SELECT /*+ LOOKUP('table' = 'u', 'async' = 'yes') */ id FROM u", "'async' = 'yes' is neither true nor false"),
    ("SELECT * FROM u /*+ OPTIONS('number-of-rowz' = '1') */", "did you mean 'number-of-rows'?"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "error"), STATEMENTS, ids=[case[0] for case in STATEMENTS])
def test_a_wrong_statement_changes_nothing(sql: str, error: str, environment: TableEnvironment) -> None:
    before = (environment.list_tables(), environment.list_catalogs(), environment.get_current_database())
    with pytest.raises(SqlError) as raised:
        environment.execute_sql(sql)
    assert error in str(raised.value)
    assert (environment.list_tables(), environment.list_catalogs(), environment.get_current_database()) == before


def test_a_stream_is_no_dataframe() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with pytest.raises(SqlError, match="a DataFrame of Spark is the result of a batch"):
        environment.from_elements([(1,)], ["a"]).to_dataframe()
