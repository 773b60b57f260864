"""SQL and the Table API, with the names of pyflink.table. Batches run on Spark SQL, streams as DataStream jobs."""

from headwater.common.types import Row, RowKind
from headwater.table.changelog_mode import ChangelogMode
from headwater.table.data_view import DataView, ListView, MapView
from headwater.table.environment_settings import EnvironmentSettings
from headwater.table.explain_detail import ExplainDetail
from headwater.table.expression import Expression
from headwater.table.schema import Schema
from headwater.table.sql_dialect import SqlDialect
from headwater.table.statement_set import StatementSet
from headwater.table.stream_table_environment import StreamTableEnvironment
from headwater.table.table import (
    AggregatedTable,
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    Table,
    WindowGroupedTable,
)
from headwater.table.table_config import TableConfig
from headwater.table.table_descriptor import FormatDescriptor, TableDescriptor
from headwater.table.table_environment import TableEnvironment
from headwater.table.table_pipeline import TablePipeline
from headwater.table.table_result import ResultKind, TableResult
from headwater.table.table_schema import TableSchema
from headwater.table.types.data_types import DataTypes
from headwater.table.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    udaf,
    udf,
    udtaf,
    udtf,
)
from headwater.table.window import GroupWindow, Over, OverWindow, Session, Slide, Tumble

__all__ = [
    "AggregateFunction",
    "AggregatedTable",
    "AsyncScalarFunction",
    "ChangelogMode",
    "DataTypes",
    "DataView",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupWindow",
    "GroupWindowedTable",
    "GroupedTable",
    "ListView",
    "MapView",
    "Over",
    "OverWindow",
    "OverWindowedTable",
    "ResultKind",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "Session",
    "Slide",
    "SqlDialect",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "Tumble",
    "WindowGroupedTable",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]
