"""Reads the state of one job: finds the slots, asks them directly, and asks the driver again when they have moved."""

from __future__ import annotations

import base64
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from headwater.common.query_error import MAY_HAVE_MOVED, QueryError, QueryProblem, nearest
from headwater.queryable_state.locations import Locations, Locator, OperatorPlace, SlotPlace
from headwater.queryable_state.pinned import PinnedEpoch, hold
from headwater.queryable_state.slot_connections import SlotConnections
from headwater.state.query.json_form import OpaqueKey, key_from_json, key_of_row, sort_key, to_json

Json = dict[str, Any]
T = TypeVar("T")

COMMITTED = "committed"
LIVE = "live"
ISOLATIONS = (COMMITTED, LIVE)


@dataclass(frozen=True)
class StateValue:
    """The value of one key."""

    key: Any
    value: Any
    """In the form of JSON. Of a state of windows: a list of `{"namespace": ..., "value": ...}`."""
    epoch: int | None
    """The epoch of the checkpoint that the value is of; None: a live value."""
    found: bool = True


@dataclass(frozen=True)
class Page:
    """Some entries in the order of their keys."""

    rows: list[StateValue]
    next_page: str | None
    """Give it to the next call to get the entries behind these; None: there are no more."""


class StateReader:
    """Reads one job's state. Thread safe."""

    def __init__(self, locator: Locator, seconds: float = 10.0, *, retry_when_busy: bool = True) -> None:
        self.locator = locator
        self._seconds = seconds
        self._retry_when_busy = retry_when_busy
        self._connections = SlotConnections()
        self._lock = threading.Lock()
        self._known: Locations | None = None
        self._queryable: dict[str, tuple[str, str]] = {}

    def close(self) -> None:
        self._connections.close()

    # --- reading

    def get(
        self,
        operator: str,
        state: str,
        keys: Sequence[Any],
        isolation: str = COMMITTED,
        namespace: Any = None,
    ) -> list[StateValue]:
        """Return the values of `keys`, in their order. One without a value has `found=False`."""
        _check_isolation(isolation)
        found: dict[int, StateValue] = {}

        def read(locations: Locations) -> list[StateValue]:
            place = locations.operator(operator)
            by_partition: dict[int, list[int]] = {}
            for index, key in enumerate(keys):
                if index not in found:
                    by_partition.setdefault(locations.partition_of(place, key), []).append(index)
            for partition, members in by_partition.items():
                request = {
                    "op": "get",
                    "operator": place.uid,
                    "state": state,
                    "keys": [to_json(keys[index]) for index in members],
                    "isolation": isolation,
                }
                if namespace is not None:
                    request["namespace"] = to_json(namespace)
                answer = self._ask(locations, locations.slot(place.stage, partition), request)
                for index, value in zip(members, answer["values"], strict=True):
                    found[index] = StateValue(keys[index], value.get("value"), answer["epoch"], value["found"])
            return [found[index] for index in range(len(keys))]

        return self._retrying(read)

    def scan(
        self,
        operator: str,
        state: str,
        *,
        start: Any = None,
        stop: Any = None,
        prefix: str | None = None,
        limit: int = 100,
        page: str | None = None,
        isolation: str = COMMITTED,
    ) -> Page:
        """Return entries with `start <= key < stop`, or with text keys that begin with `prefix`, in order."""
        _check_isolation(isolation)
        after = None if page is None else _page_key(page)

        def read(locations: Locations) -> Page:
            place = locations.operator(operator)
            request: Json = {
                "op": "scan", "operator": place.uid, "state": state, "limit": limit, "isolation": isolation,
                "from": None if start is None else [to_json(start)],
                "to": None if stop is None else [to_json(stop)],
                "prefix": prefix,
                "after": None if after is None else [to_json(after)],
            }  # fmt: skip
            rows: list[tuple[Any, StateValue]] = []
            ends: list[Any] = []  # of slots that have more: their last sort key
            for slot in locations.slots_of(place):
                answer = self._ask(locations, slot, request)
                own = [StateValue(key_of_row(row["key"]), row["value"], answer["epoch"]) for row in answer["rows"]]
                rows += [(sort_key(row.key), row) for row in own]
                if answer["more"] and own:
                    ends.append(sort_key(own[-1].key))
            rows.sort(key=lambda row: row[0])
            if ends:  # behind the end of such a slot's page, keys may be missing
                rows = [row for row in rows if row[0] <= min(ends)]
            more = bool(ends) or len(rows) > limit
            rows = rows[:limit]
            return Page([row for _, row in rows], _page_of(rows[-1][1].key) if more and rows else None)

        return self._retrying(read)

    def scan_all(self, operator: str, state: str, **options: Any) -> Iterator[StateValue]:
        """Yield all entries, page by page. Pages may be of different epochs."""
        page = self.scan(operator, state, **options)
        while True:
            yield from page.rows
            if page.next_page is None:
                return
            page = self.scan(operator, state, page=page.next_page, **options)

    def describe(self) -> list[Json]:
        """Return the operators with their states: kinds, types, the number of keys (None: a slot does not know)."""

        def read(locations: Locations) -> list[Json]:
            found: dict[str, Json] = {}
            for slot in [slot for place in _stages(locations) for slot in locations.slots_of(place)]:
                for operator in self._ask(locations, slot, {"op": "list"})["operators"]:
                    known = found.setdefault(operator["uid"], {"epoch": operator["epoch"], "states": {}})
                    known["epoch"] = min(known["epoch"], operator["epoch"])
                    for state in operator["states"]:
                        first = known["states"].setdefault(state["name"], {**state, "entries": 0})
                        unknown = first["entries"] is None or state["entries"] is None
                        first["entries"] = None if unknown else first["entries"] + state["entries"]
            return [
                {
                    "uid": place.uid,
                    "name": place.name,
                    "parallelism": place.parallelism,
                    "epoch": found.get(place.uid, {}).get("epoch"),
                    "states": list(found.get(place.uid, {}).get("states", {}).values()),
                }
                for place in locations.operators
            ]

        return self._retrying(read)

    def queryable(self, name: str) -> tuple[str, str]:
        """Return (operator's uid, state) of a queryable name. Raises `QueryError` UNKNOWN_STATE."""
        found = self._queryable.get(name)
        if found is None:
            for operator in self.describe():
                for state in operator["states"]:
                    if state["queryable_name"] is not None:
                        self._queryable[state["queryable_name"]] = (operator["uid"], state["name"])
            found = self._queryable.get(name)
        if found is None:
            raise QueryError(
                QueryProblem.UNKNOWN_STATE,
                f"no state has the queryable name '{name}'; {nearest(name, self._queryable)}",
            )
        return found

    # --- one epoch of all slots

    def pinned(self, operators: Iterable[str]) -> PinnedEpoch:
        """Hold one checkpoint of all slots of these operators. A context manager."""
        return PinnedEpoch(self._retrying(lambda locations: hold(locations, self.locator, operators)), self._seconds)

    def locations(self) -> Locations:
        with self._lock:
            if self._known is None:
                self._known = Locations.of(self.locator.locate())
                self._connections.forget(set(self._known.slots.values()))
            return self._known

    def forget_locations(self) -> None:
        with self._lock:
            self._known = None

    # --- asking

    def _ask(self, locations: Locations, slot: SlotPlace, request: Json) -> Json:
        if locations.secret is None or not (slot.path or slot.port):
            return self.locator.ask_slot(slot.stage, slot.partition, request)
        return self._connections.ask(slot, locations.secret, request, self._seconds)

    def _retrying(self, read: Callable[[Locations], T]) -> T:
        """Try until it works, the time is over, or the error is one that trying again does not cure."""
        until = time.monotonic() + self._seconds
        pause = 0.005
        while True:
            try:
                return read(self.locations())
            except QueryError as error:
                busy = error.problem is QueryProblem.TOO_MANY_READERS and self._retry_when_busy
                if not busy and error.problem not in MAY_HAVE_MOVED:
                    raise
                if time.monotonic() + pause > until:
                    raise
                if not busy:
                    self.forget_locations()
            time.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, 0.25)


def _stages(locations: Locations) -> list[OperatorPlace]:
    """One operator per stage, with the most slots: all of a stage share theirs."""
    ordered = sorted(locations.operators, key=lambda place: place.parallelism)
    return list({place.stage: place for place in ordered}.values())


def _check_isolation(isolation: str) -> None:
    if isolation not in ISOLATIONS:
        raise QueryError(
            QueryProblem.BAD_REQUEST, f"isolation is {isolation!r}; expected one of {', '.join(ISOLATIONS)}"
        )


def _page_of(key: Any) -> str:
    """A page token is the last key: it stays good whatever happens to the job."""
    return base64.urlsafe_b64encode(json.dumps([to_json(key)]).encode()).decode().rstrip("=")


def _page_key(page: str) -> Any:
    try:
        (found,) = json.loads(base64.urlsafe_b64decode(page + "=" * (-len(page) % 4)))
    except (ValueError, TypeError):
        raise QueryError(QueryProblem.BAD_REQUEST, f"{page!r} is not a page that an answer named") from None
    if isinstance(found, dict) and isinstance(found.get("$opaque"), str):
        return OpaqueKey(found["$opaque"])
    return key_from_json(found)
