"""Checks the values that an epoch wrote into state against their declared types.

The check comes at the end of the epoch, for many keys at a time: `update` and `value` cost the same with and without
types. It never converts a value, even if the type would allow it (an int for a DOUBLE): what a function reads must not
depend on where an epoch ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, Protocol, cast

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.type_system.checker import compile_checker
from headwater.common.type_system.columns import UnusualColumn, compile_column
from headwater.common.type_system.information import ListTypeInfo, MapTypeInfo, TypeInformation
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from headwater.state.evolution.declared_types import type_form

_VALUES_AT_ONCE: Final = 4096
"""Enough to profit from checking columns, and few enough to stay in the processor's cache."""
_COLLECTIONS_AT_ONCE: Final = 64
"""Fewer than values: lists and maps may be long, and all that are checked together are copied."""


class WrittenStore(Protocol):
    """The methods of a store that the check uses."""

    def keys_written(self) -> Iterable[Any]:
        """Return the keys that the current epoch has changed so far."""
        ...

    def written(self, keys: list[Any]) -> tuple[list[Any], ...]:
        """Return what the epoch wrote under `keys` and is still stored: columns with a row per value, element or entry.

        The first column has the key of each row, the last the value. A map has a column of map keys in between.
        """
        ...


class StateTypeCheck:
    """The check of one state with a declared type."""

    def __init__(self, descriptor: StateDescriptor, *, keyed: bool) -> None:
        self._name = descriptor.name
        self._keyed = keyed
        self._declared = descriptor.type_info
        self._stamped = descriptor.get_ttl_config() is not None
        collections = isinstance(descriptor, (ListStateDescriptor, MapStateDescriptor))
        self._keys_at_once = _COLLECTIONS_AT_ONCE if collections else _VALUES_AT_ONCE
        self._columns = _columns(descriptor)

    @classmethod
    def of(cls, descriptor: StateDescriptor, *, keyed: bool) -> StateTypeCheck | None:
        """Return the check for the state of `descriptor`; None if there is nothing to check."""
        check = cls(descriptor, keyed=keyed)
        return check if any(column is not None for column in check._columns) else None

    def check(self, store: WrittenStore) -> None:
        """Raise `TypeMismatchError` if a value that the epoch wrote does not fit."""
        keys = iter(store.keys_written())
        while some := list(islice(keys, self._keys_at_once)):
            self._check_rows(*store.written(some))

    def _check_rows(self, owners: list[Any], *columns: list[Any]) -> None:
        if not owners:
            return
        *map_keys, values = columns
        if self._stamped:
            values = [entry[0] for entry in values]
        for column, rows in zip(self._columns, (*map_keys, values), strict=True):
            misfit = None if column is None else column.first_misfit(rows)
            if misfit is not None:
                index, error = misfit
                owner = f" of key {short_repr(owners[index], 100)}" if self._keyed else ""
                place = column.place if column is not None else ""
                if map_keys:
                    place += f"{short_repr(map_keys[0][index], 100)}: "
                raise TypeMismatchError(
                    f"state '{self._name}'{owner} does not fit its declared type {self._declared!r}: {place}{error}; "
                    "store values of that type, or declare another: Types.PICKLED_BYTE_ARRAY() is any Python object"
                )


class _Column:
    """Checks one column of a store against its type."""

    def __init__(self, type_info: TypeInformation, place: str, *, nullable: bool) -> None:
        self.place = place
        self._nullable = nullable
        self._fits = compile_column(type_info, nullable=nullable)
        self._check = compile_checker(type_info, "value")

    def first_misfit(self, values: list[Any]) -> tuple[int, TypeMismatchError] | None:
        try:
            self._fits(values)
        except UnusualColumn:
            for index, value in enumerate(values):
                if value is None and self._nullable:
                    continue
                try:
                    self._check(value)
                except TypeMismatchError as error:
                    return index, error
        return None


def _columns(descriptor: StateDescriptor) -> tuple[_Column | None, ...]:
    """Return a check per column after the first; None: any value fits. List elements and map values may be None."""
    declared = descriptor.type_info
    if isinstance(descriptor, MapStateDescriptor):
        if declared is None:
            return (None, None)
        whole = cast(MapTypeInfo, declared)
        return (
            _column(whole.key_type, "map key ", nullable=False),
            _column(whole.value_type, "the value of map key ", nullable=True),
        )
    if isinstance(descriptor, ListStateDescriptor) and declared is not None:
        return (_column(cast(ListTypeInfo, declared).element_type, "an element: ", nullable=True),)
    return (_column(declared, "", nullable=False),)


def _column(type_info: TypeInformation | None, place: str, *, nullable: bool) -> _Column | None:
    if type_info is None or type_form(type_info) is None:
        return None
    return _Column(type_info, place, nullable=nullable)
