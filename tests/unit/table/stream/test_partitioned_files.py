"""Tables of files in directories k=v: read, watched, written, and declared complete exactly when they are."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import HeadwaterError, SqlError
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import JobCrashed, in_process
from tests.waiting import wait_until

COLUMNS = "id INT, dt DATE, kind STRING, v STRING"
VALUES = [
    (1, datetime.date(2020, 1, 1), "a/b", "x"),
    (2, datetime.date(2020, 1, 2), "a%", None),
    (3, None, None, "z"),
    (4, datetime.date(2020, 1, 1), "a/b", "y"),
]
INSERT = (
    "INSERT INTO f VALUES (1, DATE '2020-01-01', 'a/b', 'x'), (2, DATE '2020-01-02', 'a%', CAST(NULL AS STRING)),"
    " (3, CAST(NULL AS DATE), CAST(NULL AS STRING), 'z'), (4, DATE '2020-01-01', 'a/b', 'y')"
)


@pytest.fixture
def tables() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    return environment


def create(tables: TableEnvironment, path: Path, more: str = "", columns: str = COLUMNS, by: str = "dt, kind") -> None:
    tables.execute_sql(
        f"CREATE TABLE f ({columns}) PARTITIONED BY ({by}) WITH ('connector' = 'filesystem', 'path' = '{path}'{more})"
    )


def rows(tables: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with tables.execute_sql(query).collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.parametrize("name", ["json", "csv", "parquet", "orc"])
def test_what_is_written_is_read(tables: TableEnvironment, tmp_path: Path, name: str) -> None:
    create(
        tables,
        tmp_path,
        f", 'format' = '{name}', 'csv.null-literal' = 'NULL'" if name == "csv" else f", 'format' = '{name}'",
    )
    with in_process():
        tables.execute_sql(INSERT).wait()
        assert rows(tables, "SELECT * FROM f") == VALUES
        assert rows(tables, "SELECT kind, id FROM f WHERE dt = DATE '2020-01-01'") == [("a/b", 1), ("a/b", 4)]
        assert rows(tables, "SELECT DISTINCT kind FROM f WHERE kind IS NOT NULL") == [("a%",), ("a/b",)]
    assert {str(each.parent.relative_to(tmp_path)) for each in tmp_path.rglob("part-*")} == {
        "dt=2020-01-01/kind=a%2Fb",
        "dt=2020-01-02/kind=a%25",
        "dt=__DEFAULT_PARTITION__/kind=__DEFAULT_PARTITION__",
    }


def test_folders_that_grow_are_followed(tables: TableEnvironment, tmp_path: Path) -> None:
    create(tables, tmp_path, ", 'format' = 'json', 'source.monitor-interval' = '10 ms'", "id INT, k INT", "k")

    def add(name: str, key: str, number: int) -> None:
        (tmp_path / f"k={key}").mkdir(exist_ok=True)
        (tmp_path / f"k={key}" / f".{name}").write_text(json.dumps({"id": number}) + "\n")
        (tmp_path / f"k={key}" / f".{name}").rename(tmp_path / f"k={key}" / name)

    add("a", "1", 10)
    with in_process(), tables.execute_sql("SELECT k, id FROM f").collect() as found:
        assert tuple(next(found)) == (1, 10)
        add("b", "2", 20)
        assert tuple(next(found)) == (2, 20)
        add("c", "1", 30)
        assert tuple(next(found)) == (1, 30)


@pytest.mark.parametrize(
    ("place", "error"), [("a", "is in no directory 'k=…'"), ("k=x/a", "column 'k' is INT, and the directory of file")]
)
def test_a_file_at_a_wrong_place_is_told(tables: TableEnvironment, tmp_path: Path, place: str, error: str) -> None:
    create(tables, tmp_path, ", 'format' = 'json'", "id INT, k INT", "k")
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text('{"id": 1}\n')
    with in_process(), pytest.raises(SqlError, match=error):
        rows(tables, "SELECT * FROM f")


HOURS = (
    "CREATE TABLE g (id INT, ts AS TO_TIMESTAMP_LTZ(id * 600000, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH"
    " ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{}')"
)
COMMIT = (
    ", 'format' = '{}', 'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.trigger' ="
    " 'partition-time', 'sink.partition-commit.delay' = '1 h', 'partition.time-extractor.timestamp-pattern' ="
    " '$dt $hour:00:00'"
)
FILL = "INSERT INTO f SELECT id, DATE_FORMAT(ts, 'yyyy-MM-dd'), DATE_FORMAT(ts, 'HH') FROM g"


def lines(directory: Path) -> int:
    return sum(len(each.read_text().splitlines()) for each in directory.glob("part-*"))


@pytest.mark.parametrize(("at", "over"), [("manifest-written", 4), ("sink-committed", 6)])
def test_a_partition_is_complete_when_its_time_is_over(
    tables: TableEnvironment, tmp_path: Path, at: str, over: int
) -> None:
    """Ten rows per epoch, six per hour. The mark of an hour comes when the hour is over, not before: the file that
    holds its last rows, and would grow for a minute, is visible by then."""
    create(tables, tmp_path, COMMIT.format("json"), "id INT, dt STRING, `hour` STRING", "dt, `hour`")
    tables.execute_sql(HOURS.format(59))
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=3, at=at)
        with pytest.raises(JobCrashed):
            tables.execute_sql(FILL).wait()
        hours = {each.name[5:]: each for each in tmp_path.glob("dt=1970-01-01/hour=*")}
        complete = {name for name, each in hours.items() if (each / "_SUCCESS").exists()}
        assert complete == {f"{hour:02}" for hour in range(over)}
        assert all(lines(hours[name]) == 6 for name in complete)
        tables.execute_sql(FILL).wait()
    assert {each.name[5:]: lines(each) for each in tmp_path.glob("dt=1970-01-01/hour=*")} == {
        f"{hour:02}": 6 for hour in range(10)
    }
    assert len(list(tmp_path.rglob("_SUCCESS"))) == 10, "the input has ended"


def test_a_partition_is_complete_while_the_job_runs(tables: TableEnvironment, tmp_path: Path) -> None:
    """By processing time, the delay after its first row: no other row comes, and the job does not end."""
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "a.json").write_text('{"id": 1}\n')
    tables.execute_sql(
        f"CREATE TABLE i (id INT) WITH ('connector' = 'filesystem', 'path' = '{inbox}', 'format' = 'json',"
        " 'source.monitor-interval' = '10 ms')"
    )
    more = (
        ", 'format' = 'csv', 'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.delay' ="
        " '300 ms', 'sink.partition-commit.success-file.name' = 'DONE'"
    )
    create(tables, tmp_path / "out", more, "id INT, k INT", "k")
    with in_process():
        client = tables.execute_sql("INSERT INTO f SELECT id, 1 FROM i").get_job_client()
        assert client is not None
        done = tmp_path / "out" / "k=1" / "DONE"
        wait_until(done.exists, "the mark")
        assert lines(done.parent) == 1
        client.cancel().result()


@pytest.mark.parametrize("name", ["json", "parquet"])
def test_files_of_all_subtasks_are_joined(tables: TableEnvironment, tmp_path: Path, name: str) -> None:
    tables.execute_sql(HOURS.format(59))
    create(tables, tmp_path, f", 'format' = '{name}', 'auto-compaction' = 'true'", "id INT, k INT", "k")
    with in_process(epoch_records=60):
        tables.execute_sql("INSERT INTO f SELECT id, MOD(id, 3) FROM g").wait()
        assert rows(tables, "SELECT id FROM f") == [(each,) for each in sorted(range(60), key=lambda id: repr((id,)))]
    # Both subtasks have rows of each partition in each epoch.
    assert {each.name.partition("-")[0] for each in tmp_path.rglob("k=*/*")} == {"compacted"}


def test_files_end_by_size(tables: TableEnvironment, tmp_path: Path) -> None:
    tables.execute_sql(HOURS.format(59))
    create(tables, tmp_path, ", 'format' = 'csv', 'sink.rolling-policy.file-size' = '10 b'", "id INT, k INT", "k")
    with in_process(epoch_records=4):
        tables.execute_sql("INSERT INTO f SELECT id, 1 FROM g").wait()
    sizes = [each.stat().st_size for each in tmp_path.rglob("part-*")]
    assert len(sizes) > 5 and sum(sizes) == 10 * 2 + 50 * 3


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ("'sink.partition-commit.delay' = '1 h'", "needs 'sink.partition-commit.policy.kind'"),
        ("'sink.partition-commit.policy.kind' = 'metastore,success-file'", "no metastore"),
        ("'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.trigger' = 'x'", "process-time"),
        ("'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.trigger' = 'partition-time',"
         " 'partition.time-extractor.timestamp-pattern' = '$day'", "names no partition column"),
        ("'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.trigger' = 'partition-time'",
         "waits for a watermark"),
        ("'sink.rolling-policy.check-interval' = '1 min'", "each checkpoint asks"),
        ("'sink.rolling-policy.file-size' = 'much'", "file-size"),
        ("'sink.rolling-policy.rollover-interval' = 'soon'", "rollover-interval"),
        ("'compaction.file-size' = '1 mb'", "needs 'auto-compaction'"),
        ("'sink.partition-commit.polic.kind' = 'success-file'", "did you mean 'sink.partition-commit.policy.kind'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_told(tables: TableEnvironment, tmp_path: Path, more: str, error: str) -> None:
    create(tables, tmp_path, f", 'format' = 'json', {more}")
    with in_process(), pytest.raises(HeadwaterError, match=error):
        tables.execute_sql(INSERT).wait()


def test_a_partition_without_a_time_is_told(tables: TableEnvironment, tmp_path: Path) -> None:
    create(tables, tmp_path, COMMIT.format("json"), "id INT, dt STRING, `hour` STRING", "dt, `hour`")
    tables.execute_sql(HOURS.format(5))
    with in_process(), pytest.raises(SqlError, match="partition dt=today/hour=1 has no time: 'today 1:00:00'"):
        tables.execute_sql("INSERT INTO f SELECT id, 'today', '1' FROM g").wait()


@pytest.mark.parametrize("name", ["json", "parquet"])
def test_only_the_partitions_of_a_filter_are_read(tables: TableEnvironment, tmp_path: Path, name: str) -> None:
    """A damaged file shows which partitions are read."""
    create(tables, tmp_path, f", 'format' = '{name}'")
    with in_process():
        tables.execute_sql(INSERT).wait()
        broken = tmp_path / "dt=2020-01-03" / "kind=c"
        broken.mkdir(parents=True)
        (broken / "x").write_text("{")
        wanted = "dt BETWEEN DATE '2020-01-01' AND DATE '2020-01-02' AND kind LIKE 'a%' AND v IS NOT NULL"
        query = f"SELECT id FROM f WHERE {wanted}"
        assert "filter=[partitions]" in tables.explain_sql(query)
        assert rows(tables, query) == [(1,), (4,)]
        for more in ("dt = DATE '2020-01-03'", "id = 1", "dt >= CURRENT_DATE - INTERVAL '20000' DAY"):
            with pytest.raises(HeadwaterError, match="kind=c/x"):
                rows(tables, f"SELECT id FROM f WHERE {more}")
