"""Answers queries about the state of one slot. Knows no sockets; any thread may run it, also the one that processes.

A request is JSON: `{"op": ..., ...}`.

    get       operator, state, keys [, namespace, isolation, epoch]     the values of some keys
    scan      operator, state, limit [, from, to, prefix, after, ...]   entries in the order of their keys
    list      -                                                         operators and their states, with sizes
    threads   -                                                         where the threads of the slot's process are
    pin       -                                                         keep the last checkpoint readable: its epoch
    unpin     epoch
    batch     operator, state, epoch, cursor [, as_json]                some entries of a pinned epoch, in any order

Every answer names the epoch that it is of. `live` values belong to no epoch.
"""

from __future__ import annotations

import base64
import os
import time
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from headwater.common.errors import short_repr
from headwater.common.machine.thread_stacks import thread_stacks
from headwater.common.query_error import QueryError, QueryProblem, nearest
from headwater.runtime.slot.query.requests import Json, Scan, integer, text, texts_or_keys
from headwater.runtime.slot.slot import Slot
from headwater.state.heap.store import ABSENT
from headwater.state.keys.key_groups import key_group
from headwater.state.query.json_form import key_from_json, sort_key, to_json
from headwater.state.readable_backend import ReadableBackend

PIN_SECONDS = 300.0
MAX_PINS = 64
MAX_KEYS = 10_000
_BREATH = 256
"""After so many entries, the processing thread gets a turn. Only what is slow looks at so many."""
_BATCH_ENTRIES = 20_000


@dataclass
class _Pin:
    backends: list[ReadableBackend[Any]]
    count: int = 0
    until: float = 0.0

    def unpin(self, epoch: int) -> None:
        self.count -= 1
        for backend in self.backends:
            backend.unpin(epoch)


class _State(NamedTuple):
    name: str
    kind: str
    namespaced: bool


