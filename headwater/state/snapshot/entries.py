"""The entries of a section: what a state has under which keys. All backends and tools exchange state in these types.

Entries are changes. Loaded in the order in which they were written, they give the state: each key in `keys` gets the
content beside it, each key in `deleted` loses its own. A full snapshot has no deletions and nothing that builds on
earlier entries.

A key is what the store looks up: the user's key; (key, namespace) in the states and panes of windows; (timestamp, key,
namespace) for a timer; None for the state of an operator, which belongs to no key.

Entries are parallel columns, not one object per key: that is a third faster to pickle and to read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from types import NoneType
from typing import Any, Final, Self

from headwater.common.errors import StateError

TIMERS: Final = "timers"
"""Kind of the entries of timers. The other kinds are those of state descriptors and panes."""

_ONE: Final = (None,)

Counted = dict[Any, Any]
"""{key: something whose length is the number of things stored under the key}"""


class Entries(ABC):
    """What the entries of all shapes have in common. Subclasses add the columns with the content."""

    __slots__: tuple[str, ...] = ()

    keys: list[Any]
    deleted: list[Any]

    def __bool__(self) -> bool:
        """Return True if anything changes."""
        return bool(self.keys or self.deleted)

    def columns(self) -> tuple[list[Any], ...]:
        """Return what is stored. `entries_of` makes the same entries of it."""
        return tuple([getattr(self, name) for name in self.__slots__])

    def all_keys(self) -> Iterator[Any]:
        return chain(self.keys, self.deleted)

    def count_keys(self, counted: Counted) -> None:
        """Bring `counted`, made from the entries before these, up to date; every key counts as one."""
        counted.update(dict.fromkeys(self.keys, _ONE))
        for key in self.deleted:
            counted.pop(key, None)

    def count_elements(self, counted: Counted) -> None:
        """As `count_keys`, but count list elements and map entries."""
        self.count_keys(counted)

    @abstractmethod
    def converted(self, convert: Callable[[Any], Any], *, dated: bool = False) -> Self:
        """Return entries with `convert(value)` in place of each value, list element or map value.

        `dated`: what is stored is (value, expiry date), and the date stays.
        """

    @abstractmethod
    def only(self, keep: Callable[[Any], bool]) -> Self:
        """Return only those values, list elements or map values for which `keep` is true."""


@dataclass(frozen=True, slots=True)
class ValueEntries(Entries):
    """One value per key: value, reducing and aggregating state, folded panes, and the order of each timer."""

    keys: list[Any]
    values: list[Any]
    deleted: list[Any] = field(default_factory=list)

    @classmethod
    def of_changed(cls, keys: list[Any], values: list[Any], existed: Callable[[Any], bool]) -> Self:
        """Return the changes of `keys`. A value of None means that there is none now: deleted if `existed(key)`."""
        if NoneType not in set(map(type, values)):  # not `None in`: that would call the values' own `__eq__`
            return cls(keys, values)
        rows = list(zip(keys, values, strict=True))
        deleted = [key for key, value in rows if value is None and existed(key)]
        return cls([key for key, value in rows if value is not None], [v for v in values if v is not None], deleted)

    def rows(self) -> Iterator[tuple[Any, Any]]:
        """Yield (key, value)."""
        return zip(self.keys, self.values, strict=True)

    def converted(self, convert: Callable[[Any], Any], *, dated: bool = False) -> Self:
        one = _dated(convert) if dated else convert
        return type(self)(self.keys, [one(value) for value in self.values], self.deleted)

    def only(self, keep: Callable[[Any], bool]) -> Self:
        kept = [row for row in self.rows() if keep(row[1])]
        return type(self)([key for key, _ in kept], [value for _, value in kept], self.deleted)


@dataclass(frozen=True, slots=True)
class ListEntries(Entries):
    """A list per key: list state and element panes. An entry may have only the elements that were appended."""

    keys: list[Any]
    bases: list[int]
    """How many elements of the earlier list stay, in front of those in `added`. 0: a whole new list."""
    added: list[list[Any]]
    deleted: list[Any] = field(default_factory=list)

    @classmethod
    def of_lists(cls, keys: list[Any], lists: list[list[Any]]) -> Self:
        """Return entries with whole lists."""
        return cls(keys, [0] * len(keys), lists)

    def rows(self) -> Iterator[tuple[Any, int, list[Any]]]:
        """Yield (key, number of elements that stay, elements after them)."""
        return zip(self.keys, self.bases, self.added, strict=True)

    def count_elements(self, counted: Counted) -> None:
        self.count_keys(counted)
        counted.update((key, range(base + len(added))) for key, base, added in self.rows())

    def converted(self, convert: Callable[[Any], Any], *, dated: bool = False) -> Self:
        one = _dated(convert) if dated else convert
        return type(self)(self.keys, self.bases, [list(map(one, elements)) for elements in self.added], self.deleted)

    def only(self, keep: Callable[[Any], bool]) -> Self:
        """A list of which nothing is left is left out. Expects whole lists."""
        kept = [(key, some) for key, _, added in self.rows() if (some := [each for each in added if keep(each)])]
        return self.of_lists([key for key, _ in kept], [elements for _, elements in kept])


@dataclass(frozen=True, slots=True)
class MapEntries(Entries):
    """A map per key. An entry may have only the map entries that changed."""

    keys: list[Any]
    maps: list[dict[Any, Any]]
    removed: list[list[Any] | None]
    """The map keys that were removed, if the entries in `maps` go into the earlier map. None: a whole new map."""
    deleted: list[Any] = field(default_factory=list)

    @classmethod
    def of_maps(cls, keys: list[Any], maps: list[dict[Any, Any]]) -> Self:
        """Return entries with whole maps."""
        return cls(keys, maps, [None] * len(keys))

    def rows(self) -> Iterator[tuple[Any, dict[Any, Any], list[Any] | None]]:
        """Yield (key, map entries, removed map keys or None for a whole new map)."""
        return zip(self.keys, self.maps, self.removed, strict=True)

    def count_elements(self, counted: Counted) -> None:
        for key in self.deleted:
            counted.pop(key, None)
        for key, entries, removed in self.rows():
            known = set() if removed is None else counted.get(key, set())
            counted[key] = (known | entries.keys()).difference(removed or ())

    def converted(self, convert: Callable[[Any], Any], *, dated: bool = False) -> Self:
        one = _dated(convert) if dated else convert
        maps = [{key: one(value) for key, value in entries.items()} for entries in self.maps]
        return type(self)(self.keys, maps, self.removed, self.deleted)

    def only(self, keep: Callable[[Any], bool]) -> Self:
        """A map of which nothing is left is left out. Expects whole maps."""
        kept = [
            (owner, some)
            for owner, entries, _ in self.rows()
            if (some := {key: value for key, value in entries.items() if keep(value)})
        ]
        return self.of_maps([owner for owner, _ in kept], [entries for _, entries in kept])


_TYPES: Final[dict[str, type[Entries]]] = {
    "value": ValueEntries,
    "reducing": ValueEntries,
    "aggregating": ValueEntries,
    "folded panes": ValueEntries,
    TIMERS: ValueEntries,
    "list": ListEntries,
    "element panes": ListEntries,
    "map": MapEntries,
}


def entries_of(kind: str, columns: tuple[list[Any], ...]) -> Entries:
    """Return the entries of a state of that kind, from what `columns` returned. Raises ValueError for anything else."""
    found = _TYPES.get(kind)
    if found is None:
        raise ValueError(f"unknown kind '{kind}'")
    if len(columns) != len(found.__slots__) or not all(isinstance(column, list) for column in columns):
        raise ValueError(f"{len(columns)} columns, expected the {len(found.__slots__)} of {found.__name__}")
    return found(*columns)


def check_base(base: int, restored: int, what: str) -> None:
    """Raise if the first `base` elements of a list or window, which stay, were not `restored` before."""
    if restored < base:
        raise StateError(
            f"a delta adds to {what} of {base} elements, but {restored} were restored before it; "
            "an earlier snapshot of the chain is missing"
        )


def _dated(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda pair: (convert(pair[0]), *pair[1:])
