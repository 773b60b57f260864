"""Tables in batch mode on Spark: files, print, DataFrames, generated rows, errors of rows."""

from __future__ import annotations

import datetime
import decimal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from headwater.common.errors import JobFailedError, SqlError
from headwater.table import DataTypes, EnvironmentSettings, ResultKind, TableDescriptor, TableEnvironment, Tumble
from headwater.table.expressions import col, lit


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    return environment


def rows(environment: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with environment.execute_sql(sql).collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


VALUES = (
    "(1, 'ann', CAST(1.50 AS DECIMAL(10, 2)), TIMESTAMP '2020-01-01 10:00:00.123', DATE '2020-01-01', TRUE),"
    " (2, 'say \"hi\", bob', CAST(NULL AS DECIMAL(10, 2)), TIMESTAMP '1969-12-31 23:59:59.999',"
    " DATE '1900-02-28', FALSE)"
)
COLUMNS = "id INT, name STRING, price DECIMAL(10, 2), ts TIMESTAMP(3), d DATE, ok BOOLEAN"


@pytest.mark.parametrize("format_", ["csv", "json", "parquet", "orc"])
def test_files_give_back_what_was_inserted(format_: str, environment: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/x', 'format' = '{format_}'"
    environment.execute_sql(f"CREATE TEMPORARY TABLE f_{format_} ({COLUMNS}) WITH ({options})")
    environment.execute_sql(f"INSERT INTO f_{format_} VALUES {VALUES}").wait()
    expected = [
        (1, "ann", decimal.Decimal("1.50"), datetime.datetime(2020, 1, 1, 10, 0, 0, 123000),
         datetime.date(2020, 1, 1), True),
        (2, 'say "hi", bob', None, datetime.datetime(1969, 12, 31, 23, 59, 59, 999000),
         datetime.date(1900, 2, 28), False),
    ]  # fmt: skip
    assert rows(environment, f"SELECT * FROM f_{format_}") == expected
    environment.execute_sql(f"INSERT INTO f_{format_} (id) VALUES (3)")
    assert rows(environment, f"SELECT COUNT(*), COUNT(d) FROM f_{format_}") == [(3, 2)]
    environment.execute_sql(f"INSERT OVERWRITE f_{format_} (id) VALUES (4)")
    assert rows(environment, f"SELECT id FROM f_{format_}") == [(4,)]


def test_partitions_are_folders(environment: TableEnvironment, tmp_path: Path) -> None:
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE parts (a INT, day_ STRING) PARTITIONED BY (day_)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/p', 'format' = 'parquet')"
    )
    environment.execute_sql("INSERT INTO parts VALUES (1, 'mon'), (2, 'tue')")
    environment.execute_sql("INSERT OVERWRITE parts PARTITION (day_ = 'tue') SELECT 3")
    assert {path.name for path in (tmp_path / "p").glob("day_=*")} == {"day_=mon", "day_=tue"}
    assert rows(environment, "SELECT * FROM parts") == [(1, "mon"), (3, "tue")]


def test_malformed_fields_are_an_error_or_null(environment: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,a\nnot a number,b\n3,c\n", encoding="utf-8")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/x.csv', 'format' = 'csv'"
    environment.execute_sql(f"CREATE TEMPORARY TABLE bad (a INT, b STRING) WITH ({options})")
    with pytest.raises(JobFailedError, match=r"x\.csv"):
        environment.execute_sql("SELECT * FROM bad")
    hint = "/*+ OPTIONS('csv.ignore-parse-errors' = 'true') */"
    assert rows(environment, f"SELECT * FROM bad {hint}") == [(1, "a"), (3, "c"), (None, "b")]
    assert rows(environment, f"SELECT COUNT(*) FROM bad {hint}") == [(3,)]


def test_malformed_json_is_null_or_skipped(environment: TableEnvironment, tmp_path: Path) -> None:
    lines = ['{"a":1,"d":12.345}', '{"a":"x","d":2}', '{"a":3,"d":123456}', '{"a":4', "[5]", '{"a":"x","d":"y"}']
    (tmp_path / "x.json").write_text("\n".join(lines), encoding="utf-8")
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE bad_json (a INT, d DECIMAL(5, 2)) WITH ('connector' = 'filesystem', 'format' = 'json',"
        f" 'path' = '{tmp_path}/x.json', 'json.ignore-parse-errors' = 'true')"
    )
    found = [(1, decimal.Decimal("12.35")), (3, None), (None, decimal.Decimal("2.00")), (None, None)]
    assert rows(environment, "SELECT * FROM bad_json") == sorted(found, key=repr)
    assert rows(environment, "SELECT COUNT(*), COUNT(a) FROM bad_json") == [(4, 2)]
    with pytest.raises(JobFailedError, match=r"x\.json"):
        environment.execute_sql("SELECT * FROM bad_json /*+ OPTIONS('json.ignore-parse-errors' = 'false') */")


def test_nothing_is_an_empty_text_in_csv(environment: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(',\n1,a\n,""\n', encoding="utf-8")
    environment.execute_sql(
        "CREATE TEMPORARY TABLE empties (a INT, b STRING) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{tmp_path}/x.csv')"
    )
    assert rows(environment, "SELECT * FROM empties") == [(1, "a"), (None, ""), (None, "")]
    nulls = "/*+ OPTIONS('csv.null-literal' = '') */"
    assert rows(environment, f"SELECT COUNT(*), COUNT(b) FROM empties {nulls}") == [(3, 1)]


def test_print_and_blackhole(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.execute_sql("CREATE TEMPORARY TABLE p (a INT, b STRING) WITH ('connector' = 'print')")
    result = environment.execute_sql("INSERT INTO p VALUES (1, 'x'), (CAST(NULL AS INT), 'y')")
    assert capsys.readouterr().out == "+I[1, x]\n+I[null, y]\n"
    assert result.get_result_kind() is ResultKind.SUCCESS_WITH_CONTENT
    sink = TableDescriptor.for_connector("blackhole").build()
    environment.sql_query("SELECT 1 AS a").execute_insert(sink).wait()


def test_results_are_printed_as_flink_prints_them(
    environment: TableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.execute_sql(
        "SELECT 1 AS id, 'ann' AS name, CAST(NULL AS BOOLEAN) AS ok, 1.0E10 AS big, CAST(1.5 AS DECIMAL(38, 2)) AS d,"
        " TIMESTAMP '2020-01-01 00:00:00.123' AS ts, 'a string that is longer than thirty characters' AS l"
    ).print()
    line = (
        "+-------------+--------------------------------+--------+--------------------------------"
        "+------------------------------------------+-------------------------+--------------------------------+\n"
    )
    assert capsys.readouterr().out == (
        f"{line}"
        "|          id |                           name |     ok |                            big "
        "|                                        d |                      ts |                              l |\n"
        f"{line}"
        "|           1 |                            ann | <NULL> |                         1.0E10 "
        "|                                     1.50 | 2020-01-01 00:00:00.123 | a string that is longer tha... |\n"
        f"{line}"
        "1 row in set\n"
    )


def test_generated_rows(environment: TableEnvironment) -> None:
    environment.execute_sql(
        "CREATE TEMPORARY TABLE g (a INT, b BIGINT, c STRING, d DOUBLE, e BOOLEAN) WITH ('connector' = 'datagen',"
        " 'fields.a.kind' = 'sequence', 'fields.a.start' = '5', 'fields.a.end' = '104', 'fields.b.min' = '1',"
        " 'fields.b.max' = '3', 'fields.c.length' = '7', 'fields.d.null-rate' = '1')"
    )
    found = rows(
        environment,
        "SELECT COUNT(*), MIN(a), MAX(a), MIN(b), MAX(b), MIN(CHAR_LENGTH(c)), MAX(CHAR_LENGTH(c)), COUNT(d) FROM g",
    )
    assert found == [(100, 5, 104, 1, 3, 7, 7, 0)]


def test_dataframes_of_spark_and_pandas_in_and_out(environment: TableEnvironment) -> None:
    environment.execute_sql("SELECT 1")  # Spark is there
    spark = SparkSession.builder.getOrCreate()
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, s STRING")
    table = environment.from_dataframe(frame)
    assert [each.type.sql() for each in table.get_schema().fields] == ["INT", "STRING"]
    environment.create_temporary_view("frame", table)
    out = environment.sql_query("SELECT s, id * 2 AS twice FROM frame WHERE id > 1").to_dataframe()
    assert out.columns == ["s", "twice"] and [tuple(row) for row in out.collect()] == [("b", 4)]
    assert out.join(frame, out.s == frame.s).count() == 1  # it is a DataFrame of the program's own session
    back = environment.from_pandas(pd.DataFrame({"x": [1, 2], "y": ["p", None]})).where(col("x") > 1).to_pandas()
    assert back.to_dict("records") == [{"x": 2, "y": None}]


def test_the_programs_spark_session_keeps_its_settings(environment: TableEnvironment) -> None:
    environment.get_config().set_local_timezone("Asia/Tokyo")
    try:
        ((shown,),) = rows(
            environment, "SELECT CAST(CAST(TIMESTAMP '2020-01-01 00:00:00' AS TIMESTAMP_LTZ(3)) AS STRING)"
        )
        assert shown == "2020-01-01 00:00:00.000"
        assert SparkSession.builder.getOrCreate().conf.get("spark.sql.session.timeZone") != "Asia/Tokyo"
    finally:
        environment.get_config().set_local_timezone("UTC")


def test_a_table_of_values_with_every_type_comes_back(environment: TableEnvironment) -> None:
    schema = DataTypes.ROW(
        [
            DataTypes.FIELD("a", DataTypes.ARRAY(DataTypes.INT())),
            DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
            DataTypes.FIELD("r", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.BIGINT())])),
            DataTypes.FIELD("t", DataTypes.TIME()),
            DataTypes.FIELD("b", DataTypes.BYTES()),
        ]
    )
    values = ([1, None], {"k": 2}, {"x": 3}, datetime.time(23, 59, 58), b"\x00\xff")
    table = environment.from_elements([values, (None,) * 5], schema)
    found = [tuple(row) for row in table.execute().collect()]
    assert found[0][:2] == ([1, None], {"k": 2}) and found[0][2].x == 3
    assert found[0][3:] == (datetime.time(23, 59, 58), b"\x00\xff")
    assert found[1] == (None,) * 5


def test_create_table_as_leaves_no_table_if_it_fails(environment: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/as', 'format' = 'json'"
    environment.execute_sql(f"CREATE TABLE made WITH ({options}) AS SELECT 1 AS a, 'x' AS b")
    assert rows(environment, "SELECT b, a FROM made") == [("x", 1)]
    with pytest.raises(JobFailedError):
        environment.execute_sql(f"CREATE TABLE failed WITH ({options}) AS SELECT CAST('x' AS INT) AS a")
    assert "made" in environment.list_tables() and "failed" not in environment.list_tables()


def test_a_statement_set_writes_all(environment: TableEnvironment, tmp_path: Path) -> None:
    for name in ("s1", "s2"):
        environment.execute_sql(
            f"CREATE TEMPORARY TABLE {name} (a INT)"
            f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = 'json')"
        )
    environment.execute_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO s1 SELECT 1; INSERT INTO s2 SELECT 2; END")
    assert rows(environment, "SELECT * FROM s1 UNION ALL SELECT * FROM s2") == [(1,), (2,)]
    statements = environment.create_statement_set()
    statements.add_insert_sql("INSERT INTO s1 SELECT 3")
    statements.add_insert("s2", environment.sql_query("SELECT 4"))
    statements.execute().wait()
    assert rows(environment, "SELECT * FROM s1 UNION ALL SELECT * FROM s2") == [(1,), (2,), (3,), (4,)]


def test_explain_shows_the_plan_and_spark(environment: TableEnvironment) -> None:
    text = environment.explain_sql("SELECT a, COUNT(*) AS n FROM (VALUES (1)) AS t (a) GROUP BY a")
    assert "Aggregate(groupBy=[a], select=[COUNT(*) AS $a0])" in text and "== Spark SQL ==" in text
    assert "AdaptiveSparkPlan" in str(
        rows(environment, "EXPLAIN ESTIMATED_COST SELECT COUNT(*) FROM (VALUES (1)) AS t (a)")
    )


def test_windows_of_the_table_api_run(environment: TableEnvironment) -> None:
    table = environment.from_elements(
        [(1, datetime.datetime(2020, 1, 1, 10, 0, 1)), (2, datetime.datetime(2020, 1, 1, 10, 1, 1))], ["v", "ts"]
    )
    window = Tumble.over(lit(1).minutes).on(col("ts")).alias("w")
    found = table.window(window).group_by(col("w")).select(col("w").start, col("v").sum).order_by(col("EXPR$0"))
    assert [tuple(row) for row in found.execute().collect()] == [
        (datetime.datetime(2020, 1, 1, 10, 0), 1),
        (datetime.datetime(2020, 1, 1, 10, 1), 2),
    ]


def test_null_into_a_not_null_column_is_an_error(environment: TableEnvironment, tmp_path: Path) -> None:
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE strict (a INT NOT NULL)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/strict', 'format' = 'json')"
    )
    with pytest.raises(JobFailedError, match="column 'a' is NOT NULL and got NULL"):
        environment.execute_sql("INSERT INTO strict SELECT CAST(x AS INT) FROM (VALUES (1), (NULL)) AS t (x)")
    environment.execute_sql("INSERT INTO strict SELECT CAST(x AS INT) FROM (VALUES (1), (NULL)) AS t (x) WHERE x > 0")
    assert rows(environment, "SELECT * FROM strict") == [(1,)]


def test_predicates_with_queries_are_values_of_three_kinds(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE VIEW l AS SELECT * FROM (VALUES (1), (2), (CAST(NULL AS INT))) AS v (x)")
    environment.execute_sql("CREATE VIEW r AS SELECT * FROM (VALUES (1), (CAST(NULL AS INT))) AS v (y)")
    query = (
        "SELECT x, x IN (SELECT y FROM r), x NOT IN (SELECT y FROM r WHERE y = 1), x IN (SELECT y FROM r WHERE y > 5),"
        " EXISTS (SELECT 1 FROM r WHERE y = x), CASE WHEN NOT EXISTS (SELECT 1 FROM r WHERE y > x) THEN 'none' END"
        " FROM l"
    )
    found = {tuple(row) for row in environment.execute_sql(query).collect()}
    assert found == {
        (1, True, False, False, True, "none"),
        (2, None, True, False, False, "none"),
        (None, None, None, False, False, "none"),
    }


def test_a_table_as_of_now_is_joined_as_it_is(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE VIEW facts AS SELECT x, PROCTIME() AS p FROM (VALUES (1), (2)) AS v (x)")
    environment.execute_sql("CREATE VIEW dim AS SELECT * FROM (VALUES (1, 'a'), (1, 'b')) AS v (y, n)")
    query = "SELECT x, n FROM facts LEFT JOIN dim FOR SYSTEM_TIME AS OF facts.p ON x = y"
    found = environment.execute_sql(query).collect()
    assert {tuple(row) for row in found} == {(1, "a"), (1, "b"), (2, None)}
    with pytest.raises(SqlError, match="an event time runs in streaming mode only"):
        environment.explain_sql(query.replace("facts.p", "TIMESTAMP '2020-01-01 00:00:00'"))


def test_threads_do_not_mix_up_their_tables(environment: TableEnvironment) -> None:
    def total(number: int) -> int:
        table = environment.from_elements([(number,)] * 3, ["a"])
        (row,) = table.select(col("a").sum).execute().collect()
        return int(row[0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, range(8))) == [3 * number for number in range(8)]


PRICES = (12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19)
FALLING = """MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
    MEASURES FIRST(A.ts) AS begin_, LAST(DOWN.price) AS bottom, UP.ts AS end_
    AFTER MATCH SKIP {skip} PATTERN (A DOWN+ UP)
    DEFINE DOWN AS DOWN.price < COALESCE(LAST(DOWN.price, 1), A.price), UP AS UP.price > LAST(DOWN.price))"""


def test_patterns_of_rows(environment: TableEnvironment) -> None:
    def at(second: int) -> str:
        return f"TIMESTAMP '2011-04-01 10:00:{second:02}'" if second >= 0 else "CAST(NULL AS TIMESTAMP(3))"

    def ticker(*rows: tuple[str, int, int]) -> str:
        values = ", ".join(f"('{symbol}', {at(second)}, {price})" for symbol, second, price in rows)
        return f"(SELECT * FROM (VALUES {values}) AS v (symbol, ts, price))"

    rising = [(symbol, second, price) for symbol in "XYZ" for second, price in enumerate(PRICES)]
    moment = datetime.datetime(2011, 4, 1, 10)
    falls = f"SELECT * FROM {ticker(*rising[::-1])} {FALLING.format(skip='TO LAST UP')}"
    expected = [(symbol, moment.replace(second=4), 14, moment.replace(second=8)) for symbol in "XYZ"]
    assert rows(environment, falls) == expected
    names = f"SELECT f.symbol, n.name FROM ({falls}) AS f JOIN (VALUES ('Y', 'why')) AS n (id, name) ON f.symbol = n.id"
    assert rows(environment, names) == [("Y", "why")]
    for given, skip, said in (
        (rising, "TO FIRST A", "would skip to the first event of the match itself"),
        ([("X", -1, 1)], "TO NEXT ROW", "the time column 'ts' of MATCH_RECOGNIZE is NULL in a row"),
    ):
        with pytest.raises(JobFailedError, match=f"Spark could not run the query: .*{said}"):
            rows(environment, f"SELECT * FROM {ticker(*given)} {FALLING.format(skip=skip)}")
    processed = f"(SELECT symbol, price, PROCTIME() AS ts FROM {ticker(*rising)})"
    with pytest.raises(SqlError, match="all are processed at one time"):
        rows(environment, f"SELECT * FROM {processed} {FALLING.format(skip='TO LAST UP')}")
