"""List state in RocksDB. Appending to a list of a million elements reads and writes only its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.state.api import ListState
from headwater.state.change_log import Combine, Join
from headwater.state.copying import captured, protective_copy
from headwater.state.heap.store import ABSENT, KeyScope
from headwater.state.rocksdb.cell import ListCell
from headwater.state.rocksdb.database import Changes, Database, DatabaseView
from headwater.state.rocksdb.store import OBJECT_BYTES_PER_BYTE, RocksStore, StoreOwner, in_pieces
from headwater.state.snapshot.entries import ListEntries, check_base

REWRITTEN = -1
"""In `changed`: the list existed before, and changed in another way than by appending."""


class ListCells(RocksStore):
    """A store of lists: list state, and panes of elements."""

    def _stored_cell(self, key: Any) -> ListCell:
        data = self._database.get(self._address(key))
        return ListCell() if data is None else ListCell.from_head(data, self._database)

    def committed(self, key: Any) -> Any:
        return self.stored_in(self._database, key)

    def stored_in(self, view: Database | DatabaseView, key: Any) -> Any:
        data = view.get(self._address(key))
        return ABSENT if data is None else ListCell.from_head(data, view).whole(view, self._body(key)) or ABSENT

    def _load_elements(self, key: Any, cell: ListCell, base: int, elements: list[Any], what: str) -> None:
        """Replace all elements of a restored list after the first `base` by `elements`."""
        check_base(base, len(cell), what)
        if base == 0:
            cell.replace(elements)
        elif len(cell) == base:
            cell.elements += elements
        else:
            cell.replace(cell.whole(self._database, self._body(key))[:base] + elements)


class RocksListState(ListCells, ListState[Any]):
    """Cache {key: ListCell}; changed {key: length before (0: there was no list), or REWRITTEN}."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        super().__init__(owner, scope, name, state_id, namespaced)
        self._read_whole: dict[Any, ListCell] = {}
        """Lists whose pieces were read from the database in this epoch."""
        self._bytes_read = 0.0

    def get(self) -> list[Any]:
        return protective_copy(self.peek())  # type: ignore[no-any-return]

    def add(self, value: Any) -> None:
        key = self._scope.current_key
        cell = self._cell(key)
        if key not in self.changed:
            self.changed[key] = len(cell)
        cell.elements.append(captured(value))

    def add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        elements = list(map(captured, values))
        key = self._scope.current_key
        cell = self._cell(key)
        self.changed[key] = REWRITTEN if self.changed.get(key, len(cell)) else 0
        cell.replace(elements)

    def clear(self) -> None:
        self.update(())

    def peek(self) -> list[Any]:
        """Return the live list. The caller must not change it, nor hand it to a user."""
        key = self._scope.current_key
        return self._whole(key, self._cell(key))

    def _whole(self, key: Any, cell: ListCell) -> list[Any]:
        if cell.offset:
            if self._bytes_read > self._owner.memory.object_bytes_per_store():
                self._forget_pieces()
            self._read_whole[key] = cell
            self._bytes_read += OBJECT_BYTES_PER_BYTE * cell.load(self._database, self._body(key))
        return cell.elements

    def _forget_pieces(self) -> None:
        """Drop the pieces of lists that the epoch only read from memory."""
        for key, cell in self._read_whole.items():
            if key not in self.changed:
                cell.forget_pieces()
        self._read_whole, self._bytes_read = {}, 0.0

    def committed_now(self, *, cut: bool) -> None:
        super().committed_now(cut=cut)
        self._forget_pieces()

    def rollback(self) -> None:
        self._forget_pieces()
        super().rollback()

    def _cell(self, key: Any) -> ListCell:
        cell: ListCell | None = self.cache.get(key)
        if cell is None:
            data = self._database.get(self._address(key))
            cell = ListCell() if data is None else ListCell.from_head(data, self._database)
            if data is not None:
                self._note_size(len(data))
            if len(self.cache) >= self._room:
                self.make_room()
            self.cache[key] = cell
        return cell

    def has(self, key: Any) -> bool:
        return len(self._cell(key)) > 0

    def count(self) -> int:
        count = self.stored_count()
        for key, before in self.changed.items():
            count += (len(self.cache[key]) > 0) - (before != 0)
        return count

    def collect(self) -> Changes:
        changes: Changes = []
        count = self.count()
        for key, before in self.changed.items():
            cell = self.cache[key]
            if len(cell) or before:
                head = lambda content, key=key: self._head(key, content)  # noqa: E731
                cell.collect(changes, self._address(key), self._body(key), head, self._dumps)
        self._count = count
        self._note_sizes(changes)
        return changes

    def _combination(self) -> Combine:
        return older_length

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ListEntries:
        present: list[Any] = []
        bases: list[int] = []
        added: list[list[Any]] = []
        deleted: list[Any] = []
        for key in keys:
            cell, before = self._cell(key), log[key]
            if len(cell):
                base = max(before, 0)
                present.append(key)
                bases.append(base)
                added.append(cell.since(base, self._database, self._body(key)))
            elif before:
                deleted.append(key)
        return ListEntries(present, bases, added, deleted)

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        owners: list[Any] = []
        elements: list[Any] = []
        for key in keys:
            cell = self.cache[key]
            added = cell.elements[max(self.changed[key] - cell.offset, 0) :]
            owners += [key] * len(added)
            elements += added
        return owners, elements

    def full_entries(self, group: int) -> Iterator[ListEntries]:
        for rows in in_pieces(self._rows(group), lambda row: row[2]):
            yield ListEntries.of_lists([row[0] for row in rows], [row[1] for row in rows])

    def _rows(self, group: int) -> Iterator[tuple[Any, list[Any], int]]:
        """Yield (key, elements, size) of a key group."""
        for key, cell, body, size in self._cells(group):
            elements = cell.whole(self._database, body)
            if elements:
                yield key, elements, size * (1 + cell.pieces)

    def _cells(self, group: int) -> Iterator[tuple[Any, ListCell, bytes, int]]:
        """Yield (key, list, prefix of its pieces' keys, size of the head) of a key group."""
        for address, data in self._database.scan(self._heads[group]):
            key = self._key_in(address, data)
            if key not in self.changed:
                yield key, ListCell.from_head(data, self._database), self._body_at(address, group), len(data) + 64
        for key in self.by_key_group(self.changed).get(group, ()):
            yield key, self.cache[key], self._body(key), 64

    def load_entries(self, entries: ListEntries) -> Changes:
        for key, base, elements in entries.rows():
            self._load_elements(key, self._cell(key), base, elements, "a list")
            self.changed[key] = REWRITTEN
        for key in entries.deleted:
            self._cell(key).replace([])
            self.changed[key] = REWRITTEN
        self._count = 0
        return self.collect()


def older_length(key: Any, older: int, newer: int, join: Join) -> int:
    """Join two log entries of a list: 0 stays 0, and a list that was rewritten once stays REWRITTEN."""
    return REWRITTEN if older and newer == REWRITTEN else older
