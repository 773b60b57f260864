"""Functions of numbers: roots, logarithms, angles, rounding, other bases, random numbers."""

from __future__ import annotations

import math
import secrets
import uuid
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError
from headwater.table.functions.casting.decimal_columns import WIDE_DIGITS, fit
from headwater.table.functions.casting.from_text import EXACT, fit_decimal
from headwater.table.functions.definition import (
    Binding,
    BoundArgument,
    Column,
    FunctionDefinition,
    Kernel,
    Signature,
    SparkText,
)
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, row_by_row, spark, vectorised
from headwater.table.functions.signatures import (
    FLOATING,
    INT32,
    INT64,
    NUMBER,
    TEXT,
    TEXT_OR_BINARY,
    call,
    first,
    one_of,
)
from headwater.table.types import decimals
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow

FAMILY = "numbers"


def _floating(name: str, function: Callable[[Any], Any], text: str, spark_text: str | None = "") -> FunctionDefinition:
    """A function of one DOUBLE, computed by numpy, whose results agree with Java's to the last digits."""

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        values = as_array(columns[0], frame.rows)
        with np.errstate(all="ignore"):
            found = function(values.to_numpy(zero_copy_only=False).astype(np.float64))
        return pa.array(found, pa.float64(), mask=pc.is_null(values).to_numpy(zero_copy_only=False))

    return FunctionDefinition(
        name,
        FAMILY,
        call(FLOATING, result=t.DOUBLE),
        f"{name}(x)",
        text,
        compute=compute,
        spark_text=spark(spark_text or f"{name.lower()}({{0}})") if spark_text is not None else None,
    )


def _two(name: str, function: Callable[[float, float], float], text: str, syntax: str) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        FAMILY,
        call(FLOATING, FLOATING, result=t.DOUBLE),
        syntax,
        text,
        compute=row_by_row(function),
        spark_text=spark(f"{name.lower()}({{0}}, {{1}})"),
    )


def _power(base: float, exponent: float) -> float:
    if math.isnan(exponent):  # for numpy, 1 to the power of anything is 1
        return exponent
    with np.errstate(all="ignore"):
        return float(np.power(base, exponent))


def _log(*values: float) -> float:
    if len(values) == 1:
        return _ln(values[0])
    return _ln(values[1]) / _ln(values[0])


def _ln(value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.log(np.float64(value)))


def _bind_round(arguments: Sequence[BoundArgument]) -> Signature:
    found = call(NUMBER, INT32, result=first, optional=1)(arguments)
    kind = arguments[0].type
    if isinstance(kind, t.DecimalType):
        digits = 0 if len(arguments) == 1 else arguments[1].literal
        if isinstance(digits, int):
            result = decimals.rounded(kind, digits).with_nullable(found.result.nullable)
            return Signature(result, found.arguments)
    return found


def _rounding(mode: str) -> Any:
    """ROUND and TRUNCATE."""

    def function(value: Any, digits: int = 0, bits: int = 64) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        number = value if isinstance(value, Decimal) else Decimal(repr(value))
        rounded = number.quantize(Decimal(1).scaleb(-digits), mode, EXACT)
        if isinstance(value, Decimal):
            return rounded
        return float(rounded) if isinstance(value, float) else _wrapped(int(rounded), bits)

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        kind = binding.result_type
        if t.is_integer(kind):
            bits = to_arrow(kind).bit_width
            return row_by_row(lambda value, digits=0: function(value, digits, bits))(columns, binding, frame)
        if not isinstance(kind, t.DecimalType):
            return row_by_row(function)(columns, binding, frame)

        def fitted(value: Decimal, digits: int = 0) -> Decimal | None:
            return fit_decimal(function(value, min(digits, kind.scale)), kind.precision, kind.scale)

        return row_by_row(fitted)(columns, binding, frame)

    return compute


def _wrapped(value: int, bits: int) -> int:
    """The low bits."""
    return ((value + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))


def bind_whole(arguments: Sequence[BoundArgument]) -> Signature:
    found = call(NUMBER, result=first)(arguments)
    kind = found.result
    if isinstance(kind, t.DecimalType):
        return Signature(t.DecimalType(precision=kind.precision, scale=0, nullable=kind.nullable), found.arguments)
    return found


