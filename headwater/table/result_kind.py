"""PyFlink's module of ResultKind."""

from headwater.table.table_result import ResultKind

__all__ = ["ResultKind"]
