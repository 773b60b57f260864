"""Bind what stands in FROM: tables, views, queries, joins, windows, collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import CatalogTable, CatalogView, Identifier
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Query, Relation
from headwater.table.parser.parse import parse_query
from headwater.table.plan.calls import call
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.expressions import TRUE, Column, ColumnRef, Literal, Rex, ref
from headwater.table.plan.given import Given
from headwater.table.plan.hints import table_options
from headwater.table.plan.match_binder import bind_match
from headwater.table.plan.nodes import Filter, Join, Plan, Project, Scan, Snapshot, Unnest, Values, Watermark
from headwater.table.plan.projections import renamed
from headwater.table.plan.renumber import renumbered
from headwater.table.plan.scope import Range, Scope
from headwater.table.plan.user_functions import user_function
from headwater.table.plan.window_tables import KINDS, make_window, milliseconds, table_arguments
from headwater.table.types import logical as t

BindQuery = Callable[[Query, BindContext, Scope | None], Plan]


@dataclass(frozen=True)
class Bound:
    """A relation: its plan, the ranges it adds to the scope, and the columns that USING has put another one before."""

    plan: Plan
    ranges: tuple[Range, ...]
    hidden: frozenset[int] = frozenset()

    def scope(self, parent: Scope | None) -> Scope:
        return Scope(list(self.ranges), parent, self.hidden)


class RelationBinder:
    """Binds FROM of one SELECT. `outer` is the scope of the query around it."""

    def __init__(self, context: BindContext, outer: Scope | None, bind_query: BindQuery) -> None:
        self._context = context
        self._outer = outer
        self._bind_query = bind_query

    def bind(self, node: Relation, left: Scope | None = None) -> Bound:
        """`left`: what a lateral relation sees, the relations before it."""
        match node:
            case ast.TableName():
                return self._table(node)
            case Given():
                plan = renumbered(node.plan)
                return Bound(plan, (Range((node.name,) if node.name else (), plan.columns),))
            case ast.Aliased():
                return self._aliased(node, left)
            case ast.Derived():
                scope = left if node.lateral and left is not None else self._outer
                plan = self._bind_query(node.query, self._context, scope)
                return Bound(plan, (Range((), plan.columns),))
            case ast.Join():
                return self._join(node)
            case ast.Unnest():
                return self._alone(node)
            case ast.TableFunction() if self._is_user(node):
                return self._alone(ast.Unnest((node.call,), span=node.span))
            case ast.TableFunction():
                return self._function(node)
            case ast.Snapshot():
                return self._snapshot(node, left)
            case ast.MatchRecognize():
                plan = bind_match(node, self.bind(node.relation, left).plan, self._context, self._bind_query)
                return Bound(plan, (Range((), plan.columns),))
        raise self._context.error(f"{type(node).__name__} may not stand in FROM", node.span)

    # -- Tables and views

    def _table(self, node: ast.TableName) -> Bound:
        if len(node.name) == 1 and node.name[0] in self._context.common_tables:
            table, context = self._context.common_tables[node.name[0]]
            if node.hints:
                raise self._context.error(f"'{table.name}' is a query of WITH, which has no options", node.span)
            plan = self._bind_query(table.query, context, None)
            if table.columns:
                if len(table.columns) != len(plan.columns):
                    raise self._context.error(
                        f"'{table.name}' names {len(table.columns)} columns, its query has {len(plan.columns)}",
                        node.span,
                    )
                plan = renamed(plan, table.columns)
            return Bound(plan, (Range(node.name, plan.columns),))
        manager = self._context.catalogs
        identifier = manager.qualify(node.name, self._context.catalog or None, self._context.database or None)
        found = manager.find(identifier)
        if found is None:
            raise self._context.error(manager.unknown(node.name, identifier), node.span)
        options = table_options(node.hints, self._context)
        if isinstance(found, CatalogView):
            if options:
                raise self._context.error(f"'{identifier}' is a view, which has no options", node.span)
            plan = self._view(identifier, found, node)
        else:
            if options:
                found = replace(found, options={**found.options, **options})
            plan = scan(identifier, found, self._context, self._bind_query)
        name = (identifier.catalog, identifier.database, identifier.name)
        return Bound(plan, (Range(name, plan.columns),))

    def _view(self, identifier: Identifier, view: CatalogView, node: ast.TableName) -> Plan:
        if view.plan is not None:
            return renumbered(view.plan)
        if str(identifier) in self._context.views:
            raise self._context.error(f"view '{identifier}' contains itself", node.span)
        context = BindContext(
            view.sql,
            self._context.catalogs,
            view.catalog,
            view.database,
            views=(*self._context.views, str(identifier)),
        )
        query = view.query if view.query is not None else parse_query(view.sql)
        return renamed(self._bind_query(query, context, None), view.schema.names())

    def _aliased(self, node: ast.Aliased, left: Scope | None) -> Bound:
        bound = self.bind(node.relation, left)
        columns = tuple(column for column in bound.plan.columns if column.id not in bound.hidden)
        if not node.columns:
            return Bound(bound.plan, (Range((node.alias,), columns),))
        if len(node.columns) != len(columns):
            raise self._context.error(
                f"'{node.alias}' names {len(node.columns)} columns, there are {len(columns)}", node.span
            )
        named = tuple(replace(column, name=name) for column, name in zip(columns, node.columns, strict=True))
        return Bound(bound.plan, (Range((node.alias,), named),))

    def _snapshot(self, node: ast.Snapshot, left: Scope | None) -> Bound:
        bound = self.bind(node.relation, left)
        if left is None:
            raise self._context.error("FOR SYSTEM_TIME AS OF stands on the right side of a join", node.span)
        period = self._binder(left, "FOR SYSTEM_TIME AS OF").bind(node.period)
        return Bound(Snapshot(bound.plan, period), bound.ranges, bound.hidden)

    # -- Functions

    def _function(self, node: ast.TableFunction) -> Bound:
        kind = node.call.name[-1].upper()
        if len(node.call.name) > 1 or kind not in KINDS:
            raise self._context.error(
                f"there is no table function '{'.'.join(node.call.name)}'; there are {', '.join(KINDS)}", node.span
            )
        try:
            return self._window(node, kind)
        except SqlError as error:
            if str(error).startswith("line "):
                raise
            raise self._context.error(str(error), node.span) from None

    def _window(self, node: ast.TableFunction, kind: str) -> Bound:
        arguments = table_arguments(node.call, kind)
        data, time = arguments.pop("DATA"), arguments.pop("TIMECOL")
        if isinstance(data, ex.Subquery):  # Flink takes a query in parentheses without the word TABLE, too
            data = ex.TableArgument(ast.Derived(data.query, span=data.span), span=data.span)
        if not isinstance(data, ex.TableArgument):
            raise self._context.error(f"{kind} needs TABLE t first", data.span)
        if not isinstance(time, ex.Descriptor) or len(time.columns) != 1:
            raise self._context.error(f"{kind} needs DESCRIPTOR(time_column)", time.span)
        inner = self.bind(data.relation)
        binder = self._binder(inner.scope(self._outer), kind)
        chosen = binder.bind(ex.Name(time.columns, span=time.span))
        assert isinstance(chosen, ColumnRef)
        lengths = {word: milliseconds(binder.bind(value), word.lower()) for word, value in arguments.items()}
        keys: list[Column] = []
        for key in data.partition_by:
            bound = binder.bind(key)
            if not isinstance(bound, ColumnRef):
                raise self._context.error("PARTITION BY of a window takes columns", key.span)
            keys.append(bound.column)
        if keys and kind != "SESSION":
            raise self._context.error(f"{kind} takes no PARTITION BY; only SESSION does", data.span)
        plan = make_window(inner.plan, kind, chosen.column, lengths, tuple(keys))
        return Bound(plan, (Range((), plan.columns),))

    def _binder(self, scope: Scope, clause: str) -> ExpressionBinder:
        return ExpressionBinder(self._context, scope, self._bind_query, Allowed(clause))

    # -- UNNEST

    def _alone(self, node: ast.Unnest) -> Bound:
        """UNNEST as the first relation: of one row without columns."""
        plan = self._unnest(node, Values(((),), ()), Scope(parent=self._outer), outer=False)
        return Bound(plan, (Range((), plan.added),))

    def _unnest(self, node: ast.Unnest, left: Plan, scope: Scope, outer: bool) -> Unnest:
        if len(node.expressions) != 1:
            raise self._context.error("UNNEST takes one collection", node.span)
        rex = self._binder(scope, "UNNEST").bind(node.expressions[0])
        columns: list[tuple[str, t.LogicalType]]
        match rex.type:
            case t.ArrayType(element=t.RowType() as row):
                kind, columns = "ROWS", [(each.name, each.type) for each in row.fields]
            case t.ArrayType(element=element):
                kind, columns = "ARRAY", [("EXPR$0", element)]
            case t.MultisetType(element=element):
                kind, columns = "MULTISET", [("EXPR$0", element)]
            case t.MapType(key=key, value=value):
                kind, columns = "MAP", [("KEY", key), ("VALUE", value)]
            case _:
                raise self._context.error(
                    f"UNNEST needs an ARRAY, a MAP or a MULTISET, got {rex.type.sql()}", node.span
                )
        if node.ordinality:
            columns.append(("ORDINALITY", t.INT.not_null()))
        added = tuple(new_column(name, type_.with_nullable(type_.nullable or outer)) for name, type_ in columns)
        return Unnest(left, rex, added, kind, node.ordinality, outer)

    def _unnest_of(self, node: Relation) -> tuple[ast.Unnest | None, str | None, tuple[str, ...]]:
        """UNNEST, or a user's table function, which is the same: its call gives an array of rows; alias and columns."""
        if isinstance(node, ast.Unnest):
            return node, None, ()
        if isinstance(node, ast.TableFunction) and self._is_user(node):
            return ast.Unnest((node.call,), span=node.span), None, ()
        if isinstance(node, ast.Aliased) and isinstance(node.relation, ast.Unnest | ast.TableFunction):
            return self._unnest_of(node.relation)[0], node.alias, node.columns
        return None, None, ()

    def _is_user(self, node: ast.TableFunction) -> bool:
        window = len(node.call.name) == 1 and node.call.name[0].upper() in KINDS
        return not window and user_function(node.call, self._context) is not None

    # -- Joins

    def _join(self, node: ast.Join) -> Bound:
        left = self.bind(node.left)
        unnested, alias, names = self._unnest_of(node.right)
        if unnested is not None:
            return self._join_unnest(node, left, unnested, alias, names)
        right = self.bind(node.right, left.scope(self._outer))
        lateral = _is_lateral(node.right)
        if lateral and node.kind not in ("INNER", "LEFT", "CROSS"):
            raise self._context.error(f"a {node.kind} JOIN cannot have a lateral right side", node.span)
        ranges = (*left.ranges, *right.ranges)
        if node.using or node.natural:
            return self._join_using(node, left, right)
        condition: Rex | None = None
        hidden = left.hidden | right.hidden
        kind = "INNER" if node.kind == "CROSS" else node.kind
        if node.condition is not None:
            scope = Scope(list(ranges), self._outer, hidden)
            condition = self._binder(scope, "ON").bind_condition(node.condition)
        plan = _outer_join(kind, left.plan, right.plan, condition, lateral)
        return Bound(plan, _refreshed(ranges, plan), hidden)

    def _join_unnest(
        self, node: ast.Join, left: Bound, unnested: ast.Unnest, alias: str | None, names: tuple[str, ...]
    ) -> Bound:
        if node.kind not in ("INNER", "LEFT", "CROSS"):
            raise self._context.error(f"a {node.kind} JOIN with UNNEST means nothing; use LEFT JOIN", node.span)
        plan = self._unnest(unnested, left.plan, left.scope(self._outer), node.kind == "LEFT")
        added = plan.added
        if names:
            if len(names) != len(added):
                raise self._context.error(
                    f"'{alias}' names {len(names)} columns, UNNEST gives {len(added)}", node.right.span
                )
            added = tuple(replace(column, name=name) for column, name in zip(added, names, strict=True))
            plan = replace(plan, added=added)
        ranges = (*left.ranges, Range((alias,) if alias is not None else (), added))
        result: Plan = plan
        if node.condition is not None:
            condition = self._binder(Scope(list(ranges), self._outer, left.hidden), "ON").bind_condition(node.condition)
            constant = isinstance(condition, Literal) and condition.value is True
            if node.kind == "LEFT" and not constant:
                raise self._context.error("LEFT JOIN UNNEST takes ON TRUE only", node.condition.span)
            if not constant:
                result = Filter(plan, condition)
        return Bound(result, ranges, left.hidden)

    def _join_using(self, node: ast.Join, left: Bound, right: Bound) -> Bound:
        """The named columns become one, which comes first in `*`."""
        names = node.using
        if node.natural:
            theirs = {column.name for column in right.scope(None).visible()}
            ours = (column.name for column in left.scope(None).visible())
            names = tuple(name for name in dict.fromkeys(ours) if name in theirs)
        condition: Rex = TRUE
        pairs: list[tuple[Column, Column]] = []
        for name in names:
            one = self._one(left, name, node)
            other = self._one(right, name, node)
            pairs.append((one, other))
            try:
                equal = call("=", (ref(one), ref(other)), node.span)
                condition = equal if condition is TRUE else call("AND", (condition, equal), node.span)
            except SqlError as error:
                raise self._context.error(str(error), node.span) from None
        joined = _outer_join(node.kind, left.plan, right.plan, condition, False)
        by_id = {column.id: column for column in joined.columns}
        items: list[tuple[Column, Rex]] = []
        for one, other in pairs:
            first, second = by_id[one.id], by_id[other.id]
            rex: Rex = ref(first)
            if node.kind == "RIGHT":
                rex = ref(second)
            elif node.kind == "FULL":
                rex = call("COALESCE", (ref(first), ref(second)), node.span)
            items.append((new_column(one.name, rex.type), rex))
        merged = Range((), tuple(column for column, _ in items))
        plan = Project(joined, (*items, *((column, ref(column)) for column in joined.columns)))
        hidden = left.hidden | right.hidden | {column.id for pair in pairs for column in pair}
        return Bound(plan, _refreshed((merged, *left.ranges, *right.ranges), plan), hidden)

    def _one(self, side: Bound, name: str, node: ast.Join) -> Column:
        found = side.scope(None).find((name,))
        if found is None or isinstance(found, list):
            reason = "is not in both tables" if found is None else "means several columns"
            raise self._context.error(f"USING: column '{name}' {reason}", node.span)
        return found.column


