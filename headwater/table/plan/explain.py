"""A plan as text: one line per node, inputs indented. Columns are numbered from 1 in the order in which they appear."""

from __future__ import annotations

import re

from headwater.table.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    ExistsSubquery,
    FunctionCall,
    Grouping,
    InSubquery,
    Literal,
    Required,
    Rex,
    ScalarSubquery,
    TypeWord,
    WindowCall,
)
from headwater.table.plan.match import Match
from headwater.table.plan.match_pattern import variables
from headwater.table.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Over,
    Plan,
    Project,
    Scan,
    SetOperation,
    Sink,
    Snapshot,
    Sort,
    Unnest,
    Values,
    Watermark,
    WindowTable,
)


def explain(plan: Plan) -> str:
    """The plan, one node per line."""
    return "\n".join(_lines(plan, 0)) + "\n"


def _lines(plan: Plan, depth: int) -> list[str]:
    lines = ["" + "   " * max(depth - 1, 0) + ("+- " if depth else "") + _describe(plan)]
    for child in plan.inputs():
        lines += _lines(child, depth + 1)
    return lines


def _describe(plan: Plan) -> str:
    columns = ", ".join(column.name for column in plan.columns)
    match plan:
        case Scan():
            return f"TableSourceScan(table=[[{plan.identifier}]], fields=[{columns}])"
        case Values():
            return f"Values(rows=[{len(plan.rows)}], fields=[{columns}])"
        case Watermark():
            return f"WatermarkAssigner(rowtime=[{plan.time.name}], watermark=[{text(plan.expression)}])"
        case Snapshot():
            return f"Snapshot(period=[{text(plan.period)}])"
        case Project():
            items = ", ".join(_item(column, rex) for column, rex in plan.items)
            return f"Calc(select=[{items}])"
        case Filter():
            return f"Calc(where=[{text(plan.condition)}])"
        case Aggregate():
            groups = ", ".join(text(rex) for _, rex in plan.groups)
            calls = ", ".join(f"{text(call)} AS {column.name}" for column, call in plan.calls)
            sets = "" if plan.sets is None else f", sets=[{len(plan.sets)}]"
            return f"Aggregate(groupBy=[{groups}]{sets}, select=[{calls}])"
        case Over():
            return f"OverAggregate({', '.join(text(call) for _, call in plan.calls)})"
        case WindowTable():
            step = f", step=[{plan.step_ms} ms]" if plan.step_ms else ""
            return f"WindowTableFunction({plan.kind}, time=[{plan.time.name}], size=[{plan.size_ms} ms]{step})"
        case Match():
            keys = ", ".join(column.name for column in plan.partition_by)
            measures = ", ".join(f"{text(rex)} AS {column.name}" for column, rex in plan.measures)
            return f"Match(partitionBy=[{keys}], pattern=[{' '.join(variables(plan.pattern))}], measures=[{measures}])"
        case Unnest():
            return f"Correlate(unnest=[{text(plan.collection)}], outer=[{str(plan.outer).lower()}])"
        case Join():
            condition = "true" if plan.condition is None else text(plan.condition)
            return f"Join(joinType=[{plan.kind}], where=[{condition}]{', lateral' if plan.lateral else ''})"
        case SetOperation():
            return f"{plan.operator.capitalize()}(all=[{str(plan.all).lower()}], fields=[{columns}])"
        case Sort():
            keys = ", ".join(f"{text(key.expression)} {'DESC' if key.descending else 'ASC'}" for key in plan.keys)
            cut = "".join(
                f", {word}=[{value}]"
                for word, value in (("offset", plan.offset), ("fetch", plan.limit))
                if value is not None
            )
            return f"Sort(orderBy=[{keys}]{cut})"
        case Sink():
            return f"Sink(table=[{plan.identifier}], fields=[{columns}])"
    return type(plan).__name__


def _item(column: Column, rex: Rex) -> str:
    written = text(rex)
    return written if written == column.name else f"{written} AS {column.name}"


def text(rex: Rex) -> str:
    """An expression as people read it."""
    match rex:
        case ColumnRef():
            return rex.column.name
        case Literal():
            if isinstance(rex.value, str):
                return "'" + rex.value.replace("'", "''") + "'"
            return (
                "NULL"
                if rex.value is None
                else str(rex.value).upper()
                if isinstance(rex.value, bool)
                else str(rex.value)
            )
        case TypeWord():
            return rex.target.sql()
        case Required():
            return f"NOT_NULL({text(rex.operand)})"
        case FunctionCall():
            arguments = [text(argument) for argument in rex.arguments]
            if len(arguments) == 2 and re.fullmatch(r"[^\w\s]+|AND|OR", rex.name):
                return f"({arguments[0]} {rex.name} {arguments[1]})"
            return f"{rex.name}({', '.join(arguments)})"
        case AggregateCall():
            inner = ", ".join(text(argument) for argument in rex.arguments) or "*"
            condition = f" FILTER {text(rex.filter)}" if rex.filter is not None else ""
            return f"{rex.name}({'DISTINCT ' if rex.distinct else ''}{inner}){condition}"
        case Grouping():
            return f"GROUPING({', '.join(text(argument) for argument in rex.arguments)})"
        case WindowCall():
            partition = ", ".join(text(key) for key in rex.partition_by)
            order = ", ".join(text(key.expression) for key in rex.order_by)
            return f"{text(rex.call)} OVER (PARTITION BY [{partition}] ORDER BY [{order}])"
        case ScalarSubquery() | ExistsSubquery() | InSubquery():
            inner = explain(rex.plan).strip().replace("\n", " ")
            word = {ScalarSubquery: "SCALAR", ExistsSubquery: "EXISTS", InSubquery: "IN"}[type(rex)]
            return f"{word}({inner})"
    return type(rex).__name__
