"""Make typed calls of functions: arguments are checked and cast by the function's own rules."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.common.errors import FunctionTypeError, SqlError
from headwater.table.functions.definition import BoundArgument, FunctionDefinition
from headwater.table.functions.registry import lookup, nearest
from headwater.table.parser.tokens import NOWHERE, Span
from headwater.table.plan.expressions import AggregateCall, FunctionCall, Literal, Rex, TypeWord
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS
from headwater.table.types import casts
from headwater.table.types.logical import LogicalType, TypeRoot


def find_function(name: str) -> FunctionDefinition:
    """The function of that name. SqlError, with the nearest known name, if there is none."""
    found = WINDOW_FUNCTIONS.get(name.upper()) or lookup(name)
    if found is None:
        near = nearest(name)
        raise SqlError(f"there is no function '{name}'" + (f"; did you mean {near}?" if near else ""))
    return found


def bound(rex: Rex) -> BoundArgument:
    if isinstance(rex, Literal):
        return BoundArgument(rex.type, rex.value)
    if isinstance(rex, TypeWord):
        return BoundArgument(rex.target, rex.target)
    return BoundArgument(rex.type)


def call(name: str, arguments: Sequence[Rex], span: Span = NOWHERE) -> FunctionCall:
    """A call of a scalar function. SqlError if there is none, or it does not take these arguments."""
    return call_of(find_function(name), arguments, span)


def call_of(definition: FunctionDefinition, arguments: Sequence[Rex], span: Span = NOWHERE) -> FunctionCall:
    """A call of this scalar function, or of a table function: then it gives an array of rows."""
    try:
        binding = definition.bind([bound(argument) for argument in arguments])
    except FunctionTypeError as error:
        raise SqlError(str(error)) from None
    return FunctionCall(binding.result_type, binding, definition.name, tuple(arguments), span=span)


def aggregate(
    definition: FunctionDefinition,
    arguments: Sequence[Rex],
    distinct: bool = False,
    filter: Rex | None = None,
    span: Span = NOWHERE,
) -> AggregateCall:
    try:
        binding = definition.bind([bound(argument) for argument in arguments])
    except FunctionTypeError as error:
        raise SqlError(str(error)) from None
    return AggregateCall(binding.result_type, binding, definition.name, tuple(arguments), distinct, filter, span=span)


def cast(rex: Rex, target: LogicalType, span: Span | None = None) -> Rex:
    """`rex` as a value of `target`; itself if it is one. Nullability stays that of `rex`."""
    wanted = target if rex.type.root is TypeRoot.NULL else target.with_nullable(rex.type.nullable)
    if isinstance(rex, Literal) and rex.value is None:
        return Literal(target.with_nullable(True), None, span=rex.span)
    if rex.type == wanted:
        return rex
    return call("CAST", (rex, TypeWord(wanted, wanted)), span or rex.span)


def implicit(rex: Rex, target: LogicalType) -> Rex | None:
    """`rex` cast to `target` if that needs no CAST in SQL; None if it does."""
    if not casts.implicit_cast(rex.type.with_nullable(True), target.with_nullable(True)):
        return None
    return cast(rex, target)
