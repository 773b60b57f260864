"""Comparison: =, <>, <, BETWEEN, IN, LIKE, IS NULL and IS DISTINCT FROM."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions.casting.decimal_columns import WIDE_DIGITS
from headwater.table.functions.definition import (
    Binding,
    BoundArgument,
    Column,
    FunctionDefinition,
    Signature,
    SparkText,
)
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, infix, row_by_row, spark, vectorised
from headwater.table.functions.signatures import ANY, TEXT, call
from headwater.table.types import casts, decimals
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot

FAMILY = "comparison"
_NESTED = (TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.ROW, TypeRoot.MULTISET)


def _common(arguments: Sequence[BoundArgument]) -> LogicalType:
    """The type as which all arguments are compared with the first."""
    found = arguments[0].type
    for each in arguments[1:]:
        merged = casts.comparable_type(found, each.type)
        if merged is None:
            raise FunctionTypeError(f"{found.sql()} does not compare with {each.type.sql()}; use CAST")
        found = merged
    return t.BOOLEAN if found.root is TypeRoot.NULL else found


def _bind(arguments: Sequence[BoundArgument], least: int, most: int | None) -> Signature:
    if len(arguments) < least or (most is not None and len(arguments) > most):
        raise FunctionTypeError(f"takes {least}{'' if most == least else ' or more'} arguments, found {len(arguments)}")
    common = _common(arguments)
    if len(arguments) == 2 and common.root is TypeRoot.DECIMAL:
        exact = tuple(decimals.as_decimal(each.type) if t.is_exact(each.type) else common for each in arguments)
        return Signature(t.BOOLEAN.with_nullable(any(each.type.nullable for each in arguments)), exact)
    types = tuple(common.with_nullable(each.type.nullable) for each in arguments)
    return Signature(t.BOOLEAN.with_nullable(any(each.type.nullable for each in arguments)), types)


def _fixed(count: int) -> Callable[[Sequence[BoundArgument]], Signature]:
    return lambda arguments: _bind(arguments, count, count)


def _many(arguments: Sequence[BoundArgument]) -> Signature:
    return _bind(arguments, 2, None)


def _never_null(arguments: Sequence[BoundArgument]) -> Signature:
    found = _bind(arguments, 2, 2)
    return Signature(t.BOOLEAN.not_null(), found.arguments)


def _plain(column: Column) -> bool:
    """Whether Arrow compares such columns by itself."""
    return not pa.types.is_nested(column.type)


def _aligned(function: Callable[[Column, Column], Column]) -> Callable[[Column, Column], Column]:
    """Compare decimals of different digits without rounding one of them."""

    def compare(left: Column, right: Column) -> Column:
        if pa.types.is_decimal(left.type) and left.type != right.type:
            wide = pa.decimal256(WIDE_DIGITS, max(left.type.scale, right.type.scale))
            left, right = left.cast(wide), right.cast(wide)
        return function(left, right)

    return compare


def _equal(left: Column, right: Column) -> Column:
    if _plain(left):
        return _aligned(pc.equal)(left, right)
    rows = len(left) if isinstance(left, pa.Array) else len(right)
    pairs = zip(as_array(left, rows).to_pylist(), as_array(right, rows).to_pylist(), strict=True)
    return pa.array([None if one is None or other is None else _same(one, other) for one, other in pairs], pa.bool_())


def _same(one: Any, other: Any) -> bool:
    """Maps come as lists of pairs, in any order."""
    if isinstance(one, list) and one and isinstance(one[0], tuple):
        return sorted(one, key=repr) == sorted(other, key=repr)
    return bool(one == other)


def _spark_exactly(template: str) -> SparkText:
    """Spark's comparison, unless it would round a decimal to 38 digits."""

    def text(arguments: Sequence[str], binding: Binding) -> str | None:
        one, other = binding.arg_types
        if isinstance(one, t.DecimalType) and isinstance(other, t.DecimalType):
            before = max(one.precision - one.scale, other.precision - other.scale)
            if before + max(one.scale, other.scale) > t.MAX_DECIMAL_PRECISION:
                return None
        found = spark(template)(arguments, binding)
        if one.root not in t.APPROXIMATE_ROOTS or "<=>" in template:
            return found
        # For Spark, NaN equals itself and is greater than all other numbers.
        not_a_number = f"(isnan({arguments[0]}) OR isnan({arguments[1]}))"
        known = f"{arguments[0]} IS NOT NULL AND {arguments[1]} IS NOT NULL"
        return f"CASE WHEN {not_a_number} AND {known} THEN {'<>' in template} ELSE {found} END"

    return text


def _comparison(name: str, kernel: Callable[[Column, Column], Column], text: str) -> FunctionDefinition:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        found = _bind(arguments, 2, 2)
        if name not in ("=", "<>") and found.arguments[0].root in _NESTED:
            raise FunctionTypeError(f"values of {found.arguments[0].sql()} have no order")
        return found

    return FunctionDefinition(
        name,
        FAMILY,
        bind,
        f"a {name} b",
        text,
        compute=vectorised(kernel),
        spark_text=_spark_exactly(f"({{0}} {name} {{1}})"),
        text=infix(name),
    )


