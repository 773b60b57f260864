"""The readers of splits: opened for one epoch, or kept open for the next ones."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from headwater.common.connector import Source, SplitReader
from headwater.runtime.epoch.messages import SplitAssignment


@dataclass
class OpenReader:
    """A reader, and what it has counted up to the last epoch that used it."""

    reader: SplitReader
    source_id: int
    split_id: str
    counted: dict[str, int] = field(default_factory=dict)

    def newly_counted(self) -> dict[str, int]:
        """What the reader has counted since the last call."""
        counters = self.reader.counters()
        new = {name: count - self.counted.get(name, 0) for name, count in counters.items()}
        self.counted = dict(counters)
        return {name: count for name, count in new.items() if count}


class Readers:
    """Opens a reader for each split and epoch, and closes it afterwards: whoever reads next may be another process."""

    def open(self, source_id: int, source: Source, assignment: SplitAssignment) -> OpenReader:
        """A reader of the split at the assignment's position. End it with `done` or `failed`."""
        position = None if assignment.position is None else pickle.loads(assignment.position)
        reader = source.open_reader(assignment.split, position)
        return OpenReader(reader, source_id, assignment.split.split_id)

    def done(self, opened: OpenReader, position: bytes, *, finished: bool) -> None:
        """The epoch has read what it may. The next reader begins at `position`."""
        opened.reader.close()

    def failed(self, opened: OpenReader) -> None:
        """The reader raised, or the records that it returned do not count."""
        opened.reader.close()


class KeptReaders(Readers):
    """Keeps a reader for the next epoch of its split. It is used only if that epoch begins where the reader stands."""

    def __init__(self, unused_seconds: float = math.inf) -> None:
        """A reader that no epoch has used for `unused_seconds` is closed: another process reads its split now."""
        self._kept: dict[tuple[int, str], tuple[OpenReader, bytes]] = {}
        self._unused_seconds = unused_seconds
        self._used: dict[tuple[int, str], float] = {}

    def open(self, source_id: int, source: Source, assignment: SplitAssignment) -> OpenReader:
        kept = self._kept.pop((source_id, assignment.split.split_id), None)
        if kept is not None:
            opened, position = kept
            if position == assignment.position and not _plans_reads(source):
                return opened
            opened.reader.close()
        return super().open(source_id, source, assignment)

    def done(self, opened: OpenReader, position: bytes, *, finished: bool) -> None:
        if finished:
            opened.reader.close()
        else:
            key = (opened.source_id, opened.split_id)
            self._kept[key] = (opened, position)
            self._used[key] = now = time.monotonic()
            self._close_unused(now - self._unused_seconds)

    def _close_unused(self, oldest: float) -> None:
        for key in [key for key in self._kept if self._used[key] < oldest]:
            self._kept.pop(key)[0].reader.close()

    def kept(self) -> Iterator[SplitReader]:
        """The readers that are open."""
        return (opened.reader for opened, _ in self._kept.values())

    def close(self) -> None:
        for reader in self.kept():
            reader.close()
        self._kept.clear()


def _plans_reads(source: Source) -> bool:
    """Return True if the driver puts what an epoch may read into the split: a reader has no more than that."""
    return type(source).plan_read is not Source.plan_read
