"""Bind MATCH_RECOGNIZE: names of variables and columns, FIRST and LAST, aggregates over a variable's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, BindQuery, ExpressionBinder
from headwater.table.plan.expressions import AggregateCall, Column, ColumnRef, Literal, Rex, SubqueryRex, ref
from headwater.table.plan.match import Match, MatchDefinition, MatchValue
from headwater.table.plan.match_pattern import pattern_steps, variables
from headwater.table.plan.nodes import Plan
from headwater.table.plan.scope import Found, Range, Scope
from headwater.table.plan.window_tables import check_time, milliseconds

_NOT_THERE = {
    "PREV": "PREV is not supported, as in Flink; LAST(variable.column, 1) is the variable's row before",
    "NEXT": "NEXT is not supported, as in Flink; define a variable for the row that follows",
    "CLASSIFIER": "CLASSIFIER is not supported, as in Flink",
    "MATCH_NUMBER": "MATCH_NUMBER is not supported, as in Flink",
}


def bind_match(node: ast.MatchRecognize, plan: Plan, context: BindContext, bind_query: BindQuery) -> Match:
    """The plan of a MATCH_RECOGNIZE over `plan`."""
    return _MatchBinder(node, plan, context, bind_query).bind()


@dataclass
class _MatchScope(Scope):
    """`A.price` is a column of the rows of variable A; plain `price` one of all rows."""

    columns: tuple[Column, ...] = ()
    of_variable: dict[str, tuple[Column, ...]] = field(default_factory=dict)

    def find(self, parts: Sequence[str]) -> Found | list[Column] | None:
        if len(parts) > 1 and parts[0] in self.of_variable:
            found = [column for column in self.of_variable[parts[0]] if column.name == parts[1]]
            return Found(found[0], 2, False) if found else None
        found = [column for column in self.columns if column.name == parts[0]]
        return Found(found[0], 1, False) if len(found) == 1 else found or None


class _MatchBinder:
    def __init__(self, node: ast.MatchRecognize, plan: Plan, context: BindContext, bind_query: BindQuery) -> None:
        self._node = node
        self._plan = plan
        self._context = context
        self._bind_query = bind_query
        self._values: list[MatchValue] = []
        """Of the expression that is bound now, or of all measures."""
        self._source: dict[int, tuple[str | None, Column]] = {}
        """{id of a column of the scope: (variable, column of the input)}."""

    def bind(self) -> Match:
        node = self._node
        if node.rows_per_match == "ALL ROWS":
            raise self._error("ALL ROWS PER MATCH is not supported, as in Flink; tell rows by MEASURES")
        if node.subsets:
            raise self._error("SUBSET is not supported, as in Flink")
        plain = ExpressionBinder(
            self._context, Scope([Range((), self._plan.columns)]), self._bind_query, Allowed("MATCH_RECOGNIZE")
        )
        partition = tuple(self._column(plain.bind(each), "PARTITION BY", each) for each in node.partition_by)
        order = plain.bind_order(node.order_by)
        if not order:
            raise self._error("MATCH_RECOGNIZE needs ORDER BY a time column")
        for key, item in zip(order, node.order_by, strict=True):
            self._column(key.expression, "ORDER BY", item.expression)
        time = self._column(order[0].expression, "ORDER BY", node.order_by[0].expression)
        if order[0].descending:
            raise self._error("the first column of ORDER BY is the time, in ascending order")
        try:
            check_time(time, "ORDER BY of MATCH_RECOGNIZE")
            within = None if node.within is None else milliseconds(plain.bind(node.within), "WITHIN")
            steps = pattern_steps(node, within)
        except SqlError as error:
            raise self._located(error) from None
        scope = self._scope(variables(steps))
        definitions = tuple(self._definition(each, scope, variables(steps)) for each in node.definitions)
        self._values = []
        measures: list[tuple[Column, Rex]] = []
        rowtime = None
        for measure in node.measures:
            rex = self._bound(measure.expression, scope, "MEASURES", time)
            column = new_column(measure.alias, rex.type)
            if _is_rowtime(measure.expression):
                rowtime = column
            measures.append((column, rex))
        if not measures and not partition:
            raise self._error("MATCH_RECOGNIZE has neither PARTITION BY nor MEASURES: its rows have no columns")
        return Match(self._plan, partition, order, steps, definitions, tuple(self._values), tuple(measures), rowtime)

    def _scope(self, names: list[str]) -> _MatchScope:
        def copies(variable: str | None) -> tuple[Column, ...]:
            made = []
            for column in self._plan.columns:
                copy = new_column(column.name, column.type.with_nullable(True))
                self._source[copy.id] = (variable, column)
                made.append(copy)
            return tuple(made)

        everything = copies(None)
        return _MatchScope(
            [Range((), everything)], columns=everything, of_variable={each: copies(each) for each in names}
        )

    def _definition(self, node: ast.Definition, scope: _MatchScope, names: list[str]) -> MatchDefinition:
        if node.variable not in names:
            raise self._context.error(
                f"DEFINE says what '{node.variable}' is, which is not in PATTERN ({', '.join(names)})", node.span
            )
        if sum(each.variable == node.variable for each in self._node.definitions) > 1:
            raise self._context.error(f"DEFINE says twice what '{node.variable}' is", node.span)
        self._values = []
        condition = self._bound(node.condition, scope, "DEFINE", None)
        return MatchDefinition(node.variable, condition, tuple(self._values))

    def _bound(self, node: Expression, scope: _MatchScope, clause: str, time: Column | None) -> Rex:
        def special(call: ex.Call) -> Rex | None:
            name = call.name[0].upper() if len(call.name) == 1 else ""
            if name in _NOT_THERE:
                raise self._context.error(_NOT_THERE[name], call.span)
            if name in ("MATCH_ROWTIME", "MATCH_PROCTIME") and time is None:
                raise self._context.error(f"{name} stands in MEASURES", call.span)
            if name == "MATCH_ROWTIME" and time is not None:
                return self._value(MatchValue(new_column("rowtime", time.type), None, "TIME", 0, time))
            if name == "MATCH_PROCTIME":
                return binder.bind(replace(call, name=("PROCTIME",)))
            if name in ("FIRST", "LAST"):
                return self._at_end(name, call, binder)
            return None

        allowed = Allowed(clause, aggregates=True)
        binder = ExpressionBinder(self._context, scope, self._bind_query, allowed, special=special)
        rex = binder.bind_condition(node) if clause == "DEFINE" else binder.bind(node)
        return rex.transform(self._replaced)

    def _replaced(self, rex: Rex) -> Rex | None:
        """References to rows of a match as references to its values."""
        if isinstance(rex, AggregateCall):
            return self._aggregate(rex)
        if isinstance(rex, ColumnRef) and rex.column.id in self._source:
            variable, source = self._source[rex.column.id]
            return self._value(MatchValue(new_column(source.name, rex.type), variable, "LAST", 0, source))
        if isinstance(rex, SubqueryRex):
            raise self._context.error("a query may not stand in MATCH_RECOGNIZE", rex.span)
        return None

    def _aggregate(self, call: AggregateCall) -> Rex:
        if call.distinct:
            raise self._context.error(
                f"{call.name}(DISTINCT …) in MATCH_RECOGNIZE is not supported, as in Flink", call.span
            )
        if call.filter is not None:
            raise self._context.error(
                f"{call.name} with FILTER in MATCH_RECOGNIZE is not supported; use CASE WHEN in its argument", call.span
            )
        variable = self._one_variable(call, call.name)
        source = replace(call, arguments=tuple(each.transform(self._input) for each in call.arguments))
        nullable = call.type if call.name == "COUNT" else call.type.with_nullable(True)
        return self._value(MatchValue(new_column(call.name, nullable), variable, "ALL", call=source))

    def _at_end(self, name: str, call: ex.Call, binder: ExpressionBinder) -> Rex:
        """FIRST(x, n) and LAST(x, n): x of the row n rows from that end."""
        if len(call.arguments) not in (1, 2):
            raise self._context.error(f"{name} takes an expression and perhaps a number of rows", call.span)
        offset = 0
        if len(call.arguments) == 2:
            given = binder.bind(call.arguments[1])
            if not isinstance(given, Literal) or type(given.value) is not int or given.value < 0:
                raise self._context.error(f"the second argument of {name} is a number of rows, 0 or more", call.span)
            offset = given.value
        rex = binder.bind(call.arguments[0])
        self._one_variable(rex, name)

        def placed(each: Rex) -> Rex | None:
            if isinstance(each, AggregateCall):
                raise self._context.error(f"an aggregate may not stand in {name}", call.span)
            if not isinstance(each, ColumnRef) or each.column.id not in self._source:
                return None
            variable, source = self._source[each.column.id]
            return self._value(MatchValue(new_column(source.name, each.type), variable, name, offset, source))

        return rex.transform(placed)

    def _one_variable(self, rex: Rex, what: str) -> str | None:
        refs = [each for each in rex.walk() if isinstance(each, ColumnRef) and each.column.id in self._source]
        found = {self._source[each.column.id][0] for each in refs}
        if len(found) > 1:
            names = ", ".join(sorted(name or "all rows" for name in found))
            raise self._context.error(f"{what} is of rows of one variable, found {names}", rex.span)
        return next(iter(found), None)

    def _input(self, rex: Rex) -> Rex | None:
        if isinstance(rex, ColumnRef) and rex.column.id in self._source:
            return ref(self._source[rex.column.id][1], rex.span)
        return None

    def _value(self, value: MatchValue) -> Rex:
        for known in self._values:
            if replace(known, column=value.column) == value:
                return ref(known.column)
        self._values.append(value)
        return ref(value.column)

    def _column(self, rex: Rex, clause: str, node: Expression) -> Column:
        if not isinstance(rex, ColumnRef):
            raise self._context.error(f"{clause} of MATCH_RECOGNIZE takes columns", node.span)
        return rex.column

    def _error(self, text: str) -> SqlError:
        return self._context.error(text, self._node.span)

    def _located(self, error: SqlError) -> SqlError:
        return error if str(error).startswith("line ") else self._error(str(error))


def _is_rowtime(node: Expression) -> bool:
    return isinstance(node, ex.Call) and node.name[0].upper() == "MATCH_ROWTIME"