def _is_null(name: str, kernel: Callable[[Column], Column], text: str) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        FAMILY,
        call(ANY, result=t.BOOLEAN, nullable=False),
        f"a {name}",
        text,
        compute=vectorised(kernel),
        spark_text=spark(f"({{0}} {name})"),
        text=lambda arguments: f"({arguments[0]} {name})",
    )


def _distinct(left: Column, right: Column) -> Column:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    equal = pc.fill_null(_equal(left, right), False)
    return pc.invert(pc.or_(equal, both_null))


def _between(value: Column, low: Column, high: Column) -> Column:
    return pc.and_kleene(pc.greater_equal(value, low), pc.less_equal(value, high))


def _between_symmetric(value: Column, low: Column, high: Column) -> Column:
    return pc.or_kleene(_between(value, low, high), _between(value, high, low))


def _range(words: str, kernel: Callable[[Column, Column, Column], Column], spark_text: str) -> FunctionDefinition:
    def negated(*columns: Column) -> Column:
        return pc.invert(kernel(*columns))

    negative = words.startswith("NOT")
    return FunctionDefinition(
        words,
        FAMILY,
        _fixed(3),
        f"a {words} b AND c",
        "a is"
        + (" not" if negative else "")
        + " at least b and at most c"
        + ("; or b and c the other way round" if "SYMMETRIC" in words else "")
        + ".",
        compute=vectorised(negated if negative else kernel),
        spark_text=spark(f"(NOT {spark_text})" if negative else spark_text),
        text=lambda arguments: f"({arguments[0]} {words} {arguments[1]} AND {arguments[2]})",
    )


