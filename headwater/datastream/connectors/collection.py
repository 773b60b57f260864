"""A Python collection as a bounded source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cloudpickle

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.driver_records import RecordReader, Slice
from headwater.graph.picklability import require_picklable

__all__ = ["CollectionSource"]

_SPLIT_ID = "collection"
_WHAT = "the collection"


class CollectionSource(Source):
    """The items of a collection, in order, in one split.

    The items stay in the driver. A task gets the ones that its epoch may read: `plan_read` puts them into the split's
    payload. So a collection of a million items is shipped once in all, not once per epoch.
    """

    def __init__(self, items: Iterable[Any], type_info: Any = None) -> None:
        # A copy: what the program does to its list afterwards must not change a job that may have to replay.
        self._items: list[Any] | None = list(items)
        require_picklable(self._items, _WHAT)
        self.type_info = type_info

    def __len__(self) -> int:
        return len(self._here())

    def first_items(self) -> list[Any]:
        """The first item, if there is one."""
        return self._here()[:1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_items": None}

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if _SPLIT_ID in known else [Split(_SPLIT_ID, None)]

    def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
        items = self._here()
        start = 0 if position is None else position
        if start > len(items):
            raise ConfigurationError(
                f"the collection now has {len(items)} items, but {start} of them were read before the restart; start "
                "the job with the same collection, or on a fresh checkpoint directory"
            )
        records = items[start : start + budget]
        return Split(split.split_id, Slice(start, _pickle(records, start), start + len(records) == len(items)))

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        start = 0 if position is None else position
        if isinstance(split.payload, Slice):
            return split.payload.reader(start)
        return RecordReader(iter(self._here()[start:]), start, ended=True)

    def _here(self) -> list[Any]:
        if self._items is None:
            raise ConfigurationError(
                "the items of a from_collection source are only in the driver; a task reads what plan_read gave it"
            )
        return self._items


def _pickle(records: list[Any], start: int) -> bytes:
    try:
        # By value where classes are of the main program: a task has another __main__.
        return bytes(cloudpickle.dumps(records, protocol=5))
    except Exception:
        require_picklable(records, _WHAT, start)  # an item was changed after it was checked
        raise