def whole_kernel(function: Callable[[Column], Column]) -> Kernel:
    """CEIL and FLOOR of numbers."""

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        if t.is_integer(binding.result_type):
            return columns[0]
        if isinstance(binding.result_type, t.DecimalType):
            wide = as_array(columns[0], frame.rows).cast(pa.decimal256(WIDE_DIGITS, columns[0].type.scale))
            return fit(function(wide), binding.result_type)
        return function(columns[0])

    return compute


def whole_spark(name: str) -> SparkText:
    def text(arguments: Sequence[str], binding: Binding) -> str | None:
        if t.is_integer(binding.result_type):
            return arguments[0]
        if binding.result_type.root in t.APPROXIMATE_ROOTS:
            return None
        return spark(f"CAST({name}({{0}}) AS {{type}})")(arguments, binding)

    return text


def _sign(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Decimal(int(value > 0) - int(value < 0))
    if isinstance(value, float):
        return value if math.isnan(value) or value == 0 else math.copysign(1.0, value)
    return int(value > 0) - int(value < 0)


def _hex(value: Any) -> str:
    if isinstance(value, int):
        return f"{value & 0xFFFFFFFFFFFFFFFF:X}"
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def _unhex(value: str) -> bytes | None:
    try:
        return bytes.fromhex(value if len(value) % 2 == 0 else "0" + value) if value.strip() == value else None
    except ValueError:
        return None


def _bin(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:b}"


class JavaRandom:
    """java.util.Random: RAND with a seed gives Flink's numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def _next(self, bits: int) -> int:
        self._seed = (self._seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        value = self._seed >> (48 - bits)
        return value - (1 << bits) if value >= 1 << (bits - 1) else value

    def next_double(self) -> float:
        high, low = self._next(26) & 0x3FFFFFF, self._next(27) & 0x7FFFFFF
        return float(((high << 27) + low) * 2.0**-53)

    def next_int(self, bound: int) -> int:
        if bound <= 0:
            raise ComputationError(f"RAND_INTEGER: the bound {bound} must be positive")
        bits = self._next(31) & 0x7FFFFFFF
        if bound & -bound == bound:
            return (bound * bits) >> 31
        value = bits % bound
        while bits - value + (bound - 1) >= 1 << 31:
            bits = self._next(31) & 0x7FFFFFFF
            value = bits % bound
        return value


def _generator(binding: Binding, seed: int | None) -> JavaRandom:
    """One sequence of random numbers per call of the function in the query."""
    if "random" not in binding.memory:
        binding.memory["random"] = JavaRandom(secrets.randbits(48) if seed is None else seed)
    found: JavaRandom = binding.memory["random"]
    return found


def _rand(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    generator = _generator(binding, columns[0].as_py() if columns and isinstance(columns[0], pa.Scalar) else None)
    return pa.array([generator.next_double() for _ in range(frame.rows)], pa.float64())


def _rand_integer(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    seed = columns[0].as_py() if len(columns) == 2 and isinstance(columns[0], pa.Scalar) else None
    generator = _generator(binding, seed)
    bounds = as_array(columns[-1], frame.rows).to_pylist()
    return pa.array([None if each is None else generator.next_int(each) for each in bounds], pa.int32())


def _constant(name: str, value: float, text: str) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        FAMILY,
        call(result=t.DOUBLE, nullable=False),
        f"{name}()",
        text,
        compute=lambda columns, binding, frame: pa.scalar(value),
        spark_text=spark(f"{name.lower()}()"),
    )


FUNCTIONS = (
    FunctionDefinition(
        "ABS",
        FAMILY,
        call(NUMBER, result=first),
        "ABS(x)",
        "The number without its sign.",
        compute=vectorised(pc.abs),
        spark_text=lambda a, b: f"abs({a[0]})" if b.result_type.root in t.APPROXIMATE_ROOTS else None,
        note="The smallest integer stays as it is: its negative does not fit.",
    ),
    _two("POWER", _power, "x to the power of y.", "POWER(x, y)"),
    _floating("SQRT", np.sqrt, "The square root; NaN of a negative number."),
    _floating("EXP", np.exp, "e to the power of x."),
    _floating("LN", np.log, "The natural logarithm.", None),
    _floating("LOG10", np.log10, "The logarithm to base 10.", None),
    _floating("LOG2", np.log2, "The logarithm to base 2.", None),
    FunctionDefinition(
        "LOG",
        FAMILY,
        call(FLOATING, FLOATING, result=t.DOUBLE, optional=1),
        "LOG(x), LOG(base, x)",
        "The natural logarithm of x, or that to a base.",
        compute=row_by_row(_log),
    ),
    _floating("SIN", np.sin, "The sine of an angle in radians."),
    _floating("COS", np.cos, "The cosine."),
    _floating("TAN", np.tan, "The tangent."),
    _floating("COT", lambda x: 1.0 / np.tan(x), "The cotangent.", None),
    _floating("ASIN", np.arcsin, "The angle of a sine."),
    _floating("ACOS", np.arccos, "The angle of a cosine."),
    _floating("ATAN", np.arctan, "The angle of a tangent."),
    _floating("SINH", np.sinh, "The hyperbolic sine."),
    _floating("COSH", np.cosh, "The hyperbolic cosine."),
    _floating("TANH", np.tanh, "The hyperbolic tangent."),
    _floating("DEGREES", np.degrees, "Radians in degrees."),
    _floating("RADIANS", np.radians, "Degrees in radians."),
    _two("ATAN2", math.atan2, "The angle of the point (x, y).", "ATAN2(y, x)"),
    _constant("PI", math.pi, "The number pi."),
    _constant("E", math.e, "The number e."),
    FunctionDefinition(
        "SIGN",
        FAMILY,
        call(NUMBER, result=first),
        "SIGN(x)",
        "-1, 0 or 1, in the number's own type.",
        compute=row_by_row(_sign),
    ),
    FunctionDefinition(
        "ROUND",
        FAMILY,
        _bind_round,
        "ROUND(x [, digits])",
        "Rounded half away from zero to so many digits.",
        compute=_rounding(ROUND_HALF_UP),
    ),
    FunctionDefinition(
        "TRUNCATE",
        FAMILY,
        _bind_round,
        "TRUNCATE(x [, digits])",
        "Cut to so many digits.",
        compute=_rounding(ROUND_DOWN),
    ),
    FunctionDefinition(
        "HEX",
        FAMILY,
        one_of(call(INT64, result=t.STRING), call(TEXT_OR_BINARY, result=t.STRING)),
        "HEX(x)",
        "An integer, or the bytes of a string, in base 16.",
        compute=row_by_row(_hex),
    ),
    FunctionDefinition(
        "UNHEX",
        FAMILY,
        call(TEXT, result=t.BYTES, nullable=True),
        "UNHEX(s)",
        "The bytes that HEX writes as s.",
        compute=row_by_row(_unhex),
    ),
    FunctionDefinition(
        "BIN",
        FAMILY,
        call(INT64, result=t.STRING),
        "BIN(i)",
        "An integer in base 2.",
        compute=row_by_row(_bin),
        spark_text=spark("bin({0})"),
    ),
    FunctionDefinition(
        "RAND",
        FAMILY,
        call(INT32, result=t.DOUBLE, optional=1, nullable=False),
        "RAND([seed])",
        "A random number from 0 up to 1. With a seed, the same sequence as Java's Random.",
        compute=_rand,
        spark_text=lambda a, b: f"rand({', '.join(a)})",
        deterministic=False,
        note="With a seed, Spark gives other numbers.",
    ),
    FunctionDefinition(
        "RAND_INTEGER",
        FAMILY,
        one_of(call(INT32, result=t.INT), call(INT32, INT32, result=t.INT)),
        "RAND_INTEGER([seed,] bound)",
        "A random integer from 0 up to the bound.",
        compute=_rand_integer,
        spark_text=lambda a, b: f"CAST(floor(rand({', '.join(a[:-1])}) * {a[-1]}) AS INT)",
        deterministic=False,
        note="With a seed, Spark gives other numbers.",
    ),
    FunctionDefinition(
        "UUID",
        FAMILY,
        call(result=t.CharType(length=36), nullable=False),
        "UUID()",
        "A random UUID.",
        compute=lambda columns, binding, frame: pa.array([str(uuid.uuid4()) for _ in range(frame.rows)], pa.string()),
        spark_text=spark("uuid()"),
        deterministic=False,
    ),
)
