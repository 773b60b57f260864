"""What an operator of SQL costs per row, without a job around it: `python -m benchmarks.sql_operators`.

Rows of an int key at random, an int and a time, in epochs of a fixed number of rows that come in frames. Each epoch
ends with the operator's netted changelog and the commit of its state. A first epoch, which is not measured, has every
key once. Event time goes on by 10 s per epoch; the watermark follows at its end. With --checkpoints there is a delta at
the end of each epoch, too. Times are CPU time of the process.

group      SELECT k, COUNT(*), SUM(v) GROUP BY k
distinct   SELECT k, COUNT(DISTINCT v) GROUP BY k
window     COUNT(*) and SUM(v) by key and TUMBLE of 10 s (the window is assigned before)
session    COUNT(*) by key and SESSION with a gap of 2 s
top        the two greatest v of each key, append-only
last       the latest row of each key, append-only
over       SUM(v) OVER (PARTITION BY k ORDER BY time ROWS 2 PRECEDING)
join       INNER JOIN by k; the first epoch is the right side, then of 12 rows 11 are of the left side
left       the same as LEFT JOIN
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.base import OperatorContext
from headwater.runtime.slot.garbage import GarbageCollection
from headwater.state.backends import make_keyed_backend
from headwater.table.functions.registry import lookup
from headwater.table.plan import calls
from headwater.table.plan.expressions import AggregateCall, Column, Frame, FrameBound, Literal, SortKey, WindowCall, ref
from headwater.table.plan.nodes import Values, WindowTable
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.operators.aggregate import GroupAggregateOperator
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.operators.join import JoinOperator
from headwater.table.stream.operators.over import over_operator
from headwater.table.stream.operators.rank import RankOperator
from headwater.table.stream.operators.session import SessionAssignOperator
from headwater.table.types import logical as t

TIMESTAMP = t.TimestampType(precision=3)
K, V = Column(1, "k", t.BIGINT), Column(2, "v", t.BIGINT)
TIME, END = Column(3, "ts", TIMESTAMP), Column(4, "window_end", TIMESTAMP)
INPUT = (K, V, TIME, END)
N, S = Column(11, "n", t.BIGINT), Column(12, "s", t.BIGINT)
OTHER = tuple(Column(20 + column.id, column.name, column.type) for column in INPUT)
FRAME = 16_384
EPOCH_MS = 10_000


def _call(name: str, *arguments: Column, distinct: bool = False) -> AggregateCall:
    function = lookup(name)
    assert function is not None
    return calls.aggregate(function, [ref(each) for each in arguments], distinct)


def _over() -> EpochOperator:
    two = Literal(t.INT.not_null(), 2)
    frame = Frame("ROWS", FrameBound("PRECEDING", two), FrameBound("CURRENT ROW"))
    call = WindowCall(t.BIGINT, _call("SUM", V), (ref(K),), (SortKey(ref(TIME)),), frame)
    return over_operator(INPUT, [(S, call)], (*INPUT, S), time=TIME)


def _top(column: Column, last: int) -> EpochOperator:
    order = [SortKey(ref(column), descending=True)]
    return RankOperator(INPUT, (K,), order, 1, last, None, "ROW_NUMBER", INPUT, append_only=True)


def _join(kind: str) -> EpochOperator:
    return JoinOperator(INPUT, OTHER, kind, INPUT[:1], OTHER[:1], None, (*INPUT, *OTHER))


_BOUNDS = tuple(Column(20 + n, name, TIMESTAMP) for n, name in enumerate(("start", "end", "time")))
_SESSIONS = WindowTable(Values((), INPUT), "SESSION", TIME, 2000, partition_by=(K,), added=_BOUNDS)
_BOTH = [(N, _call("COUNT")), (S, _call("SUM", V))]
OPERATORS: dict[str, Callable[[], EpochOperator]] = {
    "group": lambda: GroupAggregateOperator(INPUT, (K,), _BOTH, (K, N, S), append_only=True),
    "distinct": lambda: GroupAggregateOperator(INPUT, (K,), [(N, _call("COUNT", V, distinct=True))], (K, N)),
    "window": lambda: GroupAggregateOperator(INPUT, (K, END), _BOTH, (K, END, N, S), window_end=END),
    "session": lambda: SessionAssignOperator(INPUT, _SESSIONS, _SESSIONS.columns),
    "top": lambda: _top(V, 2),
    "last": lambda: _top(TIME, 1),
    "over": _over,
    "join": lambda: _join("INNER"),
    "left": lambda: _join("LEFT"),
}


class _Counted:
    """Takes the output and counts its rows."""

    rows = 0

    def emit(self, values: list[Any], timestamps: Any) -> None:
        self.rows += sum(len(changes) for changes in values)

    def emit_watermark(self, watermark: int) -> None: ...


def measure(
    name: str, backend_kind: str, keys: int, rows: int, epochs: int, checkpoints: bool = False
) -> tuple[float, int]:
    """Return CPU seconds, and how many rows came out."""
    operator, out, garbage = OPERATORS[name](), _Counted(), GarbageCollection()
    backend = make_keyed_backend(backend_kind, "benchmark", 128, range(128))
    context = OperatorContext("benchmark", "benchmark", 0, 1, 128, keyed_backend=backend)
    operator.setup(context, out)  # type: ignore[arg-type]
    operator.open()
    random = np.random.default_rng(1)
    everything = [_frames(np.arange(keys), random, 0)]
    everything += [_frames(random.integers(0, keys, rows), random, epoch + 1) for epoch in range(epochs)]
    began = 0.0
    for epoch, frames in enumerate(everything):
        if epoch == 1:
            out.rows, began = 0, time.process_time()
        garbage.begin_epoch()
        context.epoch = epoch
        backend.begin_epoch()
        for number, frame in enumerate(frames):
            right = len(operator.inputs) > 1 and (epoch == 0 or number % 12 == 0)
            operator.process_batch([frame], None, int(right))
        operator.process_watermark((epoch + 1) * EPOCH_MS - 1)
        operator.end_epoch()
        if checkpoints:
            backend.delta_sections()
        backend.commit_epoch(cut=checkpoints)
        if checkpoints:
            backend.checkpoint_completed()
        garbage.epoch_ended()
    return time.process_time() - began, out.rows


def _frames(keys: np.ndarray, random: np.random.Generator, epoch: int) -> list[Changes]:
    times = np.sort(random.integers(0, EPOCH_MS, len(keys))) + epoch * EPOCH_MS
    ends = np.full(len(keys), (epoch + 1) * EPOCH_MS)
    columns = [pa.array(keys), pa.array(random.integers(0, 1000, len(keys)))]
    columns += [pa.array(each * 1000).view(pa.timestamp("us")) for each in (times, ends)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema_of(INPUT))
    return [Changes(batch.slice(start, FRAME)) for start in range(0, len(keys), FRAME)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", help=f"of {', '.join(OPERATORS)}; all of them if there is none")
    parser.add_argument("--backend", default="heap")
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--checkpoints", action="store_true")
    given = parser.parse_args()
    for name in given.operators or OPERATORS:
        for keys in given.keys:
            seconds, emitted = measure(name, given.backend, keys, given.rows, given.epochs, given.checkpoints)
            rows = given.rows * given.epochs
            print(
                f"{name}, {given.backend}, {keys:,} keys, epochs of {given.rows:,} rows: {rows / seconds:,.0f} rows/s"
                f" of CPU, {emitted:,} rows out",
                flush=True,
            )


if __name__ == "__main__":
    main()
