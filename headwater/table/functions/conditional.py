"""Functions that choose: CASE, IF, COALESCE, NULLIF, GREATEST, LEAST; TYPEOF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, spark
from headwater.table.functions.signatures import ANY, call, unified
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot

FAMILY = "conditional"


def _boolean(argument: BoundArgument, what: str) -> LogicalType:
    if argument.type.root not in (TypeRoot.BOOLEAN, TypeRoot.NULL):
        raise FunctionTypeError(f"{what} must be BOOLEAN, found {argument.type.sql()}")
    return t.BOOLEAN.with_nullable(argument.type.nullable)


def _at_least(arguments: Sequence[BoundArgument], least: int, most: int | None = None) -> None:
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = f"{least}" if most == least else f"{least} or more"
        raise FunctionTypeError(f"takes {wanted} arguments, found {len(arguments)}")


def _bind_case(arguments: Sequence[BoundArgument]) -> Signature:
    _at_least(arguments, 3)
    if len(arguments) % 2 == 0:
        raise FunctionTypeError("CASE takes conditions with a value each, and a value for ELSE")
    values = [*arguments[1::2], arguments[-1]]
    common = unified(values, "the values of CASE")
    types: list[LogicalType] = []
    for at, argument in enumerate(arguments[:-1]):
        types.append(_boolean(argument, "a condition of CASE") if at % 2 == 0 else common)
    return Signature(common, (*types, common))


def _case(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    found = columns[-1]
    for at in range(len(columns) - 3, -1, -2):
        found = choose(columns[at], columns[at + 1], found, frame.rows)
    return found


def choose(condition: Column, one: Column, other: Column, rows: int) -> Column:
    """`one` where the condition is true, else `other`: also where it is NULL."""
    sure = pc.fill_null(condition, False)
    if pa.types.is_nested(one.type):
        return _choose_nested(as_array(sure, rows), as_array(one, rows), as_array(other, rows))
    return pc.if_else(sure, one, other)


def _choose_nested(condition: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    """Nested values: Arrow picks them by place."""
    places = pc.if_else(
        condition, pa.array(range(len(one)), pa.int64()), pa.array(range(len(one), 2 * len(one)), pa.int64())
    )
    return pa.concat_arrays([one, other.cast(one.type)]).take(places)


def _spark_case(arguments: Sequence[str], binding: Binding) -> str:
    pairs = zip(arguments[0:-1:2], arguments[1:-1:2], strict=True)
    return "CASE " + "".join(f"WHEN {one} THEN {other} " for one, other in pairs) + f"ELSE {arguments[-1]} END"


def _write_case(arguments: Sequence[str]) -> str:
    return f"({_spark_case(arguments, None)})"  # type: ignore[arg-type]


def _bind_if(arguments: Sequence[BoundArgument]) -> Signature:
    _at_least(arguments, 3, 3)
    common = unified(arguments[1:], "the values of IF")
    return Signature(common, (_boolean(arguments[0], "the condition of IF"), common, common))


def _bind_coalesce(arguments: Sequence[BoundArgument]) -> Signature:
    _at_least(arguments, 1)
    common = unified(arguments, "the arguments of COALESCE")
    nullable = all(each.type.nullable for each in arguments)
    return Signature(
        common if common.root is TypeRoot.NULL else common.with_nullable(nullable), (common,) * len(arguments)
    )


def _bind_ifnull(arguments: Sequence[BoundArgument]) -> Signature:
    _at_least(arguments, 2, 2)
    return _bind_coalesce(arguments)


def _coalesce(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    found = as_array(columns[-1], frame.rows)
    for each in reversed(columns[:-1]):
        found = choose(pc.is_valid(each), each, found, frame.rows)
    return found


def _bind_nullif(arguments: Sequence[BoundArgument]) -> Signature:
    _at_least(arguments, 2, 2)
    one, other = (each.type for each in arguments)
    common = casts.comparable_type(one, other)
    if common is None:
        raise FunctionTypeError(f"{one.sql()} does not compare with {other.sql()}; use CAST")
    return Signature(one.with_nullable(True), (one, common))


def _nullif(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    from headwater.table.functions.arguments import to_parameter

    value, other = columns
    same = pc.equal(to_parameter(value, binding.arg_types[0], binding.arg_types[1], frame), other)
    return choose(same, pa.scalar(None, to_arrow(binding.result_type)), value, frame.rows)


def _bind_extreme(arguments: Sequence[BoundArgument]) -> Signature:
    _at_least(arguments, 1)
    common = unified(arguments, "the arguments")
    if common.root in (TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.ROW, TypeRoot.MULTISET):
        raise FunctionTypeError(f"values of {common.sql()} have no order")
    return Signature(common, (common,) * len(arguments))


def _extreme(smaller: bool) -> Any:
    """NULL if one argument is NULL."""
    before: Callable[[Column, Column], Column] = pc.less_equal if smaller else pc.greater_equal

    def pick(one: Column, other: Column) -> Column:
        return pc.if_else(before(one, other), one, other)

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        return reduce(pick, [as_array(each, frame.rows) for each in columns])

    return compute


def _spark_extreme(name: str) -> Any:
    """Spark skips NULLs; here one makes the result NULL."""

    def text(arguments: Sequence[str], binding: Binding) -> str:
        if len(arguments) == 1:
            return arguments[0]
        missing = " OR ".join(f"{each} IS NULL" for each in arguments)
        return f"CASE WHEN {missing} THEN NULL ELSE {name}({', '.join(arguments)}) END"

    return text


def _typeof(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    return pa.scalar(binding.arguments[0].type.sql())


FUNCTIONS = (
    FunctionDefinition(
        "CASE",
        FAMILY,
        _bind_case,
        "CASE WHEN condition THEN value ... [ELSE value] END",
        "The value of the first condition that is true, else that of ELSE, else NULL.",
        compute=_case,
        spark_text=_spark_case,
        text=_write_case,
    ),
    FunctionDefinition(
        "IF",
        FAMILY,
        _bind_if,
        "IF(condition, a, b)",
        "a if the condition is true, else b.",
        compute=_case,
        spark_text=spark("if({0}, {1}, {2})"),
    ),
    FunctionDefinition(
        "COALESCE",
        FAMILY,
        _bind_coalesce,
        "COALESCE(a, ...)",
        "The first argument that is not NULL.",
        compute=_coalesce,
        spark_text=spark("coalesce({all})"),
    ),
    FunctionDefinition(
        "IFNULL",
        FAMILY,
        _bind_ifnull,
        "IFNULL(a, b)",
        "a, or b if a is NULL.",
        compute=_coalesce,
        spark_text=spark("coalesce({all})"),
    ),
    FunctionDefinition(
        "NULLIF",
        FAMILY,
        _bind_nullif,
        "NULLIF(a, b)",
        "NULL if both are equal, else a.",
        compute=_nullif,
        spark_text=spark("CASE WHEN {0} = {1} THEN NULL ELSE {0} END"),
    ),
    FunctionDefinition(
        "GREATEST",
        FAMILY,
        _bind_extreme,
        "GREATEST(a, ...)",
        "The greatest argument; NULL if one is NULL.",
        compute=_extreme(False),
        spark_text=_spark_extreme("greatest"),
    ),
    FunctionDefinition(
        "LEAST",
        FAMILY,
        _bind_extreme,
        "LEAST(a, ...)",
        "The least argument; NULL if one is NULL.",
        compute=_extreme(True),
        spark_text=_spark_extreme("least"),
    ),
    FunctionDefinition(
        "TYPEOF",
        FAMILY,
        call(ANY, result=t.STRING, nullable=False),
        "TYPEOF(a)",
        "The type of a, as text.",
        compute=_typeof,
        spark_text=lambda arguments, binding: f"'{binding.arguments[0].type.sql()}'",
    ),
)
