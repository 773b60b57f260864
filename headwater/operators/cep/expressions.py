"""Conditions as text: small expressions over the fields of an event, checked and compiled, never evaluated as Python.

    amount > 500 and country != last(small.country)
    status in ("open", "new") or count(fail) >= 3

Names are fields of the event: attributes, keys of a dict, or names of a Row. `step.field` after one of the functions
`first`, `last`, `sum`, `avg`, `min`, `max` looks at the events that the partial match has for a step; `count(step)`
counts them. Operators: `and or not`, comparisons, `in`, `+ - * / %`, unary minus. Constants: numbers, strings, True,
False, None, tuples of them.

An expression never raises: whoever brings a pattern to a running job does not stop it. A field that an event lacks is
None; what cannot be compared is neither less nor greater; arithmetic that cannot be done gives None.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from numbers import Number
from typing import Any

from headwater.common.errors import PatternError
from headwater.common.types import Row
from headwater.operators.cep.conditions import Test

MAX_LENGTH = 10_000
MAX_DEPTH = 50

Value = Callable[[Any, Any], Any]
"""A compiled part: of (event, context)."""


def _safely(function: Callable[[Any, Any], Any], otherwise: Any) -> Callable[[Any, Any], Any]:
    def apply(one: Any, two: Any) -> Any:
        try:
            return function(one, two)
        except (TypeError, ValueError, ArithmeticError):
            return otherwise

    return apply


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`text * 1000000000` would fill the memory, and `text % value` formats."""

    def apply(one: Any, two: Any) -> Any:
        return None if hasattr(one, "__len__") or hasattr(two, "__len__") else function(one, two)

    return _safely(apply, None)


_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: _safely(lambda one, two: bool(one == two), False),
    ast.NotEq: _safely(lambda one, two: bool(one != two), True),
    ast.Lt: _safely(operator.lt, False),
    ast.LtE: _safely(operator.le, False),
    ast.Gt: _safely(operator.gt, False),
    ast.GtE: _safely(operator.ge, False),
    ast.In: _safely(lambda one, two: one in two, False),
    ast.NotIn: _safely(lambda one, two: one not in two, False),
}
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: _safely(operator.add, None),
    ast.Sub: _safely(operator.sub, None),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _safely(operator.truediv, None),
    ast.Mod: _of_numbers(operator.mod),
}
_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "sum": lambda values: _aggregated(sum, _numbers(values)),
    "avg": lambda values: _aggregated(_mean, _numbers(values)),
    "min": lambda values: _aggregated(min, [value for value in values if value is not None]),
    "max": lambda values: _aggregated(max, [value for value in values if value is not None]),
}


def _numbers(values: list[Any]) -> list[Any]:
    """Python's, Decimals and numpy's. What is none is left out."""
    return [value for value in values if isinstance(value, Number)]


def _mean(values: list[Any]) -> Any:
    return sum(values) / len(values)


def _aggregated(function: Callable[[list[Any]], Any], values: list[Any]) -> Any:
    """None if there are no values (the sum is 0 then), or if they do not go together, as a Decimal and a float."""
    if not values:
        return 0 if function is sum else None
    try:
        return function(values)
    except (TypeError, ValueError, ArithmeticError):
        return None


