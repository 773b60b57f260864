"""A sum over epochs that can take back those since the last checkpoint: a replayed epoch counts once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Settling(Generic[T]):
    """`new()` makes an empty sum, `add(total, more)` adds to one. Not thread safe."""

    def __init__(self, new: Callable[[], T], add: Callable[[T, T], None]) -> None:
        self._new = new
        self._add = add
        self.reset()

    def reset(self) -> None:
        """Nothing counts any more: the job goes back to its beginning."""
        self._settled, self._in_flight, self._since = self._new(), self._new(), self._new()

    def add(self, more: T) -> None:
        """Count an accepted epoch."""
        self._add(self._since, more)

    def cut(self) -> None:
        """A checkpoint begins. It contains all epochs so far, those of failed checkpoints included."""
        self._add(self._in_flight, self._since)
        self._since = self._new()

    def settle(self) -> None:
        """The checkpoint under way is complete: its epochs are never replayed."""
        self._add(self._settled, self._in_flight)
        self._in_flight = self._new()

    def go_back(self) -> None:
        """The job goes back to its last complete checkpoint."""
        self._in_flight, self._since = self._new(), self._new()

    def total(self) -> T:
        """Return a new sum over all epochs that count."""
        total = self._new()
        for part in (self._settled, self._in_flight, self._since):
            self._add(total, part)
        return total
