"""Timers of one operator partition, in one time domain.

Timers fire in the order of (timestamp, registration). The order of registration is part of the state: it is stored with
the timers and is the same after every restore, even if the timers come from several old partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from headwater.common.errors import StateError
from headwater.state.keys.key_groups import MAX_PARALLELISM_LIMIT, key_group
from headwater.state.snapshot import payload as codec
from headwater.state.snapshot.entries import TIMERS, ValueEntries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import Section

Timer = tuple[int, Any, Any]
"""(timestamp, key, namespace)"""

ABSENT = -1
"""Instead of an order: there is no such timer."""
STEP = MAX_PARALLELISM_LIMIT
"""Orders grow in steps of this size. On load, the key group is added to the order: so timers of two old partitions with
the same order get different ones, and the same ones after every restore."""

_LAYOUT = StateLayout(TIMERS, ttl=False, namespaced=False)


class TimerQueue:
    """Registered timers, with an undo log per epoch like that of `HeapStore`. Only the processing thread uses it."""

    __slots__ = (
        "_heap", "_in_flight", "_live", "_max_parallelism", "_next_order", "_order_at_commit", "_since",
        "_uid", "_undo", "kind",
    )  # fmt: skip

    def __init__(self, uid: str, kind: str, max_parallelism: int) -> None:
        self._uid = uid
        self.kind = kind
        self._max_parallelism = max_parallelism
        self._live: dict[Timer, int] = {}  # {timer: order}
        self._heap: list[tuple[int, int, Timer]] = []  # may contain deleted timers: their order differs from _live
        self._undo: dict[Timer, int] = {}  # {timer changed in this epoch: order before, or ABSENT}
        self._since: dict[Timer, int] = {}  # the same for the committed epochs after the last checkpoint
        self._in_flight: dict[Timer, int] = {}  # the same for the checkpoint in flight
        self._next_order = STEP
        self._order_at_commit = STEP

    def __len__(self) -> int:
        return len(self._live)

    def register(self, timestamp: int, key: Any, namespace: Any = None) -> None:
        """Set a timer. If it is already set, it keeps its place in the order."""
        timer = (timestamp, key, namespace)
        live = self._live
        if timer in live:
            return
        if timer not in self._undo:
            self._undo[timer] = ABSENT
        order = self._next_order
        self._next_order = order + STEP
        live[timer] = order
        heappush(self._heap, (timestamp, order, timer))

    def delete(self, timestamp: int, key: Any, namespace: Any = None) -> None:
        """Delete a timer. Does nothing if it is not set."""
        timer = (timestamp, key, namespace)
        order = self._live.pop(timer, None)
        if order is None:
            return
        self._log_gone(timer, order)
        if len(self._heap) > 2 * len(self._live) + 64:
            self._rebuild_heap()

    def pop_due(self, up_to: int) -> Iterator[Timer]:
        """Remove and yield, in order, all timers with a timestamp <= `up_to`.

        Includes timers that the caller registers while it iterates, and leaves out those that it deletes.
        """
        live = self._live
        # Read `self._heap` anew in each round: `delete` may replace it while the caller runs.
        while self._heap and self._heap[0][0] <= up_to:
            _, order, timer = heappop(self._heap)
            if live.get(timer) != order:
                continue
            del live[timer]
            self._log_gone(timer, order)
            yield timer

    def _log_gone(self, timer: Timer, order: int) -> None:
        before = self._undo.setdefault(timer, order)
        if before == ABSENT:
            # The timer came and went within the epoch: forget it, or a backfill of a year would log a year of timers.
            del self._undo[timer]

    def peek(self) -> int | None:
        """Return the timestamp of the earliest timer; None if there is none."""
        heap, live = self._heap, self._live
        while heap:
            timestamp, order, timer = heap[0]
            if live.get(timer) == order:
                return timestamp
            heappop(heap)
        return None

    def timers(self) -> list[Timer]:
        """Return all timers in the order in which they would fire. For tests and tools."""
        return [timer for _, _, timer in sorted(self._entries(), key=lambda entry: entry[:2])]

    def commit(self, *, cut: bool = False) -> None:
        """Make the epoch's changes final. With `cut`, a checkpoint ends with this epoch and is now in flight."""
        changes = self._changes()
        self._since, self._undo = changes, {}
        if cut:
            self._in_flight, self._since = changes, {}
        self._order_at_commit = self._next_order

    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable."""
        self._in_flight = {}

    def checkpoint_failed(self) -> None:
        """The checkpoint in flight failed: the next one must contain its changes too."""
        self._since, self._in_flight = {**self._since, **self._in_flight}, {}

    def rollback(self) -> None:
        """Undo all changes since the last commit."""
        if self._undo:
            self._take_back(self._undo)
            self._undo = {}
            self._next_order = self._order_at_commit

    def rewind(self) -> None:
        """Undo all changes since the last durable checkpoint."""
        self._take_back(self._changes())
        self._take_back(self._in_flight)
        self._undo, self._since, self._in_flight = {}, {}, {}
        # `_next_order` need not go back: the remaining timers have smaller orders anyway.
        self._order_at_commit = self._next_order

    def _changes(self) -> dict[Timer, int]:
        return {**self._undo, **self._since} if self._since else self._undo

    def _take_back(self, log: dict[Timer, int]) -> None:
        if not log:
            return
        for timer, order in log.items():
            if order == ABSENT:
                self._live.pop(timer, None)
            else:
                self._live[timer] = order
        self._rebuild_heap()

    def delta_sections(self) -> list[Section]:
        """Return what changed since the last checkpoint, without timers that came and went since then."""
        live = self._live
        changed: list[tuple[Timer, int]] = []
        for timer, before in self._changes().items():
            order = live.get(timer, ABSENT)
            if order != before:
                changed.append((timer, order))
        return list(self._sections(changed))

    def full_sections(self) -> Iterator[Section]:
        """Yield all timers."""
        return self._sections(self._live.items())

    def load_section(self, section: Section) -> None:
        """Apply a section. The caller loads the sections of a chain in the order in which they were written."""
        for timer, order in self._decoded(section):
            if order == ABSENT:
                self._live.pop(timer, None)
            else:
                self._live[timer] = order
                heappush(self._heap, (timer[0], order, timer))

    def _decoded(self, section: Section) -> Iterator[tuple[Timer, int]]:
        """Yield the timers of a section with their orders in this queue, and move `_next_order` past them."""
        layout, entries, _ = codec.decode_keys(section.payload, section.uid, section.name)
        if layout != _LAYOUT or not isinstance(entries, ValueEntries):
            raise StateError(f"section '{section.name}' of operator '{section.uid}' holds {layout}, not timers")
        for timer, stored_order in entries.rows():
            order = stored_order - stored_order % STEP
            self._next_order = max(self._next_order, order + STEP)
            yield timer, order + section.key_group
        for timer in entries.deleted:
            yield timer, ABSENT
        self._order_at_commit = self._next_order

    def _sections(self, timers: Iterable[tuple[Timer, int]]) -> Iterator[Section]:
        groups: dict[int, list[tuple[Timer, int]]] = {}
        for row in timers:
            groups.setdefault(key_group(row[0][1], self._max_parallelism), []).append(row)
        for group in sorted(groups):
            yield timer_section(self._uid, self.kind, group, groups[group])

    def _entries(self) -> Iterator[tuple[int, int, Timer]]:
        return ((timer[0], order, timer) for timer, order in self._live.items())

    def _rebuild_heap(self) -> None:
        self._heap = list(self._entries())
        heapify(self._heap)


def timer_section(uid: str, kind: str, group: int, timers: Iterable[tuple[Timer, int]]) -> Section:
    """Return a section with timers of one key group and their orders; `ABSENT` marks deleted timers."""
    rows = list(timers)
    deleted = [timer for timer, order in rows if order == ABSENT]
    if deleted:
        rows = [row for row in rows if row[1] != ABSENT]
    entries = ValueEntries([timer for timer, _ in rows], [order for _, order in rows], deleted)
    return Section(uid, kind, TIMERS, group, codec.encode(_LAYOUT, entries, uid, TIMERS))