def _in(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    value, *options = columns
    if _plain(value) and all(isinstance(each, pa.Scalar) for each in options):
        known = pa.array([each.as_py() for each in options if each.is_valid], value.type)
        found = pc.is_in(as_array(value, frame.rows), known)
        unsure = any(not each.is_valid for each in options)
        if unsure:
            found = pc.if_else(found, found, pa.scalar(None, pa.bool_()))
        return pc.if_else(pc.is_null(value), pa.scalar(None, pa.bool_()), found)
    return reduce(pc.or_kleene, [_equal(value, each) for each in options])


def _not_in(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    return pc.invert(_in(columns, binding, frame))


def like_pattern(pattern: str, escape: str | None) -> str:
    """The regular expression (of Python and of RE2) that means a LIKE pattern."""
    if escape is not None and len(escape) != 1:
        raise ComputationError(f"LIKE: the escape '{escape}' must be one character")
    found, at = [], 0
    while at < len(pattern):
        letter = pattern[at]
        if escape is not None and letter == escape:
            if at + 1 == len(pattern) or pattern[at + 1] not in ("_", "%", escape):
                raise ComputationError(f"LIKE: '{pattern}' has an escape that escapes nothing, at {at + 1}")
            found.append(re.escape(pattern[at + 1]))
            at += 1
        else:
            found.append({"%": ".*", "_": "."}.get(letter, re.escape(letter)))
        at += 1
    return "(?s)^" + "".join(found) + "\\z"


def _like(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values, pattern, *escape = columns
    if isinstance(pattern, pa.Scalar) and pattern.is_valid and all(isinstance(each, pa.Scalar) for each in escape):
        letter = escape[0].as_py() if escape else None
        return pc.match_substring_regex(values, like_pattern(pattern.as_py(), letter))
    compiled: dict[tuple[str, ...], re.Pattern[str]] = {}

    def matches(value: str, pattern: str, *escape: str) -> bool:
        key = (pattern, *escape)
        if key not in compiled:
            text = like_pattern(pattern, escape[0] if escape else None)
            compiled[key] = re.compile(text.replace("\\z", "\\Z"))
        return compiled[key].match(value) is not None

    return row_by_row(matches)(columns, binding, frame)


def _spark_like(arguments: Sequence[str], binding: Binding) -> str | None:
    """Spark's LIKE always escapes with a backslash unless told otherwise: it is told a letter that never occurs."""
    pattern = binding.literal(1)
    if not isinstance(pattern, str):
        return None
    escape = binding.literal(2)
    regular = like_pattern(pattern, escape).replace("\\", "\\\\").replace("'", "\\'")
    return f"({arguments[0]} RLIKE '{regular}')"


_SIMILAR = {"%": ".*", "_": "."}


def similar_pattern(pattern: str, escape: str | None) -> str:
    """The regular expression that means a SIMILAR TO pattern: % and _ as in LIKE, the rest as in POSIX."""
    found, at, in_class = [], 0, False
    while at < len(pattern):
        letter = pattern[at]
        if escape is not None and letter == escape and at + 1 < len(pattern):
            at += 1
            found.append(re.escape(pattern[at]))
        elif in_class:
            in_class = letter != "]"
            found.append(letter)
        elif letter in _SIMILAR:
            found.append(_SIMILAR[letter])
        elif letter in ".^$\\":
            found.append("\\" + letter)
        else:
            in_class = letter == "["
            found.append(letter)
        at += 1
    return "(?s)^(?:" + "".join(found) + ")\\z"


def _similar(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    def matches(value: str, pattern: str, *escape: str) -> bool:
        text = similar_pattern(pattern, escape[0] if escape else None).replace("\\z", "\\Z")
        return re.match(text, value) is not None

    return row_by_row(matches)(columns, binding, frame)


def _pattern(name: str, kernel: Any, spark_text: Any, text: str) -> tuple[FunctionDefinition, FunctionDefinition]:
    """A pattern match and its negation."""

    def negated(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        return pc.invert(kernel(columns, binding, frame))

    def spark_negated(arguments: Sequence[str], binding: Binding) -> str | None:
        found = None if spark_text is None else spark_text(arguments, binding)
        return None if found is None else f"(NOT {found})"

    def written(word: str) -> Callable[[Sequence[str]], str]:
        return lambda arguments: f"({arguments[0]} {word} {' ESCAPE '.join(arguments[1:])})"

    bind = call(TEXT, TEXT, TEXT, result=t.BOOLEAN, optional=1)
    positive = FunctionDefinition(
        name,
        FAMILY,
        bind,
        f"a {name} pattern [ESCAPE e]",
        text,
        compute=kernel,
        spark_text=spark_text,
        text=written(name),
    )
    negative = FunctionDefinition(
        f"NOT {name}",
        FAMILY,
        bind,
        f"a NOT {name} pattern [ESCAPE e]",
        f"The opposite of {name}.",
        compute=negated,
        spark_text=spark_negated,
        text=written(f"NOT {name}"),
    )
    return positive, negative


FUNCTIONS = (
    _comparison("=", _equal, "True if both are equal; NULL if one is NULL."),
    _comparison("<>", lambda a, b: pc.invert(_equal(a, b)), "True if they differ; NULL if one is NULL."),
    _comparison("<", _aligned(pc.less), "True if a is less than b. Strings compare by their UTF-8 bytes."),
    _comparison("<=", _aligned(pc.less_equal), "True if a is at most b."),
    _comparison(">", _aligned(pc.greater), "True if a is greater than b."),
    _comparison(">=", _aligned(pc.greater_equal), "True if a is at least b."),
    _is_null("IS NULL", pc.is_null, "True if a is NULL."),
    _is_null("IS NOT NULL", pc.is_valid, "True if a is not NULL."),
    FunctionDefinition(
        "IS DISTINCT FROM",
        FAMILY,
        _never_null,
        "a IS DISTINCT FROM b",
        "True if they differ; two NULLs do not.",
        compute=vectorised(_distinct),
        spark_text=_spark_exactly("(NOT ({0} <=> {1}))"),
        text=infix("IS DISTINCT FROM"),
    ),
    FunctionDefinition(
        "IS NOT DISTINCT FROM",
        FAMILY,
        _never_null,
        "a IS NOT DISTINCT FROM b",
        "True if they are equal, or both NULL.",
        compute=vectorised(lambda a, b: pc.invert(_distinct(a, b))),
        spark_text=_spark_exactly("({0} <=> {1})"),
        text=infix("IS NOT DISTINCT FROM"),
    ),
    _range("BETWEEN", _between, "({0} BETWEEN {1} AND {2})"),
    _range("NOT BETWEEN", _between, "({0} BETWEEN {1} AND {2})"),
    _range("BETWEEN SYMMETRIC", _between_symmetric, "(({0} BETWEEN {1} AND {2}) OR ({0} BETWEEN {2} AND {1}))"),
    _range("NOT BETWEEN SYMMETRIC", _between_symmetric, "(({0} BETWEEN {1} AND {2}) OR ({0} BETWEEN {2} AND {1}))"),
    FunctionDefinition(
        "IN",
        FAMILY,
        _many,
        "a IN (b, ...)",
        "True if a equals one of the values; NULL if none does and a or one of them is NULL.",
        compute=_in,
        spark_text=lambda arguments, _: f"({arguments[0]} IN ({', '.join(arguments[1:])}))",
        text=lambda arguments: f"({arguments[0]} IN ({', '.join(arguments[1:])}))",
    ),
    FunctionDefinition(
        "NOT IN",
        FAMILY,
        _many,
        "a NOT IN (b, ...)",
        "The opposite of IN.",
        compute=_not_in,
        spark_text=lambda arguments, _: f"({arguments[0]} NOT IN ({', '.join(arguments[1:])}))",
        text=lambda arguments: f"({arguments[0]} NOT IN ({', '.join(arguments[1:])}))",
    ),
    *_pattern("LIKE", _like, _spark_like, "True if the text is like the pattern: % is any text, _ any character."),
    *_pattern("SIMILAR TO", _similar, None, "True if the text matches SQL's regular expression: % and _ as in LIKE."),
)
