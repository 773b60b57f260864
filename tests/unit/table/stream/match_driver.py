"""Runs MATCH_RECOGNIZE of a query on rows, epoch by epoch, without a job."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any

from headwater.operators.base import OperatorContext
from headwater.state.backends import make_keyed_backend
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.plan.match import Match
from headwater.table.plan.nodes import Plan
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.operators.match import MatchOperator
from headwater.table.stream.rows import thawed_rows

START = datetime.datetime(2011, 4, 1, 10)
START_MS = int(START.replace(tzinfo=datetime.UTC).timestamp() * 1000)
TICKER = "symbol STRING, rowtime TIMESTAMP(3), price INT, tax INT"


def match_of(plan: Plan) -> Match:
    return plan if isinstance(plan, Match) else match_of(plan.inputs()[0])


@cache
def environment() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        f"CREATE TABLE Ticker ({TICKER}, WATERMARK FOR rowtime AS rowtime) WITH ('connector' = 'datagen')"
    )
    return t_env


class Collected:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def emit(self, values: list[Changes], timestamps: Any) -> None:
        for changes in values:
            assert changes.weights is None
            self.rows += changes.rows.to_pylist()

    def emit_watermark(self, watermark: int) -> None: ...


def run(sql: str, epochs: list[list[tuple[Any, ...]]], watermarks: list[int], backend: str = "hashmap") -> list[Any]:
    """The rows of a query's match. Rows are (symbol, seconds after START, price, tax)."""
    node = match_of(environment().sql_query(sql)._plan)
    operator, out = MatchOperator(node.input.columns, node), Collected()
    state = make_keyed_backend(backend, "match", 128, range(128), {})
    operator.setup(OperatorContext("match", "match", 0, 1, 128, keyed_backend=state), out)  # type: ignore[arg-type]
    operator.open()
    for epoch, (rows, watermark) in enumerate(zip(epochs, watermarks, strict=True)):
        state.begin_epoch()
        operator.context.epoch = epoch
        stored = [(symbol, (START_MS + at * 1000) * 1000, price, tax) for symbol, at, price, tax in rows]
        operator.process_batch([Changes(thawed_rows(stored, schema_of(node.input.columns)))], None)
        operator.process_watermark(watermark)
        operator.end_epoch()
        operator.prepare_commit()
        state.commit_epoch(cut=False)
    names = [column.name for column in node.columns]
    return [dict(zip(names, row.values(), strict=True)) for row in out.rows]
