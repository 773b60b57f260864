"""Archives of closed windows, in SQLite and in a real PostgreSQL: what a commit writes, once, wherever it is killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import psycopg
import pytest

from headwater.common import Time
from headwater.common.connector import WriterContext
from headwater.common.errors import (
    CheckpointError,
    ConfigurationError,
    InvalidKeyError,
    LocalDiskError,
    TypeMismatchError,
)
from headwater.datastream.connectors.archive import Archive, ClosedWindow, PostgresArchive, SqliteArchive
from headwater.datastream.connectors.archive import sqlite as sqlite_archive
from headwater.datastream.connectors.archive.closed_window import key_text, value_text
from headwater.datastream.connectors.archive.sink import SeriesSink
from headwater.datastream.connectors.archive.store import PreparedRows
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.state.query.json_form import key_from_json, to_json, value_from_json
from tests.postgres_server import PostgresServer, postgres_server

HOUR = 3_600_000
HOURS = TumblingEventTimeWindows.of(Time.hours(1))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    if request.param == "sqlite":
        return SqliteArchive(tmp_path / "new" / "archive.db")
    server: PostgresServer = request.getfixturevalue("server")
    return PostgresArchive(server.new_database())


def prepared(
    *windows: ClosedWindow, epoch: int = 1, partition: int = 0, job: str = "job1", series: str = "views"
) -> PreparedRows:
    """What a task hands to the driver for these windows, after its way through a manifest."""
    sink = SeriesSink(series, SqliteArchive("unused"), HOURS)
    writer = sink.create_writer(WriterContext(job, "views-archive", partition, 2, f"{epoch}-a", epoch))
    writer.write_batch(windows, None)
    (committable,) = writer.prepare_commit()
    found: PreparedRows = cloudpickle.loads(cloudpickle.dumps(committable))
    return found


def commit(archive: Archive, *committables: PreparedRows) -> None:
    committer = SeriesSink("views", archive, HOURS).create_committer()
    try:
        committer.commit(list(committables))
    finally:
        committer.close()


def read(archive: Archive, key: Any, from_ms: int = 0, to_ms: int = 100 * HOUR) -> list[tuple[int, int, Any, int]]:
    store = archive.open()
    try:
        rows = store.read("views", key_text(key), from_ms, to_ms, 1000)
    finally:
        store.close()
    return [
        (row.start_ms // HOUR, row.end_ms // HOUR, value_from_json(json.loads(row.value)), row.epoch) for row in rows
    ]


def window(key: Any, hour: int, value: Any) -> ClosedWindow:
    return ClosedWindow(key, hour * HOUR, (hour + 1) * HOUR, value)


class TestCommit:
    def test_rows_are_there_after_it_and_once_however_often_it_is_repeated(self, archive: Archive) -> None:
        mine, theirs = prepared(window("a", 0, 3), window("b", 0, 4)), prepared(window("c", 0, 5), partition=1)
        for _ in range(3):
            commit(archive, mine, theirs)
        assert read(archive, "a") == [(0, 1, 3, 1)]
        assert read(archive, "c") == [(0, 1, 5, 1)]
        assert read(archive, "d") == []

    def test_a_window_that_fires_again_replaces_its_result(self, archive: Archive) -> None:
        commit(archive, prepared(window("a", 0, 3), window("a", 0, 4), epoch=1))
        assert read(archive, "a") == [(0, 1, 4, 1)]
        commit(archive, prepared(window("a", 0, 5), epoch=2), prepared(window("a", 0, 6), epoch=3))
        assert read(archive, "a") == [(0, 1, 6, 3)]

    def test_an_old_commit_that_comes_late_changes_nothing(self, archive: Archive) -> None:
        old = prepared(window("a", 0, 3), epoch=1)
        commit(archive, old)
        commit(archive, prepared(window("a", 0, 5), epoch=2))
        commit(archive, old)
        assert read(archive, "a") == [(0, 1, 5, 2)]

    def test_a_part_that_was_committed_alone_does_not_hide_the_rest(self, archive: Archive) -> None:
        mine, theirs = prepared(window("a", 0, 3)), prepared(window("b", 0, 4), partition=1)
        commit(archive, mine)
        commit(archive, mine, theirs)
        assert read(archive, "b") == [(0, 1, 4, 1)]

    def test_several_at_once_write_it_once(self, archive: Archive) -> None:
        commit(archive, prepared(window("z", 0, 0), epoch=0))
        committables = [prepared(*(window(f"k{i}", 0, i) for i in range(500)), epoch=1)]
        threads = [threading.Thread(target=commit, args=(archive, *committables)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [read(archive, f"k{i}") for i in (0, 499)] == [[(0, 1, 0, 1)], [(0, 1, 499, 1)]]

    def test_series_of_one_archive_are_apart(self, archive: Archive) -> None:
        commit(archive, prepared(window("a", 0, 3)))
        committer = SeriesSink("likes", archive, HOURS).create_committer()
        committer.commit([prepared(window("a", 0, 9), series="likes", epoch=1)])
        committer.close()
        assert read(archive, "a") == [(0, 1, 3, 1)]


class TestOwner:
    def test_a_job_that_starts_from_a_savepoint_takes_the_series_over(self, archive: Archive) -> None:
        """Its epochs go on from those of the savepoint, so they may be smaller than the ones that are archived."""
        commit(archive, prepared(window("a", 0, 3), epoch=7, job="before"))
        commit(archive, prepared(window("a", 0, 4), epoch=5, job="after"))
        assert read(archive, "a") == [(0, 1, 4, 5)]

    def test_the_job_before_must_not_go_on_to_write(self, archive: Archive) -> None:
        commit(archive, prepared(window("a", 0, 3), epoch=7, job="before"))
        commit(archive, prepared(window("a", 0, 4), epoch=5, job="after"))
        with pytest.raises(CheckpointError, match="belongs to job after, which took it over from this job, before"):
            commit(archive, prepared(window("a", 0, 5), epoch=8, job="before"))
        assert read(archive, "a") == [(0, 1, 4, 5)]
        commit(archive, prepared(window("a", 0, 6), epoch=6, job="after"))
        assert read(archive, "a") == [(0, 1, 6, 6)]

    def test_a_third_job_may_start_from_the_savepoint_of_the_first(self, archive: Archive) -> None:
        """It commits the output of that savepoint once more, in the name of the job that made it."""
        of_the_savepoint = prepared(window("a", 0, 3), epoch=7, job="first")
        commit(archive, of_the_savepoint)
        commit(archive, prepared(window("a", 0, 4), epoch=8, job="second"))
        commit(archive, of_the_savepoint)
        commit(archive, prepared(window("a", 0, 5), epoch=8, job="third"))
        assert read(archive, "a") == [(0, 1, 5, 8)]


class TestRead:
    def test_windows_that_share_a_moment_with_the_range_come_in_order(self, archive: Archive) -> None:
        commit(archive, prepared(*(window("a", hour, hour) for hour in (3, 0, 2, 1))))
        assert [row[2] for row in read(archive, "a")] == [0, 1, 2, 3]
        assert [row[2] for row in read(archive, "a", HOUR, 3 * HOUR)] == [1, 2]
        assert [row[2] for row in read(archive, "a", HOUR - 1, 3 * HOUR + 1)] == [0, 1, 2, 3]
        assert read(archive, "a", HOUR, HOUR) == []
        store = archive.open()
        assert [row.value for row in store.read("views", '"a"', 0, 9 * HOUR, 2)] == ["0", "1"]
        store.close()

    def test_times_before_1970(self, archive: Archive) -> None:
        commit(archive, prepared(window("a", -2, 1)))
        assert read(archive, "a", -2 * HOUR, 0) == [(-2, -1, 1, 1)]

    @pytest.mark.parametrize(
        "value", [0, -1, 1.0, 1e300, 10**25, "ä\0\ud800'", None, True, [1, {"a": [2.5]}], {"b": "x"}]
    )
    def test_values_come_back_as_they_were(self, archive: Archive, value: Any) -> None:
        commit(archive, prepared(window("a", 0, value)))
        ((_, _, found, _),) = read(archive, "a")
        assert found == value and type(found) is type(value)

    @pytest.mark.parametrize("key", ["a", "", "ä'\"\0\ud800", 7, -1.5, None, ("a", 1, (2.5, None)), "1", "[1]"])
    def test_keys_are_found_again(self, archive: Archive, key: Any) -> None:
        commit(archive, prepared(window(key, 0, 1), window("other", 0, 2)))
        assert read(archive, key) == [(0, 1, 1, 1)]
        assert key_from_json(json.loads(key_text(key))) == key


class TestJson:
    def test_equal_keys_have_one_text_and_others_do_not(self) -> None:
        assert {key_text(1), key_text(1.0), key_text(True)} == {"1"}
        assert len({key_text(key) for key in (1, "1", None, "null", (1,), "[1]", 1.5)}) == 7

    @pytest.mark.parametrize("key", [b"a", [1], {"a": 1}, float("inf"), object(), ("a", b"b")])
    def test_other_keys_are_refused(self, key: Any) -> None:
        with pytest.raises(InvalidKeyError, match="a key of a series is JSON"):
            key_text(key)

    @pytest.mark.parametrize("value", [float("nan"), [Decimal("1.5")], b"a", {1: 2}, '{"$repr":'])
    def test_values_have_the_form_in_which_queries_show_them(self, value: Any) -> None:
        assert json.loads(value_text(value)) == to_json(value)

    def test_values_without_a_form_are_refused(self) -> None:
        with pytest.raises(TypeMismatchError, match="the value of a window in a series has no form in JSON: list"):
            value_text([{"a": object()}])

    def test_records_that_are_no_windows_are_refused(self) -> None:
        with pytest.raises(TypeMismatchError, match=r"archives ClosedWindow records, found tuple.*as_queryable_series"):
            prepared(("a", 0, 1, 2))  # type: ignore[arg-type]


class TestPlaces:
    @pytest.mark.parametrize("path", ["", ":memory:", "file:x?mode=memory"])
    def test_what_is_no_file_is_refused(self, path: str) -> None:
        with pytest.raises(ConfigurationError, match="expects the path of a file"):
            SqliteArchive(path)

    def test_a_file_that_is_locked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_archive, "LOCK_SECONDS", 0.05)
        archive = SqliteArchive(tmp_path / "archive.db")
        commit(archive, prepared(window("a", 0, 3)))
        committer = SeriesSink("views", archive, HOURS).create_committer()
        other = subprocess.Popen(
            [sys.executable, "-c", HOLD_THE_LOCK, archive.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        with pytest.raises(LocalDiskError, match=r"archive\.db is locked by another process.*end its transaction"):
            committer.commit([prepared(window("a", 1, 4), epoch=2)])
        assert read(archive, "a") == [(0, 1, 3, 1)], "readers do not wait"
        other.communicate("")
        committer.commit([prepared(window("a", 1, 4), epoch=2)])
        committer.close()
        assert len(read(archive, "a")) == 2

    def test_a_file_that_is_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "archive.db").write_bytes(b"no database" * 1000)
        with pytest.raises(CheckpointError, match=r"archive\.db is damaged or no SQLite file"):
            SeriesSink("views", SqliteArchive(tmp_path / "archive.db"), HOURS).create_committer()

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="cannot be used: unable to open"):
            SqliteArchive(tmp_path).open()

    def test_a_file_that_is_deleted_while_it_is_open(self, tmp_path: Path) -> None:
        archive = SqliteArchive(tmp_path / "archive.db")
        committer, reader = SeriesSink("views", archive, HOURS).create_committer(), archive.open()
        committer.commit([prepared(window("a", 0, 3))])
        (tmp_path / "archive.db").rename(tmp_path / "away.db")
        with pytest.raises(CheckpointError, match=r"archive\.db was deleted or replaced while it was open; put"):
            committer.commit([prepared(window("a", 1, 4), epoch=2)])
        with pytest.raises(CheckpointError, match="was deleted or replaced"):
            reader.read("views", '"a"', 0, HOUR, 1)
        reader.close()
        (tmp_path / "away.db").rename(tmp_path / "archive.db")
        committer.commit([prepared(window("a", 1, 4), epoch=2)])
        committer.close()
        assert len(read(archive, "a")) == 2

    def test_a_full_disk(self, tmp_path: Path) -> None:
        archive = SqliteArchive(tmp_path / "archive.db")
        store: Any = archive.open()
        store._connection.execute("PRAGMA max_page_count = 10")
        with pytest.raises(LocalDiskError, match=r"archive\.db cannot be written: database or disk is full; make room"):
            store.commit([prepared(*(window(f"key-{i}", 0, i) for i in range(5_000)))])
        store.close()
        assert read(archive, "key-0") == []

    def test_commits_survive_a_power_cut(self, tmp_path: Path) -> None:
        connection = SqliteArchive(tmp_path / "archive.db").connect()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        connection.close()

    def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        archive = PostgresArchive(f"host={tmp_path} dbname=metrics password=secret")
        with pytest.raises(ConnectionError, match=r"PostgreSQL database metrics at .* cannot be reached") as told:
            archive.open()
        assert "secret" not in str(told.value) + archive.describe()

    def test_a_connection_that_broke_is_made_anew(self, server: PostgresServer) -> None:
        uri = server.new_database()
        committer = SeriesSink("views", PostgresArchive(uri), HOURS).create_committer()
        with psycopg.connect(server.uri, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'headwater archive' AND datname <> 'postgres'"
            )
        with pytest.raises(ConnectionError, match="archive in PostgreSQL"):
            committer.commit([prepared(window("a", 0, 3))])
        committer.commit([prepared(window("a", 0, 3))])
        committer.close()
        assert read(PostgresArchive(uri), "a") == [(0, 1, 3, 1)]

    def test_without_psycopg(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(ConfigurationError, match=r"pip install 'headwater\[postgres\]'"):
            PostgresArchive("dbname=metrics").open()


HOLD_THE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


def commit_and_die(archive: Archive, committables: list[PreparedRows], step: int) -> int:
    """Commit in a process that is killed at the `step`-th step of it. Return how that ended."""
    child = os.fork()
    if child == 0:
        count = 0

        def reached(*_: Any) -> None:
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            store: Any = archive.open()
            if isinstance(archive, SqliteArchive):
                store._connection.set_trace_callback(reached)  # called before every statement
            else:
                for owner, method in ((psycopg.Cursor, "_execute_gen"), (psycopg.Connection, "_exec_command")):
                    setattr(owner, method, traced(getattr(owner, method), reached))
            store.commit(committables)
            reached()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def traced(method: Any, reached: Callable[[], None]) -> Any:
    """What sends a statement to PostgreSQL, or BEGIN and COMMIT: a step before it, and one after it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        reached()
        result = yield from method(*args, **kwargs)
        reached()
        return result

    return call


