"""What an archive of closed windows is, whatever database it is in, and what a commit has to decide.

Three tables, the same in every database:

| table | one row is |
|---|---|
| `headwater_windows` | the result of a window: series, key, start, end, value; who wrote it, and in which epoch |
| `headwater_writers` | a job that writes a series. The newest one owns it |
| `headwater_commits` | the last epoch of one partition that is in the archive: **the marker** |

A commit is one transaction: markers are read, rows and markers written. So it happens once, however often it is tried
and wherever it is killed. The marker belongs to a job id. That is one per checkpoint directory, and going back always
means another directory, so the epochs of a marker only grow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import msgspec
import zstandard

from headwater.common.errors import CheckpointError

BEGINNING_MS, END_MS = -(1 << 62), 1 << 62
"""Of time, as far as databases can count."""

WindowKey = tuple[str, int, int]
"""(key as JSON, start, end)"""

Row = tuple[str, int, int, str, int]
"""(key, start, end, value, epoch): what is written to `headwater_windows`"""


class ArchivedWindow(NamedTuple):
    """One row of `headwater_windows`, as it is read. `job_id` is of the job that wrote it."""

    start_ms: int
    end_ms: int
    value: str
    job_id: str
    epoch: int


@dataclass(frozen=True)
class PreparedRows:
    """Committable: the windows that one partition closed in one epoch. The manifest keeps them until the commit."""

    job_id: str
    series: str
    partition: int
    epoch: int
    packed: bytes

    @classmethod
    def pack(
        cls, job_id: str, series: str, partition: int, epoch: int, rows: Iterable[tuple[str, int, int, str]]
    ) -> PreparedRows:
        """`rows` are (key, start, end, value); of several with the same window and key, the last one counts."""
        columns = [list(column) for column in zip(*rows, strict=True)]
        return cls(job_id, series, partition, epoch, zstandard.compress(msgspec.msgpack.encode(columns), 1))

    def rows(self) -> Iterator[tuple[WindowKey, Row]]:
        """Yield all rows, the last one of a window and key last."""
        keys, starts, ends, values = msgspec.msgpack.decode(zstandard.decompress(self.packed))
        windows = zip(keys, starts, ends, strict=True)
        return zip(windows, zip(keys, starts, ends, values, repeat(self.epoch)), strict=True)


class Markers(NamedTuple):
    """What a transaction finds in the archive about the series and the job that commits."""

    owner_job: str | None
    """The newest writer of the series; None: nobody has written it."""
    knows_job: bool
    """The job has written the series before."""
    epochs: Mapping[int, int]
    """{partition: last epoch of the job that is in the archive}"""


class CommitPlan(NamedTuple):
    """What a transaction writes."""

    rows: list[Row]
    epochs: dict[int, int]


def plan_commit(prepared: list[PreparedRows], markers: Markers) -> CommitPlan:
    """Decide what to write for `prepared`, all of one job and series. Raises CheckpointError if another job owns it.

    A job that is new to the series takes it over: it was started from a savepoint of the one before. That one must not
    go on to write: its rows and the new ones would mix. What it has written may be committed again by whoever starts
    from its savepoint: nothing is left to do then.
    """
    news = [each for each in prepared if each.epoch > markers.epochs.get(each.partition, -1)]
    job_id, series = prepared[0].job_id, prepared[0].series
    if news and markers.knows_job and markers.owner_job != job_id:
        raise CheckpointError(
            f"series '{series}' of this archive belongs to job {markers.owner_job}, which took it over from this job, "
            f"{job_id}. Two jobs cannot write one series: end one of them, or give it another archive or another name"
        )
    news.sort(key=lambda each: each.epoch)
    rows: dict[WindowKey, Row] = {}
    epochs: dict[int, int] = {}
    for each in news:
        rows.update(each.rows())
        epochs[each.partition] = each.epoch
    return CommitPlan(sorted(rows.values()), epochs)  # in the order of the index: databases write that faster


class ArchiveStore(ABC):
    """An open archive. One thread at a time uses it."""

    @abstractmethod
    def commit(self, prepared: list[PreparedRows]) -> None:
        """Write `prepared`, all of one job and series, in one transaction, unless it is there. Durable on return."""

    @abstractmethod
    def read(self, series: str, key: str, from_ms: int, to_ms: int, most: int) -> list[ArchivedWindow]:
        """Return the first `most` windows of `key` that share a moment with [from_ms, to_ms), by start and end."""

    @abstractmethod
    def close(self) -> None: ...


class Archive(ABC):
    """Where an archive is. Picklable; holds no connection."""

    @abstractmethod
    def open(self) -> ArchiveStore:
        """Connect, and make the tables if they are missing. Raises if the place cannot be used."""

    @abstractmethod
    def describe(self) -> str:
        """Where it is, for people. Without secrets."""
