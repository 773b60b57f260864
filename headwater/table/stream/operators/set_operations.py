"""INTERSECT, EXCEPT and UNION: how often each row is on either side decides how often it is in the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes, concatenated
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.numbering import added_up, numbered
from headwater.table.stream.operators.aggregate_state import ColumnState, ttl_config
from headwater.table.stream.operators.base import EpochOperator

Count = Callable[[np.ndarray, np.ndarray], np.ndarray]

_COUNTS: dict[tuple[str, bool], Count] = {
    ("UNION", False): lambda left, right: ((left > 0) | (right > 0)).astype(np.int64),
    ("UNION", True): lambda left, right: left + right,
    ("INTERSECT", False): lambda left, right: ((left > 0) & (right > 0)).astype(np.int64),
    ("INTERSECT", True): np.minimum,
    ("EXCEPT", False): lambda left, right: ((left > 0) & (right <= 0)).astype(np.int64),
    ("EXCEPT", True): lambda left, right: left - right,
}


class SetOperationOperator(EpochOperator):
    """Keyed by all columns, of both inputs. NULL equals NULL. Both inputs have the types of `columns`."""

    def __init__(
        self,
        left: Sequence[Column],
        right: Sequence[Column],
        operator: str,
        all: bool,
        columns: Sequence[Column],
        *,
        ttl_ms: int | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__([left, right], columns, zone)
        self.keys = KeyColumns(range(len(columns)))
        self._operation = operator, all
        self._ttl_ms = ttl_ms

    def open(self) -> None:
        super().open()
        kinds = [pa.int64(), pa.int64()]
        self._counts = ColumnState(self.backend, "counts", kinds, (0, 0), ttl_config(self._ttl_ms))

    def finish(self, taken: list[Changes]) -> None:
        sides = [each.with_rows(pa.RecordBatch.from_arrays(each.rows.columns, schema=self.schema)) for each in taken]
        changes = concatenated(sides, self.schema)
        if not len(changes):
            return
        numbers, firsts = numbered(changes.rows.columns, len(changes))
        different = Changes(changes.rows.take(pa.array(firsts)))
        keys = self.keys.of(different)
        self.backend.prefetch(keys)
        entries = self._counts.entries(keys)
        before = [column.to_numpy() for column in self._counts.columns(entries)]
        weights, border = changes.weight_array(), len(taken[0])
        after = [
            before[0] + added_up(weights[:border], numbers[:border], len(keys)),
            before[1] + added_up(weights[border:], numbers[border:], len(keys)),
        ]
        lives = (after[0] > 0) | (after[1] > 0)
        self._counts.write(keys, entries, [pa.array(each) for each in after], lives.tolist())
        change = self._result(after) - self._result(before)
        places = np.flatnonzero(change)
        rows = different.rows.take(pa.array(places))
        self.emit(Changes(rows, None if (change[places] == 1).all() else change[places]))

    def _result(self, counts: list[np.ndarray]) -> np.ndarray:
        """How often each row is in the result."""
        left, right = (np.maximum(each, 0) for each in counts)
        return np.maximum(_COUNTS[self._operation](left, right), 0)
