"""A list in RocksDB: sealed pieces that never change, and a head with the last elements.

So appending to a long list writes the head only. Reading the list needs no search: the head has the number of pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.state.rocksdb.database import Changes, Database, DatabaseView

_SEAL_BYTES = 4096
"""If the head gets longer, its elements become a piece. This bounds what an append writes again."""


class ListCell:
    """One list, of which the elements from position `offset` on are in memory, in `elements`."""

    __slots__ = ("elements", "offset", "pieces", "rewritten", "sealed")

    def __init__(self, sealed: int = 0, pieces: int = 0, elements: list[Any] | None = None) -> None:
        self.elements: list[Any] = [] if elements is None else elements
        self.offset = sealed
        self.sealed = sealed
        """Number of elements in the pieces in the database."""
        self.pieces = pieces
        self.rewritten = False
        """The pieces in the database are obsolete."""

    @classmethod
    def from_head(cls, data: bytes, database: Database | DatabaseView) -> ListCell:
        return cls(*database.loads(data))

    def __len__(self) -> int:
        return self.offset + len(self.elements)

    def whole(self, database: Database | DatabaseView, body: bytes) -> list[Any]:
        """Load and return all elements. `body` is the prefix of the pieces' keys."""
        self.load(database, body)
        return self.elements

    def load(self, database: Database | DatabaseView, body: bytes) -> int:
        """Load all elements into memory. Return the number of bytes read."""
        if not self.offset:
            return 0
        found = database.get([_piece(body, index) for index in range(self.pieces)])
        self.elements = [element for data in found for element in database.loads(data)] + self.elements
        self.offset = 0
        return sum(map(len, found))

    def since(self, base: int, database: Database, body: bytes) -> list[Any]:
        """Return the elements from position `base` on."""
        if base < self.offset:
            self.whole(database, body)
        return self.elements[base - self.offset :]

    def forget_pieces(self) -> None:
        """Drop the elements that are in pieces from memory. The list must be the same as in the database."""
        self.elements, self.offset = self.elements[self.sealed - self.offset :], self.sealed

    def replace(self, elements: list[Any]) -> None:
        self.elements, self.offset, self.rewritten = elements, 0, True

    def collect(
        self, changes: Changes, address: bytes, body: bytes, head: Callable[[Any], bytes], dumps: Callable[[Any], bytes]
    ) -> None:
        """Append to `changes` what stores this list, or deletes it if it is empty."""
        if self.rewritten:
            changes += [(_piece(body, index), None) for index in range(self.pieces)]
            self.sealed = self.pieces = 0
            self.rewritten = False
        if not len(self):
            changes.append((address, None))
            return
        tail = self.elements[self.sealed - self.offset :]
        data = head((self.sealed, self.pieces, tail))
        if len(data) > _SEAL_BYTES:
            changes.append((_piece(body, self.pieces), dumps(tail)))
            self.sealed += len(tail)
            self.pieces += 1
            tail = []
            data = head((self.sealed, self.pieces, tail))
        changes.append((address, data))
        self.elements, self.offset = tail, self.sealed  # the pieces need not stay in memory


def _piece(body: bytes, index: int) -> bytes:
    return body + index.to_bytes(4, "big")
