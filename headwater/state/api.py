"""What user functions see of state: the interfaces of `pyflink.datastream.state`.

All of them are about the current key: the one of the record, or timer, that the function is called for.

State keeps copies and hands out copies: only `update`, `put`, `add`, `remove` and `clear` change it. A list or an
object that was read, or stored, may be changed and kept; the state does not notice. What cannot change in place is not
copied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Any state of the current key."""

    __slots__ = ()

    @abstractmethod
    def clear(self) -> None:
        """Remove what is stored for the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    __slots__ = ()

    @abstractmethod
    def value(self) -> T | None:
        """The value, or None if there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Store `value`; None removes what is stored."""


class AppendingState(State, Generic[IN, OUT]):
    """State that elements are added to."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> OUT | None:
        """Return the result of all elements added so far."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one element."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged with another, as merging windows require."""

    __slots__ = ()


class ReducingState(MergingState[T, T]):
    """One value per key: a reduce function combines all added values. `get()` is None before the first `add`."""

    __slots__ = ()


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator of an aggregate function per key. `get()` is its result, or None before the first `add`."""

    __slots__ = ()


class ListState(MergingState[T, Iterable[T]]):
    """A list per key."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> list[T]:
        """Return a new list of the elements, in the order they were added. Changing that list does not change state."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace all elements; an empty list removes what is stored."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Add the elements at the end."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V]):
    __slots__ = ()

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of `key`, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """True if `key` has an entry."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all entries as of now: the caller may change the map while it iterates. The order is not defined."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys as of now."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values as of now."""

    @abstractmethod
    def is_empty(self) -> bool:
        """True if there is no entry."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    __slots__ = ()

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Store `value` under `key`."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Store all entries of `dict_value`: a dict, or (key, value) pairs, which is what PyFlink itself can take."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove the entry of `key`, if there is one."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map per key. Its entries are stored separately: changing one of a million writes one.

    The order of entries is not defined, as in Flink: it may change with a restore or with another backend.
    """

    __slots__ = ()


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """What every partition was told alike, for reading."""

    __slots__ = ()


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """A map that is the same in every partition. So every partition must make the same changes to it."""

    __slots__ = ()


class OperatorStateStore(ABC):
    """State of an operator's partition that belongs to no key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[object]:
        """Return the list state of that name. When the job is rescaled, its elements are dealt out again."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[object, object]:
        """The broadcast state of that name."""
