"""After every epoch the sink holds what DuckDB computes from the rows so far. To add a query, add a line in `shapes/`.

`ORACLE=50 pytest tests/unit/table/stream/test_oracle.py` tries 50 seeds of each family, on both state backends.
"""

from __future__ import annotations

import os
import zlib

import pytest

from tests.unit.table.stream.oracle import Query, run
from tests.unit.table.stream.shapes.aggregates import AGGREGATES
from tests.unit.table.stream.shapes.calc import CALC
from tests.unit.table.stream.shapes.event_time import EVENT_TIME
from tests.unit.table.stream.shapes.joins import JOINS
from tests.unit.table.stream.shapes.queries_in_queries import QUERIES_IN_QUERIES
from tests.unit.table.stream.shapes.ranks import RANKS

UPDATING = {**CALC, **AGGREGATES, **JOINS, **QUERIES_IN_QUERIES, **RANKS}


def _queries(found: list[Query | str]) -> list[Query]:
    return [each if isinstance(each, Query) else Query(each) for each in found]


def _settings(family: str) -> list[tuple[int, str]]:
    """Seeds and backends."""
    if "ORACLE" in os.environ:
        return [(seed, backend) for seed in range(int(os.environ["ORACLE"])) for backend in ("hashmap", "rocksdb")]
    return [(0, "rocksdb" if zlib.crc32(family.encode()) % 2 else "hashmap")]


@pytest.mark.parametrize("family", UPDATING)
def test_over_rows_that_are_updated_and_deleted(family: str) -> None:
    for seed, backend in _settings(family):
        run(_queries(UPDATING[family]), seed + 100, deletes=True, backend=backend, crash=True)


@pytest.mark.parametrize("family", EVENT_TIME)
def test_over_rows_in_event_time(family: str) -> None:
    for seed, backend in _settings(family):
        run(_queries(EVENT_TIME[family]), seed + 200, deletes=False, backend=backend, crash=True, size=20)


def test_there_are_three_hundred_shapes() -> None:
    shapes = {query for found in (*UPDATING.values(), *EVENT_TIME.values()) for query in _queries(found)}
    assert len(shapes) >= 300
