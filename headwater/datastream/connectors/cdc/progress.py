"""How far the snapshot of a table is, and which changes of the log it has already seen. Pure.

Rows are read in chunks, in the order of the primary key, each in a transaction of its own, without locks, while others
write. A chunk knows which transactions it has seen. So for each change in the log one can tell: its row is not read yet
(a later chunk will have it: drop the change); the chunk with its row has seen it (drop); or it has not (emit). Once the
log is behind all that the chunk has seen, that is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

Key = tuple[Any, ...]


class Seen(Protocol):
    """Which transactions a chunk has seen."""

    def sees(self, transaction: Any) -> bool: ...


@dataclass(frozen=True)
class Chunk:
    """Rows of a table with `low` < key <= `high` (None: no bound)."""

    low: Key | None
    high: Key | None
    seen: Seen
    until: Any
    """All transactions that it has seen ended before this place in the log."""

    def contains(self, key: Key) -> bool:
        return (self.low is None or key > self.low) and (self.high is None or key <= self.high)


@dataclass(frozen=True)
class TableProgress:
    """How far one table is."""

    last: Key | None = None
    """Rows up to this key have been read. None: none yet."""
    done: bool = False
    chunks: tuple[Chunk, ...] = ()
    """Those whose visibility still counts."""

    def wants(self, key: Key, transaction: Any) -> bool:
        """Return True if a change of this row must be emitted."""
        if not self.done and (self.last is None or key > self.last):
            return False
        return not any(chunk.contains(key) and chunk.seen.sees(transaction) for chunk in self.chunks)

    def with_chunk(self, chunk: Chunk) -> TableProgress:
        return TableProgress(self.last if chunk.high is None else chunk.high, chunk.high is None, (*self.chunks, chunk))

    def passed(self, place: Any) -> TableProgress:
        """The log has been read up to `place`."""
        kept = tuple(chunk for chunk in self.chunks if chunk.until > place)
        return self if len(kept) == len(self.chunks) else replace(self, chunks=kept)
