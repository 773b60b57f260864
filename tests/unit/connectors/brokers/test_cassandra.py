"""The Cassandra sink with the driver's own prepared statements, and a session that is a stub: no server can be had."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from cassandra import ConsistencyLevel as Levels
from cassandra import InvalidRequest, OperationTimedOut
from cassandra.cqltypes import Int32Type, UTF8Type
from cassandra.protocol import ColumnMetadata
from cassandra.query import UNSET_VALUE, PreparedStatement

from headwater.common import Row
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.time import Duration
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.cassandra import (
    CassandraFailureHandler,
    CassandraSink,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)
from headwater.testing import STEPS, CollectingSink, JobCrashed, in_process

QUERY = "INSERT INTO shop.counts (word, n) VALUES (?, ?)"


class Table:
    """What stub sessions write to: {word: n}, as upserts leave it. `errors` are for the next writes."""

    rows: dict[str, int | None]
    writes: list[tuple[Any, int | None]]
    errors: list[Exception]
    lock = threading.Lock()


class StubCluster:
    def connect(self) -> StubCluster:
        return self

    def prepare(self, query: str) -> PreparedStatement:
        if query != QUERY:
            raise InvalidRequest(f"no such statement: {query}")
        columns = [ColumnMetadata("shop", "counts", *each) for each in (("word", UTF8Type), ("n", Int32Type))]
        return PreparedStatement(columns, b"id", [0], query, "shop", 4, None, None)

    def execute_async(self, bound: Any, timeout: float) -> StubCluster:
        with Table.lock:
            if Table.errors:
                raise Table.errors.pop(0)
            word, n = bound.values
            number = n if n is UNSET_VALUE or n is None else Int32Type.deserialize(n, 4)
            Table.writes.append(((word.decode(), number), bound.consistency_level))
            if number is not UNSET_VALUE:
                Table.rows[word.decode()] = number
        return self

    def result(self) -> None: ...

    def shutdown(self) -> None: ...


@pytest.fixture(autouse=True)
def table() -> type[Table]:
    Table.rows, Table.writes, Table.errors = {}, [], []
    return Table


def run(records: list[Any], *settings: tuple[Any, ...], letters: CollectingSink | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # Through state: so that every step of an epoch is there.
    stream = env.from_collection(records).key_by(lambda record: 0).reduce(lambda _, record: record)
    builder = CassandraSink.add_sink(stream).set_query(QUERY)
    builder.set_cluster_builder(ClusterBuilder(StubCluster))
    for name, *arguments in settings:
        getattr(builder, name)(*arguments)
    sink = builder.build().name("counts").uid("counts")
    if letters is not None:
        sink.with_dead_letters(letters)
    env.execute("to Cassandra")


WORDS = [(f"w{number % 10}", number) for number in range(40)]
LAST = {f"w{number}": number + 30 for number in range(10)}


@pytest.mark.parametrize("log", [[], [("enable_write_ahead_log",)]], ids=["direct", "log"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_each_step_leaves_the_last_values(step: str, log: list[Any], table: type[Table]) -> None:
    with in_process(epoch_records=7) as here:
        here.crash_job(epoch=3, at=step)
        with pytest.raises(JobCrashed):
            run(WORDS, *log)
        run(WORDS, *log)
    assert table.rows == LAST
    if log and step not in ("manifest-written", "sink-committed"):
        assert len(table.writes) == 40, "with the log nothing of an epoch that failed is written"


@pytest.mark.parametrize("log", [[], [("enable_write_ahead_log",)]], ids=["direct", "log"])
def test_trouble_that_passes(log: list[Any], table: type[Table]) -> None:
    table.errors = [OperationTimedOut("slow"), OperationTimedOut("slow")]
    with in_process(epoch_records=7):
        run(WORDS, *log, ("set_max_concurrent_requests", 3, Duration.of_seconds(5)))
    assert table.rows == LAST


def test_rows_dicts_and_nulls(table: type[Table]) -> None:
    options = MapperOptions().consistency_level(ConsistencyLevel.LOCAL_QUORUM)
    with in_process():
        run([Row(word="a", n=1), {"n": 2, "word": "b"}, ["c", None]], ("set_mapper_options", options))
        assert table.rows == {"a": 1, "b": 2, "c": None}
        assert {level for _, level in table.writes} == {Levels.LOCAL_QUORUM}
        run([("a", None), {"word": "b", "n": None}], ("enable_ignore_null_fields",))
    assert table.rows == {"a": 1, "b": 2, "c": None}, "what is None stays as it was"


def test_records_that_do_not_fit_are_refused(table: type[Table]) -> None:
    letters = CollectingSink()
    with in_process():
        run([("a", 1), ("b", "text"), ("c", 1, 2), "text", {"n": 1}, ("d", 1)], letters=letters)
    assert table.rows == {"a": 1, "d": 1} and len(letters.results()) == 4


def test_errors_that_do_not_pass() -> None:
    with in_process(), pytest.raises(HeadwaterError, match=r"prepare 'INSERT nothing': InvalidRequest"):
        run(WORDS, ("set_query", "INSERT nothing"))


def test_settings() -> None:
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    for bad in (
        lambda: CassandraSink.add_sink("stream"),  # type: ignore[arg-type]
        lambda: CassandraSink.add_sink(stream).set_host("h").build(),
        lambda: CassandraSink.add_sink(stream).set_query(QUERY).build(),
        lambda: CassandraSink.add_sink(stream).set_max_concurrent_requests(0),
        lambda: CassandraSink.add_sink(stream).set_cluster_builder(StubCluster),  # type: ignore[arg-type]
        lambda: CassandraSink.add_sink(stream).set_failure_handler(print),  # type: ignore[arg-type]
        lambda: MapperOptions().consistency_level(4),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigurationError):
            bad()
    assert isinstance(CassandraFailureHandler.no_op(), CassandraFailureHandler)
