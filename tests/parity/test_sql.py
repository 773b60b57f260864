"""Queries of batch mode give what Flink gave: names and types of columns, and rows (`make parity-sql` records)."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType
from headwater.table.types.type_text import parse_type
from tests.parity.sql import cases

QUERIES = cases.queries()
RECORDED = cases.recorded()
OWN: dict[str, tuple[str, list[list[Any]]]] = {
    "exists": ("a correlated query, which Flink did not plan into a sink", [["ann"], ["bob"]]),
    "not_exists": ("a correlated query, which Flink did not plan into a sink", [["eve"]]),
    "correlated_scalar": (
        "a correlated query, which Flink did not plan into a sink",
        [["ann", "15.50"], ["bob", "40.50"], ["eve", None]],
    ),
    "lateral_query": (
        "a correlated query, which Flink did not plan into a sink",
        [["ann", 1], ["ann", 3], ["bob", 2], ["bob", 5]],
    ),
    "over_range": ("Flink's generated code does not compile", [[1, 1], [2, 2], [3, 2], [4, 1], [5, 2], [6, 1]]),
    "group_session": (
        "Flink has no session windows in batch mode",
        [
            ["ann", "2020-01-01 10:00:05", 1], ["ann", "2020-01-01 10:01:10", 1], ["bob", "2020-01-01 10:00:15", 1],
            ["bob", "2020-01-01 10:03:30", 1], ["cid", "2020-01-01 10:03:00", 1], ["dan", "2020-01-01 11:00:00", 1],
        ],
    ),
    "group_hop": (
        "Flink gave windows of the year -3203507",
        [
            ["2020-01-01 09:59:00", "ann", 1], ["2020-01-01 10:00:00", "ann", 4], ["2020-01-01 10:01:00", "ann", 3],
            ["2020-01-01 09:59:00", "bob", 2], ["2020-01-01 10:00:00", "bob", 2], ["2020-01-01 10:02:00", "bob", 5],
            ["2020-01-01 10:03:00", "bob", 5], ["2020-01-01 10:02:00", "cid", 4], ["2020-01-01 10:03:00", "cid", 4],
            ["2020-01-01 10:59:00", "dan", 6], ["2020-01-01 11:00:00", "dan", 6],
        ],
    ),
    "array_access": (
        "Flink gave -1 for a key that a map does not have",
        [[1, 1, 3, 1, ["x", 10]], [2, 4, 1, None, ["y", 20]]],
    ),
}  # fmt: skip
"""{name: (why Flink's rows are not taken, the right rows)}"""
COMPARED = [name for name in QUERIES if "columns" in RECORDED[name]]


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for statement in cases.tables():
        environment.execute_sql(statement)
    return environment


def test_there_are_many() -> None:
    assert len(COMPARED) == len(QUERIES) >= 130
    assert {name for name in COMPARED if "rows" not in RECORDED[name]} <= set(OWN)


@pytest.mark.parametrize("name", COMPARED)
def test_columns_and_types_are_flinks(name: str, environment: TableEnvironment) -> None:
    columns = [(each.name, each.type) for each in environment.sql_query(QUERIES[name]).get_schema().fields]
    assert columns == [(column, parse_type(type_)) for column, type_ in RECORDED[name]["columns"]]


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", COMPARED)
def test_rows_are_flinks(name: str, environment: TableEnvironment) -> None:
    table = environment.sql_query(QUERIES[name])
    types = [each.type for each in table.get_schema().fields]
    with table.execute().collect() as rows:
        ours = [[plain(value, type_) for value, type_ in zip(row, types, strict=True)] for row in rows]
    recorded = OWN[name][1] if name in OWN else RECORDED[name]["rows"]
    theirs = [[plain(value, type_) for value, type_ in zip(row, types, strict=True)] for row in recorded]
    if not cases.is_ordered(QUERIES[name]):
        ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    assert ours == theirs


def plain(value: Any, type_: LogicalType) -> Any:
    """A value of ours, or of Flink's JSON, in one form."""
    if value is None:
        return None
    match type_:
        case t.DecimalType():
            return decimal.Decimal(str(value))
        case t.FloatType() | t.DoubleType():
            return float(value)
        case t.TimestampType() | t.LocalZonedTimestampType():
            if isinstance(value, str):
                value = datetime.datetime.fromisoformat(value.removesuffix("Z"))
            return value.replace(tzinfo=None)
        case t.DateType() | t.TimeType():
            return value if isinstance(value, str) else value.isoformat()
        case t.ArrayType():
            return [plain(each, type_.element) for each in value]
        case t.MapType():
            pairs = [(plain(key, type_.key), plain(each, type_.value)) for key, each in value.items()]
            return sorted(pairs, key=repr)
        case t.MultisetType():
            return sorted(value.items(), key=repr)
        case t.RowType():
            values = list(value.values()) if isinstance(value, dict) else list(value)
            return [plain(each, field.type) for each, field in zip(values, type_.fields, strict=True)]
    return value
