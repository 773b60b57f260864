"""The law of SQL on streams, as a test: after every epoch, the sink holds what a batch query gives for the rows so far.

The batch query runs in DuckDB, which shares nothing with headwater. All queries of a family run in one job, in process,
over random changes in random epochs, with crashes.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import pickle
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from headwater.common import Row, Types, WatermarkStrategy
from headwater.common.config_options import STATE_BACKEND
from headwater.common.configuration import Configuration
from headwater.common.errors import SqlError
from headwater.common.types import RowKind
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.table import Schema, StreamTableEnvironment
from headwater.testing import PAUSE, CollectingSink, JobCrashed, ScriptSource, in_process

NAMES = ("tag", "id", "k", "v", "d", "ts", "f", "b")
TYPE = Types.ROW_NAMED(
    list(NAMES),
    [
        Types.STRING(), Types.INT(), Types.STRING(), Types.LONG(), Types.BIG_DEC(), Types.SQL_TIMESTAMP(),
        Types.DOUBLE(), Types.BOOLEAN(),
    ],
)  # fmt: skip
SCHEMA = (
    Schema.new_builder()
    .column("tag", "STRING")
    .column("id", "INT")
    .column("k", "STRING")
    .column("v", "BIGINT")
    .column("d", "DECIMAL(10, 2)")
    .column("ts", "TIMESTAMP(3)")
    .column("f", "DOUBLE")
    .column("b", "BOOLEAN")
)
ARROW = pa.schema(
    [
        ("tag", pa.string()),
        ("id", pa.int32()),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("d", pa.decimal128(10, 2)),
        ("ts", pa.timestamp("us")),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("wm0", pa.int64()),
    ]
)
START = datetime.datetime(2024, 1, 1)
DELAY_MS = 3_000
NEVER = -(2**62)
ALWAYS = 2**62

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Query:
    """A query on `t` and `u`, both with columns id, k, v, d, ts, f, b.

    `duck` is the text for DuckDB, if it is another. There, `{wm}` is the watermark in milliseconds, and rows have
    `wm0`: the watermark before the epoch of their coming.
    """

    sql: str
    duck: str | None = None


def random_rows(seed: int, epochs: int, per_epoch: int, deletes: bool) -> list[list[tuple[RowKind, Values]]]:
    """Changes by epoch: inserts, duplicates, NULLs, late rows, and deletes of rows that are there."""
    rng = random.Random(seed)
    held: list[Values] = []
    found = []
    clock = 0
    for _ in range(epochs):
        changes: list[tuple[RowKind, Values]] = []
        for _ in range(rng.randint(0, per_epoch)):
            if deletes and held and rng.random() < 0.3:
                changes.append(
                    (rng.choice([RowKind.DELETE, RowKind.UPDATE_BEFORE]), held.pop(rng.randrange(len(held))))
                )
                continue
            if held and rng.random() < 0.1:
                row = rng.choice(held)
            else:
                clock += rng.choice([0, 200, 1_000, 4_000])
                ts = START + datetime.timedelta(milliseconds=clock + rng.choice([0, 0, 0, -2_000, -15_000]))
                row = (
                    rng.choice(["t", "t", "u"]),
                    rng.choice([None, *range(8), *range(8)]),
                    rng.choice(["a", "b", "c", None]),
                    rng.choice([None, *range(-3, 6)]),
                    rng.choice([None, *(Decimal(rng.randrange(-500, 500)).scaleb(-2) for _ in range(4)), Decimal(1)]),
                    ts,
                    rng.choice([None, -1.5, 0.0, 0.25, 2.0, 7.75]),
                    rng.choice([None, True, False]),
                )
            held.append(row)
            changes.append((rng.choice([RowKind.INSERT, RowKind.UPDATE_AFTER]) if deletes else RowKind.INSERT, row))
        found.append(changes)
    return found


@dataclass(frozen=True)
class Setting:
    """How a job runs."""

    seed: int
    deletes: bool = True
    """Rows are updated and deleted; otherwise they have an event time, and only come."""
    backend: str = "hashmap"
    crash: bool = False
    rescale: int | None = None
    """The parallelism from the third epoch on."""
    epochs: int = 5
    size: int = 14


@dataclass(frozen=True)
class Difference:
    """The first epoch after which a query's sink is not what it should be."""

    query: Query
    epoch: int
    expected: Counter[Values]
    found: Counter[Values]

    def __str__(self) -> str:
        lost, more = dict(self.expected - self.found), dict(self.found - self.expected)
        return f"after epoch {self.epoch}: {self.query.sql}\nlost: {lost}\ntoo much: {more}"


def run(
    queries: Sequence[Query], seed: int, *, deletes: bool, backend: str, crash: bool, epochs: int = 5, size: int = 14
) -> None:
    """Run the queries as one job, and compare after every epoch."""
    found = differences(queries, Setting(seed, deletes, backend, crash, epochs=epochs, size=size))
    assert not found, f"seed {seed}, " + "\n\n".join(str(each) for each in found)


