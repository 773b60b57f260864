"""Reads tables in chunks and the server's log beside them, as one series of changes."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from headwater.common.connector import SplitReader, TimedBatch
from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.cdc.changes import SchemaChange
from headwater.datastream.connectors.cdc.progress import Key, TableProgress
from headwater.datastream.connectors.cdc.settings import ChangeSettings


class ChangeReader(SplitReader):
    """Chunks of tables and pieces of the log take turns until the snapshot is complete; then only the log is read.

    A position has the fields `changes`, `records`, `tables` and `schemas`, and a place in the log.
    """

    gives_away = True
    everywhere: ClassVar[Any]
    """A place behind all of the log."""

    def __init__(self, settings: ChangeSettings, position: Any) -> None:
        self._position = position
        """Behind the last record that was given out."""
        self._common = settings
        self._tables: dict[str, TableProgress] = dict(position.tables)
        self._schemas: dict[str, tuple[str, ...]] = dict(position.schemas)
        self._changes = 0
        """Changes of rows of this transaction that are done."""
        self._held: deque[tuple[Any, int]] = deque()
        """Records of the last change that were not given out yet, with their timestamps."""
        self._log_turn = False
        self._schema_changes = 0
        self._fetch_lag_ms: float | None = None

    @abstractmethod
    def _read_chunk(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        """Read the next rows of the first table that is not complete, and move the position behind them."""

    @abstractmethod
    def _read_log(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        """Give out changes, and move the position behind them. Does not wait for the server."""

    @abstractmethod
    def _place_fields(self) -> dict[str, Any]:
        """The place of the transaction that is being read, as fields of a position."""

    @abstractmethod
    def _moved(self) -> None:
        """Set the position: all of the current transaction's first `_changes` changes are done."""

    def _log_waits(self) -> bool:
        """True if something of the log was read and not given out."""
        return bool(self._held)

    def _read(self, max_records: int) -> list[Any] | None:
        found: list[Any] = []
        stamps: list[int | None] = []
        if self._common.startup.mode == "snapshot":  # only rows: there is no log to compare them with
            while not found and not self._position.snapshot_done:
                self._read_chunk(max_records, found, stamps)
                self._forget_chunks(self.everywhere)
                self._position = replace(self._position, tables=self._tables)
            return TimedBatch(found, stamps) if found else None
        if self._log_turn or self._log_waits() or self._position.snapshot_done:
            self._read_log(max_records, found, stamps)
        self._log_turn = False
        if not found and not self._held and not self._position.snapshot_done:
            self._log_turn = True
            self._read_chunk(max_records, found, stamps)
        return TimedBatch(found, stamps)

    def position(self) -> Any:
        return self._position

    def counters(self) -> dict[str, int]:
        return {"schemaChanges": self._schema_changes}

    def gauges(self) -> dict[str, float]:
        return {} if self._fetch_lag_ms is None else {"currentFetchEventTimeLag": round(self._fetch_lag_ms, 3)}

    def _unfinished_table(self) -> str:
        return next(name for name in self._common.tables if not self._tables[name].done)

    def _forget_chunks(self, place: Any) -> None:
        """All transactions that ended before `place` are done: chunks that have seen no later one do not count."""
        if any(table.chunks for table in self._tables.values()):
            self._tables = {name: table.passed(place) for name, table in self._tables.items()}

    def _is_here(self, position: Any) -> bool:
        fields = {**self._place_fields(), "changes": self._changes}
        return all(getattr(position, name) == value for name, value in fields.items())

    def _hold(self, name: str, columns: tuple[str, ...], records: list[Any], stamp: int) -> None:
        """Hold the records of one change, but for those that were given out before this reader was opened."""
        known = self._schemas.get(name)
        if known != columns:
            self._schemas = {**self._schemas, name: columns}
            self._schema_changes += known is not None
            if known is not None and self._common.schema_changes:
                records = [SchemaChange(name, columns), *records]
        if self._position.records and self._is_here(self._position):
            records = records[self._position.records :]
        self._held.extend((record, stamp) for record in records)

    def _give_held(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        """Give out records of the last change, and note the place behind them."""
        held = self._held
        given = self._position.records
        if given and not self._is_here(self._position):
            given = 0
        while held and len(found) < most:
            record, stamp = held.popleft()
            found.append(record)
            stamps.append(stamp)
            given += 1
        if held:
            self._position = replace(self._position, **self._place_fields(), changes=self._changes, records=given)
        else:
            self._changes += 1
            self._moved()

    def _note_lag(self, stamp_ms: int) -> None:
        self._fetch_lag_ms = time.time() * 1000 - stamp_ms

    def _check_truncated(self, names: list[str], place: object) -> None:
        if names and self._common.truncate == "fail":
            raise HeadwaterError(
                f"{self._common.owner}: {', '.join(names)} was truncated at {place}, and the log does not say which "
                "rows are gone. Use DELETE instead; to go on all the same, with changes that lack these deletions, "
                "build the source with on_truncate('skip')"
            )


def untold(
    table: TableProgress, before: Any, after: Any, key_of: Callable[[Any], Key], transaction: Any
) -> tuple[Any, Any]:
    """The rows before and after a change, without those that a chunk has seen or will see."""
    if before is not None and not table.wants(key_of(before), transaction):
        before = None
    if after is not None and not table.wants(key_of(after), transaction):
        after = None
    return before, after


def kind_of(before: Any, after: Any) -> str:
    """Debezium's letter for a change: c, u or d."""
    return "c" if before is None else "d" if after is None else "u"
