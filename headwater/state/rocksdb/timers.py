"""Timers in RocksDB: those that fire next are in memory, the others on disk.

While there are few timers, they live on the heap, and the database has none. When an epoch ends with more than a limit,
all of them are written to the database. From then on the database has all committed timers. In memory are the timers up
to the *horizon*, a place in the order of firing, and those that the current epoch registered. When the last timer
before the horizon has fired, the next ones are read.

Registering or deleting a timer reads nothing: the undo log notes that nobody knows yet whether the database has it.
This is settled for many timers at once at the end of the epoch, or when the timers around it are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf
from typing import Any, Final, Protocol

from headwater.state.rocksdb.database import Changes, Database
from headwater.state.rocksdb.timer_entries import TimerEntries
from headwater.state.snapshot.section import Section
from headwater.state.timers import ABSENT, STEP, Timer, TimerQueue, timer_section

_SETTLE_AT: Final = 1 << 14
"""At most this many unsettled timers pile up in an epoch; then the database is asked."""

_UNSETTLED = -2
"""In the undo log: registered in this epoch. If the database has the timer already, nothing changed."""
_HIDDEN = -3
"""In the undo log: deleted in this epoch, if the database has the timer, and maybe registered again."""


TimerFacts = tuple[int, int, list[tuple[Any, ...]]]
"""(next order, number of timers, schemas of the classes of their keys): plain values"""


class TimerOwner(Protocol):
    """What timers need from their backend."""

    uid: str
    max_parallelism: int
    key_groups: range
    database: Database


class RocksTimerQueue(TimerQueue):
    """A `TimerQueue` of which only `near` timers, and those of the current epoch, are in memory.

    The same timers fire in the same order. Call `collect` before `commit`.
    """

    __slots__ = (
        "_count", "_entries_of", "_horizon", "_last_timestamp", "_near", "_owner", "_unsettled", "_write", "stored",
    )  # fmt: skip

    def __init__(self, owner: TimerOwner, kind: str, near: int, write: Callable[[Changes], None]) -> None:
        super().__init__(owner.uid, kind, owner.max_parallelism)
        self._owner = owner
        self._write = write
        self._near = near
        self._entries_of = TimerEntries(owner.uid, kind, owner.max_parallelism)
        self.stored = False
        """The timers are in the database. The attributes below have a meaning only then."""
        self._count = 0  # in the database
        self._last_timestamp: float = -inf  # no timer in the database is later
        self._horizon: tuple[float, float] = (inf, 0)  # (timestamp, order): committed timers up to here are in _live
        self._unsettled: list[Timer] = []  # at least those with _UNSETTLED or _HIDDEN in _undo

    # -- use -----------------------------------------------------------------------------------------------------------

    def register(self, timestamp: int, key: Any, namespace: Any = None) -> None:
        if not self.stored:
            return super().register(timestamp, key, namespace)
        timer = (timestamp, key, namespace)
        live = self._live
        if timer in live:
            return None
        order = self._next_order
        self._next_order = order + STEP
        live[timer] = order
        heappush(self._heap, (timestamp, order, timer))
        if timer not in self._undo:
            if self._horizon[0] <= timestamp <= self._last_timestamp:
                self._undo[timer] = _UNSETTLED
                self._note_unsettled(timer)
            else:
                self._undo[timer] = ABSENT
        return None

    def delete(self, timestamp: int, key: Any, namespace: Any = None) -> None:
        if not self.stored:
            return super().delete(timestamp, key, namespace)
        timer = (timestamp, key, namespace)
        undo = self._undo
        order = self._live.pop(timer, None)
        before = undo.get(timer)
        if order is None:
            if before is None and self._horizon[0] <= timestamp <= self._last_timestamp:
                undo[timer] = _HIDDEN
                self._note_unsettled(timer)
            return None
        if before is None:
            undo[timer] = order
        elif before == ABSENT:
            del undo[timer]
        elif before == _UNSETTLED:
            undo[timer] = _HIDDEN
        if len(self._heap) > 2 * len(self._live) + 64:
            self._rebuild_heap()
        return None

    def pop_due(self, up_to: int) -> Iterator[Timer]:
        return self._pop_stored(up_to) if self.stored else super().pop_due(up_to)

    def _pop_stored(self, up_to: int) -> Iterator[Timer]:
        live, undo = self._live, self._undo
        while (first := self._first(up_to)) is not None and first[0] <= up_to:
            heappop(self._heap)
            _, order, timer = first
            del live[timer]
            before = undo.get(timer)
            if before is None:
                undo[timer] = order
            elif before < 0:  # registered in this epoch; all timers up to here are read, so the database lacks it
                del undo[timer]
            yield timer

    def peek(self) -> int | None:
        if not self.stored:
            return super().peek()
        first = self._first(inf)
        return None if first is None else first[0]

    def _first(self, up_to: float) -> tuple[int, int, Timer] | None:
        """Return the timer that fires next, without removing it. If none is due by `up_to`, it may be a later one."""
        live = self._live
        while True:
            heap = self._heap
            while heap and live.get(heap[0][2]) != heap[0][1]:
                heappop(heap)
            first = heap[0] if heap else None
            if self._horizon[0] > up_to or (first is not None and first[:2] <= self._horizon):
                return first
            if self._horizon[0] == inf:
                return first
            self._read_on()

    def _read_on(self) -> None:
        """Read the next timers from the database, and move the horizon behind them."""
        live, undo, heap = self._live, self._undo, self._heap
        timestamp, order = self._horizon
        after = None if timestamp == -inf else (int(timestamp), int(order))
        number = max(1, self._near // 2)
        found = list(islice(self._entries_of.in_order(self._owner.database, after), number))
        for timestamp, order, timer in found:
            before = undo.get(timer)
            if before is None or before == _UNSETTLED:
                undo.pop(timer, None)
                live[timer] = order
                heap.append((timestamp, order, timer))
            elif before == _HIDDEN:
                undo[timer] = order
        heapify(heap)
        self._horizon = found[-1][:2] if len(found) == number else (inf, 0)

    def __len__(self) -> int:
        if not self.stored:
            return super().__len__()
        self._settle()
        return self._count + self._growth()

    def timers(self) -> list[Timer]:
        if not self.stored:
            return super().timers()
        self._settle()
        pieces = (piece for group in self._owner.key_groups for piece in self._unchanged_of(group))
        rows = [*(row for piece in pieces for row in piece), *self._changed()]
        return [timer for timer, _ in sorted(rows, key=lambda row: (row[0][0], row[1]))]

    # -- what the database has -----------------------------------------------------------------------------------------

    def _note_unsettled(self, timer: Timer) -> None:
        self._unsettled.append(timer)
        if len(self._unsettled) >= _SETTLE_AT:
            self._settle()

    def _settle(self) -> None:
        """Ask the database about all unsettled timers."""
        if not self._unsettled:
            return
        undo, live = self._undo, self._live
        open_ones = {timer: undo[timer] for timer in self._unsettled if undo.get(timer, ABSENT) < ABSENT}
        orders = self._entries_of.orders(self._owner.database, open_ones)
        for timer, before in open_ones.items():
            order = orders.get(timer, ABSENT)
            if before == _UNSETTLED and order != ABSENT:
                del undo[timer], live[timer]  # it was already set, behind the horizon
            elif order == ABSENT and timer not in live:
                del undo[timer]
            else:
                undo[timer] = order
        self._unsettled = []

    def _growth(self) -> int:
        live = self._live
        return sum((timer in live) - (before != ABSENT) for timer, before in self._undo.items())

    # -- epochs --------------------------------------------------------------------------------------------------------

    def collect(self) -> Changes:
        """Return what the commit must write. If it raises, the epoch can only be rolled back."""
        changes: Changes = []
        live, entries = self._live, self._entries_of
        if not self.stored:
            if len(live) > self._near:
                for timer, order in live.items():
                    entries.put(changes, timer, order)
            return changes
        self._settle()
        for timer, before in self._undo.items():
            now = live.get(timer, ABSENT)
            if now == ABSENT:
                entries.drop(changes, timer, before)
                continue
            if before != ABSENT:
                entries.drop_place(changes, timer, before)
            entries.put(changes, timer, now)
        return changes

    def commit(self, *, cut: bool = False) -> None:
        """Finish a commit: the result of `collect` is in the database."""
        live = self._live
        if self.stored:
            self._count += self._growth()
            for timer in self._undo:
                order = live.get(timer)
                if order is not None:
                    self._last_timestamp = max(self._last_timestamp, timer[0])
                    if (timer[0], order) > self._horizon:
                        del live[timer]
            if len(self._heap) > 2 * len(live) + 64:
                self._rebuild_heap()
        elif len(live) > self._near:
            self._now_stored()
        super().commit(cut=cut)
        if self.stored:
            self._make_room()

    def _make_room(self) -> None:
        """Move the horizon closer if too many timers are in memory. All of them must be committed."""
        if len(self._live) > self._near:
            self._heap = sorted(self._entries())[: max(1, self._near // 2)]
            self._live = {timer: order for _, order, timer in self._heap}
            self._horizon = self._heap[-1][:2]

    def _now_stored(self) -> None:
        self.stored = True
        self._count = len(self._live)
        self._last_timestamp = max(timer[0] for timer in self._live)

    def _take_back(self, log: dict[Timer, int]) -> None:
        if not self.stored:
            return super()._take_back(log)
        for timer, before in log.items():
            if before >= 0 and (timer[0], before) <= self._horizon:
                self._live[timer] = before
            else:
                self._live.pop(timer, None)
        self._unsettled = []
        self._rebuild_heap()
        self._make_room()
        return None

    # -- sections ------------------------------------------------------------------------------------------------------

    def delta_sections(self) -> list[Section]:
        if not self.stored:
            return super().delta_sections()
        self._settle()
        live, undo, log = self._live, self._undo, self._changes()
        elsewhere = [timer for timer in log if timer not in live and timer not in undo]
        stored = self._entries_of.orders(self._owner.database, elsewhere)
        orders = ((timer, live.get(timer, stored.get(timer, ABSENT))) for timer in log)
        return list(self._sections([(timer, order) for timer, order in orders if order != log[timer]]))

    def full_sections(self) -> Iterator[Section]:
        if not self.stored:
            yield from super().full_sections()
            return
        self._settle()
        for group in self._owner.key_groups:
            for rows in self._unchanged_of(group):
                yield timer_section(self._uid, self.kind, group, rows)
        yield from self._sections(self._changed())

    def _unchanged_of(self, group: int) -> Iterator[list[tuple[Timer, int]]]:
        """Yield lists of a key group's timers in the database, without those that the epoch changed."""
        undo = self._undo
        for piece in self._entries_of.of_group(self._owner.database, group):
            rows = [row for row in piece if row[0] not in undo] if undo else piece
            if rows:
                yield rows

    def _changed(self) -> list[tuple[Timer, int]]:
        """Return the timers that the epoch registered, with their orders."""
        live = self._live
        return [(timer, live[timer]) for timer in self._undo if timer in live]

    def load_section(self, section: Section) -> None:
        if not self.stored:
            super().load_section(section)
            if len(self._live) > self._near:
                self._write(self.collect())
                self._now_stored()
                self._forget_near()
            return
        changes: Changes = []
        rows = dict(self._decoded(section))
        known = self._entries_of.orders(self._owner.database, rows)
        for timer, order in rows.items():
            before = known.get(timer, ABSENT)
            if order == ABSENT:
                if before != ABSENT:
                    self._entries_of.drop(changes, timer, before)
                continue
            if before != ABSENT:
                self._entries_of.drop_place(changes, timer, before)
            self._entries_of.put(changes, timer, order)
            self._last_timestamp = max(self._last_timestamp, timer[0])
        self._write(changes)
        self._count += sum((order != ABSENT) - (timer in known) for timer, order in rows.items())
        self._forget_near()

    # -- native checkpoints --------------------------------------------------------------------------------------------

    def facts(self) -> TimerFacts:
        """Return what a restore needs besides the entries in the database. Called between epochs."""
        return self._next_order, self._count, self._entries_of.pickler.classes()

    def restore(self, facts: TimerFacts) -> None:
        """Continue with the timers in the owner's database. `facts` were stored with it."""
        self._next_order, self._count, classes = facts
        self._order_at_commit = self._next_order
        self._entries_of.pickler.loaded(classes)
        last = self._entries_of.last_timestamp(self._owner.database)
        self._last_timestamp = -inf if last is None else last
        self.stored = True
        self._forget_near()

    def _forget_near(self) -> None:
        self._live, self._heap, self._horizon = {}, [], (-inf, 0)
