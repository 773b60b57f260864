"""Statements of SQL as jobs: results, sinks, what they refuse, and the state that a changed query keeps."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.common import Instant, Row, Types, WatermarkStrategy
from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.datastream import StreamExecutionEnvironment
from headwater.table import (
    ChangelogMode,
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    Over,
    Schema,
    Slide,
    StreamTableEnvironment,
    TableEnvironment,
    Tumble,
)
from headwater.table.expressions import CURRENT_ROW, col, lit, row_interval
from headwater.testing import PAUSE, CollectingSink, InProcess, JobCrashed, ScriptSource, in_process

TYPE = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.INT()])
ORDERS = [("a", 1), ("b", 2), ("a", 3), ("c", None), ("b", 5)]


@pytest.fixture
def here() -> Iterator[InProcess]:
    with in_process(epoch_records=2) as found:
        yield found


@pytest.fixture
def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    environment.create_temporary_view("t", environment.from_elements(ORDERS, ["k", "v"]))
    return environment


def changes(tables: TableEnvironment, query: str) -> list[tuple[str, ...]]:
    with tables.execute_sql(query).collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


def test_a_query_gives_its_changelog(tables: TableEnvironment, here: InProcess) -> None:
    found = changes(tables, "SELECT k, COUNT(*) AS n, SUM(v) FROM t GROUP BY k")
    assert [each for each in found if each[1] == "a"] == [("+I", "a", 1, 1), ("-U", "a", 1, 1), ("+U", "a", 2, 4)]
    assert ("+I", "c", 1, None) in found


def test_printing_shows_the_kind_of_change(
    tables: TableEnvironment, here: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.execute_sql("SELECT v FROM t WHERE k = 'a'").print()
    assert capsys.readouterr().out.splitlines() == [
        "+----+----------------------+",
        "| op |                    v |",
        "+----+----------------------+",
        "| +I |                    1 |",
        "| +I |                    3 |",
        "+----+----------------------+",
        "2 rows in set",
    ]
    tables.execute_sql("SELECT v FROM t WHERE k = 'z'").print()
    assert capsys.readouterr().out == "Empty set\n"


def test_a_bounded_query_adds_up_to_a_table(tables: TableEnvironment, here: InProcess) -> None:
    found = tables.sql_query("SELECT k, COUNT(*) AS n FROM t GROUP BY k").to_pandas()
    assert sorted(found.itertuples(index=False, name=None)) == [("a", 2), ("b", 2), ("c", 1)]


def test_insert_runs_as_a_job(tables: TableEnvironment, here: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    tables.execute_sql("CREATE TABLE p (k STRING, n BIGINT) WITH ('connector' = 'print', 'sink.parallelism' = '1')")
    result = tables.execute_sql("INSERT INTO p SELECT k, COUNT(*) FROM t WHERE k = 'a' GROUP BY k")
    assert result.get_job_client() is not None
    result.wait()
    assert capsys.readouterr().out.splitlines() == ["+I[a, 1]", "-U[a, 1]", "+U[a, 2]"]
    assert [tuple(row) for row in result.collect()] == [(-1,)]


def test_a_statement_set_is_one_job(tables: TableEnvironment, here: InProcess) -> None:
    tables.execute_sql("CREATE TABLE x (k STRING) WITH ('connector' = 'blackhole')")
    tables.execute_sql("CREATE TABLE y (n BIGINT) WITH ('connector' = 'blackhole')")
    everything = tables.create_statement_set()
    everything.add_insert_sql("INSERT INTO x SELECT k FROM t").add_insert_sql("INSERT INTO y SELECT COUNT(*) FROM t")
    everything.execute().wait()
    assert len(here.jobs) == 1


def test_columns_of_several_using_come_once(tables: TableEnvironment) -> None:
    three = "(VALUES (1, 2)) AS a (x, y) JOIN (VALUES (1, 3)) AS b (x, z) USING (x) JOIN (VALUES (2, 4)) AS c (y, z)"
    found = tables.sql_query(f"SELECT * FROM {three} USING (y)")
    assert found.get_schema().get_field_names() == ["y", "x", "z", "z0"]
    with pytest.raises(SqlError, match="'z' means 2 columns"):
        tables.sql_query(f"SELECT z FROM {three} USING (y)")
    with pytest.raises(SqlError, match="'x' means 2 columns"):
        tables.sql_query("SELECT x FROM t a JOIN t b USING (k) CROSS JOIN (VALUES (1)) AS c (x), (VALUES (1)) AS d (x)")


def test_kinds_of_json_and_the_current_database(tables: TableEnvironment, here: InProcess) -> None:
    tables.execute_sql("CREATE DATABASE other")
    tables.execute_sql("USE other")
    query = (
        "SELECT x IS JSON, x IS JSON OBJECT, x IS NOT JSON ARRAY, x IS NOT JSON, CURRENT_DATABASE()"
        " FROM (VALUES ('[]'), ('{}'), ('{'), (CAST(NULL AS STRING))) AS v (x)"
    )
    assert [each[1:] for each in changes(tables, query)] == [
        (True, False, False, False, "other"),
        (True, True, True, False, "other"),
        (False, False, True, True, "other"),
        (False, False, True, True, "other"),
    ]


def test_a_table_that_cannot_be_replaced_stays(tables: TableEnvironment) -> None:
    tables.execute_sql("CREATE TABLE kept (a INT) WITH ('connector' = 'blackhole')")
    replacing = "CREATE OR REPLACE TABLE {} WITH ('connector' = 'filesystem', 'path' = '/tmp/f', 'format' = 'json') AS"
    for name in ("kept", "other"):
        with pytest.raises(SqlError, match="only takes new rows"):
            tables.execute_sql(f"{replacing.format(name)} SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    assert tables.from_path("kept").get_schema().get_field_names() == ["a"]
    assert "other" not in tables.list_tables()


def test_what_a_sink_cannot_take_is_an_error_that_names_the_operator(tables: TableEnvironment) -> None:
    tables.execute_sql(
        "CREATE TABLE f (k STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/f', 'format' = 'json')"
    )
    with pytest.raises(SqlError, match=r"GroupAggregate\(groupBy=\[k\]\).*Three cures"):
        tables.execute_sql("INSERT INTO f SELECT k, COUNT(*) FROM t GROUP BY k")


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT k FROM t ORDER BY k", "ORDER BY without LIMIT"),
        ("SELECT k, PROCTIME() FROM (SELECT k, COUNT(*) FROM t GROUP BY k)", "PROCTIME gives another value each time"),
        ("SELECT k, RAND() FROM (SELECT k, COUNT(*) FROM t GROUP BY k)", "RAND gives another value each time"),
        ("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY v MEASURES A.v AS x PATTERN (A) DEFINE A AS A.v > 1)", "time"),
    ],
)
def test_what_does_not_run_says_so(tables: TableEnvironment, query: str, error: str) -> None:
    with pytest.raises(SqlError, match=error):
        tables.explain_sql(query)


def test_null_in_a_column_that_is_not_null(tables: TableEnvironment, here: InProcess) -> None:
    tables.execute_sql("CREATE TABLE n (v BIGINT NOT NULL) WITH ('connector' = 'blackhole')")
    with pytest.raises(SqlError, match="column 'v' is NOT NULL and got NULL"):
        tables.execute_sql("INSERT INTO n SELECT v FROM t").wait()


def test_explain_tells_state_and_changes(tables: TableEnvironment) -> None:
    tables.get_config().set("table.exec.state.ttl", "1 h")
    text = tables.explain_sql("SELECT k, COUNT(*) FROM t GROUP BY k", ExplainDetail.CHANGELOG_MODE)
    assert "GroupAggregate(groupBy=[k], select=[COUNT(*) AS $a0], changelogMode=[I,UB,UA,D]) <- by [k]" in text
    assert "accumulators of each group; kept 3600000 ms" in text
    assert '"nodes"' in tables.explain_sql("SELECT 1", ExplainDetail.JSON_EXECUTION_PLAN)


def test_endless_state_is_a_warning() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql("CREATE TABLE g (k INT) WITH ('connector' = 'datagen')")
    assert "WARNING: the state of GroupAggregate grows without end" in tables.explain_sql(
        "SELECT k, COUNT(*) FROM g GROUP BY k"
    )
    assert "WARNING" not in tables.explain_sql("SELECT /*+ STATE_TTL('g' = '1d') */ k, COUNT(*) FROM g GROUP BY k")


# -- What a changed query keeps


@pytest.mark.parametrize(
    ("options", "same", "other"),
    [
        (
            {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "a:1", "properties.group.id": "g"},
            {"properties.bootstrap.servers": "b:2", "scan.startup.mode": "earliest-offset", "format": "csv"},
            {"topic": "u"},
        ),
        ({"connector": "datagen"}, {"rows-per-second": "7", "number-of-rows": "3"}, {"connector": "filesystem"}),
        ({"connector": "filesystem", "path": "/a"}, {"source.monitor-interval": "1 s"}, {"path": "/b"}),
        (
            {"connector": "jdbc", "url": "jdbc:sqlite:/a", "table-name": "t"},
            {"url": "jdbc:sqlite:/b", "scan.fetch-size": "5"},
            {"table-name": "u"},
        ),
    ],
    ids=lambda options: options.get("connector", ""),
)
def test_state_belongs_to_the_data_of_a_table_and_not_to_the_way_there(
    options: dict[str, str], same: dict[str, str], other: dict[str, str]
) -> None:
    def uids(more: dict[str, str]) -> list[str]:
        given = {**options, **more}
        if given["connector"] in ("kafka", "filesystem"):
            given = {"path": "/a", "format": "json", **given}
        if given["connector"] == "kafka":
            del given["path"]
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        tables.execute_sql(f"CREATE TABLE t (k STRING, v INT) WITH ({listed})")
        state = tables.explain_sql("SELECT k, SUM(v) FROM t GROUP BY k").split("== State ==")[1]
        return [line.rsplit("uid ", 1)[1] for line in state.splitlines() if "uid group" in line]

    assert uids({}) == uids(same) != uids(other)
    assert uids({})


def _uids(query: str) -> set[str]:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql("CREATE TABLE a (id INT, k STRING, v INT) WITH ('connector' = 'datagen')")
    state = tables.explain_sql(query).split("== State ==")[1]
    return {line.rsplit("uid ", 1)[1] for line in state.splitlines() if "uid " in line}


def test_the_state_of_a_group_is_found_by_its_meaning() -> None:
    plain = _uids("SELECT k, COUNT(*) FROM a GROUP BY k")
    assert plain == _uids("SELECT COUNT(*) AS n, SUM(v), k AS key FROM (SELECT v, k FROM a) GROUP BY k")
    assert plain != _uids("SELECT k, COUNT(*) FROM a WHERE v > 1 GROUP BY k")
    both = _uids("SELECT k, COUNT(*) FROM a WHERE v > 1 AND id < 3 AND k <> 'x' GROUP BY k")
    assert both == _uids("SELECT k, COUNT(*) FROM a WHERE k <> 'x' AND (id < 3 AND v > 1) GROUP BY k")
    assert both != _uids("SELECT k, COUNT(*) FROM a WHERE k <> 'x' AND (id < 3 OR v > 1) GROUP BY k")
    assert plain != _uids("SELECT id, COUNT(*) FROM a GROUP BY id")


def _counted(query: str, script: ScriptSource, sink: CollectingSink) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    tables = StreamTableEnvironment.create(env)
    stream = env.from_source(script, WatermarkStrategy.no_watermarks(), "orders", TYPE)
    tables.create_temporary_view("orders", tables.from_data_stream(stream))
    result = tables.to_changelog_stream(tables.sql_query(query))
    result.map(lambda row: (str(row.get_row_kind()), *row)).uid("plain").sink_to(sink).uid("out")
    env.execute("orders")


def test_a_query_with_one_more_aggregate_goes_on_with_the_state_of_the_others() -> None:
    script = ScriptSource([Row("a", 1), Row("a", 2), PAUSE, Row("a", 4), Row("b", 8)])
    sink = CollectingSink()
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=1)
        with pytest.raises(JobCrashed):
            _counted("SELECT k, COUNT(*) FROM orders GROUP BY k", script, sink)
        _counted("SELECT k, COUNT(*), SUM(v) FROM orders GROUP BY k", script, sink)
    assert ("+U", "a", 3, 4) in sink.results()  # all three are counted, and summed from now on
    assert ("+I", "b", 1, 8) in sink.results()


# -- Keys


def _changelog(rows: list[Any]) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    tables = StreamTableEnvironment.create(env)
    stream = env.from_source(ScriptSource(rows), WatermarkStrategy.no_watermarks(), "c", TYPE)
    schema = Schema.new_builder().column("k", "STRING NOT NULL").column("v", "INT").primary_key("k").build()
    tables.create_temporary_view("c", tables.from_changelog_stream(stream, schema, ChangelogMode.upsert()))
    return env, tables


def test_upserts_become_changes(here: InProcess) -> None:
    _, tables = _changelog(
        [Row("a", 1), Row("b", 2), PAUSE, Row("a", 3), Row.of_kind(RowKind.DELETE, "b", None), PAUSE, Row("a", 3)]
    )
    assert sorted(changes(tables, "SELECT * FROM c")) == [
        ("+I", "a", 1),
        ("+I", "b", 2),
        ("+U", "a", 3),
        ("-D", "b", 2),
        ("-U", "a", 1),
    ]
    _, tables = _changelog([Row("a", 1), Row("b", 2), PAUSE, Row("a", 5)])
    assert changes(tables, "SELECT SUM(v) FROM c")[-1] == ("+U", 7)


# -- Between DataStreams and tables


def test_event_time_goes_both_ways() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    tables = StreamTableEnvironment.create(env)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    stream = env.from_source(ScriptSource([Row("a", 1), Row("b", 12), Row("c", 25)]), strategy, "s", TYPE)
    schema = (
        Schema.new_builder()
        .column_by_metadata("moment", "TIMESTAMP_LTZ(3)", "rowtime")
        .watermark("moment", "SOURCE_WATERMARK()")
        .build()
    )
    tables.create_temporary_view("s", stream, schema)
    windows = tables.sql_query(
        "SELECT window_time, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(moment), INTERVAL '10' SECOND))"
        " GROUP BY window_start, window_end, window_time"
    )
    sink = CollectingSink()
    tables.to_data_stream(windows).map(lambda row: row[1]).sink_to(sink)
    with in_process():
        env.execute()
    assert sink.results_with_timestamps() == [(1, 9_999), (1, 19_999), (1, 29_999)]


class _Seconds:
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1]) * 1000


def test_an_updating_table_is_no_data_stream() -> None:
    _, tables = _changelog([Row("a", 1)])
    with pytest.raises(SqlError, match="use to_changelog_stream"):
        tables.to_data_stream(tables.sql_query("SELECT k, COUNT(*) FROM c GROUP BY k"))


def test_upserts_leave_with_the_types_of_a_schema(here: InProcess) -> None:
    env, tables = _changelog([Row("a", 1), Row("b", 2), PAUSE, Row("a", 3)])
    counted = tables.sql_query("SELECT k, SUM(v) AS v FROM c GROUP BY k")
    schema = Schema.new_builder().column("key", "STRING NOT NULL").column("n", "BIGINT").primary_key("key").build()
    sink = CollectingSink()
    tables.to_changelog_stream(counted, schema, ChangelogMode.upsert()).sink_to(sink)
    env.execute()
    found = [(str(row.get_row_kind()), row["key"], row["n"]) for row in sink.results()]
    assert sorted(found) == [("+I", "a", 1), ("+I", "b", 2), ("+U", "a", 3)]
    with pytest.raises(SqlError, match="needs a target_schema with a primary key"):
        tables.to_changelog_stream(counted, None, ChangelogMode.upsert())
    with pytest.raises(SqlError, match=r"the table has 2 columns \(k, v\), the target_schema 1"):
        tables.to_changelog_stream(counted, Schema.new_builder().column("k", "STRING").build())


@pytest.mark.parametrize(("slide", "size"), [(2, 5), (5, 2)])
def test_slides_of_any_length(slide: int, size: int, here: InProcess) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    kind = Types.ROW_NAMED(["v", "ts"], [Types.INT(), Types.SQL_TIMESTAMP()])
    stream = env.from_collection([Row(second, _at(second)) for second in range(12)], kind)
    schema = Schema.new_builder().column("v", "INT").column("ts", "TIMESTAMP(3)").watermark("ts", "ts").build()
    window = Slide.over(lit(size).seconds).every(lit(slide).seconds).on(col("ts")).alias("w")
    table = tables.from_data_stream(stream, schema).window(window).group_by(col("w"))
    with table.select(col("w").start, col("v").count, col("v").sum).execute().collect() as collected:
        found = sorted((int((row[0] - _at(0)).total_seconds()), row[1], row[2]) for row in collected)
    first = -(size - 1)  # the windows begin where the seconds since 1970 are a multiple of the slide
    zero = int((_at(0) - datetime.datetime(1970, 1, 1)).total_seconds())
    starts = [start for start in range(first, 12) if (zero + start) % slide == 0]
    expected = [(start, [v for v in range(12) if start <= v < start + size]) for start in starts]
    assert found == [(start, len(inside), sum(inside)) for start, inside in expected if inside]


def test_a_stream_without_a_type_needs_a_schema() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    stream = env.from_collection([(1, "a")])
    with pytest.raises(SqlError, match="output_type"):
        tables.from_data_stream(stream)
    schema = Schema.new_builder().column("id", "INT").column("name", "STRING").build()
    tables.create_temporary_view("s", stream, schema)
    with in_process():
        assert changes(tables, "SELECT name, id FROM s") == [("+I", "a", 1)]


def test_inserts_can_be_part_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql("CREATE TABLE p (v INT) WITH ('connector' = 'print')")
    stream = env.from_collection([Row("a", 1), Row("b", 2)], TYPE)
    tables.create_temporary_view("s", stream)
    inserts = tables.create_statement_set()
    inserts.add_insert_sql("INSERT INTO p SELECT v FROM s")
    inserts.attach_as_datastream()
    with in_process():
        env.execute()
    assert capsys.readouterr().out == "+I[1]\n+I[2]\n"


# -- As of a time


def _at(seconds: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=seconds)


def test_a_row_meets_the_version_of_its_time(here: InProcess) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    kind = Types.ROW_NAMED(["k", "v", "ts"], [Types.STRING(), Types.INT(), Types.SQL_TIMESTAMP()])
    timed = Schema.new_builder().column("k", "STRING").column("v", "INT").column("ts", "TIMESTAMP(3)")
    orders = [Row("EUR", 1, _at(1)), Row("EUR", 2, _at(7)), Row("JPY", 3, _at(8)), PAUSE, Row("EUR", 4, _at(25))]
    rates = [Row("EUR", 10, _at(0)), Row("EUR", 20, _at(5)), PAUSE, Row("EUR", 30, _at(20))]
    for name, rows in (("orders", orders), ("rates", rates)):
        stream = env.from_source(ScriptSource(rows), WatermarkStrategy.no_watermarks(), name, kind)
        tables.create_temporary_view(name, tables.from_data_stream(stream, timed.watermark("ts", "ts").build()))
    tables.execute_sql(
        "CREATE VIEW versions AS SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC)"
        " AS rn FROM rates) WHERE rn = 1"
    )
    query = "SELECT o.v, r.v FROM orders o LEFT JOIN versions FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
    assert sorted(changes(tables, query)) == [("+I", 1, 10), ("+I", 2, 20), ("+I", 3, None), ("+I", 4, 30)]


# -- State that expires


@pytest.mark.parametrize("by", ["session", "hint"])
def test_a_group_that_is_not_touched_is_forgotten(by: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env)
    if by == "session":
        tables.get_config().set("table.exec.state.ttl", "1 min")
    rows = [Row("a", 1), Row("b", 1), PAUSE, Row("a", 2), PAUSE, Row("a", 4), Row("b", 8)]
    stream = env.from_source(ScriptSource(rows), WatermarkStrategy.no_watermarks(), "s", TYPE)
    tables.create_temporary_view("s", stream)
    hint = "/*+ STATE_TTL('s' = '1 min') */ " if by == "hint" else ""
    with in_process() as here:
        here.call(lambda job: here.clock.advance(100_000), epoch=1)  # epoch 1 has its time already
        found = changes(tables, f"SELECT {hint}k, SUM(v) FROM s GROUP BY k")
    assert ("+U", "a", 3) in found
    assert ("+I", "b", 8) in found and ("+I", "a", 4) in found


def test_computed_columns_see_the_fields_that_the_schema_leaves_out(here: InProcess) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    tables = StreamTableEnvironment.create(environment)
    rows = [(Instant.of_epoch_milli(second * 1000), "a", price) for second, price in ((1, 5.0), (3, 2.0), (5, 1.0))]
    stream = environment.from_collection(rows, type_info=Types.ROW([Types.INSTANT(), Types.STRING(), Types.DOUBLE()]))
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "CAST(f0 AS TIMESTAMP(3))")
        .column("f1", DataTypes.STRING())
        .column("f2", DataTypes.DOUBLE())
        .watermark("ts", "ts - INTERVAL '3' SECOND")
        .build()
    )
    table = tables.from_data_stream(stream, schema).alias("ts", "name", "price")
    assert [each.name for each in table.get_schema().fields] == ["ts", "name", "price"]
    window = Over.partition_by(col("name")).order_by(col("ts")).preceding(row_interval(1)).following(CURRENT_ROW)
    found = table.over_window(window.alias("w")).select(col("name"), col("price").sum.over(col("w")))
    with found.execute().collect() as collected:
        assert [tuple(row) for row in collected] == [("a", 5.0), ("a", 7.0), ("a", 3.0)]
    late = table.window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("name"), col("w"))
    with late.select(col("name"), col("price").sum, col("w").end).execute().collect() as collected:
        assert [(row[1], row[2].second) for row in collected] == [(7.0, 5), (1.0, 10)]
