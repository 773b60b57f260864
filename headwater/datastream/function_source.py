"""A source that is a Python function: for `add_source`, small feeds and tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import cloudpickle

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import TypeMismatchError
from headwater.operators.results import taken


@dataclass(frozen=True)
class _Slice:
    """The records that one epoch may read, from the driver to the task."""

    start: int
    records: bytes
    ended: bool
    """True: these are the last records."""


class FunctionSource(Source):
    """Reads what `produce()` yields, in one split.

    The function runs in the driver, once, and tasks get the records of their epoch (`plan_read`). The position is the
    number of records read. When a job is resumed, `produce` is called again and the records read before are skipped, so
    it must yield the same records each time. While it waits for a record, the whole job waits.
    """

    def __init__(self, produce: Callable[[], Iterable[Any]], bounded: bool = True) -> None:
        self.produce = produce
        self.bounded = bounded
        self._records: Iterator[Any] | None = None
        self._kept: list[Any] = []
        self._kept_from = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"produce": self.produce, "bounded": self.bounded}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if "function" in known else [Split("function", None)]

    def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
        """Return the split with up to `budget` records from `position` on; the same records if an epoch is retried."""
        start = 0 if position is None else position
        if self._records is None or start < self._kept_from:
            self._records, self._kept, self._kept_from = _iterate(self.produce), [], 0
        missing = start + budget - self._kept_from - len(self._kept)
        self._kept += taken(itertools.islice(self._records, max(missing, 0)))
        # Records before `start` are in a checkpoint already.
        del self._kept[: start - self._kept_from]
        self._kept_from = start
        records = self._kept[:budget]
        return Split(split.split_id, _Slice(start, cloudpickle.dumps(records), len(records) < budget))

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        start = 0 if position is None else position
        if isinstance(split.payload, _Slice):
            records = iter(cloudpickle.loads(split.payload.records)[start - split.payload.start :])
            return _FunctionReader(records, start, split.payload.ended)
        return _FunctionReader(itertools.islice(_iterate(self.produce), start, None), start, True)


class _FunctionReader(SplitReader):
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


def _iterate(produce: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    records = produce()
    try:
        return iter(records)
    except TypeError:
        raise TypeMismatchError(
            f"the function given to add_source() returned {type(records).__name__}; "
            f"it must yield its records, or return an iterable of them"
        ) from None
