"""Which transactions a chunk of a table has seen, and where a reader stands. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.datastream.connectors.cdc.progress import TableProgress

_WRAP = 1 << 32


@dataclass(frozen=True)
class Visibility:
    """What `pg_current_snapshot()` says."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @staticmethod
    def parse(text: str) -> Visibility:
        xmin, xmax, running = text.split(":")
        return Visibility(int(xmin), int(xmax), frozenset(map(int, running.split(","))) if running else frozenset())

    def sees(self, xid: int) -> bool:
        """`xid` is as in the log: 32 bits of it. No transaction is two thousand million away from the snapshot."""
        full = self.xmax + (xid - self.xmax + _WRAP // 2) % _WRAP - _WRAP // 2
        return full < self.xmin or (full < self.xmax and full not in self.running)


@dataclass(frozen=True)
class Position:
    """Where a reader stands."""

    lsn: int
    """All transactions that ended before are done."""
    xid: int = 0
    """Of the transaction that is partly done, if `changes` or `records` is not 0."""
    changes: int = 0
    """Messages about rows that are done in it."""
    records: int = 0
    """Records of the next message that are done."""
    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    schemas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns of the tables, as they were last told."""
    unseen: frozenset[int] = frozenset()
    """Transactions whose changes were left to a later chunk, and that no chunk has seen yet. The log may show a
    transaction a moment before queries see it."""

    @property
    def snapshot_done(self) -> bool:
        return all(table.done for table in self.tables.values())