class Session:
    """One reader's connection: what it has pinned, and the keys that it is reading in batches. Closed with it."""

    def __init__(self, slot: Slot, breathe: Callable[[], None] = lambda: None) -> None:
        self._slot = slot
        self._breathe = breathe
        self._pins: dict[int, _Pin] = {}
        self._cursors: dict[tuple[str, str, int], list[Any]] = {}

    def answer(self, request: Json) -> Json:
        """Return the answer. Raises `QueryError`."""
        operation = _OPERATIONS.get(text(request, "op"))
        if operation is None:
            raise QueryError(QueryProblem.BAD_REQUEST, f"unknown operation {short_repr(request['op'])}")
        return operation(self, request)

    def is_slow(self, request: Json) -> bool:
        """Return True for what looks at so many entries that other requests must not wait for it."""
        operation, keys = request.get("op"), request.get("keys")
        if operation != "get" or not isinstance(keys, list):
            return operation in ("scan", "batch")
        if len(keys) >= _BREATH:
            return True
        if request.get("namespace") is not None:
            return False
        try:
            backend, state = self._find(request)
        except QueryError:
            return False
        return state.namespaced and not backend.finds_namespaces(state.name)

    @property
    def has_pins(self) -> bool:
        return bool(self._pins)

    def expire_pins(self) -> None:
        """Release what was pinned for too long."""
        for epoch, pin in list(self._pins.items()):
            if time.monotonic() > pin.until:
                self._unpin(epoch)

    def close(self) -> None:
        for epoch in list(self._pins):
            self._unpin(epoch)

    # --- operations

    def _get(self, request: Json) -> Json:
        backend, state = self._find(request)
        keys = [key_from_json(key) for key in texts_or_keys(request, "keys", MAX_KEYS)]
        for key in keys:
            if key_group(key, backend.max_parallelism) not in backend.key_groups:
                raise QueryError(QueryProblem.MOVED, "the key lives in another partition: ask the job server again", 0)
        epoch = self._epoch_of(request)
        pinned = epoch is None and request.get("isolation") != "live"
        if pinned:
            epoch = backend.pin()
        try:
            if state.namespaced:
                namespaces = self._namespaces(backend, state, keys, request, epoch)
                values = [self._windows(backend, state, key, namespaces[key], epoch) for key in self._breathing(keys)]
            else:
                values = [self._value(backend, state, key, epoch) for key in self._breathing(keys)]
        finally:
            if pinned:
                backend.unpin(epoch)  # type: ignore[arg-type]
        return {"epoch": epoch, "values": values}

    def _value(self, backend: ReadableBackend[Any], state: _State, key: Any, epoch: int | None) -> Json:
        found = backend.read(state.name, key, None, epoch)
        return {"found": False} if found is ABSENT else {"found": True, "value": to_json(found)}

    def _windows(
        self, backend: ReadableBackend[Any], state: _State, key: Any, namespaces: Iterable[Any], epoch: int | None
    ) -> Json:
        entries = []
        for namespace in namespaces:
            found = backend.read(state.name, key, namespace, epoch)
            if found is not ABSENT:
                entries.append({"namespace": to_json(namespace), "value": to_json(found)})
        return {"found": True, "value": entries} if entries else {"found": False}

    def _namespaces(
        self, backend: ReadableBackend[Any], state: _State, keys: list[Any], request: Json, epoch: int | None
    ) -> dict[Any, list[Any]]:
        """Return for each key the namespaces in which it may have a value."""
        if request.get("namespace") is not None:
            namespace = key_from_json(request["namespace"])
            return {key: [namespace] for key in keys}
        if backend.finds_namespaces(state.name):
            return {key: backend.namespaces_to_try(state.name, key, epoch) for key in self._breathing(keys)}
        found: dict[Any, list[Any]] = {key: [] for key in keys}
        for key, namespace in self._breathing(backend.candidates(state.name, epoch)):
            if key in found:
                found[key].append(namespace)
        return found

    def _scan(self, request: Json) -> Json:
        backend, state = self._find(request)
        scan = Scan.of(request)
        epoch = self._epoch_of(request)
        pinned = epoch is None and request.get("isolation") != "live"
        if pinned:
            epoch = backend.pin()
        try:
            rows, more = self._page(backend, state, scan, epoch)
        finally:
            if pinned:
                backend.unpin(epoch)  # type: ignore[arg-type]
        return {"epoch": epoch, "rows": rows, "more": more}

    def _page(
        self, backend: ReadableBackend[Any], state: _State, scan: Scan, epoch: int | None
    ) -> tuple[list[Json], bool]:
        rows: list[Json] = []
        orders: list[Any] = []
        while not rows:
            found = self._smallest(backend, state, scan, epoch)
            orders, size = sorted(found), 0
            for order in orders[: scan.limit]:
                if size > scan.max_bytes:
                    return rows, True
                row = self._row(backend, state, found[order], epoch)
                if row is not None:
                    rows.append(row)
                    size += len(str(row))
            if len(orders) <= scan.limit:
                return rows, False
            scan = replace(scan, after=orders[-2])  # in case all of them had no value
        return rows, True

    def _smallest(
        self, backend: ReadableBackend[Any], state: _State, scan: Scan, epoch: int | None
    ) -> dict[Any, list[Any]]:
        """Return the smallest keys that the scan takes, one more than a page has: {sort key: what is stored for it}."""
        namespaced, room = state.namespaced, scan.limit + 1
        found: dict[Any, list[Any]] = {}
        orders: list[Any] = []
        for stored in self._breathing(backend.candidates(state.name, epoch)):
            order = sort_key(stored[0] if namespaced else stored)
            if order in found:
                found[order].append(stored)
            elif scan.takes(order) and (len(orders) < room or order < orders[-1]):
                insort(orders, order)
                found[order] = [stored]
                if len(orders) > room:
                    del found[orders.pop()]
        return found

    def _row(self, backend: ReadableBackend[Any], state: _State, stored: list[Any], epoch: int | None) -> Json | None:
        name = state.name
        if not state.namespaced:
            found = backend.read(name, stored[0], None, epoch)
            return None if found is ABSENT else {"key": to_json(stored[0]), "value": to_json(found)}
        entries = []
        for key, namespace in sorted(stored, key=lambda pair: sort_key(pair[1])):
            found = backend.read(name, key, namespace, epoch)
            if found is not ABSENT:
                entries.append({"namespace": to_json(namespace), "value": to_json(found)})
        return {"key": to_json(stored[0][0]), "value": entries} if entries else None

    def _list(self, request: Json) -> Json:
        return {
            "operators": [
                {
                    "uid": backend.uid,
                    "epoch": backend.durable_epoch,
                    "states": [
                        state | {"estimated_bytes": backend.estimated_bytes(state["name"])}
                        for state in backend.described()
                    ],
                }
                for backend in self._backends()
            ]
        }

    def _threads(self, request: Json) -> Json:
        processing = self._slot.processing_thread
        stacks = [stack._asdict() | {"processing": stack.id == processing} for stack in thread_stacks()]
        return {"pid": os.getpid(), "threads": stacks}

    def _pin(self, request: Json) -> Json:
        if len(self._pins) >= MAX_PINS:
            raise QueryError(QueryProblem.TOO_MANY_READERS, f"this connection already holds {MAX_PINS} epochs")
        backends = self._backends()
        pinned = [(backend, backend.pin()) for backend in backends]
        epochs = {epoch for _, epoch in pinned}
        if len(epochs) != 1:
            for backend, epoch in pinned:
                backend.unpin(epoch)
            raise QueryError(QueryProblem.NOT_YET, "a checkpoint is just being completed: ask again", 0.01)
        (epoch,) = epochs
        pin = self._pins.setdefault(epoch, _Pin(backends))
        pin.count += 1
        pin.until = time.monotonic() + PIN_SECONDS
        return {"epoch": epoch}

    def _release(self, request: Json) -> Json:
        epoch = integer(request, "epoch")
        pin = self._pins.get(epoch)
        if pin is not None and pin.count > 1:
            pin.unpin(epoch)
        else:
            self._unpin(epoch)
        return {}

    def _batch(self, request: Json) -> Json:
        """Some entries of a pinned epoch as Arrow. `cursor` is 0 first, then what the answer before says.

        `as_json` names the columns that shall be JSON text.
        """
        from headwater.runtime.slot.query.arrow import rows_of, to_arrow  # takes a while to load

        backend, state = self._find(request)
        epoch, position = integer(request, "epoch"), integer(request, "cursor")
        name, namespaced = state.name, state.namespaced
        place = (backend.uid, name, epoch)
        if position == 0 or place not in self._cursors:
            self._cursors[place] = list(self._breathing(backend.candidates(name, epoch)))
        keys = self._cursors[place]
        is_map = state.kind == "map"
        rows: list[Json] = []
        for stored in self._breathing(islice(keys, position, position + _BATCH_ENTRIES)):
            key, namespace = stored if namespaced else (stored, None)
            found = backend.read(name, key, namespace, epoch)
            if found is not ABSENT:
                forms = to_json(key), to_json(namespace), to_json(found)
                rows += rows_of(*forms, namespaced=namespaced, is_map=is_map)
        position += _BATCH_ENTRIES
        more = position < len(keys)
        if not more:
            del self._cursors[place]
        columns = ["key", *(["namespace"] if namespaced else []), *(["map_key"] if is_map else []), "value"]
        as_json = texts_or_keys({"as_json": [], **request}, "as_json", len(columns))
        arrow = base64.b64encode(to_arrow(rows, columns, as_json)).decode()
        return {"epoch": epoch, "arrow": arrow, "cursor": position if more else None}

    # --- finding

    def _backends(self) -> list[ReadableBackend[Any]]:
        runner = self._slot.readable
        if runner is None:
            raise QueryError(QueryProblem.RESTORING, "the slot is loading a checkpoint", 0.2)
        return [backend for backend in runner.backends() if isinstance(backend, ReadableBackend)]

    def _find(self, request: Json) -> tuple[ReadableBackend[Any], _State]:
        uid, name = text(request, "operator"), text(request, "state")
        backends = {backend.uid: backend for backend in self._backends()}
        backend = backends.get(uid)
        if backend is None:
            raise QueryError(
                QueryProblem.UNKNOWN_OPERATOR, f"there is no operator '{uid}' here; {nearest(uid, backends)}"
            )
        layout = backend.layout_of(name)
        if layout is None:
            raise QueryError(
                QueryProblem.UNKNOWN_STATE,
                f"operator '{uid}' has no state '{name}'; {nearest(name, backend.state_names())}",
            )
        return backend, _State(name, layout.kind, layout.namespaced)

    @staticmethod
    def _epoch_of(request: Json) -> int | None:
        return None if request.get("epoch") is None else integer(request, "epoch")

    def _breathing(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield `items`, and let the processing thread run in between."""
        left = iter(items)
        while some := list(islice(left, _BREATH)):
            yield from some
            if len(some) == _BREATH:
                self._breathe()

    # --- pins

    def _unpin(self, epoch: int) -> None:
        pin = self._pins.pop(epoch, None)
        while pin is not None and pin.count:
            pin.unpin(epoch)
        for place in [place for place in self._cursors if place[2] == epoch]:
            del self._cursors[place]


_OPERATIONS: dict[str, Callable[[Session, Json], Json]] = {
    "get": Session._get,
    "scan": Session._scan,
    "list": Session._list,
    "threads": Session._threads,
    "pin": Session._pin,
    "unpin": Session._release,
    "batch": Session._batch,
}
