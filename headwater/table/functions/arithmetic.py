"""Arithmetic: + - * / % of numbers, and of times and intervals.

Integers wrap around on overflow, decimals become NULL, floats become infinite. An integer or decimal divided by zero
is an error; a float is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions import time_arithmetic
from headwater.table.functions.casting import decimal_columns
from headwater.table.functions.casting.from_text import EXACT, fit_decimal
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, infix, row_by_row
from headwater.table.types import decimals
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.spark import spark_type

FAMILY = "arithmetic"

_DECIMAL_RULES = {
    "+": decimals.plus,
    "-": decimals.plus,
    "*": decimals.times,
    "/": decimals.divide,
    "%": decimals.modulo,
}
_SPARK_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INTEGER: 32, TypeRoot.BIGINT: 64}


def numeric_result(sign: str, left: LogicalType, right: LogicalType) -> LogicalType:
    """The type of `left sign right`: the wider integer, Flink's decimal, or a float if one is."""
    roots = (left.root, right.root)
    if any(root in t.APPROXIMATE_ROOTS for root in roots):
        if sign == "%":
            raise FunctionTypeError("% takes integers and decimals; found a float: use CAST")
        if TypeRoot.DECIMAL in roots:
            return t.DOUBLE
        return left if left.root in t.APPROXIMATE_ROOTS else right
    if TypeRoot.DECIMAL in roots:
        return _DECIMAL_RULES[sign](decimals.as_decimal(left), decimals.as_decimal(right))
    if sign == "%":
        return right
    return max(left, right, key=lambda each: t.INTEGER_ROOTS.index(each.root))


def _bind(sign: str) -> Callable[[Sequence[BoundArgument]], Signature]:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if len(arguments) != 2:
            raise FunctionTypeError(f"{sign} takes 2 arguments, found {len(arguments)}")
        nullable = any(each.type.nullable for each in arguments)
        left, right = (each.type for each in arguments)
        if left.root is TypeRoot.NULL:
            left = right if right.root is not TypeRoot.NULL else t.INT
        if right.root is TypeRoot.NULL:
            right = left
        timed = time_arithmetic.bind(sign, left, right)
        if timed is not None:
            return Signature(timed.result.with_nullable(nullable), timed.arguments)
        if not (t.is_numeric(left) and t.is_numeric(right)):
            raise FunctionTypeError(f"'{sign}' does not take {left.sql()} and {right.sql()}; use CAST")
        result = numeric_result(sign, left, right)
        return Signature(result.with_nullable(nullable), _operands(sign, left, right, result))

    return bind


def _operands(sign: str, left: LogicalType, right: LogicalType, result: LogicalType) -> tuple[LogicalType, LogicalType]:
    """To what the two are cast: both to one integer or to DOUBLE; decimals stay as they are."""
    if result.root in t.APPROXIMATE_ROOTS:
        wide: LogicalType = t.FLOAT
        if {left.root, right.root} & {TypeRoot.DOUBLE, TypeRoot.DECIMAL}:
            wide = t.DOUBLE
        return wide.with_nullable(left.nullable), wide.with_nullable(right.nullable)
    if result.root is TypeRoot.DECIMAL:
        return decimals.as_decimal(left), decimals.as_decimal(right)
    wide = max(left, right, key=lambda each: t.INTEGER_ROOTS.index(each.root))
    return wide.with_nullable(left.nullable), wide.with_nullable(right.nullable)


def _kernel(sign: str) -> Any:
    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        left, right = columns
        kinds = binding.arg_types
        if not all(t.is_numeric(each) for each in kinds):
            return time_arithmetic.compute(sign, left, right, binding, frame)
        if kinds[0].root is TypeRoot.DECIMAL:
            return _decimal(sign, as_array(left, frame.rows), as_array(right, frame.rows), binding)
        if kinds[0].root in t.APPROXIMATE_ROOTS:
            return _FLOAT_KERNELS[sign](left, right)
        return _INTEGER_KERNELS[sign](left, right)

    return compute


def _integer_division(left: Column, right: Column) -> Column:
    """Towards zero. The smallest integer divided by -1 is itself."""
    _refuse_zero(left, right)
    minus_one = pc.equal(right, pa.scalar(-1, right.type))
    divisor = pc.if_else(minus_one, pa.scalar(1, right.type), right)
    return pc.if_else(minus_one, pc.negate(left), pc.divide(left, divisor))


