"""Merges the state of several namespaces when their windows merge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.common.errors import StateError
from headwater.state.api import ListState, ReducingState, State
from headwater.state.folding import FoldingAggregatingState
from headwater.state.keyed_backend import KeyedStateBackend


def merge_namespaces(backend: KeyedStateBackend, state: State, target: Any, sources: Iterable[Any]) -> None:
    """Move the entries of the current key from the namespaces `sources` into `target`, and merge them there.

    `state` is a reducing, aggregating or list state of `backend`. Afterwards `backend.current_namespace` is `target`.
    """
    if isinstance(state, ReducingState):
        for value in _taken(backend, state.get, state, sources):
            backend.current_namespace = target
            state.add(value)
    elif isinstance(state, FoldingAggregatingState):
        for accumulator in _taken(backend, state.take_accumulator, state, sources):
            backend.current_namespace = target
            state.merge_accumulator(accumulator)
    elif isinstance(state, ListState):
        for elements in _taken(backend, state.get, state, sources):
            backend.current_namespace = target
            state.add_all(elements)
    else:
        raise StateError(
            f"{type(state).__name__} cannot be merged when windows are; use reducing, aggregating or list state"
        )
    backend.current_namespace = target


def _taken(backend: KeyedStateBackend, read: Any, state: State, namespaces: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for namespace in namespaces:
        backend.current_namespace = namespace
        value = read()
        if value is not None:
            state.clear()
            found.append(value)
    return found
