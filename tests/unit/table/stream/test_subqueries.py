"""Subqueries on streams: what they become, and that they give what DuckDB gives after every epoch."""

from __future__ import annotations

import os

import pytest

from headwater.common.errors import SqlError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.plan.explain import explain
from headwater.table.stream.rules.subqueries import subqueries
from tests.unit.table.stream.oracle import Query, run

CONDITIONS = {
    "exists": [
        "EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
        "EXISTS (SELECT 1 FROM u)",
        "NOT EXISTS (SELECT 1 FROM u WHERE v > 4)",
        "NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.v > t.v)",
        "EXISTS (SELECT 1 FROM u WHERE u.v > t.v AND t.id < 5)",
        "EXISTS (SELECT k FROM u WHERE u.id = t.id GROUP BY k HAVING COUNT(*) > 1)",
        "EXISTS (SELECT COUNT(*) FROM u WHERE u.id = t.id)",
        "EXISTS (SELECT 1 FROM u WHERE u.id = t.id) AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AND v > 0",
        "EXISTS (SELECT 1 FROM u JOIN t w ON u.id = w.id WHERE w.k = t.k)",
        "EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k IN (SELECT k FROM t WHERE v > 2))",
        "EXISTS (SELECT DISTINCT u.k FROM u WHERE u.id = t.id)",
    ],
    "in": [
        "k IN (SELECT k FROM u)",
        "k IN (SELECT k FROM u WHERE u.id = t.id)",
        "(id, k) IN (SELECT id, k FROM u)",
        "v IN (SELECT MAX(v) FROM u WHERE u.k = t.k)",
        "v IN (SELECT COUNT(*) FROM u WHERE u.k = t.k)",
        "v = ANY (SELECT v FROM u)",
        "id IN (SELECT id FROM u WHERE u.v < t.v)",
        "NOT (k NOT IN (SELECT k FROM u))",
    ],
    "not in": [
        "k NOT IN (SELECT k FROM u)",
        "k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
        "k NOT IN (SELECT k FROM u WHERE u.id = t.id)",
        "id NOT IN (SELECT id FROM u WHERE v > 1)",
        "v NOT IN (SELECT MAX(v) FROM u WHERE u.k = t.k)",
        "v <> ALL (SELECT v FROM u WHERE u.v < 0)",
        "(id, k) NOT IN (SELECT id, k FROM u WHERE v > 1)",
        "v NOT IN (SELECT v FROM u WHERE u.d > t.d)",
    ],
    "quantified": [
        "v > ALL (SELECT v FROM u WHERE v < 3)",
        "v <= ALL (SELECT v FROM u WHERE v > 2)",
        "v >= ANY (SELECT v FROM u)",
        "NOT (v < ANY (SELECT v FROM u))",
        "(v > ALL (SELECT v FROM u WHERE v < 0)) IS NOT NULL",
        "v = ALL (SELECT v FROM u WHERE v = 2)",
        "v <> ANY (SELECT v FROM u WHERE v > 3)",
        "v >= ALL (SELECT v FROM u WHERE u.k = t.k AND v IS NOT NULL)",
    ],
    "values": [
        "v > (SELECT MIN(v) FROM u)",
        "v = (SELECT MAX(v) FROM u WHERE u.k = t.k)",
        "(SELECT COUNT(*) FROM u WHERE u.k = t.k) = 0",
        "v > 3 OR EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
        "v > 3 OR NOT EXISTS (SELECT 1 FROM u WHERE v = 5)",
        "v > 3 OR k IN (SELECT k FROM u)",
        "v > 3 OR k NOT IN (SELECT k FROM u WHERE u.id = t.id)",
        "(k IN (SELECT k FROM u WHERE v > 1)) IS NULL",
        "(k NOT IN (SELECT k FROM u WHERE v > 1)) IS NOT TRUE",
        "id + (SELECT COUNT(*) FROM u) > 5",
    ],
}  # fmt: skip
SELECTED = [
    "SELECT id, (SELECT MAX(v) FROM u) FROM t",
    "SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k) FROM t",
    "SELECT id, (SELECT COUNT(v) + 1 FROM u WHERE u.k = t.k AND u.id = t.id) FROM t",
    "SELECT id, (SELECT SUM(v) FROM u WHERE u.k = t.k AND t.v > 0) FROM t",
    "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) FROM t",
    "SELECT id, k IN (SELECT k FROM u) FROM t",
    "SELECT id, v NOT IN (SELECT v FROM u WHERE u.k = t.k) FROM t",
    "SELECT id, (SELECT v FROM u WHERE u.k = t.k ORDER BY v DESC NULLS LAST, id LIMIT 1) FROM t",
    "SELECT k, SUM(v) FROM t GROUP BY k HAVING SUM(v) > (SELECT MIN(v) FROM u)",
    "SELECT k, COUNT(*) FROM t GROUP BY k HAVING k IN (SELECT k FROM u)",
    "SELECT k, (SELECT COUNT(*) FROM u WHERE u.k = s.k) FROM (SELECT DISTINCT k FROM t) s",
    "SELECT id, (SELECT x FROM (VALUES (1), (2)) w(x) WHERE x = id) FROM t",
    "SELECT t.id, u.id FROM t JOIN u ON t.id = u.id AND t.v IN (SELECT v FROM u)",
]
FAMILIES = {name: [f"SELECT id, k, v FROM t WHERE {each}" for each in found] for name, found in CONDITIONS.items()}
FAMILIES["selected"] = SELECTED
FAMILIES["lateral"] = [
    "SELECT s.k, q.id, q.v FROM (SELECT DISTINCT k FROM t) s, LATERAL (SELECT id, v FROM u WHERE u.k = s.k ORDER BY v"
    " DESC NULLS LAST, id NULLS LAST LIMIT 2) AS q",
    "SELECT s.id, q.v FROM t s LEFT JOIN LATERAL (SELECT v, id AS i FROM u WHERE u.k = s.k AND v > 1 ORDER BY v NULLS"
    " LAST, id NULLS LAST LIMIT 1 OFFSET 1) AS q ON TRUE",
    "SELECT s.id, q.n, q.m FROM t s, LATERAL (SELECT COUNT(*) AS n, MAX(v) + 1 AS m FROM u WHERE u.k = s.k) AS q",
    "SELECT s.id, q.n FROM t s JOIN LATERAL (SELECT COUNT(v) AS n FROM u WHERE u.k = s.k) AS q ON q.n < s.v",
    "SELECT s.id, q.v FROM t s, LATERAL (SELECT v FROM u WHERE u.k = s.k AND u.v < s.v) AS q",
    "SELECT s.id, q.v FROM t s LEFT JOIN LATERAL (SELECT v FROM u WHERE u.k = s.k) AS q ON q.v > s.v",
    "SELECT s.id, q.v, q.n FROM t s, LATERAL (SELECT v, COUNT(*) AS n FROM u WHERE u.k = s.k GROUP BY v) AS q",
]