def differences(queries: Sequence[Query], setting: Setting) -> list[Difference]:
    """Run the queries as one job, and compare after every epoch. An exception of the job goes through."""
    script: list[Any] = []
    for changes in random_rows(setting.seed, setting.epochs, setting.size, setting.deletes):
        script += [Row.of_kind(kind, *values) for kind, values in changes]
        script.append(PAUSE)
    source = ScriptSource(script)
    raw = CollectingSink()
    sinks = [CollectingSink() for _ in queries]
    with in_process(epoch_records=1_000) as here:
        if setting.crash:
            at = random.Random(setting.seed).choice(["processed", "acked", "manifest-written"])
            here.crash_job(epoch=2, at=at)
            here.fail_attempt(epoch=1)
        if setting.rescale is not None:
            parallelism = setting.rescale
            here.call(lambda job: job.rescale(parallelism), epoch=2)
        try:
            _program(source, queries, raw, sinks, setting)
        except JobCrashed:
            _program(source, queries, raw, sinks, setting)
    return _compared(queries, _by_epoch(raw), [_by_epoch(sink) for sink in sinks], setting.deletes)


def _compared(
    queries: Sequence[Query],
    changes_by_epoch: dict[int, list[Any]],
    outputs: Sequence[dict[int, list[Any]]],
    deletes: bool,
) -> list[Difference]:
    last = max([*changes_by_epoch, *(epoch for each in outputs for epoch in each)], default=0)
    held: Counter[Values] = Counter()
    tables: list[Counter[Values]] = [Counter() for _ in queries]
    wrong: dict[int, Difference] = {}
    watermark = NEVER
    for epoch in range(last + 1):
        before = watermark
        for kind, values in changes_by_epoch.get(epoch, []):
            held[(*values, NEVER if deletes else before)] += _sign(kind)
            stamp = round((values[5] - datetime.datetime(1970, 1, 1)).total_seconds() * 1000)
            watermark = max(watermark, stamp - DELAY_MS)
        for table, output in zip(tables, outputs, strict=True):
            for kind, values in output.get(epoch, []):
                table[tuple(normal(value) for value in values)] += _sign(kind)
        with _duckdb(held) as connection:
            for place, (query, table) in enumerate(zip(queries, tables, strict=True)):
                if place not in wrong:
                    expected = _expected(connection, query, watermark if epoch < last else ALWAYS)
                    found = Counter({row: count for row, count in table.items() if count})
                    if found != expected:
                        wrong[place] = Difference(query, epoch, expected, found)
    return list(wrong.values())


def _sign(kind: RowKind) -> int:
    return -1 if kind in (RowKind.DELETE, RowKind.UPDATE_BEFORE) else 1


def _program(
    source: ScriptSource,
    queries: Sequence[Query],
    raw: CollectingSink,
    sinks: Sequence[CollectingSink],
    setting: Setting,
) -> None:
    configuration = Configuration()
    configuration.set(STATE_BACKEND, setting.backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    stream, tables = _tables(env, source, setting.deletes)
    stream.map(_plain).sink_to(raw)
    for query, sink in zip(queries, sinks, strict=True):
        tables.to_changelog_stream(tables.sql_query(query.sql)).map(_plain).sink_to(sink)
    env.execute("oracle")


def refusal(query: Query, deletes: bool) -> SqlError | None:
    """Why the query cannot run, if planning says so."""
    env = StreamExecutionEnvironment.get_execution_environment()
    _, tables = _tables(env, ScriptSource([]), deletes)
    try:
        tables.to_changelog_stream(tables.sql_query(query.sql))
    except SqlError as error:
        return error
    return None


def _tables(
    env: StreamExecutionEnvironment, source: ScriptSource, deletes: bool
) -> tuple[DataStream, StreamTableEnvironment]:
    tables = StreamTableEnvironment.create(env)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "changes", TYPE)
    schema = SCHEMA.build()
    if deletes:
        everything = tables.from_changelog_stream(stream, schema)
    else:
        timed = Schema.new_builder().watermark("ts", "ts - INTERVAL '3' SECOND").build().watermark
        everything = tables.from_data_stream(stream, Schema(schema.columns, timed, ()))
    tables.create_temporary_view("everything", everything)
    for name in ("t", "u"):
        tables.execute_sql(
            f"CREATE TEMPORARY VIEW {name} AS SELECT id, k, v, d, ts, f, b FROM everything WHERE tag = '{name}'"
        )
    return stream, tables


def _plain(row: Row) -> tuple[RowKind, Values]:
    return row.get_row_kind(), tuple(row)


def _by_epoch(sink: CollectingSink) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for name in sorted(os.listdir(sink.directory)):
        if name.endswith(".part"):
            with open(os.path.join(sink.directory, name), "rb") as file:
                found.setdefault(int(name.split("-")[0]), []).extend(value for value, _ in pickle.load(file))
    return found


@contextlib.contextmanager
def _duckdb(held: Counter[Values]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with `t` and `u`, in which NULL is the smallest value, as it is in Flink."""
    rows = [row for row, count in held.items() for _ in range(count)]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name in ("t", "u"):
            own = [row for row in rows if row[0] == name]
            columns = list(zip(*own, strict=True)) if own else [()] * len(ARROW)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)]
            connection.register(name, pa.Table.from_arrays(arrays, schema=ARROW))
        yield connection


def _expected(connection: duckdb.DuckDBPyConnection, query: Query, watermark: int) -> Counter[Values]:
    text = (query.duck or query.sql).replace("{wm}", str(watermark))
    return Counter(tuple(normal(value) for value in row) for row in connection.execute(text).fetchall())


def normal(value: Any) -> Any:
    """Equal values of both engines as one."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value, 6)
    if isinstance(value, Decimal):
        return round(float(value), 6) if value != int(value) else int(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, list):
        return tuple(normal(each) for each in value)
    if isinstance(value, dict):
        return tuple(sorted((normal(k), normal(v)) for k, v in value.items()))
    return value
