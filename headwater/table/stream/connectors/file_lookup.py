"""Files that are looked up in a join: read whole, and again when they are too old."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from headwater.common.connector import drain
from headwater.table.stream.connectors.contract import TableSource

_BATCH = 10_000


class FileLookup:
    """The rows of a table's files by some columns. `reload_ms`: how long they are believed; None: for ever."""

    def __init__(self, source: TableSource, places: Sequence[int], reload_ms: int | None) -> None:
        self._source = source
        self._places = tuple(places)
        self._reload_ms = reload_ms

    def open(self) -> None:
        self._source.converter.open()
        self._read()

    def lookup(self, keys: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
        if self._reload_ms is not None and (time.monotonic() - self._read_at) * 1000 >= self._reload_ms:
            self._read()
        return {key: self._rows[key] for key in keys if key in self._rows}

    def _read(self) -> None:
        self._read_at = time.monotonic()
        self._rows: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for split in self._source.source.discover_splits(1, frozenset()):
            reader = self._source.source.open_reader(split, None)
            try:
                for records in drain(reader, _BATCH):
                    changes = self._source.converter.convert(records, None, 0)
                    for row in zip(*(column.to_pylist() for column in changes.rows.columns), strict=True):
                        self._rows.setdefault(tuple(row[place] for place in self._places), []).append(row)
            finally:
                reader.close()