def _is_lateral(node: Relation) -> bool:
    if isinstance(node, ast.Aliased):
        return _is_lateral(node.relation)
    return isinstance(node, ast.Derived) and node.lateral


def _outer_join(kind: str, left: Plan, right: Plan, condition: Rex | None, lateral: bool) -> Join:
    def nullable(columns: tuple[Column, ...], when: bool) -> tuple[Column, ...]:
        return tuple(replace(column, type=column.type.with_nullable(True)) if when else column for column in columns)

    columns = (
        *nullable(left.columns, kind in ("RIGHT", "FULL")),
        *nullable(right.columns, kind in ("LEFT", "FULL")),
    )
    return Join(left, right, kind, condition, lateral, columns)


def _refreshed(ranges: tuple[Range, ...], plan: Plan) -> tuple[Range, ...]:
    """The ranges with the types that the plan's columns have now (an outer join makes them nullable)."""
    types = {column.id: column.type for column in plan.columns}
    return tuple(
        Range(each.name, tuple(replace(column, type=types.get(column.id, column.type)) for column in each.columns))
        for each in ranges
    )


def scan(identifier: Identifier, table: CatalogTable, context: BindContext, bind_query: BindQuery) -> Plan:
    """All columns of a table, computed ones too."""
    given = tuple(new_column(column.name, column.type) for column in table.schema.columns if column.expression is None)
    plan: Plan = Scan(identifier, table, given)
    inner = BindContext(table.sql, context.catalogs, identifier.catalog, identifier.database)
    binder = ExpressionBinder(inner, Scope([Range((), given)]), bind_query, Allowed("a computed column"))
    by_name = {column.name: column for column in given}
    if all(column.expression is None for column in table.schema.columns):
        return _with_watermark(plan, table, inner, bind_query)
    items: list[tuple[Column, Rex]] = []
    for column in table.schema.columns:
        rex = ref(by_name[column.name]) if column.expression is None else binder.bind(column.expression)
        items.append((new_column(column.name, rex.type), rex))
    return _with_watermark(Project(plan, tuple(items)), table, inner, bind_query)


def _with_watermark(plan: Plan, table: CatalogTable, context: BindContext, bind_query: BindQuery) -> Plan:
    watermark = table.schema.watermark
    if watermark is None:
        return plan
    binder = ExpressionBinder(context, Scope([Range((), plan.columns)]), bind_query, Allowed("WATERMARK"))
    time = binder.bind(ex.Name(watermark.column))
    if not isinstance(time, ColumnRef):
        return plan  # a field of a row: it is no column that a window could name
    return Watermark(plan, time.column, binder.bind(watermark.expression))
