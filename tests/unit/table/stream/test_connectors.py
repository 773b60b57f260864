"""Connectors of SQL on streams: what they read is what was written, exactly once; wrong options are errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.common.errors import SqlError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.stream.planner import StreamPlanner
from headwater.testing import JobCrashed, in_process
from headwater.testing.kafka import KafkaBroker

COLUMNS = "id INT, name STRING, ts TIMESTAMP(3), l TIMESTAMP_LTZ(3), d DECIMAL(10, 2), dt DATE, a ARRAY<INT>"
ROWS = (
    "(1, 'a', TIMESTAMP '2020-01-01 00:00:00.123', TO_TIMESTAMP_LTZ(1500, 3), 1.25, DATE '2020-02-03', ARRAY[1, 2]),"
    " (2, CAST(NULL AS STRING), TIMESTAMP '2020-01-02 01:00:00', CAST(NULL AS TIMESTAMP_LTZ(3)), 3, DATE '1999-12-31',"
    " CAST(NULL AS ARRAY<INT>))"
)


@pytest.fixture
def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    return environment


def rows(tables: TableEnvironment, query: str) -> list[str]:
    with tables.execute_sql(query).collect() as found:
        return sorted(f"{row.get_row_kind()} {tuple(row)}" for row in found)


@pytest.mark.parametrize("name", ["json", "csv", "parquet", "orc"])
def test_files_hold_rows_of_all_types(tables: TableEnvironment, tmp_path: Path, name: str) -> None:
    columns = COLUMNS if name != "csv" else COLUMNS.replace(", a ARRAY<INT>", "")
    values = ROWS if name != "csv" else ROWS.replace(", ARRAY[1, 2]", "").replace(", CAST(NULL AS ARRAY<INT>)", "")
    tables.execute_sql(
        f"CREATE TABLE f ({columns}) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/f', 'format' = '{name}')"
    )
    with in_process():
        expected = rows(tables, f"SELECT * FROM (VALUES {values}) v")
        tables.execute_sql(f"INSERT INTO f VALUES {values}").wait()
        found = rows(tables, "SELECT * FROM f")
    if name == "csv":  # it has one text for no name and for an empty one
        expected = [each.replace("2, None", "2, ''") for each in expected]
    assert found == expected


def test_files_are_written_once_over_a_crash(tables: TableEnvironment, tmp_path: Path) -> None:
    tables.execute_sql(
        "CREATE TABLE g (id INT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1',"
        " 'fields.id.end' = '50')"
    )
    tables.execute_sql(
        "CREATE TABLE f (id INT, odd STRING) PARTITIONED BY (odd) WITH ('connector' = 'filesystem', 'format' = 'json',"
        f" 'path' = '{tmp_path}/f')"
    )
    insert = "INSERT INTO f SELECT id, CASE WHEN MOD(id, 2) = 1 THEN 'yes' ELSE 'no' END FROM g"
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=2, at="manifest-written")
        with pytest.raises(JobCrashed):
            tables.execute_sql(insert).wait()
        tables.execute_sql(insert).wait()
    lines = [
        line
        for file in tmp_path.glob("f/odd=yes/*")
        if not file.name.startswith((".", "_"))
        for line in file.read_text().splitlines()
    ]
    assert sorted(lines) == sorted(f'{{"id":{number}}}' for number in range(1, 51, 2))


def test_a_directory_can_be_watched(tables: TableEnvironment, tmp_path: Path) -> None:
    tables.execute_sql(
        f"CREATE TABLE f (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv',"
        " 'source.monitor-interval' = '2 s')"
    )
    plan = StreamPlanner().plan(tables.sql_query("SELECT id FROM f")._plan)
    (source,) = (each.source.source for each in plan.walk() if each.source is not None)
    assert not source.bounded and source.discovery_interval_ms == 2_000
    assert not plan.traits.bounded


def test_generated_rows_are_the_same_again(tables: TableEnvironment) -> None:
    tables.execute_sql(
        "CREATE TABLE g (id BIGINT, u INT, s STRING, x DOUBLE, b BOOLEAN, d DECIMAL(6, 2), a ARRAY<INT>, n STRING) WITH"
        " ('connector' = 'datagen', 'number-of-rows' = '40', 'fields.id.kind' = 'sequence', 'fields.id.start' = '5',"
        " 'fields.id.end' = '100', 'fields.u.min' = '3', 'fields.u.max' = '4', 'fields.s.length' = '7',"
        " 'fields.x.min' = '0', 'fields.x.max' = '1', 'fields.n.null-rate' = '0.5', 'fields.n.length' = '2')"
    )
    with in_process():
        with tables.execute_sql("SELECT id, u, s, x, d, n FROM g").collect() as found:
            made = [tuple(row) for row in found]
        assert sorted(each[0] for each in made) == list(range(5, 45))
        assert {each[1] for each in made} == {3, 4} and {len(each[2]) for each in made} == {7}
        assert all(0 <= each[3] < 1 for each in made) and 5 < sum(each[5] is None for each in made) < 35
        assert rows(tables, "SELECT * FROM g") == rows(tables, "SELECT * FROM g")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("'connector' = 'nowhere'", "there is no connector 'nowhere'"),
        ("'path' = 'x'", "needs the option 'connector'"),
        ("'connector' = 'datagen', 'rows-per-secand' = '1'", "did you mean 'rows-per-second'"),
        ("'connector' = 'datagen', 'fields.v.min' = '9', 'fields.v.max' = '1'", "is less than"),
        ("'connector' = 'filesystem', 'path' = 'x', 'format' = 'xml'", "there is no format 'xml'"),
        ("'connector' = 'print'", "cannot be read"),
        ("'connector' = 'kafak'", "'kafak'; did you mean 'kafka'"),
        ("'connector' = 'filesystem', 'path' = 'x', 'format' = 'parkuet'", "did you mean 'parquet'"),
        (
            "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'x', 'format' = 'json',"
            " 'scan.bounded.mode' = 'group-offsets'",
            "group.id",
        ),
        ("'connector' = 'datagen', 'scan.watermark.idle-timeout' = '1 s'", "is about a WATERMARK"),
        ("'connector' = 'upsert-kafka', 'topic' = 't', 'format' = 'json'", "needs a PRIMARY KEY"),
    ],
)
def test_a_wrong_option_is_an_error_before_anything_runs(tables: TableEnvironment, options: str, error: str) -> None:
    tables.execute_sql(f"CREATE TABLE w (v INT) WITH ({options})")
    with pytest.raises(SqlError, match=error):
        tables.explain_sql("SELECT v FROM w")


def test_null_where_the_table_says_not_null(tables: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": null}\n')
    tables.execute_sql(
        f"CREATE TABLE f (id INT NOT NULL) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')"
    )
    with in_process(), pytest.raises(SqlError, match="column 'id' is INT NOT NULL, and a row has NULL in it"):
        rows(tables, "SELECT id FROM f")


@pytest.mark.parametrize(
    ("hint", "error"),
    [
        ("'retry-predicate' = 'lookup_miss'", "'retry-predicate' needs 'retry-strategy', too"),
        ("'max-attempts' = '0'", "'max-attempts' needs 'retry-predicate', too"),
        ("'retry-predicate' = 'x', 'retry-strategy' = 'fixed_delay', 'fixed-delay' = '1s', 'max-attempts' = '3'",
         "'retry-predicate' = 'x': there is only 'lookup_miss'"),
        ("'timeout' = '1s'", "'timeout' is not there"),
        ("'async' = 'true', 'output-mode' = 'allow_unordered', 'capacity' = '10'", ""),
        ("'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay', 'fixed-delay' = '10s',"
         " 'max-attempts' = '3'", "retry=[lookup_miss, FIXED_DELAY, 10000ms, 3]"),
    ],
)  # fmt: skip
def test_the_hint_of_a_lookup(tables: TableEnvironment, tmp_path: Path, hint: str, error: str) -> None:
    tables.execute_sql("CREATE TABLE o (id INT, p AS PROCTIME()) WITH ('connector' = 'datagen')")
    tables.execute_sql(
        f"CREATE TABLE c (id INT, n STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )
    query = (
        f"SELECT /*+ LOOKUP('table' = 'c', {hint}) */ o.id, c.n FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.id = c.id"
    )
    if not error or error.startswith("retry"):
        assert error in tables.explain_sql(query)
        return
    with pytest.raises(SqlError) as raised:
        tables.explain_sql(query)
    assert error in str(raised.value)


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as found:
        yield found


def _kafka(broker: KafkaBroker, topic: str, more: str) -> str:
    return (
        f"'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker.bootstrap_servers}',"
        f" 'scan.bounded.mode' = 'latest-offset', {more}"
    )


def test_a_topic_holds_rows_changes_or_upserts(tables: TableEnvironment, broker: KafkaBroker) -> None:
    for topic in ("orders", "counts", "changes"):
        broker.create_topic(topic, 1)
    log = _kafka(
        broker,
        "orders",
        "'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'sink.delivery-guarantee' = 'exactly-once'",
    )
    tables.execute_sql(
        "CREATE TABLE orders (id INT, k STRING, ts TIMESTAMP(3), `offset` BIGINT METADATA VIRTUAL)"
        f" WITH ('connector' = 'kafka', {log})"
    )
    upserts = _kafka(broker, "counts", "'key.format' = 'json', 'value.format' = 'json'")
    tables.execute_sql(
        "CREATE TABLE counts (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH"
        f" ('connector' = 'upsert-kafka', {upserts})"
    )
    changes = _kafka(broker, "changes", "'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json'")
    tables.execute_sql(f"CREATE TABLE changes (k STRING, n BIGINT) WITH ('connector' = 'kafka', {changes})")
    with in_process(epoch_records=2):
        tables.execute_sql(
            "INSERT INTO orders VALUES (1, 'a', TIMESTAMP '2020-01-01 00:00:00'), (2, 'b', TIMESTAMP '2020-01-01"
            " 00:00:01'), (3, 'a', TIMESTAMP '2020-01-01 00:00:02')"
        ).wait()
        assert len(rows(tables, "SELECT id, k, ts, `offset` FROM orders WHERE k = 'a'")) == 2
        both = tables.create_statement_set()
        both.add_insert_sql("INSERT INTO counts SELECT k, COUNT(*) FROM orders GROUP BY k")
        both.add_insert_sql("INSERT INTO changes SELECT k, COUNT(*) FROM orders GROUP BY k")
        both.execute().wait()
    with in_process():
        assert rows(tables, "SELECT * FROM counts") == ["+I ('a', 2)", "+I ('b', 1)"]
        assert rows(tables, "SELECT SUM(n), COUNT(*) FROM changes")[0] == "+I (3, 2)"


def test_two_rows_of_one_key_are_no_upsert(tables: TableEnvironment, broker: KafkaBroker) -> None:
    broker.create_topic("t", 1)
    options = _kafka(broker, "t", "'key.format' = 'json', 'value.format' = 'json'")
    tables.execute_sql(
        "CREATE TABLE s (n BIGINT, k STRING, PRIMARY KEY (n) NOT ENFORCED) WITH"
        f" ('connector' = 'upsert-kafka', {options})"
    )
    tables.create_temporary_view("t", tables.from_elements([("a",), ("b",)], ["k"]))
    with in_process(), pytest.raises(SqlError, match="its primary key 1 has two rows at once"):
        tables.execute_sql("INSERT INTO s SELECT COUNT(*), k FROM t GROUP BY k").wait()


def test_connectors_come_from_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.table.stream.connectors import registry

    monkeypatch.setattr(
        registry, "_others", lambda: {"mine": "headwater.table.stream.connectors.printing:PrintConnector"}
    )
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql("CREATE TABLE m (v INT) WITH ('connector' = 'mine')")
    assert "Sink" in tables.explain_sql("INSERT INTO m VALUES (1)")


@pytest.mark.parametrize(("option", "expected"), [("", 7_000), (", 'scan.watermark.idle-timeout' = '3 s'", 3_000)])
def test_a_table_says_when_its_parts_are_idle(tables: TableEnvironment, option: str, expected: int) -> None:
    tables.execute_sql(
        "CREATE TABLE t (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' ="
        f" 'datagen'{option})"
    )
    plan = StreamPlanner(idle_timeout_ms=7_000).plan(tables.sql_query("SELECT v, ts FROM t")._plan)
    (found,) = (each for each in plan.walk() if each.kind == "WatermarkAssigner")
    assert found.ticks and found.factory is not None and found.factory().idle_timeout_ms == expected


def test_nulls_can_be_left_out_of_an_array(tables: TableEnvironment) -> None:
    values = "(VALUES (1, 5), (1, CAST(NULL AS INT)), (2, CAST(NULL AS INT))) AS t (k, v)"
    query = (
        f"SELECT k, ARRAY_AGG(v IGNORE NULLS), ARRAY_AGG(v IGNORE NULLS) FILTER (WHERE k = 2) FROM {values} GROUP BY k"
    )
    with in_process(), tables.execute_sql(query).collect() as found:
        last = {row[0]: (row[1], row[2]) for row in found}
    assert last == {1: ([5], None), 2: (None, None)}
