"""Value state on the heap whose values are rows of fixed columns: kept in arrays, read and written for many keys.

A key has a number; its row is at that place of every array. A dead row stays until `_compact`. The undo log is
{serial number: Piece}: what one write replaced. Pieces overlap, so logs are applied from the newest to the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np

from headwater.state.api import ValueState
from headwater.state.heap.key_index import DictIndex, Ids, IntegerIndex, KeyIndex, grown, index_of
from headwater.state.heap.store import ABSENT, HeapStore, KeyScope
from headwater.state.snapshot.entries import Entries, ValueEntries
from headwater.state.snapshot.packed import Packed

_PIECES_AT_MOST = 64
_SMALL = 4096
"""Fewer rows are not worth the work of compacting them."""


class RowForm(Protocol):
    """How rows are kept in arrays."""

    kinds: Sequence[Any]
    """The dtype of each array."""

    def rows(self, columns: Sequence[np.ndarray]) -> list[Any]:
        """Arrays as rows. They are immutable."""

    def columns(self, rows: Sequence[Any]) -> list[np.ndarray]:
        """Rows as arrays."""

    def packed(self, columns: Sequence[np.ndarray]) -> Packed:
        """Arrays as rows in the form of a snapshot."""


class Piece:
    """Rows of some keys: whether they are there, and their columns."""

    __slots__ = ("_order", "alive", "columns", "ids")

    def __init__(self, ids: Ids, alive: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        self.ids = ids
        self.alive = alive
        self.columns = columns
        self._order: np.ndarray | None = None

    def place_of(self, number: int) -> int | None:
        if self._order is None:
            self._order = np.argsort(self.ids)
        found = int(np.searchsorted(self.ids, number, sorter=self._order))
        if found == len(self.ids) or self.ids[self._order[found]] != number:
            return None
        return int(self._order[found])

    def moved(self, moved_to: Ids) -> Piece:
        return Piece(moved_to[self.ids], self.alive, self.columns)


class HeapColumns(HeapStore, ValueState[Any]):
    """{key: row}, as arrays."""

    __slots__ = ("_alive", "_columns", "_compact_at", "_form", "_index", "_serial")

    def __init__(self, scope: KeyScope, form: RowForm) -> None:
        super().__init__(scope)
        self._form = form
        self._index: KeyIndex = DictIndex()
        self._alive = np.zeros(0, np.bool_)
        self._columns = [np.zeros(0, kind) for kind in form.kinds]
        self._serial = 0
        self._compact_at = 2 * _SMALL

    # --- many keys

    def read(self, keys: Sequence[Any]) -> Piece:
        """The rows of keys, each of which comes once. Where there is none, `alive` is False, and columns are any."""
        if not len(self._index):
            self._index = index_of(keys)
        ids = self._index.numbers(keys)
        if ids is None:
            assert isinstance(self._index, IntegerIndex)
            self._index = DictIndex(self._index.all_keys())
            ids = self._index.numbers(keys)
        if len(self._index) > len(self._alive):
            self._grow(len(self._index))
        return Piece(ids, self._alive[ids], [column[ids] for column in self._columns])

    def batch_of_keys(self) -> Sequence[Any]:
        """The keys that have a row, as `IntegerKeys` if they are integers."""
        return self._index.batch(np.flatnonzero(self._alive))

    def write(self, before: Piece, alive: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        """Store rows in place of those of `before`, which `read` has just returned; not `alive`: remove them."""
        self.undo[self._serial] = before
        self._serial += 1
        for column, values in zip(self._columns, columns, strict=True):
            column[before.ids] = values
        self._alive[before.ids] = alive

    def remove(self, before: Piece) -> None:
        self.write(before, np.zeros(len(before.ids), np.bool_), before.columns)

    def _grow(self, count: int) -> None:
        # Readers in other threads keep the arrays that they have.
        room = max(2 * len(self._alive), count, 64)
        self._columns = [grown(column, room) for column in self._columns]
        self._alive = grown(self._alive, room)

    # --- one key

    def value(self) -> Any:
        found = self.current(self._scope.current_key)
        return None if found is ABSENT else found

    peek = value

    def update(self, value: Any) -> None:
        before = self.read([self._scope.current_key])
        if value is None:
            self.remove(before)
        else:
            self.write(before, np.ones(1, np.bool_), self._form.columns([value]))

    def clear(self) -> None:
        if self._index.find(self._scope.current_key) is not None:
            self.update(None)

    # --- epochs

    def commit(self, *, cut: bool = False) -> None:
        super().commit(cut=cut)
        self._since = self._joined(self._since)
        if len(self._index) >= self._compact_at:
            self._compact()

    def checkpoint_completed(self, keep_as: int | None = None, *, join: bool = False) -> None:
        super().checkpoint_completed(keep_as, join=join)
        self._kept = {epoch: self._joined(log) for epoch, log in self._kept.items()}

    def rollback(self) -> None:
        for serial in sorted(self.undo, reverse=True):
            before = self.undo[serial]
            for column, values in zip(self._columns, before.columns, strict=True):
                column[before.ids] = values
            self._alive[before.ids] = before.alive
        self.undo, self._spanning = {}, None

    def _joined(self, log: dict[int, Piece]) -> dict[int, Piece]:
        """Make one piece of many, or of those that together are longer than the state."""
        length = sum(len(piece.ids) for piece in log.values())
        if len(log) < 2 or (len(log) < _PIECES_AT_MOST and length < max(2 * len(self._index), _SMALL)):
            return log
        pieces = [log[serial] for serial in sorted(log)]
        every = np.concatenate([piece.ids for piece in pieces])
        place = np.full(len(self._index), -1)
        place[every[::-1]] = np.arange(len(every) - 1, -1, -1)  # the last assignment wins: the oldest piece
        ids = np.flatnonzero(place >= 0)
        firsts = place[ids]
        alive = np.concatenate([piece.alive for piece in pieces])[firsts]
        columns = [np.concatenate(parts)[firsts] for parts in zip(*(piece.columns for piece in pieces), strict=True)]
        return {min(log): Piece(ids, alive, columns)}

    def _compact(self) -> None:
        """Forget dead rows that no log knows. Called between epochs, with the lock held."""
        logs = [self._since, self._in_flight, *self._kept.values()]
        wanted = self._alive[: len(self._index)].copy()
        for log in logs:
            for piece in log.values():
                wanted[piece.ids] = True
        kept = np.flatnonzero(wanted)
        if 2 * len(kept) <= len(self._index):
            moved_to = np.cumsum(wanted) - 1
            self._index = self._index.kept(kept)
            self._columns = [column[kept] for column in self._columns]
            self._alive = self._alive[kept]
            for log in logs:
                log.update({serial: piece.moved(moved_to) for serial, piece in log.items()})
        self._compact_at = max(2 * len(self._index), 2 * _SMALL)

    # --- for readers

    def keys_stored(self) -> list[Any]:
        return self._index.keys(np.flatnonzero(self._alive))

    def some_keys(self, most: int) -> list[Any]:
        return self._index.keys(np.flatnonzero(self._alive)[:most])

    def number(self) -> int:
        return int(np.count_nonzero(self._alive))

    def current(self, key: Any) -> Any:
        number = self._index.find(key)
        alive = self._alive  # a key may have a number before there is room for its row
        if number is None or number >= len(alive) or not alive[number]:
            return ABSENT
        return self._form.rows([column[number : number + 1] for column in self._columns])[0]

    def newest(self, key: Any) -> Any:
        return self.committed(key)  # a write may be half done

    def before(self, key: Any, entry: Any, log: dict[int, Piece]) -> Any:
        number = self._index.find(key)
        for serial in sorted(log) if number is not None else ():
            piece = log[serial]
            place = piece.place_of(number)  # type: ignore[arg-type]
            if place is not None:
                row = [column[place : place + 1] for column in piece.columns]
                return self._form.rows(row)[0] if piece.alive[place] else ABSENT
        return entry

    def _candidates_now(self) -> list[Any]:
        return self.keys_stored()

    def _candidates_in(self, log: dict[int, Piece]) -> list[Any]:
        return [key for piece in log.values() for key in self._index.keys(piece.ids[piece.alive])]

    # --- snapshots

    def log_of_all(self, log: dict[int, Piece]) -> dict[int, Piece]:
        ids = np.flatnonzero(self._alive)
        nothing = Piece(ids, np.zeros(len(ids), np.bool_), [column[:0] for column in self._columns])
        return {**log, self._serial: nothing}

    def keys_changed(self, log: dict[int, Piece]) -> list[Any]:
        """The keys in `log`, but for those that came and went."""
        return self._index.keys(self._changed(log))

    def _changed(self, log: dict[int, Piece]) -> Ids:
        changed, was = np.zeros((2, len(self._alive)), np.bool_)
        for serial in sorted(log, reverse=True):
            piece = log[serial]
            changed[piece.ids], was[piece.ids] = True, piece.alive
        return np.flatnonzero(changed & (was | self._alive))

    def keys_written(self) -> list[Any]:
        return self.keys_changed(self.undo)

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        ids = np.array([self._index.find(key) for key in keys], np.int64)
        ids = ids[self._alive[ids]]
        return self._index.keys(ids), self._rows(ids)

    def delta_by_group(self, log: dict[int, Piece], max_parallelism: int) -> Iterator[tuple[int, Entries]]:
        return self._by_group(self._changed(log), max_parallelism)

    def full_by_group(self, max_parallelism: int) -> Iterator[tuple[int, Entries]]:
        return self._by_group(np.flatnonzero(self._alive), max_parallelism)

    def _by_group(self, ids: Ids, max_parallelism: int) -> Iterator[tuple[int, Entries]]:
        """The entries of those keys in the form of a snapshot: arrays stay arrays."""
        groups = self._index.groups(ids, max_parallelism).astype(np.uint16)  # numpy sorts these by radix
        order = np.argsort(groups, kind="stable")
        ids, groups = ids[order], groups[order]
        bounds = np.flatnonzero(np.diff(groups, prepend=-1, append=-1)) if len(ids) else ids
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            some = ids[start:end]
            alive = self._alive[some]
            present, gone = (some, some[:0]) if alive.all() else (some[alive], some[~alive])
            rows = self._form.packed([column[present] for column in self._columns]) if len(present) else []
            keys, deleted = (self._index.packed(each) if len(each) else [] for each in (present, gone))
            yield int(groups[start]), ValueEntries(*cast(tuple[list[Any], ...], (keys, rows, deleted)))

    def delta_entries(self, keys: Iterable[Any], log: dict[int, Piece]) -> ValueEntries:
        raise NotImplementedError("arrays are stored by `delta_by_group`")

    def full_entries(self, keys: Iterable[Any]) -> ValueEntries:
        present = list(keys)
        return ValueEntries(present, self._rows(np.array([self._index.find(key) for key in present], np.int64)))

    def _rows(self, ids: np.ndarray) -> list[Any]:
        return list(self._form.rows([column[ids] for column in self._columns]))

    def load_entries(self, entries: ValueEntries) -> None:
        before = self.read(entries.keys)
        self.write(before, np.ones(len(before.ids), np.bool_), self._form.columns(entries.values))
        self.remove(self.read(entries.deleted))
        self.undo = {}
