"""A query and the table its rows go to, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.table.catalog.objects import Identifier
from headwater.table.explain_detail import ExplainDetail
from headwater.table.plan.nodes import Sink
from headwater.table.table_result import TableResult

if TYPE_CHECKING:
    from headwater.table.table_environment import TableEnvironment


class TablePipeline:
    """What `Table.insert_into` gives."""

    def __init__(self, sink: Sink, environment: TableEnvironment) -> None:
        self._sink = sink
        self._environment = environment

    def get_sink_identifier(self) -> Identifier | None:
        """The table's full name; None if it is made of a descriptor, without a name."""
        found = self._sink.identifier
        return None if found.catalog == "*anonymous*" else found

    def execute(self) -> TableResult:
        """Run the query into the table."""
        return self._environment._write([self._sink])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        return self._environment._explain(self._sink, [detail.name for detail in extra_details])

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        print(self.explain(*extra_details))
