"""What the parts of the binder share: the text for errors, the catalogs, fresh column ids."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from headwater.common.errors import SqlError
from headwater.table.catalog.manager import CatalogManager
from headwater.table.parser.ast.queries import CommonTable
from headwater.table.parser.tokens import Span, located
from headwater.table.plan.expressions import Column
from headwater.table.types.logical import LogicalType

_ids = itertools.count(1)  # unique in the process: plans of one program may be combined


def new_column(name: str, type_: LogicalType) -> Column:
    return Column(next(_ids), name, type_)


@dataclass
class BindContext:
    """One text that is bound."""

    sql: str
    catalogs: CatalogManager
    catalog: str = ""
    database: str = ""
    """What unqualified table names refer to; empty: the current ones."""
    common_tables: dict[str, tuple[CommonTable, BindContext]] = field(default_factory=dict)
    """Queries of WITH by name, with the context in which each was written."""
    views: tuple[str, ...] = ()
    """The views around this text, to find one that contains itself."""

    def error(self, text: str, span: Span) -> SqlError:
        return located(text, self.sql, span)

    def with_tables(self, tables: dict[str, tuple[CommonTable, BindContext]]) -> BindContext:
        return BindContext(
            self.sql, self.catalogs, self.catalog, self.database, {**self.common_tables, **tables}, self.views
        )
