"""Several INSERTs that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.explain_detail import ExplainDetail
from headwater.table.parser.ast.statements import Insert
from headwater.table.parser.parse import parse_statement
from headwater.table.plan.nodes import Sink
from headwater.table.table_pipeline import TablePipeline
from headwater.table.table_result import TableResult

if TYPE_CHECKING:
    from headwater.table.table import Table
    from headwater.table.table_descriptor import TableDescriptor
    from headwater.table.table_environment import TableEnvironment


class StatementSet:
    """Collects INSERTs; `execute` runs them. All are checked before the first one writes."""

    def __init__(self, environment: TableEnvironment) -> None:
        self._environment = environment
        self._sinks: list[Sink] = []

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add what `Table.insert_into` gave."""
        self._sinks.append(table_pipeline._sink)
        return self

    def add_insert_sql(self, stmt: str) -> StatementSet:
        statement = parse_statement(stmt)
        if not isinstance(statement, Insert):
            raise SqlError(f"add_insert_sql() takes an INSERT, found {type(statement).__name__}")
        self._sinks.append(self._environment._bind_insert(statement, stmt))
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        found = self._environment._sink_of_plan(table._plan, target_path_or_descriptor, overwrite)
        self._sinks.append(found)
        return self

    def explain(self, *extra_details: ExplainDetail) -> str:
        details = [detail.name for detail in extra_details]
        return "\n".join(self._environment._explain(each, details) for each in self._sinks)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        print(self.explain(*extra_details))

    def attach_as_datastream(self) -> None:
        """Make the INSERTs part of the job that the StreamExecutionEnvironment's `execute()` runs."""
        attach = getattr(self._environment, "_attach", None)
        if attach is None:
            raise SqlError("attach_as_datastream() needs a StreamTableEnvironment")
        sinks, self._sinks = self._sinks, []
        attach(sinks)

    def execute(self) -> TableResult:
        """Run all INSERTs: in batch mode one after another, on streams as one job. The set is empty then."""
        if not self._sinks:
            raise SqlError("the statement set is empty")
        sinks, self._sinks = self._sinks, []
        return self._environment._write(sinks)
