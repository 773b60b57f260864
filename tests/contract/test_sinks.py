"""What every exactly-once sink must keep (`headwater.testing.sink_contract`), for those of headwater."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from headwater.common import Time
from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.archive import Archive, ClosedWindow, PostgresArchive, SqliteArchive
from headwater.datastream.connectors.archive.sink import SeriesSink
from headwater.datastream.connectors.collect_sink import CollectSink, collected_results
from headwater.datastream.connectors.file_system import (
    BucketAssigner,
    BulkWriters,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from headwater.datastream.connectors.print_sink import PrintSink
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.testing.sink_contract import (
    SINK_CHECKS,
    SinkCase,
    assert_visible,
    clean_up,
    committer_of,
    some_records,
    write,
)
from tests.postgres_server import PostgresServer, postgres_server

Record = dict[str, Any]


def part_files(base: Path) -> list[Path]:
    return sorted(path for path in base.rglob("*") if path.is_file() and not path.name.startswith("."))


def row_files(tmp_path: Path, capsys: Any) -> SinkCase:
    encoder = Encoder(lambda record: (json.dumps(record) + "\n").encode())
    sink = FileSink.for_row_format(str(tmp_path / "out"), encoder).build()
    return SinkCase(sink, lambda: [json.loads(line) for path in part_files(tmp_path) for line in path.open()])


def joined_row_files(tmp_path: Path, capsys: Any) -> SinkCase:
    encoder = Encoder(lambda record: (json.dumps(record) + "\n").encode())
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).set_size_threshold(500).build()
    builder = FileSink.for_row_format(str(tmp_path / "out"), encoder)
    sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=64))
    sink = sink.enable_compact(strategy, FileCompactor.concat_file_compactor())
    return SinkCase(sink.build(), lambda: [json.loads(line) for path in part_files(tmp_path) for line in path.open()])


def json_files(tmp_path: Path, capsys: Any) -> SinkCase:
    builder = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.json_lines())
    sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=64)).build()
    return SinkCase(sink, lambda: [json.loads(line) for path in part_files(tmp_path) for line in path.open()])


def bucketed_csv_files(tmp_path: Path, capsys: Any) -> SinkCase:
    builder = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.csv())
    sink = builder.with_bucket_assigner(BucketAssigner.of(lambda record: f"mod={record['i'] % 3}")).build()

    def visible() -> list[Any]:
        return [row for path in part_files(tmp_path) for row in csv.DictReader(path.open(newline=""))]

    return SinkCase(sink, visible, lambda record: {name: str(value) for name, value in record.items()})


def parquet_files(tmp_path: Path, capsys: Any) -> SinkCase:
    import pyarrow.parquet

    sink = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.parquet()).build()

    def visible() -> list[Any]:
        return [row for path in part_files(tmp_path) for row in pyarrow.parquet.read_table(path).to_pylist()]

    return SinkCase(sink, visible)


def collected(tmp_path: Path, capsys: Any) -> SinkCase:
    results = collected_results(f"contract-{tmp_path}")
    seen: list[Any] = []

    def visible() -> list[Any]:
        while batch := results.next_batch(timeout_seconds=0):
            seen.extend(batch)
        return seen

    return SinkCase(CollectSink(results.collect_id), visible, outlives_its_process=False)


def printed(tmp_path: Path, capsys: Any) -> SinkCase:
    lines: list[str] = []

    def visible() -> list[Any]:
        lines.extend(capsys.readouterr().out.splitlines())
        return [line.partition("> ")[2] for line in lines]

    return SinkCase(PrintSink(), visible, str, outlives_its_process=False)


HOURS = TumblingEventTimeWindows.of(Time.hours(1))


class AsWindows(Sink):
    """Gives each record to an archive as a window of its own."""

    def __init__(self, archive: Archive) -> None:
        self._sink = SeriesSink("records", archive, HOURS)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        made = self._sink.create_writer(context)
        write_windows = made.write_batch

        def write_batch(values: Sequence[Any], timestamps: Any) -> None:
            write_windows([ClosedWindow(record["i"], 0, 1, record) for record in values], timestamps)

        made.write_batch = write_batch  # type: ignore[method-assign]
        return made

    def create_committer(self) -> Committer:
        return self._sink.create_committer()


def sqlite_archive(tmp_path: Path, capsys: Any) -> SinkCase:
    archive = SqliteArchive(tmp_path / "archive.db")

    def visible() -> list[Any]:
        with contextlib.closing(archive.connect()) as connection:
            rows = connection.execute("SELECT value FROM headwater_windows").fetchall()
        return [json.loads(value) for (value,) in rows]

    return SinkCase(AsWindows(archive), visible)


def postgres_archive(tmp_path: Path, capsys: Any) -> SinkCase:
    archive = PostgresArchive(postgres().new_database())

    def visible() -> list[Any]:
        with archive.connect() as connection:
            return [value for (value,) in connection.execute("SELECT value FROM headwater_windows")]

    return SinkCase(AsWindows(archive), visible)


_servers = contextlib.ExitStack()


@cache
def postgres() -> PostgresServer:
    return _servers.enter_context(postgres_server())


@pytest.fixture(scope="module", autouse=True)
def end_of_servers() -> Iterator[None]:
    yield
    _servers.close()
    postgres.cache_clear()


CASES = {
    "row files": row_files,
    "row files that are joined": joined_row_files,
    "json files that roll": json_files,
    "csv files in buckets": bucketed_csv_files,
    "parquet files": parquet_files,
    "collect": collected,
    "print": printed,
    "archive in SQLite": sqlite_archive,
    "archive in PostgreSQL": postgres_archive,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path, capsys: Any) -> SinkCase:
    return CASES[request.param](tmp_path, capsys)


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SinkCase], None], case: SinkCase) -> None:
    check(case)


COMMIT = """
import pickle, sys
sink, committables = pickle.load(sys.stdin.buffer)
committer = sink.create_committer()
committer.commit(committables)
committer.close()
"""


def test_another_process_can_commit(case: SinkCase, tmp_path: Path) -> None:
    expected = some_records(0, 12)
    content = cloudpickle.dumps((case.sink, write(case, expected, 1)))
    done = subprocess.run(
        [sys.executable, "-c", COMMIT], input=content, capture_output=True, cwd=Path(__file__).parents[2], timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    if case.outlives_its_process:
        assert_visible(case, expected)
    elif isinstance(case.sink, PrintSink):
        assert [line.partition("> ")[2] for line in done.stdout.decode().splitlines()] == list(map(str, expected))


class TestFilesLeftBehind:
    """Pending files of attempts that died are deleted; those of other jobs and visible ones are not."""

    def pending(self, base: Path) -> list[str]:
        return [name for _, _, names in os.walk(base) for name in names if name.startswith(".part")]

    def test_only_dead_attempts_of_this_job_are_cleaned_up(self, tmp_path: Path, capsys: Any) -> None:
        case = row_files(tmp_path, capsys)
        write(case, some_records(0, 3), 1, attempt="dead")
        other = case.sink.create_writer(WriterContext("job2", "sink", 0, 1, "1-a0", 1))
        other.write_batch(some_records(0, 3), None)
        theirs = other.prepare_commit()
        other.make_durable()
        committer = committer_of(case)
        committer.commit(write(case, some_records(0, 3), 1))
        assert len(self.pending(tmp_path)) == 2
        clean_up(committer)
        assert self.pending(tmp_path) == [theirs[0].pending_name]
        assert_visible(case, some_records(0, 3))
        committer.commit(theirs)
        assert_visible(case, some_records(0, 3) * 2)

    def test_cleaning_up_where_nothing_was_ever_written(self, tmp_path: Path, capsys: Any) -> None:
        clean_up(row_files(tmp_path, capsys).sink.create_committer())
