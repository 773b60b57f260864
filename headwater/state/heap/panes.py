"""Panes on the heap: a dict of dicts, so that a window ends with one removal, and its undo log is one entry.

A namespace that did not exist at the last commit needs no log of its keys: a rollback drops the whole namespace. That
is the usual case, and the loops below are written for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from headwater.state.change_log import Combine, Join
from headwater.state.copying import ATOMIC, captured, is_immutable, protective_copy
from headwater.state.heap.list import older_length
from headwater.state.heap.store import ABSENT, UNCHANGED, HeapStore
from headwater.state.panes import ElementPanes, FoldedPanes, Panes
from headwater.state.snapshot.entries import ListEntries, ValueEntries, check_base

_NO_NAMESPACE: Any = object()


class _HeapPanes(HeapStore, Panes):
    """{namespace: {key: value}}; undo {namespace: ABSENT, or {key: value before}}.

    The backend addresses an entry by the pair (key, namespace), as in other namespaced states.
    """

    __slots__ = ()

    def namespaces(self) -> Collection[int]:
        return self.table.keys()

    def peek(self, namespace: int) -> Mapping[Any, Any]:
        pane: dict[Any, Any] = self.table.get(namespace, {})
        return pane

    def take(self, namespace: int) -> tuple[list[Any], list[Any]]:
        pane = self.table.get(namespace)
        if pane is None:
            return [], []
        if self.undo.get(namespace) is not ABSENT:
            pane = self._log_whole(namespace, pane)
        del self.table[namespace]
        return list(pane), list(pane.values())

    def drop(self, namespace: int) -> None:
        pane = self.table.get(namespace)
        if pane is None:
            return
        if self.undo.get(namespace) is not ABSENT:
            self._log_whole(namespace, pane)
        del self.table[namespace]

    def clear(self) -> None:
        key, namespace = self._scope.current_key
        pane = self.table.get(namespace)
        if pane is None or key not in pane:
            return
        log = self._log_of(namespace)
        if log is not None:
            self._log_before_change(log, key, pane)
        del pane[key]
        if not pane:
            del self.table[namespace]

    def keys_stored(self) -> Collection[Any]:
        return _Pairs(self.table)

    def keys_changed(self, log: dict[Any, Any]) -> Collection[Any]:
        changed: list[Any] = []
        for namespace, entries in log.items():
            keys = self.table.get(namespace, {}) if entries is ABSENT else entries
            changed += [(key, namespace) for key in keys]
        return changed

    _combine_entries: Combine | None = None

    def _combination(self) -> Combine:
        return self._combined

    def _kept_combination(self) -> None:
        """Logs of panes are joined with a look at what is stored now, so they cannot be joined later."""

    def _combined(self, namespace: Any, older: Any, newer: Any, join: Join) -> Any:
        if older is ABSENT:
            return older
        if newer is ABSENT:  # the older changes removed it, the newer made it anew: no current entry existed before
            newer = dict.fromkeys(self.table.get(namespace, ()), ABSENT)
        return join(older, newer, self._combine_entries)

    def rollback(self) -> None:
        table = self.table
        for namespace, log in self.undo.items():
            if log is ABSENT:
                table.pop(namespace, None)
                continue
            pane = table.setdefault(namespace, {})
            for key, before in log.items():
                if before is ABSENT:
                    pane.pop(key, None)
                else:
                    pane[key] = self._restored(pane, key, before)
            if not pane:
                del table[namespace]
        self.undo, self._spanning = {}, None

    def current(self, key: Any) -> Any:
        user_key, namespace = key
        return self._copy_for_query(self.table.get(namespace, {}).get(user_key, ABSENT))

    def before(self, key: Any, entry: Any, log: dict[Any, Any]) -> Any:
        user_key, namespace = key
        changes = log.get(namespace, UNCHANGED)
        if changes is ABSENT:
            return ABSENT
        before = UNCHANGED if changes is UNCHANGED else changes.get(user_key, UNCHANGED)
        return entry if before is UNCHANGED else self._restored({user_key: entry}, user_key, before)

    def some_keys(self, most: int) -> list[Any]:
        panes = list(self.table.items())
        pairs = ((key, namespace) for namespace, pane in panes for key in list(islice(pane, most)))
        return list(islice(pairs, most))

    def _candidates_now(self) -> list[Any]:
        return [(key, namespace) for namespace, pane in list(self.table.items()) for key in list(pane)]

    def _candidates_in(self, log: dict[Any, Any]) -> list[Any]:
        logs = [(namespace, keys) for namespace, keys in list(log.items()) if keys is not ABSENT]
        return [(key, namespace) for namespace, keys in logs for key in list(keys)]

    finds_pairs = True

    def pairs_to_try(self, user_key: Any, epoch: int | None) -> list[Any]:
        namespaces = list(self.table)
        for log in () if epoch is None else self._logs_back_to(epoch):
            namespaces += log
        return [(user_key, namespace) for namespace in dict.fromkeys(namespaces)]

    def _open(self, namespace: int) -> tuple[dict[Any, Any], dict[Any, Any] | None]:
        """Return the pane of `namespace`, created if missing, and the log of its keys (None: it needs no log)."""
        log = self._log_of(namespace)
        pane = self.table.get(namespace)
        if pane is None:
            pane = self.table[namespace] = {}
        return pane, log

    def _log_of(self, namespace: int) -> dict[Any, Any] | None:
        log = self.undo.get(namespace, UNCHANGED)
        if log is UNCHANGED:
            log = self.undo[namespace] = {} if namespace in self.table else ABSENT
        return None if log is ABSENT else log

    def _remove(self, pairs: Iterable[tuple[Any, int]]) -> None:
        for key, namespace in pairs:
            pane = self.table.get(namespace)
            if pane is not None:
                pane.pop(key, None)
                if not pane:
                    del self.table[namespace]

    @abstractmethod
    def _log_whole(self, namespace: int, pane: dict[Any, Any]) -> dict[Any, Any]:
        """Log a committed pane before it is removed. Return {key: value} that the caller may own."""

    @abstractmethod
    def _log_before_change(self, log: dict[Any, Any], key: Any, pane: dict[Any, Any]) -> None:
        """Log the entry of `key` before it is removed."""

    def _restored(self, pane: Mapping[Any, Any], key: Any, before: Any) -> Any:
        """Return the value before the change, from the log's entry `before`."""
        return before

    def _copy_for_query(self, value: Any) -> Any:
        """Return `value`, or a copy if the processing thread may change it meanwhile."""
        return value


