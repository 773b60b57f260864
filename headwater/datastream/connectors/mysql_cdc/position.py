"""Places in the binary log, and where a reader stands. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.datastream.connectors.cdc.progress import TableProgress


@dataclass(frozen=True, order=True)
class LogPlace:
    """A place in the log. Files are numbered: a longer name is a later one."""

    length: int
    file: str
    offset: int

    @staticmethod
    def of(file: str, offset: int) -> LogPlace:
        return LogPlace(len(file), file, offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True)
class SeenUpTo:
    """A chunk that was read at exactly this place of the log."""

    place: LogPlace

    def sees(self, transaction: LogPlace) -> bool:
        return transaction <= self.place


@dataclass(frozen=True)
class Position:
    """Where a reader stands."""

    place: LogPlace
    """All transactions that ended before are done."""
    changes: int = 0
    """Rows of the next transaction that are done."""
    records: int = 0
    """Records of the next row's change that are done."""
    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    schemas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def snapshot_done(self) -> bool:
        return all(table.done for table in self.tables.values())
