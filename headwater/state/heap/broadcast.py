"""Broadcast state on the heap: one map per operator partition, and a view of it that can only be read."""

from __future__ import annotations

from typing import Any, NoReturn

from headwater.common.errors import StateError
from headwater.state.api import BroadcastState, ReadOnlyBroadcastState
from headwater.state.heap.map import HeapMapState


class HeapBroadcastState(HeapMapState, BroadcastState[Any, Any]):
    """A map state whose one key is the partition."""

    __slots__ = ()


class ReadOnlyHeapBroadcastState(ReadOnlyBroadcastState[Any, Any]):
    """What the side that is not broadcast sees. Values are handed out as they are stored: they must not be changed."""

    __slots__ = ("_name", "_peek")

    def __init__(self, name: str, state: HeapBroadcastState) -> None:
        self._name = name
        self._peek = state.peek

    def get(self, key: Any) -> Any:
        # Not HeapMapState.get: it copies a mutable value at its first touch per epoch, and that copy is persisted.
        return self._peek().get(key)

    def contains(self, key: Any) -> bool:
        return key in self._peek()

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._peek().items())

    def keys(self) -> list[Any]:
        return list(self._peek())

    def values(self) -> list[Any]:
        return list(self._peek().values())

    def is_empty(self) -> bool:
        return not self._peek()

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