@pytest.mark.parametrize("family", FAMILIES)
def test_after_every_epoch_they_give_what_duckdb_gives(family: str) -> None:
    for seed in range(int(os.environ.get("ORACLE", "1"))):
        queries = [Query(each) for each in FAMILIES[family]]
        run(queries, 300 + seed, deletes=True, backend="hashmap", crash=True, epochs=4, size=12)


def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name in ("t", "u"):
        environment.execute_sql(
            f"CREATE TABLE {name} (id INT NOT NULL, k STRING, v BIGINT) WITH ('connector' = 'datagen')"
        )
    return environment


PLANS = {
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.v > t.v)": """\
Calc(select=[id])
+- Join(joinType=[SEMI], where=[((id = id) AND (v > v))])
   +- TableSourceScan(table=[[default_catalog.default_database.t]], fields=[id, k, v])
   +- Calc(select=[1 AS EXPR$0, id, v])
      +- TableSourceScan(table=[[default_catalog.default_database.u]], fields=[id, k, v])
""",
    "SELECT id FROM t WHERE id NOT IN (SELECT id FROM u)": """\
Calc(select=[id])
+- Join(joinType=[ANTI], where=[(id = id)])
   +- TableSourceScan(table=[[default_catalog.default_database.t]], fields=[id, k, v])
   +- Calc(select=[id])
      +- TableSourceScan(table=[[default_catalog.default_database.u]], fields=[id, k, v])
""",
    "SELECT (SELECT MAX(v) FROM u WHERE u.k = t.k) AS m FROM t": """\
Calc(select=[EXPR$0 AS m])
+- Join(joinType=[LEFT], where=[(k = $k0)])
   +- TableSourceScan(table=[[default_catalog.default_database.t]], fields=[id, k, v])
   +- Calc(select=[$a0 AS EXPR$0, $k0])
      +- Aggregate(groupBy=[k], select=[MAX(v) AS $a0])
         +- TableSourceScan(table=[[default_catalog.default_database.u]], fields=[id, k, v])
""",
}


@pytest.mark.parametrize("sql", PLANS)
def test_plans(sql: str) -> None:
    assert explain(subqueries(tables().sql_query(sql)._plan)) == PLANS[sql]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT (SELECT u.v + t.v FROM u WHERE u.id = t.id) FROM t", "selects a column of the query around it"),
        ("SELECT (SELECT MAX(v) FROM u WHERE u.v < t.v) FROM t", "by more than =, below an aggregate"),
        ("SELECT (SELECT v FROM u WHERE u.id = t.id LIMIT 1) FROM t", "below Sort"),
        ("SELECT (id, k) IN (SELECT id, k FROM u) FROM t", "IN of several columns that may be NULL"),
    ],
)
def test_what_cannot_run_is_said(sql: str, what: str) -> None:
    with pytest.raises(SqlError, match=what):
        subqueries(tables().sql_query(sql)._plan)


def test_a_value_of_two_rows_is_an_error() -> None:
    with pytest.raises(Exception, match="used as a value gave 2 rows"):
        run(
            [Query("SELECT id, (SELECT x FROM (VALUES (1), (1)) w(x)) FROM t")],
            1, deletes=True, backend="hashmap", crash=False,
        )  # fmt: skip
