"""A series asked for all the time, while slots and the driver are killed with `kill -9`: no gap and no overlap."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headwater.common.query_error import MAY_HAVE_MOVED, QueryError, QueryProblem
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS
from headwater.queryable_state.reader import StateReader
from headwater.queryable_state.series import Series, read_series
from tests.recovery.series_job import KEYS, SERIES, windows_of
from tests.recovery.test_state_queries import QueriedJob
from tests.waiting import wait_until

READERS = 4
NAMES = [f"key-{number:02d}" for number in range(KEYS)]


class Readers:
    """Threads that ask whatever driver runs. What they are told is kept."""

    def __init__(self) -> None:
        self.answers: list[Series] = []
        self.problems: set[QueryProblem] = set()
        self._reader: StateReader | None = None
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on, args=(first,)) for first in range(READERS)]

    def begin(self, reader: StateReader) -> None:
        self._reader = reader
        if not self._threads[0].is_alive():
            for thread in self._threads:
                thread.start()

    def end(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _ask_on(self, first: int) -> None:
        for number in itertools.count(first, READERS):
            if self._done.is_set():
                return
            try:
                assert self._reader is not None
                self.answers.append(read_series(self._reader, SERIES, NAMES[number % KEYS], BEGINNING_MS, END_MS))
            except QueryError as error:
                self.problems.add(error.problem)
            self._done.wait(0.02)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[QueriedJob]:
    found = QueriedJob(tmp_path, "heap", "series_job.py", tmp_path / "archive.db", 2000)
    yield found
    found.close()


@pytest.mark.timeout(600)
def test_each_window_is_there_once_while_processes_die(job: QueriedJob) -> None:
    readers = Readers()

    def seen(more: int) -> None:
        """Wait for so many answers with closed and open windows, of so many checkpoints."""
        before = len(readers.answers)

        def enough() -> bool:
            news = readers.answers[before:]
            both = [answer for answer in news if {window.closed for window in answer.windows} == {True, False}]
            return len(both) >= more and len({answer.epoch for answer in both}) >= 4

        wait_until(enough, lambda: f"{more} answers; problems: {readers.problems}", 180, 0.1)

    readers.begin(job.reader(5.0))
    try:
        seen(40)
        for _ in range(2):
            with contextlib.suppress(psutil.Error):
                job.slots()[0].send_signal(signal.SIGKILL)
            seen(40)
        job.kill_driver()
        job.start()
        readers.begin(job.reader(5.0))
        seen(40)
    finally:
        readers.end()
    of_epoch: dict[tuple[object, int], int] = {}
    for answer in readers.answers:
        found = [(window.start_ms, window.end_ms, window.value[2]) for window in answer.windows]
        records = sum(count for _, _, count in found)
        assert found == windows_of(answer.key, records), f"as of epoch {answer.epoch}"
        closed = [window.closed for window in answer.windows]
        assert closed == sorted(closed, reverse=True), f"an open window before a closed one: {answer}"
        assert of_epoch.setdefault((answer.key, answer.epoch), records) == records, "one epoch, two answers"
    assert {key for key, _ in of_epoch} == set(NAMES)
    assert readers.problems <= MAY_HAVE_MOVED | {QueryProblem.TOO_MANY_READERS}, readers.problems
    ordered = sorted((str(key), epoch, records) for (key, epoch), records in of_epoch.items())
    for (key, _, records), (next_key, _, more) in itertools.pairwise(ordered):
        assert key != next_key or records <= more, "a later checkpoint with fewer records"
