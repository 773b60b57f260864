"""CAST and TRY_CAST."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.casting.arrays import cast_column
from headwater.table.functions.casting.spark import exact_spark_cast
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.types.casts import can_cast
from headwater.table.types.logical import LogicalType, TypeRoot

FAMILY = "conversion"


def _bind(name: str) -> Callable[[Sequence[BoundArgument]], Signature]:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if len(arguments) != 2 or not isinstance(arguments[1].literal, LogicalType):
            raise FunctionTypeError(f"{name} takes a value and a type: {name}(x AS type)")
        source, target = arguments[0].type, arguments[1].literal
        if not can_cast(source, target):
            raise FunctionTypeError(f"{name} from {source.sql()} to {target.sql()} is not possible")
        nullable = source.nullable or name == "TRY_CAST" or source.root is TypeRoot.NULL
        return Signature(target.with_nullable(nullable), (source, target))

    return bind


def _kernel(lenient: bool) -> Callable[[Sequence[Column], Binding, Frame], Column]:
    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        source, target = binding.arg_types
        return cast_column(columns[0], source, target, frame.zone, lenient)

    return compute


def _spark(arguments: Sequence[str], binding: Binding) -> str | None:
    source, target = binding.arg_types
    return exact_spark_cast(arguments[0], source, target)


FUNCTIONS = (
    FunctionDefinition(
        "CAST",
        FAMILY,
        _bind("CAST"),
        "CAST(x AS type)",
        "The value as another type. Integers wrap around, decimals that do not fit are NULL, text that cannot be read "
        "is an error.",
        compute=_kernel(False),
        spark_text=_spark,
        text=lambda arguments: f"CAST({arguments[0]} AS {arguments[1]})",
        note="To fewer digits, a TIMESTAMP before 1970 is cut towards the past; Flink cuts it towards 1970.",
    ),
    FunctionDefinition(
        "TRY_CAST",
        FAMILY,
        _bind("TRY_CAST"),
        "TRY_CAST(x AS type)",
        "As CAST, but NULL where CAST fails.",
        compute=_kernel(True),
        spark_text=_spark,
        text=lambda arguments: f"TRY_CAST({arguments[0]} AS {arguments[1]})",
    ),
)