def _integer_modulo(left: Column, right: Column) -> Column:
    """The sign is the dividend's."""
    quotient = _integer_division(left, right)
    return pc.subtract(left, pc.multiply(quotient, right))


def _refuse_zero(left: Column, right: Column) -> None:
    bad = pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, _zero(right.type)), False))
    if bad.as_py() if isinstance(bad, pa.Scalar) else pc.any(bad, min_count=0).as_py():
        raise ComputationError("division by zero")


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)


def _float_division(left: Column, right: Column) -> Column:
    rows = next((len(each) for each in (left, right) if isinstance(each, pa.Array)), None)
    if rows is None:
        return _float_division(as_array(left, 1), as_array(right, 1))[0]
    one, other = as_array(left, rows), as_array(right, rows)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = one.to_numpy(zero_copy_only=False) / other.to_numpy(zero_copy_only=False)
    mask = pc.or_(pc.is_null(one), pc.is_null(other)).to_numpy(zero_copy_only=False)
    return pa.array(found, one.type, mask=mask)


_INTEGER_KERNELS: dict[str, Callable[[Column, Column], Column]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": _integer_division,
    "%": _integer_modulo,
}
_FLOAT_KERNELS: dict[str, Callable[[Column, Column], Column]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": _float_division,
}


def _decimal(sign: str, left: pa.Array, right: pa.Array, binding: Binding) -> pa.Array:
    result = binding.result_type
    assert isinstance(result, t.DecimalType)
    if sign in ("/", "%"):
        _refuse_zero(left, right)
        return _decimal_by_row(sign, left, right, binding)
    if sign == "*" and left.type.precision + right.type.precision >= decimal_columns.WIDE_DIGITS:
        return _decimal_by_row(sign, left, right, binding)
    fits = (_exact_product if sign == "*" else _exact_sum)(*binding.arg_types) <= t.MAX_DECIMAL_PRECISION
    one, other = (left, right) if fits else (_widened(left), _widened(right))
    kernel = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[sign]
    return decimal_columns.fit(kernel(one, other), result)


def _widened(values: pa.Array) -> pa.Array:
    """Twice the digits, so that Arrow neither overflows nor refuses."""
    kind = values.type
    return values.cast(pa.decimal256(kind.precision, kind.scale))


def _decimal_by_row(sign: str, left: pa.Array, right: pa.Array, binding: Binding) -> pa.Array:
    result = binding.result_type
    assert isinstance(result, t.DecimalType)

    compute = {"*": EXACT.multiply, "/": EXACT.divide, "%": EXACT.remainder}[sign]

    def function(one: Decimal, other: Decimal) -> Decimal | None:
        return fit_decimal(compute(one, other), result.precision, result.scale)

    return row_by_row(function)((left, right), binding, Frame(len(left)))


def _spark(sign: str) -> Any:
    def text(arguments: Sequence[str], binding: Binding) -> str | None:
        left, right = arguments
        kinds = binding.arg_types
        name = spark_type(binding.result_type)
        if not all(t.is_numeric(each) for each in kinds):
            return time_arithmetic.spark(sign, left, right, binding)
        if kinds[0].root is TypeRoot.DECIMAL:
            return _spark_decimal(sign, left, right, binding)
        if kinds[0].root in t.APPROXIMATE_ROOTS:
            found = _spark_float_division(left, right) if sign == "/" else f"({left} {sign} {right})"
            return f"CAST({found} AS {name})"
        if sign in _SPARK_TRY:
            return _spark_wrapping(sign, left, right, kinds[0])
        least = _lowest(kinds[0])
        if sign == "/":
            return (
                f"CAST(CASE WHEN {left} = {least} AND {right} = -1 THEN {left} ELSE {left} div {right} END AS {name})"
            )
        return f"CAST(CASE WHEN {right} = -1 THEN 0 ELSE {left} % {right} END AS {name})"

    return text


def _lowest(kind: LogicalType) -> str:
    return "(-9223372036854775807L - 1)" if kind.root is TypeRoot.BIGINT else str(-(1 << (_BITS[kind.root] - 1)))


