"""Reads the state of one job: finds the slots, asks them directly, and asks the driver again when they have moved."""

from __future__ import annotations

import base64
import contextlib
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
THAT_PASS = MAY_HAVE_MOVED | {QueryProblem.TOO_MANY_READERS}
LOOK_UP_SECONDS = 1.0
"""A slot that does not answer a look-up in so long may be stopped: ask the driver whether it has been replaced."""
NEW_SECONDS = 0.02
"""All readers of one job together ask the driver again where its slots are only after so long."""
LONGEST_PAUSE = 0.05
"""Between two tries of one reader."""
_SUMMED = ("entries", "estimated_bytes")
"""Figures of a state that its slots add up to."""


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

    def __init__(
        self, locator: Locator, seconds: float = 10.0, *, retried: frozenset[QueryProblem] = THAT_PASS
    ) -> None:
        """Reads that meet one of the `retried` problems are tried again for `seconds`."""
        self.locator = locator
        self._seconds = seconds
        self._retried = retried
        self._connections = SlotConnections()
        self._lock = threading.Lock()
        self._known: Locations | None = None
        self._known_since = 0.0
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
        """Return the operators with their states: kinds, types, number of keys, size (None: a slot does not know).

        The size is estimated from a few entries of each slot.
        """

        def read(locations: Locations) -> list[Json]:
            found: dict[str, Json] = {}
            for slot in [slot for place in _stages(locations) for slot in locations.slots_of(place)]:
                for operator in self._ask(locations, slot, {"op": "list"})["operators"]:
                    known = found.setdefault(operator["uid"], {"epoch": operator["epoch"], "states": {}})
                    known["epoch"] = min(known["epoch"], operator["epoch"])
                    for state in operator["states"]:
                        first = known["states"].setdefault(state["name"], {**state, **dict.fromkeys(_SUMMED, 0)})
                        for figure in _SUMMED:
                            unknown = first[figure] is None or state[figure] is None
                            first[figure] = None if unknown else first[figure] + state[figure]
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

    def threads(self) -> list[tuple[SlotPlace, list[Json]]]:
        """Return where the threads of all slots are: `ThreadStack` as JSON, with `processing` for the one that does."""

        def read(locations: Locations) -> list[tuple[SlotPlace, list[Json]]]:
            slots = [slot for place in _stages(locations) for slot in locations.slots_of(place)]
            return [(slot, self._ask(locations, slot, {"op": "threads"})["threads"]) for slot in slots]

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
        """Return what is known, which may be old: who does not find a slot there calls `renew_locations`."""
        return self._known or self.renew_locations(None)

    def renew_locations(self, known: Locations | None) -> Locations:
        """Ask where the slots are, unless somebody has done so since `known`, or just before that.

        Others go on with what is known meanwhile: a slot that is away is none of their concern.
        """
        with self._lock:
            found = self._known
            if found is None or (found is known and time.monotonic() - self._known_since > NEW_SECONDS):
                found = Locations.of(self.locator.locate())
                self._connections.forget(set(found.slots.values()))
                self._known, self._known_since = found, time.monotonic()
            return found

    # --- asking

    def _ask(self, locations: Locations, slot: SlotPlace, request: Json) -> Json:
        if locations.secret is None or not (slot.path or slot.port):
            return self.locator.ask_slot(slot.stage, slot.partition, request)
        seconds = min(self._seconds, LOOK_UP_SECONDS) if request["op"] == "get" else self._seconds
        return self._connections.ask(slot, locations.secret, request, seconds)

    def _retrying(self, read: Callable[[Locations], T]) -> T:
        """Try until it works, the time is over, or the error is one that trying again does not cure."""
        until = time.monotonic() + self._seconds
        pause = 0.005
        doubted: Locations | None = None
        while True:
            try:
                return read(self.locations() if doubted is None else self.renew_locations(doubted))
            except QueryError as error:
                doubted = self._known if error.problem in MAY_HAVE_MOVED else None
                if error.problem not in self._retried or time.monotonic() + pause > until:
                    if doubted is not None and not self._lock.locked():  # else somebody does
                        with contextlib.suppress(QueryError):
                            self.renew_locations(doubted)  # for whoever reads next
                    raise
            time.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, LONGEST_PAUSE)


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