def test_killed_at_every_step_of_a_commit(archive: Archive) -> None:
    """Whatever step a commit is killed at, all of its rows are there, or none; and the next driver makes it whole."""
    epoch, outcomes, ended = 0, set(), -1
    while ended != 0:
        epoch += 1
        rows = [
            prepared(window("a", epoch, epoch), window("b", epoch, epoch), epoch=epoch),
            prepared(window("c", epoch, epoch), epoch=epoch, partition=1),
        ]
        ended = commit_and_die(archive, rows, step=epoch)
        assert ended in (0, -signal.SIGKILL)
        found = {len([row for row in read(archive, key) if row[0] == epoch]) for key in "abc"}
        assert found in ({0}, {1}), f"half of a commit that was killed at step {epoch}"
        outcomes |= found
        commit(archive, *rows)
        expected = [(each, each + 1, each, each) for each in range(1, epoch + 1)]
        assert [read(archive, key) for key in "abc"] == [expected] * 3
    assert epoch > 6 and outcomes == {0, 1}, "it was killed before, and after, the commit"


def test_people_can_read_it_with_plain_sql(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "archive.db")
    commit(archive, prepared(window("a", 0, 3), window("b", 0, {"n": 4})))
    with sqlite3.connect(archive.path) as connection:
        found = connection.execute("SELECT key, json_extract(value, '$.n') FROM headwater_windows ORDER BY key")
        assert found.fetchall() == [('"a"', None), ('"b"', 4)]
    connection.close()
