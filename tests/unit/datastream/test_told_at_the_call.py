"""What cannot work is told by the call that asks for it, not by the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow
import pytest

from headwater.common.errors import TypeMismatchError, UserCodeError
from headwater.common.typeinfo import Types
from headwater.common.types import Row
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.datastream.connectors.bulk_writers import BulkWriters
from headwater.operators.aggregate import KeyedAggregateOperator
from headwater.testing import OneInputOperatorHarness

NAMED = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Pair(NamedTuple):
    word: str
    count: int


def streams(env: StreamExecutionEnvironment) -> list[DataStream]:
    """Streams whose records are known to have two fields."""
    return [
        env.from_collection([Row(word="a", count=1)], NAMED),
        env.from_collection([("a", 1)], PAIR),
        env.from_collection([("a", 1)]),
        env.from_collection([("a", 1)]).rebalance(),
        env.from_collection([1]).map(lambda n: ("a", n), PAIR),
        env.from_collection([1])
        .map(lambda n: ("a", n), PAIR)
        .filter(bool)
        .union(env.from_collection([("b", 2)], PAIR)),
        env.from_collection([Pair("a", 1)]),
        env.from_collection([{0: "a", 1: 1, -1: 2, "count": 3, "word": 5}]),
    ]


CALLS: dict[str, Callable[[DataStream, Any], Any]] = {
    "sum": lambda stream, field: stream.key_by(lambda each: 1).sum(field),
    "min": lambda stream, field: stream.key_by(lambda each: 1).min(field),
    "max_by": lambda stream, field: stream.key_by(lambda each: 1).max_by(field),
    "key_by": lambda stream, field: stream.key_by(field),
    "partition_custom": lambda stream, field: stream.partition_custom(lambda key, n: 0, field),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("field", ["nope", 2, -3])
def test_a_field_that_is_not_there(name: str, field: int | str) -> None:
    for stream in streams(StreamExecutionEnvironment.get_execution_environment()):
        with pytest.raises(TypeMismatchError, match=rf"{name}\({field!r}\)"):
            CALLS[name](stream, field)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("field", [0, 1, -1])
def test_a_field_that_is_there(name: str, field: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    for stream in streams(env):
        CALLS[name](stream, field)
    CALLS[name](streams(env)[0], "count")


def test_where_records_are_not_known_the_job_tells() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).map(str).key_by(lambda each: each).sum("nope")
    env.from_collection([]).key_by(lambda each: each).sum("nope")
    harness = OneInputOperatorHarness(KeyedAggregateOperator(lambda pair: pair[0], "sum", "nope"), lambda pair: pair[0])
    with pytest.raises(UserCodeError, match="has no such field"):
        harness.process_element(("a", 1))  # the first of its key


def test_parquet_takes_schemas_of_pyarrow() -> None:
    with pytest.raises(TypeMismatchError, match=r"expects a pyarrow.Schema or nothing, found RowTypeInfo"):
        BulkWriters.parquet(NAMED)
    BulkWriters.parquet(pyarrow.schema([("word", pyarrow.string())]))
