"""Lists and maps in accumulators, with the names of pyflink.table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView:
    """A collection in an accumulator."""

    def clear(self) -> None:
        """Remove all elements."""
        raise NotImplementedError


class ListView(DataView, Generic[T]):
    """A list in an accumulator: `acc[0].add(x)`."""

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """All elements. Changing the answer does not change the view."""
        return list(self._list)

    def add(self, value: T) -> None:
        self._list.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        self._list.extend(values)

    def clear(self) -> None:
        self._list = []

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())

    def __len__(self) -> int:
        return len(self._list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._list == other._list

    __hash__ = None  # type: ignore[assignment]


class MapView(DataView, Generic[K, V]):
    """A map in an accumulator: `acc[0].put(k, v)`."""

    def __init__(self) -> None:
        self._map: dict[K, V] = {}

    def get(self, key: K) -> V:
        """The value of a key that is there."""
        return self._map[key]

    def put(self, key: K, value: V) -> None:
        self._map[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        self._map.update(dict_value)

    def remove(self, key: K) -> None:
        del self._map[key]

    def contains(self, key: K) -> bool:
        return key in self._map

    def items(self) -> Iterable[tuple[K, V]]:
        return list(self._map.items())

    def keys(self) -> Iterable[K]:
        return list(self._map)

    def values(self) -> Iterable[V]:
        return list(self._map.values())

    def is_empty(self) -> bool:
        return not self._map

    def clear(self) -> None:
        self._map = {}

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return key in self._map

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._map)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._map == other._map

    __hash__ = None  # type: ignore[assignment]
