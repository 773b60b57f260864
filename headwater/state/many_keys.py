"""State of many keys at a time, for callers whose values are immutable. The heap does this with no checks per key.

Values must be made for each key: one large object that many share is written to each snapshot as often as it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from headwater.state.api import MapState, State, ValueState
from headwater.state.heap.map import HeapMapState
from headwater.state.heap.value import HeapValueState
from headwater.state.keyed_backend import KeyedStateBackend


def values_of(backend: KeyedStateBackend, state: ValueState[Any], keys: Sequence[Any]) -> list[Any]:
    """Return the value of each key, None if there is none. Changes the current key."""
    if isinstance(state, HeapValueState):
        return state.values_of(keys)
    value, found = state.value, []
    for key in keys:
        backend.current_key = key
        found.append(value())
    return found


def update_all(
    backend: KeyedStateBackend,
    state: ValueState[Any],
    keys: Sequence[Any],
    before: Sequence[Any],
    values: Sequence[Any],
) -> None:
    """Store a value for each key; None removes what is stored. Changes the current key.

    `before` is what `values_of` has just returned. No key may come twice. Values must be immutable, and all that they
    refer to: nobody looks.
    """
    if isinstance(state, HeapValueState):
        state.update_all(keys, before, values)
        return
    update = state.update
    for key, value in zip(keys, values, strict=True):
        backend.current_key = key
        update(value)


class Maps:
    """Map state of many keys. Changes the current key.

    What is stored must be immutable, and all that it refers to, and able to be a map key: nobody looks. What is
    returned shows the state of that moment: use it before the next change, and do not change it.
    """

    def __init__(self, backend: KeyedStateBackend, state: State, namespaced: bool = False) -> None:
        """`namespaced`: keys are (key, namespace) pairs."""
        assert isinstance(state, MapState)
        self._backend = backend
        self._state: MapState[Any, Any] = state
        self._namespaced = namespaced

    def all_of(self, key: Any) -> Mapping[Any, Any]:
        """The map of a key."""
        if isinstance(self._state, HeapMapState):
            return self._state.table.get(key, _EMPTY)  # type: ignore[no-any-return]
        self._set_key(key)
        return dict(self._state.items())

    def all_of_each(self, keys: Collection[Any]) -> list[Mapping[Any, Any]]:
        """The maps of keys."""
        if isinstance(self._state, HeapMapState):
            return list(map(self._state.table.get, keys, repeat(_EMPTY)))
        return list(map(self.all_of, keys))

    def some_of_each(self, wanted: Mapping[Any, Iterable[Any]]) -> list[Mapping[Any, Any]]:
        """Part of the maps of keys: the entries that are wanted of each, and perhaps others."""
        if isinstance(self._state, HeapMapState):
            return self.all_of_each(wanted)
        return [self.some_of(key, entries) for key, entries in wanted.items()]

    def some_of(self, key: Any, wanted: Iterable[Any]) -> Mapping[Any, Any]:
        """Part of the map of a key: the entries of `wanted`, and perhaps others."""
        if isinstance(self._state, HeapMapState):
            return self._state.table.get(key, _EMPTY)  # type: ignore[no-any-return]
        self._set_key(key)
        get = self._state.get
        return {each: value for each in wanted if (value := get(each)) is not None}

    def update(self, keys: Sequence[Any], map_keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Store an entry in the map of each key, which may come often; the value None removes the entry."""
        if isinstance(self._state, HeapMapState):
            self._state.update_all(keys, map_keys, values)
            return
        put, remove = self._state.put, self._state.remove
        for key, map_key, value in zip(keys, map_keys, values, strict=True):
            self._set_key(key)
            if value is None:
                remove(map_key)
            else:
                put(map_key, value)

    def clear(self, keys: Iterable[Any]) -> None:
        """Remove the maps of these keys."""
        for key in keys:
            self._set_key(key)
            self._state.clear()

    def _set_key(self, key: Any) -> None:
        if self._namespaced:
            self._backend.current_key, self._backend.current_namespace = key
        else:
            self._backend.current_key = key


_EMPTY: Mapping[Any, Any] = {}
