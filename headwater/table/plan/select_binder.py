"""Bind one SELECT: from its relations over groups and windows to its columns, in the order in which SQL means it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression, Query
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.expressions import Column, ColumnRef, Rex, SortKey, WindowCall, ref
from headwater.table.plan.grouping import Grouped, expand_sets, has_aggregate, has_window
from headwater.table.plan.hints import check_hints, state_ttls, with_lookups, with_ttls
from headwater.table.plan.nodes import Aggregate, Filter, Over, Plan, Project, Sort, Values, WindowTable
from headwater.table.plan.ordinals import ordinal
from headwater.table.plan.projections import unique_names
from headwater.table.plan.relation_binder import Bound, RelationBinder
from headwater.table.plan.scope import Scope
from headwater.table.plan.window_tables import group_window, make_window

_AUXILIARY = {"START": 0, "END": 1, "ROWTIME": 2, "PROCTIME": 2}
"""TUMBLE_START and its kin: which of the window's columns each is."""


class SelectBinder:
    """Binds one SELECT, with the ORDER BY and LIMIT that belong to it."""

    def __init__(
        self,
        select: ast.Select,
        context: BindContext,
        outer: Scope | None,
        bind_query: Callable[[Query, BindContext, Scope | None], Plan],
    ) -> None:
        self._select = select
        self._context = context
        self._outer = outer
        self._bind_query = bind_query
        self._windows = {each.name: each.window for each in select.windows}
        self._scope = Scope()
        self._group_window: tuple[tuple[str, int, dict[str, int]], tuple[Column, ...]] | None = None

    def bind(self, order_by: Sequence[ex.SortItem] = (), offset: int | None = None, limit: int | None = None) -> Plan:
        select = self._select
        plan, scope, bound = self._from()
        self._scope = scope
        check_hints(select.hints, bound.ranges, self._context)
        ttls = state_ttls(select.hints, self._context)
        plan = with_lookups(with_ttls(plan, ttls, bound.ranges), select.hints, bound.ranges, self._context)
        if select.where is not None:
            plan = Filter(plan, self._binder(scope, Allowed("WHERE")).bind_condition(select.where))
        plan, groups, sets = self._groups(plan, scope)
        binder = self._binder(scope, self._allowed("SELECT"))
        names, items = self._items(binder, bound)
        having = None
        if select.having is not None:
            having = self._binder(scope, replace(self._allowed("HAVING"), windows=False)).bind_condition(select.having)
        aliases = dict(zip(reversed(names), reversed(items), strict=True))
        qualify = None
        if select.qualify is not None:
            qualify = self._binder(scope, self._allowed("QUALIFY"), aliases).bind_condition(select.qualify)
        keys = self._order(order_by, scope, names, items)

        everything = [*items, *([having] if having else []), *([qualify] if qualify else [])]
        everything += [key.expression for key in keys]
        if groups is not None or having is not None or any(has_aggregate(rex) for rex in everything):
            grouped = Grouped(self._context, plan, groups or [], sets)
            items = [grouped.rewrite(rex, "SELECT") for rex in items]
            having = grouped.rewrite(having, "HAVING") if having is not None else None
            qualify = grouped.rewrite(qualify, "QUALIFY") if qualify is not None else None
            keys = [replace(key, expression=grouped.rewrite(key.expression, "ORDER BY")) for key in keys]
            plan = grouped.plan()
            if len(ttls) == 1 and len(bound.ranges) == 1:
                plan = replace(plan, ttl_ms=next(iter(ttls.values())))
            if having is not None:
                plan = Filter(plan, having)
        plan, items, qualify, keys = self._over(plan, items, qualify, keys)
        if qualify is not None:
            plan = Filter(plan, qualify)
        return self._project(plan, names, items, keys, offset, limit)

    def _binder(self, scope: Scope, allowed: Allowed, aliases: dict[str, Rex] | None = None) -> ExpressionBinder:
        return ExpressionBinder(
            self._context, scope, self._bind_query, allowed, self._windows, self._auxiliary, aliases or {}
        )

    def _allowed(self, clause: str) -> Allowed:
        return Allowed(clause, aggregates=True, windows=True, grouped=bool(self._select.group_by))

    def _from(self) -> tuple[Plan, Scope, Bound]:
        if self._select.relation is None:
            plan: Plan = Values(((),), ())
            return plan, Scope(parent=self._outer), Bound(plan, ())
        bound = RelationBinder(self._context, self._outer, self._bind_query).bind(self._select.relation)
        return bound.plan, bound.scope(self._outer), bound

    # -- SELECT items

    def _items(self, binder: ExpressionBinder, bound: Bound) -> tuple[list[str], list[Rex]]:
        names: list[str] = []
        items: list[Rex] = []
        for place, item in enumerate(self._select.items):
            if isinstance(item.expression, ex.Star):
                for column in self._star(item.expression, bound):
                    names.append(column.name)
                    items.append(ref(column, item.span))
                continue
            rex = binder.bind(item.expression)
            items.append(rex)
            if item.alias is not None:
                names.append(item.alias)
            elif isinstance(item.expression, ex.Name):
                names.append(item.expression.parts[-1])
            elif isinstance(item.expression, ex.Field):
                names.append(item.expression.name)
            else:
                names.append(f"EXPR${place}")
        return unique_names(names), items

    def _star(self, star: ex.Star, bound: Bound) -> list[Column]:
        if self._select.relation is None:
            raise self._context.error("'*' needs a FROM", star.span)
        if star.qualifier:
            found = [each for each in bound.ranges if each.is_called(star.qualifier)]
            if not found:
                name = ".".join(star.qualifier)
                known = ", ".join(each.name[-1] for each in bound.ranges if each.name)
                raise self._context.error(f"there is no table '{name}' in FROM (there is {known})", star.span)
            return list(found[0].columns)
        return bound.scope(None).visible()

    # -- GROUP BY

    def _groups(
        self, plan: Plan, scope: Scope
    ) -> tuple[Plan, list[tuple[Column, Rex]] | None, list[tuple[int, ...]] | None]:
        nodes = self._select.group_by
        if nodes is None:
            return plan, None, None
        binder = self._binder(scope, Allowed("GROUP BY"))
        plain: list[Expression] = []
        window: ex.Call | None = None
        for node in nodes:
            if isinstance(node, ex.Call) and node.name[0].upper() in ("TUMBLE", "HOP", "SESSION"):
                window = node
            else:
                plain.append(node)
        expressions, sets = expand_sets(plain)
        rexes = list(binder.bind_all(expressions))
        if window is not None:
            if sets is not None:
                raise self._context.error("a window of GROUP BY does not go with grouping sets", window.span)
            plan, added = self._windowed(plan, binder, window, rexes)
            rexes += [ref(column) for column in added]
        columns = Grouped.group_columns(rexes, sets)
        unique: list[tuple[Column, Rex]] = []
        for column, rex in columns:
            if sets is not None or all(rex != other for _, other in unique):
                unique.append((column, rex))
        return plan, unique, sets

    def _windowed(
        self, plan: Plan, binder: ExpressionBinder, node: ex.Call, keys: list[Rex]
    ) -> tuple[Plan, tuple[Column, ...]]:
        """The older GROUP BY TUMBLE(…) as a windowing table function. SESSION is per value of the other groups."""
        try:
            kind, time, lengths = group_window(node, binder)
            partition: list[Column] = []
            items: list[tuple[Column, Rex]] = []
            if kind == "SESSION":
                for place, key in enumerate(keys):
                    if isinstance(key, ColumnRef):
                        partition.append(key.column)
                    else:
                        column = new_column(f"$k{place}", key.type)
                        items.append((column, key))
                        partition.append(column)
            if items:
                plan = Project(plan, (*((column, ref(column)) for column in plan.columns), *items))
            windowed: WindowTable = make_window(plan, kind, time, lengths, tuple(partition), whole=False)
        except SqlError as error:
            if str(error).startswith("line "):
                raise
            raise self._context.error(str(error), node.span) from None
        self._group_window = ((kind, time.id, lengths), windowed.added)
        return windowed, windowed.added

    def _auxiliary(self, node: ex.Call) -> Rex | None:
        """TUMBLE_START(…) and its kin: a column of the window of GROUP BY."""
        kind, _, part = node.name[0].upper().partition("_")
        if len(node.name) > 1 or kind not in ("TUMBLE", "HOP", "SESSION") or part not in _AUXILIARY:
            return None
        if self._group_window is None:
            raise self._context.error(f"{kind}_{part} needs {kind}(…) in GROUP BY", node.span)
        meaning, columns = self._group_window
        binder = ExpressionBinder(self._context, self._scope, self._bind_query, Allowed("SELECT"))
        try:
            found, time, lengths = group_window(replace(node, name=(kind,)), binder)
        except SqlError as error:
            if str(error).startswith("line "):
                raise
            raise self._context.error(str(error), node.span) from None
        if (found, time.id, lengths) != meaning:
            raise self._context.error(f"{kind}_{part} is of another window than the one in GROUP BY", node.span)
        return ref(columns[_AUXILIARY[part]], node.span)

    # -- OVER, ORDER BY

    def _order(
        self, order_by: Sequence[ex.SortItem], scope: Scope, names: list[str], items: list[Rex]
    ) -> list[SortKey]:
        aliases = dict(zip(reversed(names), reversed(items), strict=True))
        binder = self._binder(scope, self._allowed("ORDER BY"), aliases)
        keys = []
        for item in order_by:
            place = ordinal(item, len(items), self._context)
            key = binder.bind_order((item,))[0]
            keys.append(key if place is None else replace(key, expression=items[place]))
        return keys

    def _over(
        self, plan: Plan, items: list[Rex], qualify: Rex | None, keys: list[SortKey]
    ) -> tuple[Plan, list[Rex], Rex | None, list[SortKey]]:
        calls: list[tuple[Column, WindowCall]] = []

        def change(node: Rex) -> Rex | None:
            if not isinstance(node, WindowCall):
                return None
            for column, known in calls:
                if known == node:
                    return ref(column, node.span)
            if any(has_window(child) for child in node.children()):
                raise self._context.error("a function with OVER may not stand in another one", node.span)
            column = new_column(f"$w{len(calls)}", node.type)
            calls.append((column, node))
            return ref(column, node.span)

        items = [rex.transform(change) for rex in items]
        qualify = qualify.transform(change) if qualify is not None else None
        keys = [replace(key, expression=key.expression.transform(change)) for key in keys]
        return (Over(plan, tuple(calls)) if calls else plan), items, qualify, keys

    # -- The end

    def _project(
        self,
        plan: Plan,
        names: list[str],
        items: list[Rex],
        keys: list[SortKey],
        offset: int | None,
        limit: int | None,
    ) -> Plan:
        output = [(new_column(name, rex.type), rex) for name, rex in zip(names, items, strict=True)]
        extra: list[tuple[Column, Rex]] = []
        sorted_by: list[SortKey] = []
        for key in keys:
            known = next((column for column, rex in (*output, *extra) if rex == key.expression), None)
            if known is None:
                if self._select.distinct:
                    raise self._context.error(
                        "ORDER BY of SELECT DISTINCT takes selected columns only", key.expression.span
                    )
                known = new_column(f"$s{len(extra)}", key.expression.type)
                extra.append((known, key.expression))
            sorted_by.append(replace(key, expression=ref(known)))
        result: Plan = Project(plan, (*output, *extra))
        if self._select.distinct:
            result = Aggregate(result, tuple((column, ref(column)) for column in result.columns), ())
        if sorted_by or offset is not None or limit is not None:
            result = Sort(result, tuple(sorted_by), offset, limit)
        if extra:
            result = Project(result, tuple((new_column(column.name, column.type), ref(column)) for column, _ in output))
        return result
