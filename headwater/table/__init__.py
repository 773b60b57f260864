"""SQL and the Table API, with the names of pyflink.table. Batch mode runs on Spark itself."""

from headwater.common.types import Row, RowKind
from headwater.table.environment_settings import EnvironmentSettings
from headwater.table.explain_detail import ExplainDetail
from headwater.table.expression import Expression
from headwater.table.schema import Schema
from headwater.table.statement_set import StatementSet
from headwater.table.table import GroupedTable, GroupWindowedTable, Table, WindowGroupedTable
from headwater.table.table_config import TableConfig
from headwater.table.table_descriptor import FormatDescriptor, TableDescriptor
from headwater.table.table_environment import TableEnvironment
from headwater.table.table_result import ResultKind, TableResult
from headwater.table.types.data_types import DataTypes
from headwater.table.window import GroupWindow, Session, Slide, Tumble

__all__ = [
    "DataTypes",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "GroupWindow",
    "GroupWindowedTable",
    "GroupedTable",
    "ResultKind",
    "Row",
    "RowKind",
    "Schema",
    "Session",
    "Slide",
    "StatementSet",
    "Table",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableResult",
    "Tumble",
    "WindowGroupedTable",
]
