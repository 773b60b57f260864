"""The archives of a job's series, read in the driver: it alone knows where they are, and what they contain by now."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from headwater.common.errors import short_repr
from headwater.common.ids import MIN_WATERMARK
from headwater.common.query_error import QueryError, QueryProblem, nearest
from headwater.datastream.connectors.archive.sink import SeriesSink
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS, ArchivedWindow, ArchiveStore
from headwater.runtime.job.coordinator import Coordinator
from headwater.time.watermark_keys import at_input

MOST_WINDOWS = 10_000
"""Of one answer."""
VISIBLE_SECONDS = 5.0
"""How long an answer waits for the output of a checkpoint that a slot already counts as durable."""


@dataclass
class _OpenArchive:
    """An archive that was read before. One thread at a time reads it."""

    sink: SeriesSink
    lock: threading.Lock = field(default_factory=threading.Lock)
    store: ArchiveStore | None = None

    def read(self, key: str, from_ms: int, to_ms: int) -> list[ArchivedWindow]:
        with self.lock:
            try:
                if self.store is None:
                    self.store = self.sink.archive.open()
                return self.store.read(self.sink.series, key, from_ms, to_ms, MOST_WINDOWS + 1)
            except Exception as error:
                self._close()  # a connection that broke is made anew
                raise QueryError(QueryProblem.FAILED, f"series '{self.sink.series}': {error}") from error

    def close(self) -> None:
        with self.lock:
            self._close()

    def _close(self) -> None:
        store, self.store = self.store, None
        if store is not None:
            store.close()


class SeriesArchives:
    """Of one plan. Any thread may ask."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        sinks = [operator.sink for stage in coordinator.plan.stages for operator in stage.operators]
        self._archives = {sink.series: _OpenArchive(sink) for sink in sinks if isinstance(sink, SeriesSink)}

    def describe(self) -> list[dict[str, Any]]:
        """Return what series there are, and where their archives are."""
        return [
            {
                "name": name,
                "archive": each.sink.archive.describe(),
                "window-ms": each.sink.windows.size_ms,
                "slide-ms": each.sink.windows.slide_ms,
                "time": "event" if each.sink.windows.is_event_time() else "processing",
            }
            for name, each in self._archives.items()
        ]

    def read(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> dict[str, Any]:
        """Return the rows of `key` (JSON), once the archive has the output of `epoch`; and what it takes to join them.

        `epoch` is what a slot has said before: so no window falls between what it held then and what is read now.
        Raises `QueryError`.
        """
        archive = self._archives.get(series)
        if archive is None:
            raise QueryError(
                QueryProblem.UNKNOWN_STATE, f"the job has no series '{series}'; {nearest(series, self._archives)}"
            )
        _check(key, from_ms, to_ms)
        self._wait_until_visible(epoch)
        time_ms = self._time_ms(series, archive.sink)
        rows = archive.read(key, from_ms, to_ms)
        if len(rows) > MOST_WINDOWS:
            raise QueryError(
                QueryProblem.BAD_REQUEST,
                f"series '{series}' has more than {MOST_WINDOWS:,} windows in that range; ask for a shorter one",
            )
        return {
            "job_id": self._coordinator.job_id,
            "time_ms": time_ms,
            "window_ms": archive.sink.windows.size_ms,
            "rows": [list(row) for row in rows],
        }

    def _wait_until_visible(self, epoch: int) -> None:
        """A slot is told of a checkpoint once its output is committed; without a checkpoint directory, before that."""
        until = time.monotonic() + VISIBLE_SECONDS
        while self._coordinator.checkpoints.visible_epoch < epoch:
            if time.monotonic() > until:
                raise QueryError(
                    QueryProblem.NOT_YET, f"the output of epoch {epoch} is not in the archive yet: a sink is slow"
                )
            time.sleep(0.005)

    def _time_ms(self, series: str, sink: SeriesSink) -> int:
        """Where the clock of the windows stands, in the slowest partition."""
        if not sink.windows.is_event_time():
            return self._coordinator.last.now_ms
        watermarks = list(self._coordinator.partitions.watermarks.values())
        return min((each[at_input(series)] for each in watermarks if at_input(series) in each), default=MIN_WATERMARK)

    def close(self) -> None:
        for archive in self._archives.values():
            archive.close()


def _check(key: str, from_ms: int, to_ms: int) -> None:
    """Raise `QueryError` for what no database takes."""
    try:
        json.loads(key)
        key.encode()
    except (ValueError, RecursionError):
        raise QueryError(QueryProblem.BAD_KEY, f"the key {short_repr(key)} is not JSON") from None
    for name, found in (("from_ms", from_ms), ("to_ms", to_ms)):
        if not BEGINNING_MS <= found <= END_MS:
            text = f"{name} is {short_repr(found)}; expected milliseconds from {BEGINNING_MS} to {END_MS}"
            raise QueryError(QueryProblem.BAD_REQUEST, text)
