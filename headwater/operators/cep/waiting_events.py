"""Events that came before their time: event time has not reached them, so that earlier ones may still come.

Within an epoch they are in memory only. What still waits when the epoch ends becomes keyed state, and is deleted from
it when its time has come. So events that come in order cost no state at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import count
from operator import itemgetter
from typing import Any

from headwater.state.api import MapState
from headwater.state.keyed_backend import KeyedStateBackend

STATE = "cep-waiting"

Waiting = tuple[Any, ...]
"""(timestamp, [rank,] number, event): numbers count arrivals, and ranks order events of one timestamp."""


class WaitingEvents:
    """The waiting events of all keys of a partition, in the order in which they will be processed.

    The state is {key: {number: (timestamp, event)}}. Numbers need not be unique between keys.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        state: MapState[Any, Any],
        key_of: Callable[[Any], Any],
        compare: Callable[[Any, Any], int] | None,
    ) -> None:
        """`key_of` also sets the current key. `compare` orders events of one timestamp."""
        self._backend = backend
        self._state = state
        self._key_of = key_of
        self._rank = None if compare is None else cmp_to_key(compare)
        # Items are added in the order of their arrival, which a stable sort keeps. Values are never compared.
        self._order: Callable[[Waiting], Any] = itemgetter(0) if compare is None else itemgetter(0, 1)
        self._items: list[Waiting] = []
        self._sorted = True
        self._stored_below = 0
        """Events with smaller numbers are in the state."""
        self._numbers = count()
        self.derive()

    def add(self, timestamps: Sequence[int], values: Sequence[Any]) -> None:
        """Add events in the order of their arrival."""
        if self._rank is None:
            self._items += zip(timestamps, self._numbers, values, strict=False)
        else:
            self._items += zip(timestamps, map(self._rank, values), self._numbers, values, strict=False)
        self._sorted = False

    def due(self, watermark: int) -> list[Waiting]:
        """Remove and return the events up to `watermark`, in order. The state of those that have any is deleted."""
        items = self._items
        if not items:
            return items
        if not self._sorted:
            items.sort(key=self._order)
            self._sorted = True
        if items[-1][0] <= watermark:
            found, self._items = items, []
        else:
            end = bisect_right(items, watermark, key=itemgetter(0))
            found, self._items = items[:end], items[end:]
        if self._stored_below:
            for item in found:
                if item[-2] < self._stored_below:
                    self._key_of(item[-1])
                    self._state.remove(item[-2])
            if not self._items:
                self._stored_below = 0
        return found

    def store(self) -> None:
        """The epoch ends: put what is not in the state yet there."""
        new = [item for item in self._items if item[-2] >= self._stored_below]
        for item in new:
            self._key_of(item[-1])
            self._state.put(item[-2], (item[0], item[-1]))
        if new:
            self._stored_below = max(item[-2] for item in new) + 1

    def derive(self) -> None:
        """Read all again from the state: it was restored, or rolled back."""
        self._items = []
        last = -1
        for key in self._backend.keys(STATE):
            self._backend.current_key = key
            for number, (timestamp, value) in self._state.items():
                rank = () if self._rank is None else (self._rank(value),)
                self._items.append((timestamp, *rank, number, value))
                last = max(last, number)
        self._items.sort(key=itemgetter(-2))
        self._sorted = not self._items
        self._stored_below = last + 1
        self._numbers = count(last + 1)
