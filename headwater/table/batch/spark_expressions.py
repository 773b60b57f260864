"""Typed expressions as Spark SQL. Columns are called by their ids, so that a correlated subquery finds them too."""

from __future__ import annotations

from collections.abc import Callable

from headwater.common.errors import SqlError
from headwater.table.batch.literals import spark_literal, spark_string
from headwater.table.functions.arguments import spark_cast
from headwater.table.functions.definition import Binding
from headwater.table.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    ExistsSubquery,
    FrameBound,
    FunctionCall,
    InSubquery,
    Literal,
    Required,
    Rex,
    ScalarSubquery,
    SortKey,
    TypeWord,
    WindowCall,
)
from headwater.table.plan.nodes import Plan
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS


def column_name(column: Column) -> str:
    return f"c{column.id}"


class SparkExpressions:
    """Writes expressions; keeps the functions that Spark must be given first."""

    def __init__(self, plan: Callable[[Plan], str]) -> None:
        self._plan = plan
        self.kernels: dict[str, Binding] = {}

    def text(self, rex: Rex) -> str:
        match rex:
            case ColumnRef():
                return column_name(rex.column)
            case Literal():
                return spark_literal(rex)
            case TypeWord():
                return ""
            case Required():
                return f"COALESCE({self.text(rex.operand)}, RAISE_ERROR({spark_string(rex.text)}))"
            case FunctionCall():
                text = rex.binding.spark([self.text(argument) for argument in rex.arguments])
                if text.startswith(rex.binding.udf_name()):
                    self.kernels[rex.binding.udf_name()] = rex.binding
                return text
            case ScalarSubquery():
                return f"({self._plan(rex.plan)})"
            case ExistsSubquery():
                return f"{'NOT ' if rex.negated else ''}EXISTS ({self._plan(rex.plan)})"
            case InSubquery():
                operands = ", ".join(self.text(each) for each in rex.operands)
                operands = f"({operands})" if len(rex.operands) > 1 else operands
                return f"({operands} {'NOT ' if rex.negated else ''}IN ({self._plan(rex.plan)}))"
        raise SqlError(f"{type(rex).__name__} may not stand here")

    def aggregate(self, call: AggregateCall, arguments: list[str], condition: str | None, over: str = "") -> str:
        """An aggregate of plain columns, with FILTER and OVER behind it."""
        suffix = f" FILTER (WHERE {condition})" if condition is not None else ""
        suffix += f" OVER ({over.strip()})" if over else ""
        if call.name in WINDOW_FUNCTIONS:
            return f"{call.binding.spark(arguments)}{suffix}"
        text = call.binding.spark_aggregate(arguments, call.distinct, suffix)
        if text.startswith(call.binding.udf_name()):
            self.kernels[call.binding.udf_name()] = call.binding
        return text

    def argument(self, call: AggregateCall, place: int) -> str:
        """An argument cast to what the aggregate takes."""
        rex = call.arguments[place]
        return spark_cast(self.text(rex), rex.type, call.binding.arg_types[place])

    def sort(self, keys: tuple[SortKey, ...]) -> str:
        return ", ".join(
            f"{self.text(key.expression)} {'DESC' if key.descending else 'ASC'}"
            f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in keys
        )

    def window(self, call: WindowCall) -> str:
        parts = []
        if call.partition_by:
            parts.append("PARTITION BY " + ", ".join(self.text(key) for key in call.partition_by))
        if call.order_by:
            parts.append("ORDER BY " + self.sort(call.order_by))
        elif call.call.name == "ROW_NUMBER":
            parts.append("ORDER BY NULL")
        if call.frame is not None:
            start, end = self._bound(call.frame.start), self._bound(call.frame.end)
            parts.append(f"{call.frame.unit} BETWEEN {start} AND {end}")
        return " ".join(parts) or " "

    def _bound(self, bound: FrameBound) -> str:
        if bound.offset is None:
            return bound.kind
        value = bound.offset.value
        text = str(value) if isinstance(value, int) else spark_literal(bound.offset)
        return f"{text} {bound.kind}"