class Expression:
    """A checked expression. Equal texts are equal; pickled as its text, and compiled again."""

    def __init__(self, text: str) -> None:
        self.text = text
        tree = _parsed(text)
        self.steps = frozenset(_steps_in(tree, text))
        """The steps whose events it looks at."""
        self.equalities = dict(_equalities(tree))
        """{field: constant} that every event which fits has."""
        self.is_equality = isinstance(tree, ast.Compare) and bool(self.equalities)
        """Every event that has this constant fits."""
        self._value = _compiled(tree, text, 0)

    def __call__(self, event: Any, ctx: Any = None) -> Any:
        return self._value(event, ctx)

    def __reduce__(self) -> Any:
        return Expression, (self.text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


def expression(text: str) -> Test:
    """The condition that `text` says; `PatternError` says what is wrong with it."""
    checked = _checked(text) if isinstance(text, str) else Expression(text)
    return Test(checked, bool(checked.steps), text)


@lru_cache(maxsize=10_000)
def _checked(text: str) -> Expression:
    """Thousands of patterns share conditions, and each pattern is read more than once."""
    return Expression(text)


def field_of(event: Any, name: str) -> Any:
    """A field of an event, whatever the event is; None if it has no such field."""
    if isinstance(event, dict):
        return event.get(name)
    if isinstance(event, Row):
        return event[name] if name in (event.get_field_names() or ()) else None
    return getattr(event, name, None)


def _parsed(text: Any) -> ast.expr:
    if not isinstance(text, str) or not text.strip():
        raise PatternError(f"a condition must be a text such as 'amount > 500', found {text!r}")
    if len(text) > MAX_LENGTH:
        raise PatternError(f"a condition has {len(text)} characters; at most {MAX_LENGTH} are allowed")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PatternError(f"the condition {text!r} cannot be read: {error}") from None


def _refused(text: str, node: ast.AST, why: str) -> PatternError:
    return PatternError(f"the condition {text!r}: {ast.unparse(node)!r} {why}")


def _compiled(node: ast.expr, text: str, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise PatternError(f"the condition {text[:100]!r} is nested too deeply")

    def part(child: ast.expr) -> Value:
        return _compiled(child, text, depth + 1)

    match node:
        case ast.Constant(value) if isinstance(value, str | int | float | bool | None):
            return lambda event, ctx: value
        case ast.Tuple(elts) | ast.List(elts):
            parts = [part(each) for each in elts]
            return lambda event, ctx: tuple(each(event, ctx) for each in parts)
        case ast.Name(name):
            if name.startswith("_"):
                raise _refused(text, node, "is no field: fields do not begin with an underscore")
            return lambda event, ctx: field_of(event, name)
        case ast.BoolOp(ast.And(), values):
            parts = [part(each) for each in values]
            return lambda event, ctx: all(each(event, ctx) for each in parts)
        case ast.BoolOp(ast.Or(), values):
            parts = [part(each) for each in values]
            return lambda event, ctx: any(each(event, ctx) for each in parts)
        case ast.UnaryOp(ast.Not(), operand):
            negated = part(operand)
            return lambda event, ctx: not negated(event, ctx)
        case ast.UnaryOp(ast.USub(), operand):
            minus = part(operand)
            return lambda event, ctx: _ARITHMETIC[ast.Sub](0, minus(event, ctx))
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            one, two, apply = part(left), part(right), _ARITHMETIC[type(op)]
            if type(op) in (ast.Mult, ast.Mod) and (_is_text(left) or _is_text(right)):
                raise _refused(text, node, "is no arithmetic of numbers")
            return lambda event, ctx: apply(one(event, ctx), two(event, ctx))
        case ast.Compare(left, ops, comparators):
            return _comparison(part(left), ops, [part(each) for each in comparators], text, node)
        case ast.Call(ast.Name(name), [argument], []):
            return _call(name, argument, text, node)
    raise _refused(text, node, "is not part of this language (see headwater.operators.cep.expressions)")


def _comparison(first: Value, ops: list[ast.cmpop], others: list[Value], text: str, node: ast.AST) -> Value:
    if not all(type(op) in _COMPARISONS for op in ops):
        raise _refused(text, node, "compares in a way that is not part of this language; use == and !=")
    pairs = [(_COMPARISONS[type(op)], other) for op, other in zip(ops, others, strict=True)]
    if len(pairs) == 1:
        compare, second = pairs[0]
        return lambda event, ctx: compare(first(event, ctx), second(event, ctx))

    def chained(event: Any, ctx: Any) -> bool:
        before = first(event, ctx)
        for compare, other in pairs:
            after = other(event, ctx)
            if not compare(before, after):
                return False
            before = after
        return True

    return chained


def _call(name: str, argument: ast.expr, text: str, node: ast.AST) -> Value:
    if name == "count" and isinstance(argument, ast.Name):
        step = argument.id
        return lambda event, ctx: len(ctx.get_events_for_pattern(step))
    aggregate = _AGGREGATES.get(name)
    if aggregate is None or not (isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name)):
        raise _refused(text, node, f"is unknown; write count(step), or {', '.join(_AGGREGATES)} of step.field")
    step, name_of_field = argument.value.id, argument.attr
    if name_of_field.startswith("_"):
        raise _refused(text, node, "is no field: fields do not begin with an underscore")
    return lambda event, ctx: aggregate([field_of(each, name_of_field) for each in ctx.get_events_for_pattern(step)])


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _steps_in(tree: ast.expr, text: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 1:
            argument = node.args[0]
            if isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name):
                yield argument.value.id
            elif isinstance(argument, ast.Name):
                yield argument.id


def _equalities(tree: ast.expr) -> Iterator[tuple[str, Any]]:
    """`field == constant`, also as one of several that are joined by `and`."""
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    for part in parts:
        match part:
            case ast.Compare(ast.Name(name), [ast.Eq()], [ast.Constant(value)]):
                yield name, value
            case ast.Compare(ast.Constant(value), [ast.Eq()], [ast.Name(name)]):
                yield name, value