class _Pairs(Collection[Any]):
    """All pairs (key, namespace), without building a list: every epoch asks for their number."""

    __slots__ = ("_table",)

    def __init__(self, table: dict[Any, dict[Any, Any]]) -> None:
        self._table = table

    def __len__(self) -> int:
        return sum(map(len, self._table.values()))

    def __iter__(self) -> Iterator[Any]:
        return ((key, namespace) for namespace, pane in self._table.items() for key in pane)

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and pair[0] in self._table.get(pair[1], ())


class HeapFoldedPanes(_HeapPanes, FoldedPanes):
    """One value per key of a pane. A mutable value is copied at its first touch in an epoch."""

    __slots__ = ()

    def reduce(
        self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any], reduce: Callable[[Any, Any], Any]
    ) -> None:
        current = _NO_NAMESPACE
        pane: dict[Any, Any] = {}
        log: dict[Any, Any] | None = None
        for namespace, key, value in zip(namespaces, keys, values):  # noqa: B905 - `namespaces` may be endless
            if namespace != current:
                pane, log = self._open(namespace)
                current = namespace
            so_far = pane.get(key)
            if log is not None and key not in log:
                if so_far is not None and type(so_far) in ATOMIC:  # nearly always: without a call
                    log[key] = so_far
                else:
                    so_far = _first_touch(log, key, so_far)
            folded = value if so_far is None else reduce(so_far, value)
            pane[key] = folded if type(folded) in ATOMIC or folded is so_far else captured(folded)

    def aggregate(
        self,
        keys: Iterable[Any],
        namespaces: Iterable[int],
        values: Iterable[Any],
        create: Callable[[], Any],
        add: Callable[[Any, Any], Any],
    ) -> None:
        current = _NO_NAMESPACE
        pane: dict[Any, Any] = {}
        log: dict[Any, Any] | None = None
        for namespace, key, value in zip(namespaces, keys, values):  # noqa: B905
            if namespace != current:
                pane, log = self._open(namespace)
                current = namespace
            so_far = pane.get(key)
            if log is not None and key not in log:
                if so_far is not None and type(so_far) in ATOMIC:  # nearly always: without a call
                    log[key] = so_far
                else:
                    so_far = _first_touch(log, key, so_far)
            folded = add(value, create() if so_far is None else so_far)
            pane[key] = folded if type(folded) in ATOMIC or folded is so_far else captured(folded)

    def newest(self, key: Any) -> Any:
        entry = self.current(key)
        return entry if is_immutable(entry) else self.committed(key)  # a function may be folding into it right now

    def _log_whole(self, namespace: int, pane: dict[Any, Any]) -> dict[Any, Any]:
        known = self.undo.get(namespace, {})
        self.undo[namespace] = {**pane, **known}
        if ATOMIC.issuperset(map(type, pane.values())):
            return pane
        return {key: value if key in known else protective_copy(value) for key, value in pane.items()}

    def _log_before_change(self, log: dict[Any, Any], key: Any, pane: dict[Any, Any]) -> None:
        log.setdefault(key, pane[key])

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ValueEntries:
        present: list[Any] = []
        values: list[Any] = []
        deleted: list[Any] = []
        table = self.table
        for pair in keys:
            key, namespace = pair
            pane = table.get(namespace, ())
            if key in pane:
                present.append(pair)
                values.append(pane[key])
            elif log[namespace][key] is not ABSENT:
                deleted.append(pair)
        return ValueEntries(present, values, deleted)

    def full_entries(self, keys: Iterable[Any]) -> ValueEntries:
        table, pairs = self.table, list(keys)
        return ValueEntries(pairs, [table[namespace][key] for key, namespace in pairs])

    def load_entries(self, entries: ValueEntries) -> None:
        table = self.table
        for (key, namespace), value in entries.rows():
            table.setdefault(namespace, {})[key] = value
        self._remove(entries.deleted)


