"""Records that stay in the driver: a task gets just those of its epoch."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater.common.connector import SplitReader
from headwater.operators.results import taken


@dataclass(frozen=True)
class Slice:
    """The records that one epoch may read. The driver puts it into the split's payload."""

    start: int
    records: bytes
    ended: bool
    """True: these are the last records."""

    def reader(self, position: int) -> SplitReader:
        return RecordReader(iter(pickle.loads(self.records)[position - self.start :]), position, self.ended)


class RecordReader(SplitReader):
    """Reads from an iterator. The position is the number of records before the next one, from the very first on."""

    gives_away = True

    def __init__(self, records: Iterator[Any], position: int, ended: bool) -> None:
        self._records = records
        self._position = position
        self._ended = ended

    def read_batch(self, max_records: int) -> list[Any] | None:
        batch = taken(itertools.islice(self._records, max_records))
        self._position += len(batch)
        return None if not batch and self._ended else batch

    def position(self) -> int:
        return self._position
