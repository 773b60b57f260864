"""What every exactly-once sink must keep, whichever it is.

Nothing is visible before it is committed; what an aborted or dead attempt wrote never is; a commit may be repeated, and
may come from another process than the one that wrote.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from headwater.common import Time
from headwater.common.connector import Committer, ReusableSinkWriter, Sink, SinkWriter, WriterContext
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
from tests.postgres_server import PostgresServer, postgres_server

Record = dict[str, Any]


@dataclass
class Case:
    sink: Sink
    visible: Callable[[], list[Any]]
    """What readers see now."""
    shown: Callable[[Record], Any] = lambda record: record
    """How they see a record."""
    outlives_its_process: bool = True
    """False for a terminal or a queue: what another process committed is not seen here."""


def part_files(base: Path) -> list[Path]:
    return sorted(path for path in base.rglob("*") if path.is_file() and not path.name.startswith("."))


def row_files(tmp_path: Path, capsys: Any) -> Case:
    encoder = Encoder(lambda record: (json.dumps(record) + "\n").encode())
    sink = FileSink.for_row_format(str(tmp_path / "out"), encoder).build()
    return Case(sink, lambda: [json.loads(line) for path in part_files(tmp_path) for line in path.open()])


def joined_row_files(tmp_path: Path, capsys: Any) -> Case:
    encoder = Encoder(lambda record: (json.dumps(record) + "\n").encode())
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).set_size_threshold(500).build()
    builder = FileSink.for_row_format(str(tmp_path / "out"), encoder)
    sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=64))
    sink = sink.enable_compact(strategy, FileCompactor.concat_file_compactor())
    return Case(sink.build(), lambda: [json.loads(line) for path in part_files(tmp_path) for line in path.open()])


def json_files(tmp_path: Path, capsys: Any) -> Case:
    builder = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.json_lines())
    sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=64)).build()
    return Case(sink, lambda: [json.loads(line) for path in part_files(tmp_path) for line in path.open()])


def bucketed_csv_files(tmp_path: Path, capsys: Any) -> Case:
    builder = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.csv())
    sink = builder.with_bucket_assigner(BucketAssigner.of(lambda record: f"mod={record['i'] % 3}")).build()

    def visible() -> list[Any]:
        return [row for path in part_files(tmp_path) for row in csv.DictReader(path.open(newline=""))]

    return Case(sink, visible, lambda record: {name: str(value) for name, value in record.items()})


def parquet_files(tmp_path: Path, capsys: Any) -> Case:
    import pyarrow.parquet

    sink = FileSink.for_bulk_format(str(tmp_path / "out"), BulkWriters.parquet()).build()

    def visible() -> list[Any]:
        return [row for path in part_files(tmp_path) for row in pyarrow.parquet.read_table(path).to_pylist()]

    return Case(sink, visible)


def collected(tmp_path: Path, capsys: Any) -> Case:
    results = collected_results(f"contract-{tmp_path}")
    seen: list[Any] = []

    def visible() -> list[Any]:
        while batch := results.next_batch(timeout_seconds=0):
            seen.extend(batch)
        return seen

    return Case(CollectSink(results.collect_id), visible, outlives_its_process=False)


def printed(tmp_path: Path, capsys: Any) -> Case:
    lines: list[str] = []

    def visible() -> list[Any]:
        lines.extend(capsys.readouterr().out.splitlines())
        return [line.partition("> ")[2] for line in lines]

    return Case(PrintSink(), visible, str, outlives_its_process=False)


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


def sqlite_archive(tmp_path: Path, capsys: Any) -> Case:
    archive = SqliteArchive(tmp_path / "archive.db")

    def visible() -> list[Any]:
        with contextlib.closing(archive.connect()) as connection:
            rows = connection.execute("SELECT value FROM headwater_windows").fetchall()
        return [json.loads(value) for (value,) in rows]

    return Case(AsWindows(archive), visible)


def postgres_archive(tmp_path: Path, capsys: Any) -> Case:
    archive = PostgresArchive(postgres().new_database())

    def visible() -> list[Any]:
        with archive.connect() as connection:
            return [value for (value,) in connection.execute("SELECT value FROM headwater_windows")]

    return Case(AsWindows(archive), visible)


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
def case(request: pytest.FixtureRequest, tmp_path: Path, capsys: Any) -> Case:
    return CASES[request.param](tmp_path, capsys)


def records(start: int, stop: int) -> list[Record]:
    return [{"i": i, "text": f'"{i}", ä\n'} if i % 5 == 0 else {"i": i, "text": f"t{i}"} for i in range(start, stop)]


def writer(case: Case, epoch: int, partition: int = 0, attempt: str = "a0") -> SinkWriter:
    """A writer as a task makes it: from a sink that was pickled."""
    sink: Sink = cloudpickle.loads(cloudpickle.dumps(case.sink))
    return sink.create_writer(context(epoch, partition, attempt))


def context(epoch: int, partition: int = 0, attempt: str = "a0") -> WriterContext:
    return WriterContext("job1", "sink", partition, 2, f"{epoch}-{attempt}", epoch)


def next_writer(case: Case, before: SinkWriter, epoch: int, attempt: str = "a0") -> SinkWriter:
    """What writes another attempt after `before` has prepared one: itself, if it can."""
    if isinstance(before, ReusableSinkWriter):
        before.begin_epoch(context(epoch, attempt=attempt))
        return before
    before.close()
    return writer(case, epoch, attempt=attempt)


def write(case: Case, values: list[Record], epoch: int, partition: int = 0, attempt: str = "a0") -> list[Any]:
    """Write an epoch and return its committables as a manifest keeps them."""
    made = writer(case, epoch, partition, attempt)
    committables = write_with(made, values)
    made.close()
    return committables


def write_with(made: SinkWriter, values: list[Record]) -> list[Any]:
    for start in range(0, len(values), 4):
        batch = values[start : start + 4]
        made.write_batch(batch, [record["i"] for record in batch])
    return [cloudpickle.loads(cloudpickle.dumps(item)) for item in made.prepare_commit()]


def assert_visible(case: Case, expected: list[Record]) -> None:
    found = Counter(map(repr, case.visible()))
    assert found == Counter(repr(case.shown(record)) for record in expected)


def test_nothing_is_visible_before_the_commit_and_everything_after(case: Case) -> None:
    committables = write(case, records(0, 20), 1, 0) + write(case, records(20, 30), 1, 1)
    assert case.visible() == []
    case.sink.create_committer().commit(committables)
    assert_visible(case, records(0, 30))


def test_committing_twice_is_committing_once(case: Case) -> None:
    committer = case.sink.create_committer()
    committables = write(case, records(0, 9), 1) + write(case, records(9, 18), 1, partition=1)
    committer.commit(committables[:1])  # the driver was interrupted here
    committer.commit(committables)
    committer.commit(committables)
    assert_visible(case, records(0, 18))


def test_a_new_driver_repeats_the_last_commit(case: Case) -> None:
    if not case.outlives_its_process:
        pytest.skip("a terminal or a queue does not tell a new process what it has shown: documented")
    committables = write(case, records(0, 9), 1)
    case.sink.create_committer().commit(committables)
    case.sink.create_committer().commit(committables)
    assert_visible(case, records(0, 9))


def test_an_aborted_attempt_leaves_nothing_and_its_replay_counts_once(case: Case) -> None:
    failed = writer(case, 1, attempt="a0")
    failed.write_batch(records(0, 7), None)
    failed.abort()
    case.sink.create_committer().commit(write(case, records(0, 20), 1, attempt="a1"))
    assert_visible(case, records(0, 20))


def test_a_prepared_attempt_whose_manifest_never_came_stays_invisible(case: Case) -> None:
    write(case, records(0, 20), 1, attempt="a0")  # and then another partition failed
    committer = case.sink.create_committer()
    committer.commit(write(case, records(0, 20), 1, attempt="a1"))
    assert_visible(case, records(0, 20))
    clean_up(committer)
    assert_visible(case, records(0, 20))


def test_epochs_add_up(case: Case) -> None:
    committer = case.sink.create_committer()
    for epoch in range(5):
        committer.commit(write(case, records(epoch * 10, epoch * 10 + 10), epoch))
    assert_visible(case, records(0, 50))


def test_epochs_add_up_with_a_writer_that_stays_open(case: Case) -> None:
    committer, made = case.sink.create_committer(), writer(case, 0)
    for epoch in range(5):
        committer.commit(write_with(made, records(epoch * 10, epoch * 10 + 10)))
        made = next_writer(case, made, epoch + 1)
    made.close()
    assert_visible(case, records(0, 50))


def test_a_prepared_attempt_that_failed_is_written_again_by_the_same_writer(case: Case) -> None:
    committer, made = case.sink.create_committer(), writer(case, 1, attempt="a0")
    write_with(made, records(0, 20))  # and then another partition failed
    made = next_writer(case, made, 1, attempt="a1")
    committer.commit(write_with(made, records(0, 20)))
    assert_visible(case, records(0, 20))
    clean_up(committer)
    made.close()
    assert_visible(case, records(0, 20))


@pytest.mark.parametrize("ending", ["abort", "close"])
def test_what_was_prepared_outlives_the_end_of_its_writer(case: Case, ending: str) -> None:
    made = writer(case, 1)
    prepared = write_with(made, records(0, 20))
    made = next_writer(case, made, 2)
    made.write_batch(records(20, 30), None)
    getattr(made, ending)()
    case.sink.create_committer().commit(prepared)
    assert_visible(case, records(0, 20))


def test_two_writers_of_one_partition_do_not_hide_each_other(case: Case) -> None:
    committables = write(case, records(0, 5), 1) + write(case, records(5, 10), 1)
    case.sink.create_committer().commit(committables)
    assert_visible(case, records(0, 10))


def test_an_epoch_without_records_has_nothing_to_commit(case: Case) -> None:
    assert write(case, [], 1) == []
    case.sink.create_committer().commit([])
    assert case.visible() == []


COMMIT = """
import pickle, sys
sink, committables = pickle.load(sys.stdin.buffer)
committer = sink.create_committer()
committer.commit(committables)
committer.close()
"""


def test_another_process_can_commit(case: Case, tmp_path: Path) -> None:
    expected = records(0, 12)
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
        write(case, records(0, 3), 1, attempt="dead")
        other = case.sink.create_writer(WriterContext("job2", "sink", 0, 1, "1-a0", 1))
        other.write_batch(records(0, 3), None)
        theirs = other.prepare_commit()
        committer = case.sink.create_committer()
        committer.commit(write(case, records(0, 3), 1))
        assert len(self.pending(tmp_path)) == 2
        clean_up(committer)
        assert self.pending(tmp_path) == [theirs[0].pending_name]
        assert_visible(case, records(0, 3))
        committer.commit(theirs)
        assert_visible(case, records(0, 3) * 2)

    def test_cleaning_up_where_nothing_was_ever_written(self, tmp_path: Path, capsys: Any) -> None:
        clean_up(row_files(tmp_path, capsys).sink.create_committer())


def clean_up(committer: Committer) -> None:
    committer.delete_leftovers(committer.find_leftovers("job1"))