class HeapElementPanes(_HeapPanes, ElementPanes):
    """A list per key of a pane. The log has its length before (int) if elements were only appended, else the list."""

    __slots__ = ()

    def append(self, keys: Iterable[Any], namespaces: Iterable[int], values: Iterable[Any]) -> None:
        current = _NO_NAMESPACE
        pane: dict[Any, Any] = {}
        log: dict[Any, Any] | None = None
        for namespace, key, value in zip(namespaces, keys, values):  # noqa: B905
            if namespace != current:
                pane, log = self._open(namespace)
                current = namespace
            elements = pane.get(key)
            if log is not None and key not in log:
                log[key] = ABSENT if elements is None else len(elements)
            if elements is None:
                pane[key] = [value]
            else:
                elements.append(value)

    def _log_whole(self, namespace: int, pane: dict[Any, Any]) -> dict[Any, Any]:
        log = self.undo.setdefault(namespace, {})
        given: dict[Any, Any] = {}
        for key, elements in pane.items():
            before = log.get(key, len(elements))
            if before.__class__ is int:
                log[key] = old = elements[:before]
                elements = protective_copy(old) + elements[before:]
            given[key] = elements
        return given

    def _log_before_change(self, log: dict[Any, Any], key: Any, pane: dict[Any, Any]) -> None:
        before = log.get(key, len(pane[key]))
        if before.__class__ is int:
            log[key] = pane[key][:before]

    def _restored(self, pane: Mapping[Any, Any], key: Any, before: Any) -> Any:
        return pane[key][:before] if before.__class__ is int else before

    _combine_entries = staticmethod(older_length)

    def _copy_for_query(self, value: Any) -> Any:
        return value if value is ABSENT else value[:]

    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> ListEntries:
        present: list[Any] = []
        bases: list[int] = []
        added: list[list[Any]] = []
        deleted: list[Any] = []
        table = self.table
        for pair in keys:
            key, namespace = pair
            elements = table.get(namespace, {}).get(key)
            pane_log = log[namespace]
            before = ABSENT if pane_log is ABSENT else pane_log[key]
            if elements is not None:
                base = before if before.__class__ is int else 0
                present.append(pair)
                bases.append(base)
                added.append(elements[base:])
            elif before is not ABSENT:
                deleted.append(pair)
        return ListEntries(present, bases, added, deleted)

    def full_entries(self, keys: Iterable[Any]) -> ListEntries:
        table, pairs = self.table, list(keys)
        return ListEntries.of_lists(pairs, [table[namespace][key] for key, namespace in pairs])

    def load_entries(self, entries: ListEntries) -> None:
        for (key, namespace), base, elements in entries.rows():
            known = self.table.setdefault(namespace, {}).setdefault(key, [])
            check_base(base, len(known), "a window")
            known[base:] = elements
        self._remove(entries.deleted)


def _first_touch(log: dict[Any, Any], key: Any, stored: Any) -> Any:
    """Log the value `stored` under `key`, and return a value that the user may change instead."""
    if stored is None:
        log[key] = ABSENT
        return None
    log[key] = stored
    return stored if stored.__class__ in ATOMIC else protective_copy(stored)
