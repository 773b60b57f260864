"""Which function of a user a call means."""

from __future__ import annotations

from headwater.table.functions.definition import FunctionDefinition
from headwater.table.functions.registry import lookup
from headwater.table.parser.ast.expressions import Call
from headwater.table.parser.tokens import Span, line_and_column
from headwater.table.plan.context import BindContext
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS
from headwater.table.user.calls import UserCall
from headwater.table.user.definitions import placed


def user_function(node: Call, context: BindContext) -> FunctionDefinition | None:
    """The user's function that a call means; None if there is none of that name in the current database."""
    found = node.definition if isinstance(node, UserCall) else _named(node, context)
    return None if found is None else placed(found, _place(context.sql, node.span))


def _named(node: Call, context: BindContext) -> FunctionDefinition | None:
    functions = context.catalogs.functions
    if len(node.name) == 1:
        found = functions.of_system(node.name[0])
        if found is not None or lookup(node.name[0]) is not None or node.name[0].upper() in WINDOW_FUNCTIONS:
            return found
    identifier = context.catalogs.qualify(node.name, context.catalog or None, context.database or None)
    found = functions.of_catalog(identifier)
    if found is None and len(node.name) > 1:
        raise context.error(f"there is no function '{'.'.join(node.name)}' in a catalog", node.span)
    return found


def _place(sql: str, span: Span) -> str:
    if span.start < 0 or not sql:
        return ""
    line, column = line_and_column(sql, span.start)
    return f"line {line}, column {column}"
