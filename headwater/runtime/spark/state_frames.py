"""Turns state of a savepoint into a DataFrame."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Protocol

from pyspark.sql import DataFrame as DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession as SparkSession
from pyspark.sql.types import StructType as StructType

from headwater.common.errors import StateError
from headwater.common.types import Row

_SAMPLE: Final = 100
"""Number of rows from which types are inferred."""
_TASKS_PER_CORE: Final = 2


class Rows(Protocol):
    """Rows of state, from `headwater.state_processor`. Picklable."""

    @property
    def columns(self) -> tuple[str, ...]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def splits(self, number: int) -> list[range]: ...
    def read(self, split: range) -> Iterator[Any]: ...


def state_frame(spark: SparkSession, rows: Rows, schema: StructType | str | None) -> DataFrame:
    """Return `rows` as a DataFrame. Tasks read their key groups from the snapshots; the driver reads a few rows."""
    chosen = _inferred(spark, rows) if schema is None else _parsed(rows, schema)
    names = chosen.fieldNames()
    splits = rows.splits(spark.sparkContext.defaultParallelism * _TASKS_PER_CORE)

    def read(split: range) -> Iterator[tuple[Any, ...]]:
        for row in rows.read(split):
            yield tuple(as_spark(getattr(row, name)) for name in names)

    frame: DataFrame = spark.createDataFrame(spark.sparkContext.parallelize(splits, len(splits)).flatMap(read), chosen)
    return frame


def _parsed(rows: Rows, schema: StructType | str) -> StructType:
    chosen: StructType = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    unknown = [name for name in chosen.fieldNames() if name not in rows.columns]
    if unknown:
        raise StateError(f"the schema has the column '{unknown[0]}'; the rows have {', '.join(rows.columns)}")
    return chosen


def _inferred(spark: SparkSession, rows: Rows) -> StructType:
    sample = [[as_spark(value) for value in row] for row in islice(rows, _SAMPLE)]
    if not sample:
        raise StateError("there are no rows to take the types from; give the schema")
    filled = [index for index in range(len(rows.columns)) if any(row[index] is not None for row in sample)]
    names = [rows.columns[index] for index in filled]
    try:
        schema: StructType = spark.createDataFrame(
            [tuple(row[index] for index in filled) for row in sample], names
        ).schema
    except Exception as error:
        raise StateError(
            f"the types of {', '.join(names)} cannot be taken from the first {len(sample)} rows ({error}); give the "
            "schema, for example 'key STRING, value BIGINT'"
        ) from error
    return schema


def as_spark(value: Any) -> Any:
    """Return `value` in a form that Spark has a type for; unchanged if there is none."""
    if value is None or isinstance(value, str | int | float | bytes | bool):
        return value
    if isinstance(value, dict):
        return {as_spark(key): as_spark(each) for key, each in value.items()}
    if isinstance(value, list | set | frozenset):
        return [as_spark(each) for each in value]
    if isinstance(value, Row) and not value.get_field_names():
        return tuple(as_spark(each) for each in value)
    if hasattr(value, "as_dict"):  # a Row, or a StoredRecord
        return _struct(value.as_dict())
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        plain = tuple(as_spark(each) for each in value)
        return plain if fields is None else SparkRow(**dict(zip(fields, plain, strict=True)))
    if dataclasses.is_dataclass(value):
        return _struct({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    return value


def _struct(fields: dict[str, Any]) -> SparkRow:
    return SparkRow(**{name: as_spark(each) for name, each in fields.items()})
