"""Numbers for keys: the first key that comes is 0, the next new one 1, and so on.

Keys that are integers, or tuples of as many integers, are found together in arrays; others in a dict. Only one thread
adds keys; others may look for one meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from headwater.state.keys.key_groups import groups_of_integers, key_group
from headwater.state.snapshot.packed import Packed, packed_array, packed_rows

Ids = np.ndarray[tuple[int], np.dtype[np.int64]]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_LEAST_BITS = 6


class IntegerKeys(Sequence[Any]):
    """Keys as arrays of int64. One array: keys are integers, else tuples of a number of each array."""

    __slots__ = ("_objects", "arrays")

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = tuple(arrays)
        self._objects: list[Any] | None = None

    @staticmethod
    def of(keys: Sequence[Any]) -> IntegerKeys | None:
        """The same keys; None if they are no integers of 64 bits, or no tuples of as many."""
        if isinstance(keys, IntegerKeys):
            return keys
        kinds = set(map(type, keys))
        try:
            if kinds == {int}:
                return IntegerKeys([np.fromiter(keys, np.int64, len(keys))])
            if kinds != {tuple} or len(set(map(len, keys))) > 1 or not keys[0]:
                return None
            columns = list(zip(*keys, strict=True))
            if any(set(map(type, column)) != {int} for column in columns):
                return None
            return IntegerKeys([np.fromiter(column, np.int64, len(keys)) for column in columns])
        except OverflowError:
            return None

    def take(self, places: np.ndarray) -> IntegerKeys:
        return IntegerKeys([array[places] for array in self.arrays])

    def objects(self) -> list[Any]:
        if self._objects is None:
            columns = [array.tolist() for array in self.arrays]
            self._objects = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        return self._objects

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, place: Any) -> Any:
        return self.objects()[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.objects())


class KeyIndex(ABC):
    """Keys and their numbers."""

    @abstractmethod
    def __len__(self) -> int:
        """How many keys there are, with the forgotten ones."""

    @abstractmethod
    def find(self, key: Any) -> int | None:
        """The number of a key, if it has one. For any thread."""

    @abstractmethod
    def numbers(self, keys: Sequence[Any]) -> Ids | None:
        """The number of each key, none of which comes twice; new ones get numbers. None: not in this index."""

    @abstractmethod
    def keys(self, ids: Ids) -> list[Any]: ...

    def batch(self, ids: Ids) -> Sequence[Any]:
        """As `keys`, kept as arrays if they are."""
        return self.keys(ids)

    @abstractmethod
    def packed(self, ids: Ids) -> Packed:
        """The keys in the form of a snapshot."""

    @abstractmethod
    def groups(self, ids: Ids, max_parallelism: int) -> np.ndarray:
        """The key group of each."""

    @abstractmethod
    def kept(self, ids: Ids) -> KeyIndex:
        """An index of those keys only, with new numbers in that order."""


class DictIndex(KeyIndex):
    """For any keys."""

    def __init__(self, keys: Sequence[Any] = ()) -> None:
        self._keys = list(keys)
        self._numbers = dict(zip(self._keys, range(len(self._keys)), strict=True))

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key: Any) -> int | None:
        return self._numbers.get(key)

    def numbers(self, keys: Sequence[Any]) -> Ids:
        ids = np.fromiter(map(self._numbers.get, keys, repeat(-1)), np.int64, len(keys))
        new = np.flatnonzero(ids < 0)
        if len(new):
            first = len(self._keys)
            added = list(keys) if len(new) == len(keys) else [keys[place] for place in new.tolist()]
            self._keys += added
            self._numbers.update(zip(added, range(first, len(self._keys)), strict=True))
            ids[new] = np.arange(first, len(self._keys))
        return ids

    def keys(self, ids: Ids) -> list[Any]:
        return list(map(self._keys.__getitem__, ids.tolist()))

    def packed(self, ids: Ids) -> Packed:
        return self.keys(ids)

    def groups(self, ids: Ids, max_parallelism: int) -> np.ndarray:
        return np.fromiter((key_group(key, max_parallelism) for key in self.keys(ids)), np.int64, len(ids))

    def kept(self, ids: Ids) -> DictIndex:
        return DictIndex(self.keys(ids))


class IntegerIndex(KeyIndex):
    """For `IntegerKeys` of one width: a hash table with open addressing, in which many keys are looked up at once."""

    def __init__(self, keys: IntegerKeys) -> None:
        self._arrays = [np.zeros(0, np.int64) for _ in keys.arrays]
        self._count = 0
        self._table = np.full(1 << _LEAST_BITS, -1, np.int32)
        """At the place of a key, or of the next one that was free: its number. At most half is taken."""
        self.numbers(keys)

    def __len__(self) -> int:
        return self._count

    def find(self, key: Any) -> int | None:
        given = _as_integers(key, len(self._arrays))
        if given is None:
            return None
        table = self._table
        mask = len(table) - 1
        place = int(_places([np.array([part], np.int64) for part in given], table)[0])
        while (number := int(table[place])) >= 0:
            arrays = self._arrays  # read after the number, whose key they have then
            if all(int(array[number]) == part for array, part in zip(arrays, given, strict=True)):
                return number
            place = (place + 1) & mask
        return None

    def numbers(self, keys: Sequence[Any]) -> Ids | None:
        if not len(keys):
            return np.zeros(0, np.int64)
        given = IntegerKeys.of(keys)
        if given is None or len(given.arrays) != len(self._arrays):
            return None
        if 2 * (self._count + len(given)) > len(self._table):
            self._make_room(len(given))
        places = _places(given.arrays, self._table)
        ids = self._looked_up(given.arrays, places)
        new = np.flatnonzero(ids < 0)
        if len(new):
            ids[new] = np.arange(self._count, self._count + len(new))
            self._append([array[new] for array in given.arrays])
            _insert(self._table, places[new], ids[new])
        return ids

    def _looked_up(self, arrays: Sequence[np.ndarray], places: Ids) -> Ids:
        """The number of each key, -1 if it has none. Makes `places` those where the search has ended."""
        mask = len(self._table) - 1
        ids = self._table[places].astype(np.int64)
        left = np.flatnonzero(ids >= 0)
        if len(left) == len(ids):
            wrong = self._differ(ids, arrays)
        else:
            wrong = self._differ(ids[left], [array[left] for array in arrays])
        left = left[wrong]
        while len(left):
            at = (places[left] + 1) & mask
            places[left] = at
            found = self._table[at].astype(np.int64)
            ids[left] = found
            taken = np.flatnonzero(found >= 0)
            left, found = left[taken], found[taken]
            left = left[self._differ(found, [array[left] for array in arrays])]
        return ids

    def _differ(self, ids: Ids, arrays: Sequence[np.ndarray]) -> np.ndarray:
        differ = self._arrays[0][ids] != arrays[0]
        for own, other in zip(self._arrays[1:], arrays[1:], strict=True):
            differ |= own[ids] != other
        return np.flatnonzero(differ)

    def _append(self, arrays: Sequence[np.ndarray]) -> None:
        count = self._count + len(arrays[0])
        if count > len(self._arrays[0]):
            self._arrays = [grown(array, max(2 * len(array), count, 64)) for array in self._arrays]
        for own, other in zip(self._arrays, arrays, strict=True):
            own[self._count : count] = other
        self._count = count

    def _make_room(self, more: int) -> None:
        table = np.full(1 << (4 * (self._count + more) - 1).bit_length(), -1, np.int32)
        _insert(table, _places([array[: self._count] for array in self._arrays], table), np.arange(self._count))
        self._table = table

    def keys(self, ids: Ids) -> list[Any]:
        return self.batch(ids).objects()

    def batch(self, ids: Ids) -> IntegerKeys:
        return IntegerKeys([array[ids] for array in self._arrays])

    def packed(self, ids: Ids) -> Packed:
        columns = [packed_array(array[ids]) for array in self._arrays]
        return columns[0] if len(columns) == 1 else packed_rows(columns)

    def groups(self, ids: Ids, max_parallelism: int) -> np.ndarray:
        keys = self.batch(ids)
        found = groups_of_integers(keys.arrays, max_parallelism)
        if found is None:
            found = np.array([key_group(key, max_parallelism) for key in keys], np.int64)
        return found

    def kept(self, ids: Ids) -> IntegerIndex:
        return IntegerIndex(self.batch(ids))

    def all_keys(self) -> list[Any]:
        return self.keys(np.arange(self._count))


def index_of(keys: Sequence[Any]) -> KeyIndex:
    """The fastest index that can have these keys. It has them, in order."""
    integers = IntegerKeys.of(keys) if len(keys) else None
    return DictIndex(keys) if integers is None else IntegerIndex(integers)


def some_of(keys: Sequence[Any], places: np.ndarray) -> Sequence[Any]:
    """The keys at those places."""
    return keys.take(places) if isinstance(keys, IntegerKeys) else [keys[place] for place in places.tolist()]


def grown(column: np.ndarray, room: int) -> np.ndarray:
    """A longer copy."""
    longer = np.zeros(room, column.dtype)
    longer[: len(column)] = column
    return longer


def _places(arrays: Sequence[np.ndarray], table: np.ndarray) -> Ids:
    """Where the search for each key begins: the upper bits of a product, which all bits of the key change."""
    shift = np.uint64(65 - len(table).bit_length())
    mixed = arrays[0].view(np.uint64) * _MIX
    for array in arrays[1:]:
        mixed = ((mixed >> np.uint64(32)) ^ mixed ^ array.view(np.uint64)) * _MIX
    return (mixed >> shift).astype(np.int64)


def _insert(table: np.ndarray, places: Ids, ids: Ids) -> None:
    """Put numbers of keys that are not in the table at their places, or behind them."""
    mask = len(table) - 1
    while len(ids):
        free = table[places] < 0
        table[places[free]] = ids[free]  # of several at one place, the last one stays
        left = np.flatnonzero(table[places] != ids)
        places, ids = (places[left] + 1) & mask, ids[left]


def _as_integers(key: Any, width: int) -> tuple[int, ...] | None:
    """A key that a reader asks for, as the integers that it is equal to."""
    parts = (key,) if width == 1 else key
    if not isinstance(parts, tuple) or len(parts) != width:
        return None
    try:
        whole = tuple(int(part) for part in parts)
    except (TypeError, ValueError, OverflowError):
        return None
    fits = all(-(2**63) <= each < 2**63 for each in whole)
    return whole if fits and whole == parts else None
