"""Columns that are chosen together: `with_columns(range_("b", "d"))`, `without_columns(col("a"))`, `col("*")`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast.base import Expression as Node


@dataclass(frozen=True)
class ColumnRange(Node):
    """From one column to another, both included. Places count from 1."""

    start: str | int
    end: str | int


@dataclass(frozen=True)
class ColumnSelection(Node):
    """The columns that are meant; `negated`: all others."""

    chosen: tuple[Node, ...]
    negated: bool = False


def expanded(node: Node, columns: Sequence[str]) -> tuple[Node, ...]:
    """The nodes that stand for a field of `select` or an argument: more than one if it selects columns."""
    if isinstance(node, ColumnSelection):
        places = [place for each in node.chosen for place in _places(each, columns)]
        if node.negated:
            places = [place for place in range(len(columns)) if place not in places]
        return tuple(ex.Name((columns[place],)) for place in places)
    if isinstance(node, ColumnRange):
        raise SqlError("range_() stands in with_columns() or without_columns()")
    changes: dict[str, Any] = {}
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Node):
            changes[each.name] = _one(value, columns)
        elif isinstance(value, tuple) and value and all(isinstance(item, Node) for item in value):
            changes[each.name] = tuple(new for item in value for new in expanded(item, columns))
    return (dataclasses.replace(node, **changes) if changes else node,)


def _one(node: Node, columns: Sequence[str]) -> Node:
    found = expanded(node, columns)
    if len(found) != 1:
        raise SqlError(f"one column is needed here, {len(found)} were selected")
    return found[0]


def _places(node: Node, columns: Sequence[str]) -> Sequence[int]:
    match node:
        case ex.Name(("*",)):
            return range(len(columns))
        case ColumnRange(start, end):
            return range(_place(start, columns), _place(end, columns) + 1)
        case ex.Name((name,)) | ex.Text(name):
            return (_place(name, columns),)
        case ex.Number(text) if text.isdigit():
            return (_place(int(text), columns),)
    raise SqlError("with_columns() and without_columns() take columns, places (from 1) and range_()")


def _place(given: str | int, columns: Sequence[str]) -> int:
    if isinstance(given, int):
        if not 1 <= given <= len(columns):
            raise SqlError(f"there is no column {given}: the table has {len(columns)}, counted from 1")
        return given - 1
    if given not in columns:
        raise SqlError(f"there is no column '{given}'; the columns are {', '.join(columns)}")
    return list(columns).index(given)
