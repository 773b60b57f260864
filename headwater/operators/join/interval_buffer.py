"""The records that one side of an interval join keeps, by key and timestamp, while a partner may still come."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

from headwater.state.copying import captured, protective_copy
from headwater.state.descriptors import MapStateDescriptor
from headwater.state.heap.map import HeapMapState
from headwater.state.keyed_backend import KeyedStateBackend

Kept = tuple[int, tuple[Any, ...]]
"""(timestamp, the records of a key with that timestamp)"""

SCAN_LIMIT = 24
"""Up to this many timestamps of a key are scanned. More are kept sorted, and searched."""


class IntervalBuffer:
    """The records of one side. The state is {key: {timestamp: records}}; everything else is derived from it.

    An inner join frees memory in steps of `step_ms` of event time. Which keys are due at a step is not persisted: it is
    derived again after a restore or a rollback. An outer join sets a timer for each timestamp, because it must report
    records without a partner in time, and in an order that a replay repeats.

    `backend.current_key` must be the key that a method is called with.
    """

    def __init__(self, backend: KeyedStateBackend, index: int, retention_ms: int, step_ms: int, outer: bool) -> None:
        name = ("left", "right")[index]
        self.outer = outer
        self._backend = backend
        self._index = index
        self._buffer_name = f"{name}-buffer"
        buffer = backend.get_state(MapStateDescriptor(self._buffer_name))
        self._buffer: Any = buffer
        # On the heap, read through its table, which copies nothing: what cannot change is handed to the user as it is.
        self._table: Any = _Table(backend, buffer, self._buffer_name)
        if isinstance(buffer, HeapMapState):
            self._table = buffer.table
        self._unmatched: Any = None  # {key: {timestamp: True}}
        if outer:
            self._unmatched = backend.get_state(MapStateDescriptor(f"{name}-unmatched"))
        self._retention_ms = retention_ms
        self._step_ms = step_ms
        self._due: dict[int, dict[Any, None]] = {}  # {event time: keys with records to forget then}
        self._next_due: list[int] = []  # heap of the keys of _due
        self._sorted: dict[Any, list[int]] = {}  # {key: its timestamps}, for keys with many
        self.derive()

    def add(self, key: Any, timestamp: int, value: Any, matched: bool) -> None:
        """Keep a record until no partner can come."""
        kept = self._table.get(key)
        same_time = None if kept is None else kept.get(timestamp)
        if same_time is not None:
            self._buffer.put(timestamp, (*same_time, value))
            return
        self._buffer.put(timestamp, (value,))
        if self._sorted and key in self._sorted:
            insort(self._sorted[key], timestamp)
        if self._unmatched is None:
            self._forget_later(key, timestamp)
        else:
            self._backend.event_timers.register(timestamp + self._retention_ms + 1, key, self._index)
            if not matched:
                self._unmatched.put(timestamp, True)

    def between(self, key: Any, earliest: int, latest: int) -> list[Kept]:
        """Return the records between the two timestamps, in the order of time, and mark them as matched."""
        kept = self._table.get(key)
        if kept is None:
            return []
        found: list[Kept]
        if len(kept) <= SCAN_LIMIT:
            found = [item for item in kept.items() if earliest <= item[0] <= latest]
            if len(found) > 1:
                found.sort(key=_timestamp_of)
        else:
            timestamps = self._sorted.get(key)
            if timestamps is None:
                timestamps = self._sorted[key] = sorted(kept)
            first, end = bisect_left(timestamps, earliest), bisect_right(timestamps, latest)
            found = [(timestamp, kept[timestamp]) for timestamp in timestamps[first:end]]
        if found and self._unmatched is not None:
            for timestamp, _ in found:
                self._unmatched.remove(timestamp)
        # Other backends hand out copies anyway.
        return protective_copy(found) if getattr(self._buffer, "holds_mutable", False) else found

    def forget(self, watermark: int) -> None:
        """Delete records that can find no partner any more (inner joins)."""
        backend, table, remove = self._backend, self._table, self._buffer.remove
        while self._next_due and self._next_due[0] <= watermark:
            due = heappop(self._next_due)
            last = due - self._retention_ms - 1
            for key in self._due.pop(due):
                kept = table.get(key)
                if kept is None:
                    continue
                backend.current_key = key
                for timestamp in [timestamp for timestamp in kept if timestamp <= last]:
                    remove(timestamp)
                if key in self._sorted:
                    self._shrink_sorted(key, last)

    def expire(self, key: Any, due: int) -> Kept | None:
        """A timer fired (outer joins): delete the records of its timestamp. Return them if they found no partner."""
        timestamp = due - self._retention_ms - 1
        assert self._unmatched is not None
        values = self._table[key][timestamp]
        alone = self._unmatched.contains(timestamp)
        if alone:
            self._unmatched.remove(timestamp)
        self._buffer.remove(timestamp)
        if key in self._sorted:
            self._shrink_sorted(key, timestamp)
        return (timestamp, captured(values)) if alone else None

    def derive(self) -> None:
        """Derive everything again. Called after state was restored or rolled back."""
        self._sorted.clear()
        self._due.clear()
        self._next_due.clear()
        if not self.outer:
            for key, kept in self._table.items():
                for timestamp in kept:
                    self._forget_later(key, timestamp)

    def _forget_later(self, key: Any, timestamp: int) -> None:
        step = self._step_ms
        due = -(-(timestamp + self._retention_ms + 1) // step) * step
        keys = self._due.get(due)
        if keys is None:
            keys = self._due[due] = {}
            heappush(self._next_due, due)
        keys[key] = None

    def _shrink_sorted(self, key: Any, last: int) -> None:
        """Remove timestamps up to `last`. They are at the front, because all records are kept for the same time."""
        timestamps = self._sorted[key]
        del timestamps[: bisect_right(timestamps, last)]
        if len(timestamps) <= SCAN_LIMIT:
            del self._sorted[key]


class _Table:
    """{key: {timestamp: records}} of a map state that is not a dict in memory. What it hands out is a copy."""

    def __init__(self, backend: KeyedStateBackend, state: Any, name: str) -> None:
        self._backend = backend
        self._state = state
        self._name = name

    def get(self, key: Any) -> dict[int, tuple[Any, ...]] | None:
        before, self._backend.current_key = self._backend.current_key, key
        try:
            return dict(self._state.items()) or None
        finally:
            self._backend.current_key = before

    def __getitem__(self, key: Any) -> dict[int, tuple[Any, ...]]:
        return self.get(key) or {}

    def items(self) -> Iterator[tuple[Any, dict[int, tuple[Any, ...]]]]:
        for key in self._backend.keys(self._name):
            yield key, self[key]


def _timestamp_of(kept: Kept) -> int:
    return kept[0]
