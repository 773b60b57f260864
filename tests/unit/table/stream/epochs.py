"""Runs one operator of SQL in epochs, as a slot does, and keeps the table that its changes add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import cloudpickle
import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.operators.base import OperatorContext
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.window.base import LATE_RECORDS_DROPPED
from headwater.state.backends import make_keyed_backend
from headwater.state.snapshot.section import Section
from headwater.table.functions.registry import lookup
from headwater.table.plan import calls
from headwater.table.plan.expressions import AggregateCall, Column, Literal, Rex, ref
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.rows import frozen_rows, thawed_rows
from headwater.table.types import logical as t

Row = tuple[Any, ...]
History = list[list[tuple[Row, int]]]
BACKENDS = ["heap", "rocksdb"]


def aggregate(
    name: str, *arguments: Column | Rex, distinct: bool = False, filter: Column | None = None
) -> AggregateCall:
    function = lookup(name)
    assert function is not None
    rexes = [ref(each) if isinstance(each, Column) else each for each in arguments]
    return calls.aggregate(function, rexes, distinct, None if filter is None else ref(filter))


def text(value: str) -> Literal:
    return Literal(t.STRING.not_null(), value)


def changes_of(rows: Sequence[tuple[Row, int]], columns: Sequence[Column]) -> Changes:
    batch = thawed_rows([row for row, _ in rows], schema_of(columns))
    weights = np.array([weight for _, weight in rows], np.int64)
    return Changes(batch, None if (weights == 1).all() else weights)


def queried(query: str, **tables: tuple[Sequence[Column], Sequence[Row]]) -> Counter[Row]:
    """What DuckDB finds, in the form of `frozen_rows`. Each table: its columns, which have names, and its rows."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, (columns, rows) in tables.items():
            batch = thawed_rows(rows, schema_of(columns))
            connection.register(name, pa.Table.from_arrays(batch.columns, names=[column.name for column in columns]))
        found = connection.sql(query).to_arrow_table()
    return Counter(row for part in found.to_batches() for row in frozen_rows(part))


class Epochs:
    """An operator in one partition. `table` is what its changes add up to; `emitted` the changes of the last epoch."""

    def __init__(
        self, operator: EpochOperator, kind: str = "heap", replay: bool = False, key_groups: range = range(128)
    ) -> None:
        self._kind, self._key_groups, self._pickled = kind, key_groups, cloudpickle.dumps(operator)
        self.replay = replay
        """Run every epoch twice, the first attempt is rolled back; and restore from a snapshot after each."""
        self.late = 0
        """How many rows were dropped, those of attempts that were rolled back too."""
        self._start(operator, [])
        self.table: Counter[Row] = Counter()
        self.emitted: list[tuple[Row, int]] = []
        self.watermark = MIN_WATERMARK
        """The last one that the operator emitted."""
        self._committed = MIN_WATERMARK
        self._epoch = -1

    def _start(self, operator: EpochOperator, sections: Iterable[Section]) -> None:
        self.operator = operator
        self.backend = make_keyed_backend(self._kind, "operator", 128, self._key_groups)
        for section in sections:
            self.backend.load_section(section)
        context = OperatorContext("operator", "operator", 0, 1, 128, keyed_backend=self.backend)
        operator.setup(context, self)  # type: ignore[arg-type]
        operator.open()

    def run(self, *taken: Sequence[tuple[Row, int]], watermark: int | None = None, now: int = 0, cuts: int = 1) -> None:
        """An epoch with rows and weights of each input, cut into `cuts` parts."""
        self._epoch += 1
        for attempt in range(2 if self.replay else 1):
            self.backend.begin_epoch()
            self.backend.processing_time_ms = now
            context = self.operator.context
            context.epoch, context.watermark = self._epoch, self._committed
            self.operator.watermark_before = self._committed
            self.emitted = []
            self.operator.process_time(now)
            for place, (rows, columns) in enumerate(zip(taken, self.operator.inputs, strict=True)):
                for cut in range(cuts):
                    part = rows[cut * len(rows) // cuts : (cut + 1) * len(rows) // cuts]
                    if part:
                        self.operator.process_batch([changes_of(part, columns)], None, place)
            if watermark is not None and watermark > self._committed:
                self.operator.process_watermark(watermark)
            self.operator.end_epoch()
            if self.replay and not attempt:
                self.backend.rollback_epoch()
                self.operator.abort_epoch()
        self.backend.commit_epoch(cut=False)
        self._committed = self.operator.context.watermark
        counter = RuntimeContext(self.operator.context).get_metrics_group().counter(LATE_RECORDS_DROPPED)
        self.late += counter.get_count()
        counter.dec(counter.get_count())
        if self.replay:
            self._start(cloudpickle.loads(self._pickled), list(self.backend.full_sections()))
        for row, weight in self.emitted:
            self.table[row] += weight
            assert self.table[row] >= 0, f"{row} is taken back but not there"
            if not self.table[row]:
                del self.table[row]

    def end(self) -> None:
        self.run(*([] for _ in self.operator.inputs), watermark=MAX_WATERMARK)

    # -- the operator's output

    def emit(self, values: list[Any], timestamps: Any) -> None:
        for changes in values:
            assert changes.rows.schema == self.operator.schema
            self.emitted += zip(frozen_rows(changes.rows), changes.weight_array().tolist(), strict=True)

    def emit_watermark(self, watermark: int) -> None:
        self.watermark = watermark

    def emit_idle(self, idle: bool) -> None: ...


@st.composite
def histories(draw: st.DrawFn, row: st.SearchStrategy[Row], *, updating: bool = True, epochs: int = 4) -> History:
    """Epochs of changes; with `updating`, rows of earlier ones, and of the same, are taken back."""
    held: list[Row] = []
    found: History = []
    for _ in range(draw(st.integers(1, epochs))):
        come = draw(st.lists(row, max_size=6))
        held += come
        changes = [(each, 1) for each in come]
        if updating and held:
            gone = draw(st.lists(st.integers(0, len(held) - 1), max_size=4, unique=True))
            changes += [(held[place], -1) for place in gone]
            held = [each for place, each in enumerate(held) if place not in gone]
            changes = draw(st.permutations(changes))
        found.append(changes)
    return found


def held_after(history: History) -> list[Row]:
    """The rows that are there after all these epochs, in the order in which they came."""
    total: Counter[Row] = Counter()
    for changes in history:
        for row, weight in changes:
            total[row] += weight
    return [row for row, count in total.items() for _ in range(count)]
