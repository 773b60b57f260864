"""By which columns changes are keyed: for routing, and for keyed state. Both must agree on every key's key group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.state.heap.key_index import IntegerKeys
from headwater.state.keys.key_groups import KeyRouter
from headwater.table.stream.changes import Changes
from headwater.table.stream.numbering import numbered
from headwater.table.stream.rows import frozen_column, integers_of


class KeyColumns:
    """The key columns of an edge, by place. No columns: all rows have one key.

    The key of one column is its value, else a tuple of values, in the form of `frozen_rows`. NULL is a key like others.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self.places = tuple(places)
        self._routers: dict[tuple[int, int], KeyRouter] = {}

    def of(self, changes: Changes) -> list[Any]:
        """The key of each row."""
        return _keys([changes.rows.column(place) for place in self.places], len(changes))

    def batch(self, changes: Changes) -> Sequence[Any]:
        """As `of`, kept as arrays if the keys are integers."""
        columns = [changes.rows.column(place) for place in self.places]
        stored = [found for column in columns if (found := integers_of(column)) is not None]
        return IntegerKeys(stored) if stored and len(stored) == len(columns) else self.of(changes)

    def split(self, changes: Changes, max_parallelism: int, parallelism: int) -> list[tuple[int, Changes]]:
        """Cut changes by target partition, for an edge with `Exchange.SPLIT`."""
        router = self._routers.get((max_parallelism, parallelism))
        if router is None:
            router = self._routers[max_parallelism, parallelism] = KeyRouter(max_parallelism, parallelism)
        if parallelism == 1:
            return [(0, changes)]
        targets = self._targets(changes, router)
        return [
            (target, changes.take(places))
            for target in range(parallelism)
            if len(places := np.flatnonzero(targets == target))
        ]

    def _targets(self, changes: Changes, router: KeyRouter) -> np.ndarray:
        """The partition of each row. Numbers are hashed together, other keys once each."""
        columns = [changes.rows.column(place) for place in self.places]
        stored = [found for column in columns if (found := integers_of(column)) is not None]
        if stored and len(stored) == len(columns):
            found = router.route_int64(stored)
            if found is not None:
                return found
        numbers, firsts = numbered(columns, len(changes))
        different = [column.take(pa.array(firsts)) for column in columns]
        return np.array(router.partitions(_keys(different, len(firsts))), np.int64)[numbers]

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyColumns, (self.places,)


def _keys(columns: Sequence[pa.Array], rows: int) -> list[Any]:
    frozen = list(map(frozen_column, columns))
    if len(frozen) == 1:
        return frozen[0]
    return list(zip(*frozen, strict=True)) if frozen else [()] * rows
