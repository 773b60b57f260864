"""Panes: state per key and window, for operators that work on whole batches and whole windows.

A namespaced state serves one key and namespace at a time. Tumbling and sliding windows need less: the records of a
batch fall into few windows, and a window ends for all its keys at once. So panes take columns of keys, namespaces and
values, and return all keys of a namespace at once. They live in epochs like all keyed state.

The namespace is the start of the window, or of the slice that several windows share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any


class Panes(ABC):
    """Values per namespace and key."""

    __slots__ = ()

    @abstractmethod
    def namespaces(self) -> Collection[int]:
        """Return the namespaces that have entries."""

    @abstractmethod
    def peek(self, namespace: int) -> Mapping[Any, Any]:
        """Return {key: value} of a namespace. The caller must not change a value, nor hand it to a user."""

    @abstractmethod
    def take(self, namespace: int) -> tuple[list[Any], list[Any]]:
        """Remove a namespace. Return its keys, in the order they came, and their values. The caller owns both."""

    @abstractmethod
    def drop(self, namespace: int) -> None:
        """Remove a namespace."""


class FoldedPanes(Panes):
    """One value per namespace and key. Each record is folded into it."""

    __slots__ = ()

    @abstractmethod
    def reduce(
        self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any], reduce: Callable[[Any, Any], Any]
    ) -> None:
        """For each record in turn, store `reduce(stored, value)`, or `value` if nothing is stored."""

    @abstractmethod
    def aggregate(
        self,
        keys: Iterable[Any],
        namespaces: Iterable[int],
        values: Iterable[Any],
        create: Callable[[], Any],
        add: Callable[[Any, Any], Any],
    ) -> None:
        """For each record in turn, store `add(value, stored)`, or `add(value, create())` if nothing is stored."""


class ElementPanes(Panes):
    """A list per namespace and key. Each record is appended to it."""

    __slots__ = ()

    @abstractmethod
    def append(self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any]) -> None:
        """Append each record to its list."""
