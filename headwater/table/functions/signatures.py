"""How definitions say which arguments they take and what they give.

A parameter gives the type to which an argument is cast, or None if it does not take it. NULL fits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.definition import Bind, BoundArgument, Signature
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot


@dataclass(frozen=True)
class Parameter:
    """One place of a call: a word for errors and the page, and what it takes."""

    word: str
    accept: Callable[[LogicalType], LogicalType | None]
    null_type: LogicalType = t.NULL
    """What an untyped NULL becomes there."""

    def target(self, argument: BoundArgument) -> LogicalType | None:
        if argument.type.root is TypeRoot.NULL:
            return self.null_type
        return self.accept(argument.type)


def of_roots(word: str, roots: Sequence[TypeRoot], null_type: LogicalType) -> Parameter:
    """Takes these kinds of types as they are."""
    return Parameter(word, lambda given: given if given.root in roots else None, null_type)


def implicitly(word: str, target: LogicalType) -> Parameter:
    """Takes what casts to `target` by itself, cast to it."""

    def accept(given: LogicalType) -> LogicalType | None:
        return target.with_nullable(given.nullable) if casts.implicit_cast(given.with_nullable(True), target) else None

    return Parameter(word, accept, target)


ANY = Parameter("any", lambda given: given)
TEXT = of_roots("string", t.STRING_ROOTS, t.STRING)
BINARY = of_roots("binary", t.BINARY_ROOTS, t.BYTES)
TEXT_OR_BINARY = of_roots("string or binary", (*t.STRING_ROOTS, *t.BINARY_ROOTS), t.STRING)
NUMBER = of_roots("number", t.NUMERIC_ROOTS, t.DOUBLE)
BOOL = of_roots("boolean", (TypeRoot.BOOLEAN,), t.BOOLEAN)
INT32 = implicitly("INT", t.INT)
INT64 = implicitly("BIGINT", t.BIGINT)
FLOATING = implicitly("DOUBLE", t.DOUBLE)
TEMPORAL = of_roots("date or time", t.TEMPORAL_ROOTS, t.TimestampType(precision=3))
TIMESTAMP = of_roots("timestamp", t.TIMESTAMP_ROOTS, t.TimestampType(precision=3))
ARRAY = of_roots("array", (TypeRoot.ARRAY,), t.NULL)
WORD = of_roots("word", (TypeRoot.CHAR,), t.STRING)

Result = LogicalType | Callable[[Sequence[LogicalType]], LogicalType]


def call(
    *parameters: Parameter,
    result: Result,
    optional: int = 0,
    variadic: bool = False,
    nullable: bool | None = None,
) -> Bind:
    """Describe the usual call: so many parameters, of which the last `optional` may be left out.

    `variadic`: the last parameter may be repeated. `result` is a type, or gives it from the parameters' types. It is
    nullable as `nullable` says, or if one of the arguments is.
    """
    least, most = len(parameters) - optional, None if variadic else len(parameters)

    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise FunctionTypeError(
                f"takes {_count(least, most)} ({_words(parameters, optional, variadic)}), found {len(arguments)}"
            )
        targets = []
        for at, argument in enumerate(arguments):
            parameter = parameters[min(at, len(parameters) - 1)]
            target = parameter.target(argument)
            if target is None:
                raise FunctionTypeError(
                    f"argument {at + 1} must be of type {parameter.word}, found {argument.type.sql()}; use CAST"
                )
            targets.append(target)
        found = result(targets) if callable(result) else result
        return Signature(_with_nullability(found, arguments, nullable), tuple(targets))

    return bind


def _with_nullability(of: LogicalType, arguments: Sequence[BoundArgument], nullable: bool | None) -> LogicalType:
    if of.root is TypeRoot.NULL:
        return of
    return of.with_nullable(any(each.type.nullable for each in arguments) if nullable is None else nullable)


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more arguments"
    if least == most:
        return "1 argument" if least == 1 else f"{least or 'no'} arguments"
    return f"{least} to {most} arguments"


def _words(parameters: Sequence[Parameter], optional: int, variadic: bool) -> str:
    least = len(parameters) - optional
    words = [each.word if at < least else f"[{each.word}]" for at, each in enumerate(parameters)]
    return ", ".join([*words, "..."] if variadic else words)


def first(types: Sequence[LogicalType]) -> LogicalType:
    """The result has the first argument's type."""
    return types[0]


def one_of(*binds: Bind) -> Bind:
    """Try several descriptions; the error is that of the last."""

    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        for each in binds[:-1]:
            try:
                return each(arguments)
            except FunctionTypeError:
                continue
        return binds[-1](arguments)

    return bind


def unified(arguments: Sequence[BoundArgument], what: str) -> LogicalType:
    """Return the type that all arguments have in common, or raise."""
    found = casts.common_type([each.type for each in arguments])
    if found is None:
        types = ", ".join(each.type.with_nullable(True).sql() for each in arguments)
        raise FunctionTypeError(f"{what} must have a type in common, found {types}; use CAST")
    return found
