"""One checkpoint of all slots of some operators, held while it is read."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.locations import Locations, Locator, OperatorPlace, SlotPlace
from headwater.queryable_state.slot_connections import SlotConnection

Json = dict[str, Any]

HOLD_SECONDS = 5.0
"""How long to look for an epoch that all slots have. They complete a checkpoint within milliseconds of each other."""
_ASK_SECONDS = 30.0


class _Holder:
    """One slot that holds epochs for us: through a connection of our own, or through the driver."""

    def __init__(self, slot: SlotPlace, locations: Locations, locator: Locator) -> None:
        self.slot = slot
        self._locator = locator
        self._connection: SlotConnection | None = None
        if locations.secret is not None and (slot.path or slot.port):
            self._connection = SlotConnection(slot, locations.secret, _ASK_SECONDS)
        self.epochs: set[int] = set()

    def ask(self, request: Json, seconds: float = _ASK_SECONDS) -> Json:
        if self._connection is not None:
            return self._connection.ask(request, seconds)
        return self._locator.ask_slot(self.slot.stage, self.slot.partition, request)

    def hold_last(self) -> None:
        with contextlib.suppress(QueryError):  # a checkpoint is just being completed
            self.epochs.add(self.ask({"op": "pin"})["epoch"])

    def release(self, keep: int | None) -> None:
        for epoch in self.epochs - {keep}:
            self.ask({"op": "unpin", "epoch": epoch})
        self.epochs &= {keep}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        else:
            with contextlib.suppress(QueryError):
                self.release(None)


class Held(NamedTuple):
    """The slots, and the epoch that all of them hold."""

    epoch: int
    operators: dict[str, OperatorPlace]
    holders: dict[tuple[int, int], _Holder]


def hold(locations: Locations, locator: Locator, operators: Iterable[str]) -> Held:
    """Let all slots of `operators` hold one and the same epoch. Raises `QueryError`."""
    places = {name: locations.operator(name) for name in operators}
    slots = {(slot.stage, slot.partition): slot for place in places.values() for slot in locations.slots_of(place)}
    holders: dict[tuple[int, int], _Holder] = {}
    try:
        for key, slot in slots.items():
            holders[key] = _Holder(slot, locations, locator)
        until = time.monotonic() + HOLD_SECONDS
        while True:
            for holder in holders.values():
                holder.hold_last()
            common = set.intersection(*(holder.epochs for holder in holders.values())) if holders else set()
            if common:
                epoch = max(common)
                for holder in holders.values():
                    holder.release(epoch)
                return Held(epoch, places, holders)
            if time.monotonic() > until:
                raise QueryError(QueryProblem.NOT_YET, "the slots have no checkpoint in common yet: try again")
            time.sleep(0.002)
    except BaseException:
        for holder in holders.values():
            holder.close()
        raise


class PinnedEpoch:
    """A context manager; leave it soon: slots keep the old values of all that changes meanwhile."""

    def __init__(self, held: Held, seconds: float) -> None:
        self._held = held
        self._seconds = seconds

    @property
    def epoch(self) -> int:
        return self._held.epoch

    def batches(self, operator: str, state: str, as_json: Collection[str] = ()) -> Iterator[bytes]:
        """Yield the whole state as of the epoch, in Arrow IPC streams. Raises `QueryError`.

        Columns in `as_json` are JSON text in all of them; others only where a batch has no type for them.
        """
        place = self._held.operators[operator]
        for partition in range(place.parallelism):
            holder = self._held.holders[place.stage, partition]
            cursor: int | None = 0
            while cursor is not None:
                answer = holder.ask({
                    "op": "batch", "operator": place.uid, "state": state, "epoch": self.epoch, "cursor": cursor,
                    "as_json": sorted(as_json),
                })  # fmt: skip
                cursor = answer["cursor"]
                yield base64.b64decode(answer["arrow"])

    def __enter__(self) -> PinnedEpoch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for holder in self._held.holders.values():
            holder.close()