def _spark_wrapping(sign: str, left: str, right: str, kind: LogicalType) -> str:
    """Spark raises on overflow; the low bits are computed apart then."""
    name, bits = spark_type(kind), _BITS[kind.root]
    if bits < 64:
        cut = 64 - bits
        whole = f"CAST({left} AS BIGINT) {sign} CAST({right} AS BIGINT)"
        return f"CAST(shiftright(shiftleft({whole}, {cut}), {cut}) AS {name})"
    exact = f"CAST({left} AS DECIMAL(19,0)) {sign} CAST({right} AS DECIMAL(19,0))"
    half, full = "9223372036854775808BD", "18446744073709551616BD"
    low = f"CAST(pmod(CAST({exact} AS DECIMAL(38,0)) + {half}, {full}) - {half} AS BIGINT)"
    return f"coalesce({_SPARK_TRY[sign]}({left}, {right}), {low})"


def _spark_float_division(left: str, right: str) -> str:
    """Spark divides by zero with an error; Java gives infinity or not a number."""
    zero = (
        f"CASE WHEN {left} IS NULL THEN NULL WHEN {left} = 0 OR isnan({left}) THEN DOUBLE('NaN')"
        f" WHEN ({left} > 0) = (CAST({right} AS STRING) = '0.0') THEN DOUBLE('Infinity') ELSE DOUBLE('-Infinity') END"
    )
    return f"CASE WHEN {right} = 0 THEN {zero} ELSE {left} / {right} END"


def _spark_decimal(sign: str, left: str, right: str, binding: Binding) -> str | None:
    """Spark's own decimals, if their type holds the exact result; else the kernel computes it."""
    result = binding.result_type
    one, other = binding.arg_types
    assert isinstance(result, t.DecimalType)
    exact = {"+": _exact_sum, "-": _exact_sum, "*": _exact_product}.get(sign)
    if exact is None or exact(one, other) > t.MAX_DECIMAL_PRECISION:
        return None
    return f"try_cast(({left} {sign} {right}) AS {spark_type(result)})"


def _exact_sum(one: LogicalType, other: LogicalType) -> int:
    """How many digits the exact sum needs."""
    assert isinstance(one, t.DecimalType) and isinstance(other, t.DecimalType)
    return max(one.precision - one.scale, other.precision - other.scale) + max(one.scale, other.scale) + 1


def _exact_product(one: LogicalType, other: LogicalType) -> int:
    assert isinstance(one, t.DecimalType) and isinstance(other, t.DecimalType)
    return one.precision + other.precision + 1


def _binary(sign: str, text: str) -> FunctionDefinition:
    both, one = (_bind(sign), _bind_negation) if sign == "-" else (_bind(sign), None)

    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        return one(arguments) if one is not None and len(arguments) == 1 else both(arguments)

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        return pc.negate(columns[0]) if len(columns) == 1 else kernel(columns, binding, frame)

    def spark_text(arguments: Sequence[str], binding: Binding) -> str | None:
        return _spark_negation(arguments[0], binding) if len(arguments) == 1 else spark(arguments, binding)

    kernel, spark = _kernel(sign), _spark(sign)
    return FunctionDefinition(
        sign,
        FAMILY,
        bind,
        f"a {sign} b" if sign != "-" else "a - b, -a",
        text,
        compute=compute,
        spark_text=spark_text,
        aliases=("MOD",) if sign == "%" else (),
        text=lambda arguments: f"(-{arguments[0]})" if len(arguments) == 1 else infix(sign)(arguments),
    )


def _bind_negation(arguments: Sequence[BoundArgument]) -> Signature:
    kind = arguments[0].type
    if not (t.is_numeric(kind) or t.is_interval(kind)):
        raise FunctionTypeError(f"- does not take {kind.sql()}")
    return Signature(kind, (kind,))


def _spark_negation(argument: str, binding: Binding) -> str:
    kind = binding.result_type
    if t.is_integer(kind):
        return _spark_wrapping("-", f"CAST(0 AS {spark_type(kind)})", argument, kind)
    return f"(-{argument})"


FUNCTIONS = (
    _binary("+", "The sum. Integers wrap around, a decimal that does not fit is NULL."),
    _binary("-", "The difference, or the negative of one number."),
    _binary("*", "The product."),
    _binary("/", "The quotient; of integers without its fraction. An integer or decimal divided by 0 is an error."),
    _binary("%", "The remainder, with the sign of the dividend. Division by 0 is an error."),
)
