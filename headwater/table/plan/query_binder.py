"""Bind queries: SELECT and all that is around it."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression, Query
from headwater.table.plan.calls import cast
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.expressions import Rex, ref
from headwater.table.plan.nodes import Plan, SetOperation, Sort, Values
from headwater.table.plan.ordinals import ordinal
from headwater.table.plan.projections import cast_columns
from headwater.table.plan.scope import Range, Scope
from headwater.table.plan.select_binder import SelectBinder
from headwater.table.types import casts
from headwater.table.types.logical import LogicalType


def bind_query(query: Query, context: BindContext, outer: Scope | None = None) -> Plan:
    """The plan of a query. `outer`: the scope of the query around it, for correlated subqueries."""
    match query:
        case ast.Select():
            return SelectBinder(query, context, outer, bind_query).bind()
        case ast.Ordered():
            return _ordered(query, context, outer)
        case ast.Values():
            return _values(query, context, outer)
        case ast.SetOperation():
            return _set_operation(query, context, outer)
        case ast.With():
            known = context
            for table in query.tables:
                known = known.with_tables({table.name: (table, known)})
            return bind_query(query.query, known, outer)
        case ast.TableQuery():
            everything = ast.Select((ast.SelectItem(ex.Star()),), ast.TableName(query.name, span=query.span))
            return bind_query(everything, context, outer)
    raise context.error(f"{type(query).__name__} is no query", query.span)


def _ordered(query: ast.Ordered, context: BindContext, outer: Scope | None) -> Plan:
    limit = _count(query.limit, "LIMIT", context)
    offset = _count(query.offset, "OFFSET", context)
    if isinstance(query.query, ast.Select):
        return SelectBinder(query.query, context, outer, bind_query).bind(query.order_by, offset, limit)
    plan = bind_query(query.query, context, outer)
    binder = ExpressionBinder(context, Scope([Range((), plan.columns)], outer), bind_query, Allowed("ORDER BY"))
    items = [ordinal(item, len(plan.columns), context) for item in query.order_by]
    keys = []
    for item, place in zip(query.order_by, items, strict=True):
        if place is not None:
            named = ex.Name((plan.columns[place].name,), span=item.expression.span)
            key = binder.bind_order((ex.SortItem(named, item.descending, item.nulls_first),))[0]
            keys.append(type(key)(ref(plan.columns[place]), key.descending, key.nulls_first))
        else:
            keys.append(binder.bind_order((item,))[0])
    return Sort(plan, tuple(keys), offset, limit)


def _count(node: Expression | None, clause: str, context: BindContext) -> int | None:
    if node is None:
        return None
    if not isinstance(node, ex.Number) or not node.text.isdigit():
        raise context.error(f"{clause} needs a number of rows", node.span)
    return int(node.text)


def _values(query: ast.Values, context: BindContext, outer: Scope | None) -> Plan:
    binder = ExpressionBinder(context, Scope(parent=outer), bind_query, Allowed("VALUES"))
    rows = [binder.bind_all(row) for row in query.rows]
    width = len(rows[0])
    for row, written in zip(rows, query.rows, strict=True):
        if len(row) != width:
            raise context.error(f"a row of VALUES has {len(row)} values, the first has {width}", written[0].span)
    types = [common([row[place] for row in rows], "VALUES", context, query) for place in range(width)]
    cast_rows = tuple(tuple(cast(value, type_) for value, type_ in zip(row, types, strict=True)) for row in rows)
    columns = tuple(new_column(f"EXPR${place}", type_) for place, type_ in enumerate(types))
    return Values(cast_rows, columns)


def common(rexes: Sequence[Rex], what: str, context: BindContext, node: Query) -> LogicalType:
    found = casts.common_type([rex.type for rex in rexes])
    if found is None:
        kinds = ", ".join(dict.fromkeys(rex.type.sql() for rex in rexes))
        span = next((rex.span for rex in rexes if rex.span.start >= 0), node.span)
        raise context.error(f"{what}: {kinds} have no type in common; CAST one of them", span)
    return found


def _set_operation(query: ast.SetOperation, context: BindContext, outer: Scope | None) -> Plan:
    left = bind_query(query.left, context, outer)
    right = bind_query(query.right, context, outer)
    try:
        return set_operation(query.operator, query.all, left, right)
    except SqlError as error:
        raise context.error(str(error), query.right.span) from None


def set_operation(operator: str, everything: bool, left: Plan, right: Plan) -> Plan:
    """UNION, INTERSECT or EXCEPT of two plans, whose columns are cast to common types."""
    if len(left.columns) != len(right.columns):
        raise SqlError(
            f"{operator}: the left side has {len(left.columns)} columns, the right side {len(right.columns)}"
        )
    types = []
    for place, (one, other) in enumerate(zip(left.columns, right.columns, strict=True)):
        found = casts.common_type([one.type, other.type])
        if found is None:
            raise SqlError(
                f"{operator}: column {place + 1} is {one.type.sql()} on the left, {other.type.sql()} on the right;"
                " CAST one of them"
            )
        types.append(found)
    columns = tuple(new_column(column.name, type_) for column, type_ in zip(left.columns, types, strict=True))
    return SetOperation(cast_columns(left, types), cast_columns(right, types), operator, everything, columns)
