"""The rows of a table by key, in keyed state: how many of each there are, and in which order they came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwater.state.descriptors import MapStateDescriptor
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.many_keys import Maps
from headwater.state.ttl.config import StateTtlConfig

Row = tuple[Any, ...]
"""In the form of `stream.rows.frozen_rows`."""

ChangedRows = Mapping[Any, Sequence[tuple[Row, int]]]
"""{key: [(row, weight), ...]}, as `by_key` makes it."""

_PER_EPOCH = 1 << 32


class RowState:
    """A multiset of rows per key. `name` is the state's name within the operator: part of what is persisted."""

    def __init__(self, backend: KeyedStateBackend, name: str, ttl: StateTtlConfig | None = None) -> None:
        descriptor = MapStateDescriptor(name)
        if ttl is not None:
            descriptor.enable_time_to_live(ttl)
        self._rows = Maps(backend, backend.get_state(descriptor))  # {row: (count, place in order)}

    def rows(self, keys: Iterable[Any]) -> list[list[Row]]:
        """All rows of each key in the order in which they came, equal ones as often as they are there."""
        all_of = self._rows.all_of
        return [
            [row for row, (count, _) in sorted(all_of(key).items(), key=_place) for _ in range(count)] for key in keys
        ]

    def apply(self, changed: ChangedRows, epoch: int) -> None:
        """Add rows (weight > 0) and take rows away (< 0). Those that are not there cannot be taken."""
        keys: list[Any] = []
        rows: list[Row] = []
        entries: list[tuple[int, int] | None] = []
        for key, changes in changed.items():
            held = self._rows.some_of(key, (row for row, _ in changes))
            now: dict[Row, tuple[int, int]] = {}
            for place, (row, weight) in enumerate(changes):
                count, since = now.get(row) or held.get(row) or (0, epoch * _PER_EPOCH + place)
                now[row] = max(count + weight, 0), since
            keys += [key] * len(now)
            rows += now
            entries += [entry if entry[0] else None for entry in now.values()]
        self._rows.update(keys, rows, entries)


def _place(entry: tuple[Row, tuple[int, int]]) -> int:
    return entry[1][1]


def by_key(keys: Sequence[Any], rows: Sequence[Row], weights: Iterable[int]) -> dict[Any, list[tuple[Row, int]]]:
    """Changes by key, keys in order of first coming."""
    found: dict[Any, list[tuple[Row, int]]] = {}
    for key, row, weight in zip(keys, rows, weights, strict=True):
        found.setdefault(key, []).append((row, weight))
    return found
