"""Panes: what is kept per key and window, for operators that work on whole batches and whole windows.

A namespaced state answers for one key and namespace at a time. Tumbling and sliding windows have a simpler life: the
records of a batch fall into few windows, and a window ends for all its keys at once. So panes take columns of keys,
namespaces and values, and give out all keys of a namespace. They live in epochs like all keyed state.

The namespace is where the window, or the slice that several windows share, begins.
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
        """The namespaces that hold something."""

    @abstractmethod
    def peek(self, namespace: int) -> Mapping[Any, Any]:
        """{key: value} of a namespace, for looking only: no value may be changed, nor handed to a user."""

    @abstractmethod
    def take(self, namespace: int) -> tuple[list[Any], list[Any]]:
        """Remove a namespace; return its keys, in the order they came, and their values, which are the caller's."""

    @abstractmethod
    def drop(self, namespace: int) -> None:
        """Remove a namespace."""


class FoldedPanes(Panes):
    """One value per namespace and key, which each record is folded into."""

    __slots__ = ()

    @abstractmethod
    def reduce(
        self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any], reduce: Callable[[Any, Any], Any]
    ) -> None:
        """Store `reduce(stored, value)`, or `value` where nothing is stored, for each record in turn."""

    @abstractmethod
    def aggregate(
        self,
        keys: Iterable[Any],
        namespaces: Iterable[int],
        values: Iterable[Any],
        create: Callable[[], Any],
        add: Callable[[Any, Any], Any],
    ) -> None:
        """Store `add(value, stored)` for each record in turn, with `create()` where nothing is stored."""


class ElementPanes(Panes):
    """A list per namespace and key, which each record is appended to."""

    __slots__ = ()

    @abstractmethod
    def append(self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any]) -> None:
        """Append each record to its list."""
