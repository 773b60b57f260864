"""Broadcast state on the heap: one map per operator partition, and a view of it that can only be read."""

from __future__ import annotations

from typing import Any, NoReturn

from headwater.common.errors import StateError
from headwater.state.api import BroadcastState, ReadOnlyBroadcastState
from headwater.state.heap.map import HeapMapState


class HeapBroadcastState(HeapMapState, BroadcastState[Any, Any]):
    """A map state with a single key."""

    __slots__ = ()


class ReadOnlyHeapBroadcastState(ReadOnlyBroadcastState[Any, Any]):
    """What the side that is not broadcast sees."""

    __slots__ = ("_name", "_state")

    def __init__(self, name: str, state: HeapBroadcastState) -> None:
        self._name = name
        self._state = state

    def get(self, key: Any) -> Any:
        return self._state.get(key)

    def contains(self, key: Any) -> bool:
        return self._state.contains(key)

    def items(self) -> list[tuple[Any, Any]]:
        return self._state.items()

    def keys(self) -> list[Any]:
        return self._state.keys()

    def values(self) -> list[Any]:
        return self._state.values()

    def is_empty(self) -> bool:
        return self._state.is_empty()

    def put(self, key: Any, value: Any) -> NoReturn:
        raise self._refusal("put")

    def put_all(self, dict_value: dict[Any, Any]) -> NoReturn:
        raise self._refusal("put_all")

    def remove(self, key: Any) -> NoReturn:
        raise self._refusal("remove")

    def clear(self) -> NoReturn:
        raise self._refusal("clear")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise self._refusal("put")

    def __delitem__(self, key: Any) -> NoReturn:
        raise self._refusal("remove")

    def _refusal(self, method: str) -> StateError:
        return StateError(
            f"{method}() on broadcast state '{self._name}', which is read-only here: only what every partition sees "
            "alike may change it; change it in process_broadcast_element()"
        )
