"""Bind expressions: names to columns, calls to functions, everything to a type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headwater.common.errors import SqlError
from headwater.table.functions.definition import FunctionDefinition, FunctionKind
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import DataType, Expression, Query
from headwater.table.parser.tokens import Span
from headwater.table.plan import literals
from headwater.table.plan.calls import aggregate, call, call_of, cast, find_function
from headwater.table.plan.context import BindContext
from headwater.table.plan.expressions import (
    AggregateCall,
    ExistsSubquery,
    Grouping,
    InSubquery,
    Literal,
    Rex,
    ScalarSubquery,
    SortKey,
    TypeWord,
    WindowCall,
    ref,
)
from headwater.table.plan.frames import bind_frame
from headwater.table.plan.json_calls import json_arguments
from headwater.table.plan.nodes import Plan
from headwater.table.plan.projections import cast_columns
from headwater.table.plan.quantified import without_quantifier
from headwater.table.plan.scope import Scope, field_names
from headwater.table.plan.types import logical_type
from headwater.table.plan.user_functions import user_function
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS, WITHOUT_FRAME
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.logical import TypeRoot

_NULL_IF_EMPTY = frozenset(
    ("SUM", "AVG", "MIN", "MAX", "STDDEV_POP", "STDDEV_SAMP", "STDDEV", "VAR_POP", "VAR_SAMP", "VARIANCE",
     "FIRST_VALUE", "LAST_VALUE")
)  # fmt: skip
"""Aggregates that are NULL of no rows, and otherwise as nullable as their argument."""

BindQuery = Callable[[Query, BindContext, Scope | None], Plan]


@dataclass(frozen=True)
class Allowed:
    """What may stand in a clause. `clause` is its name in errors."""

    clause: str
    aggregates: bool = False
    windows: bool = False
    grouped: bool = False
    """There is a GROUP BY: aggregates are of at least one row."""


@dataclass
class ExpressionBinder:
    """Binds the expressions of one clause."""

    context: BindContext
    scope: Scope
    bind_query: BindQuery
    allowed: Allowed
    named_windows: dict[str, ast.WindowSpec] = field(default_factory=dict)
    special: Callable[[ast.Call], Rex | None] = lambda node: None
    """A call that means something only in this query (TUMBLE_START)."""
    aliases: dict[str, Rex] = field(default_factory=dict)
    """Names that mean select items (in ORDER BY and QUALIFY)."""
    _in_aggregate: bool = False

    def bind(self, node: Expression) -> Rex:
        try:
            return self._bind(node)
        except SqlError as error:
            if str(error).startswith("line "):
                raise
            raise self.context.error(str(error), node.span) from None  # the innermost place that has one

    def bind_condition(self, node: Expression) -> Rex:
        """Bind what must be BOOLEAN."""
        rex = self.bind(node)
        if rex.type.root not in (TypeRoot.BOOLEAN, TypeRoot.NULL):
            raise self.context.error(f"{self.allowed.clause} needs a BOOLEAN, got {rex.type.sql()}", node.span)
        return cast(rex, t.BOOLEAN)

    def bind_all(self, nodes: Sequence[Expression]) -> tuple[Rex, ...]:
        return tuple(self.bind(node) for node in nodes)

    def _bind(self, node: Expression) -> Rex:
        try:
            constant = literals.literal(node)
        except (literals.BadLiteral, ValueError) as error:
            raise self.context.error(str(error), node.span) from None
        if constant is not None:
            return constant
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Call():
                return self._call(node)
            case ast.Cast():
                target = logical_type(node.type, self.context.sql)
                operand = self.bind(node.operand)
                target = target if target.nullable is False else target.with_nullable(True)
                name = "TRY_CAST" if node.safe else "CAST"
                return call(name, (operand, TypeWord(target, target)), node.span)
            case ast.Unary():
                if node.operator == "+":
                    return self.bind(node.operand)
                return call(node.operator, (self.bind(node.operand),), node.span)
            case ast.Operation():
                return call(node.operator, (self.bind(node.left), self.bind(node.right)), node.span)
            case ast.Case():
                return self._case(node)
            case ast.Star():
                raise self.context.error("'*' stands for columns only in SELECT and COUNT(*)", node.span)
            case ast.ArrayOf():
                return call("ARRAY", self.bind_all(node.items), node.span)
            case ast.MapOf():
                return call("MAP", self.bind_all(node.items), node.span)
            case ast.RowOf():
                return call("ROW", self.bind_all(node.items), node.span)
            case ast.Item():
                return call("ITEM", (self.bind(node.operand), self.bind(node.index)), node.span)
            case ast.Field():
                return self._field(self.bind(node.operand), node.name, node.span)
        return self._predicate(node)

    # -- Names

    def _name(self, node: ast.Name) -> Rex:
        if len(node.parts) == 1 and node.parts[0] in self.aliases:
            return self.aliases[node.parts[0]]
        found = self.scope.find(node.parts)
        if found is None:
            raise self.context.error(self.scope.unknown(node.parts), node.span)
        if isinstance(found, list):
            raise self.context.error(
                f"'{'.'.join(node.parts)}' means {len(found)} columns; write table.{node.parts[-1]}", node.span
            )
        rex: Rex = ref(found.column, node.span)
        for name in node.parts[found.used :]:
            rex = self._field(rex, name, node.span)
        return rex

    def _field(self, operand: Rex, name: str, span: Span) -> Rex:
        if not isinstance(operand.type, t.RowType):
            raise self.context.error(f"'{name}' is no field: {operand.type.sql()} has no fields", span)
        if operand.type.field(name) is None:
            raise self.context.error(
                f"there is no field '{name}' in {operand.type.sql()} (there is {field_names(operand.type)})", span
            )
        word = Literal(t.CharType(length=len(name), nullable=False), name)
        return call("FIELD", (operand, word), span)

    # -- Calls

    def _call(self, node: ast.Call) -> Rex:
        special = self.special(node)
        if special is not None:
            return special
        user = user_function(node, self.context)
        name = node.name[-1].upper()
        if name == "CURRENT_DATABASE" and user is None and not node.arguments:
            current = self.context.catalogs.current_database
            return Literal(t.STRING.not_null(), current, span=node.span)
        if name in ("GROUPING", "GROUPING_ID") and user is None:
            return Grouping(t.BIGINT.not_null(), self.bind_all(node.arguments), span=node.span)
        definition = user or find_function(node.name[0])
        if definition.kind is FunctionKind.AGGREGATE:
            return self._aggregate(node, definition)
        if node.over is not None or node.filter is not None or node.distinct:
            word = "OVER" if node.over is not None else "FILTER" if node.filter is not None else "DISTINCT"
            raise self.context.error(f"{name} is no aggregate: it takes no {word}", node.span)
        if definition.kind is FunctionKind.TABLE and self.allowed.clause != "UNNEST":
            raise self.context.error(f"{name} is a table function; it stands in FROM", node.span)
        if user is not None:
            return call_of(user, self.bind_all(node.arguments), node.span)
        arguments = json_arguments(name, node, self) if name.startswith("JSON_") else self.bind_all(node.arguments)
        return call(name, arguments, node.span)

    def _aggregate(self, node: ast.Call, definition: FunctionDefinition) -> Rex:
        name = definition.name
        if name in WINDOW_FUNCTIONS and node.over is None:
            raise self.context.error(f"{name} needs OVER (… ORDER BY …)", node.span)
        allowed = self.allowed.windows if node.over is not None else self.allowed.aggregates
        if not allowed:
            kind = "a function with OVER" if node.over is not None else "an aggregate"
            raise self.context.error(f"{name}: {kind} may not stand in {self.allowed.clause}", node.span)
        if self._in_aggregate and node.over is None:
            raise self.context.error(f"{name}: an aggregate may not stand in another one", node.span)
        outside, self._in_aggregate = self._in_aggregate, node.over is None
        try:
            star = len(node.arguments) == 1 and isinstance(node.arguments[0], ast.Star)
            if star and name != "COUNT":
                raise self.context.error(f"{name}(*) means nothing; only COUNT takes '*'", node.span)
            arguments = () if star else self.bind_all(node.arguments)
            condition = None
            if node.filter is not None:
                condition = self._condition(node.filter, "FILTER")
            if node.within_group:
                raise self.context.error(f"{name}: WITHIN GROUP is not there, as it is not in Flink", node.span)
            if node.null_treatment == "IGNORE":
                if name != "ARRAY_AGG" or node.over is not None:
                    raise self.context.error(f"{name}: IGNORE NULLS is there for ARRAY_AGG only", node.span)
                there = call("IS NOT NULL", (arguments[0],), span=node.span)
                condition = there if condition is None else call("AND", (condition, there), span=node.span)
            found = aggregate(definition, arguments, node.distinct, condition, node.span)
            if name in _NULL_IF_EMPTY:
                nullable = any(each.type.nullable for each in arguments) or condition is not None
                empty = node.over is None and not self.allowed.grouped
                found = replace(found, type=found.type.with_nullable(nullable or empty))
        finally:
            self._in_aggregate = outside
        return found if node.over is None else self._over(found, node.over, node.span)

    def _condition(self, node: Expression, clause: str) -> Rex:
        rex = self.bind(node)
        if rex.type.root not in (TypeRoot.BOOLEAN, TypeRoot.NULL):
            raise self.context.error(f"{clause} needs a BOOLEAN, got {rex.type.sql()}", node.span)
        return cast(rex, t.BOOLEAN)

    def _over(self, found: Rex, spec: ast.WindowSpec, span: Span) -> Rex:
        assert isinstance(found, AggregateCall)
        spec = self._resolved(spec, span)
        partition = self.bind_all(spec.partition_by)
        order = self.bind_order(spec.order_by)
        if found.name in WINDOW_FUNCTIONS and not order and found.name != "ROW_NUMBER":
            raise self.context.error(f"{found.name} needs an ORDER BY in OVER", span)
        frame = None
        if spec.frame is not None:
            if found.name in WITHOUT_FRAME:
                raise self.context.error(f"{found.name} takes no {spec.frame.unit} in OVER", spec.frame.span)
            frame = bind_frame(spec.frame, order, self)
        type_ = found.type
        if frame is not None and found.name in _NULL_IF_EMPTY and (frame.start.offset or frame.end.offset):
            type_ = type_.with_nullable(True)  # Flink does not look whether the frame has the row itself
        return WindowCall(type_, found, partition, order, frame, span=span)

    def _resolved(self, spec: ast.WindowSpec, span: Span) -> ast.WindowSpec:
        """A window with what its named base has."""
        if spec.name is None:
            return spec
        base = self.named_windows.get(spec.name)
        if base is None:
            known = ", ".join(self.named_windows) or "none"
            raise self.context.error(f"there is no window '{spec.name}' in WINDOW (there is {known})", span)
        base = self._resolved(base, span)
        if spec.partition_by or (spec.order_by and base.order_by):
            raise self.context.error(f"window '{spec.name}' has that already; it cannot be changed", span)
        return ast.WindowSpec(None, base.partition_by, spec.order_by or base.order_by, spec.frame or base.frame)

    def bind_order(self, items: Sequence[ast.SortItem]) -> tuple[SortKey, ...]:
        return tuple(
            SortKey(
                self.bind(item.expression),
                item.descending,
                (not item.descending) if item.nulls_first is None else item.nulls_first,
            )
            for item in items
        )

    # -- Conditions

    def _case(self, node: ast.Case) -> Rex:
        arguments: list[Rex] = []
        for when in node.whens:
            if node.operand is not None:
                arguments.append(call("=", (self.bind(node.operand), self.bind(when.condition)), when.span))
            else:
                arguments.append(self._condition(when.condition, "WHEN"))
            arguments.append(self.bind(when.result))
        arguments.append(Literal(t.NULL, None) if node.otherwise is None else self.bind(node.otherwise))
        return call("CASE", arguments, node.span)

    def _predicate(self, node: Expression) -> Rex:
        match node:
            case ast.Between():
                name = f"{'NOT ' if node.negated else ''}BETWEEN{' SYMMETRIC' if node.symmetric else ''}"
                return call(name, self.bind_all((node.operand, node.low, node.high)), node.span)
            case ast.Like():
                operands = (node.operand, node.pattern, *(() if node.escape is None else (node.escape,)))
                return call(f"{'NOT ' if node.negated else ''}{node.operator}", self.bind_all(operands), node.span)
            case ast.Is(test=test) if test.startswith("JSON"):
                kind = test.removeprefix("JSON").strip()
                words = (Literal(t.CharType(length=len(kind), nullable=False), kind),) if kind else ()
                found = call("IS JSON", (self.bind(node.operand), *words), node.span)
                return call("NOT", (found,), node.span) if node.negated else found
            case ast.Is():
                name = f"IS {'NOT ' if node.negated else ''}{node.test}"
                return call(name, (self.bind(node.operand),), node.span)
            case ast.IsDistinct():
                name = f"IS {'NOT ' if node.negated else ''}DISTINCT FROM"
                return call(name, (self.bind(node.left), self.bind(node.right)), node.span)
            case ast.InList():
                return self._in_list(node)
            case ast.InQuery():
                return self._in_query(node.operand, node.query, node.negated, node.span)
            case ast.Quantified():
                if (node.operator, node.quantifier) in (("=", "ANY"), ("<>", "ALL")):
                    return self._in_query(node.operand, node.query, node.operator == "<>", node.span)
                if isinstance(node.operand, ast.RowOf):
                    raise self.context.error(f"{node.operator} {node.quantifier} compares one value", node.span)
                return self.bind(without_quantifier(node))
            case ast.Exists():
                plan = self.bind_query(node.query, self.context, self.scope)
                return ExistsSubquery(t.BOOLEAN.not_null(), plan, span=node.span)
            case ast.Subquery():
                plan = self.bind_query(node.query, self.context, self.scope)
                if len(plan.columns) != 1:
                    raise self.context.error(
                        f"a query as a value has one column, this one has {len(plan.columns)}", node.span
                    )
                return ScalarSubquery(plan.columns[0].type.with_nullable(True), plan, span=node.span)
        raise self.context.error(f"{type(node).__name__} may not stand in {self.allowed.clause}", node.span)

    def _in_list(self, node: ast.InList) -> Rex:
        operand = self.bind(node.operand)
        values = self.bind_all(node.values)
        if any(isinstance(value, ScalarSubquery) for value in values):
            raise self.context.error("a query among the values of IN is not there yet", node.span)
        return call("NOT IN" if node.negated else "IN", (operand, *values), node.span)

    def _in_query(self, operand: Expression, query: Query, negated: bool, span: Span) -> Rex:
        nodes = operand.items if isinstance(operand, ast.RowOf) else (operand,)
        operands = self.bind_all(nodes)
        plan = self.bind_query(query, self.context, self.scope)
        if len(plan.columns) != len(operands):
            raise self.context.error(
                f"IN compares {len(operands)} value(s) with {len(plan.columns)} column(s) of the query", span
            )
        nullable = False
        compared: list[Rex] = []
        for value, column in zip(operands, plan.columns, strict=True):
            common = casts.comparable_type(value.type, column.type)
            if common is None:
                raise self.context.error(f"IN cannot compare {value.type.sql()} with {column.type.sql()}", span)
            nullable |= value.type.nullable or column.type.nullable
            compared.append(cast(value, common))
        plan = cast_columns(plan, [each.type for each in compared])
        return InSubquery(t.BOOLEAN.with_nullable(nullable), plan, tuple(compared), negated, span=span)

    def bind_type(self, written: DataType) -> t.LogicalType:
        return logical_type(written, self.context.sql)
