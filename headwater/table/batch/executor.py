"""The only way from tables to Spark.

This layer must not import the runtime, which is above it and loads Spark. So the runtime is imported when the first
query runs. The layer test allows it for this file.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol, cast

import pyarrow as pa

from headwater.common.configuration import Configuration
from headwater.table.batch.connectors import Sink
from headwater.table.batch.spark_sql import BatchQuery


class BatchExecutor(Protocol):
    """What runs batch queries."""

    def collect(self, query: BatchQuery, configuration: Configuration) -> pa.Table:
        """Run the query; its rows in Arrow, with the columns of `query.row_type`."""
        ...

    def write(self, query: BatchQuery, sink: Sink, overwrite: bool, configuration: Configuration) -> int | None:
        """Run the query into a sink. Returns the number of rows if it is known."""
        ...

    def dataframe(self, query: BatchQuery, configuration: Configuration) -> Any:
        """The query as a DataFrame of Spark."""
        ...

    def explain(self, query: BatchQuery, configuration: Configuration) -> str:
        """Spark's own plan of the query."""
        ...

    def schema_of(self, dataframe: Any) -> pa.Schema:
        """The Arrow schema of a DataFrame."""
        ...


def get_executor() -> BatchExecutor:
    return cast(BatchExecutor, importlib.import_module("headwater.runtime.spark.batch_tables"))
