"""Functions that exist only with OVER."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.definition import (
    Binding,
    BoundArgument,
    FunctionDefinition,
    FunctionKind,
    Signature,
)
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType


def _ranking(name: str, result: LogicalType, description: str) -> FunctionDefinition:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if arguments:
            raise FunctionTypeError(f"{name} takes no arguments, got {len(arguments)}")
        return Signature(result, ())

    def spark(arguments: Sequence[str], binding: Binding) -> str:
        return f"{name}()"

    return FunctionDefinition(
        name, "window", bind, f"{name}() OVER (…)", description, FunctionKind.AGGREGATE, spark_text=spark
    )


def _ntile() -> FunctionDefinition:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if len(arguments) != 1 or not t.is_integer(arguments[0].type) or not (arguments[0].literal or 0) > 0:
            raise FunctionTypeError("NTILE takes one positive integer constant")
        return Signature(t.BIGINT.not_null(), (t.INT.not_null(),))

    def spark(arguments: Sequence[str], binding: Binding) -> str:
        return f"NTILE({binding.literal(0)})"

    return FunctionDefinition(
        "NTILE", "window", bind, "NTILE(n) OVER (…)", "The number of the row's bucket, of n of equal size.",
        FunctionKind.AGGREGATE, spark_text=spark,
    )  # fmt: skip


def _neighbour(name: str, description: str) -> FunctionDefinition:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if not 1 <= len(arguments) <= 3:
            raise FunctionTypeError(f"{name} takes a value, an offset and a default, got {len(arguments)} arguments")
        if len(arguments) > 1 and not isinstance(arguments[1].literal, int):
            raise FunctionTypeError(f"the offset of {name} is an integer constant")
        value = arguments[0].type
        if len(arguments) < 3:
            return Signature(value.with_nullable(True), (value, t.INT.not_null())[: len(arguments)])
        common = casts.common_type([value, arguments[2].type])
        if common is None:
            raise FunctionTypeError(f"{name}: value {value.sql()} and default {arguments[2].type.sql()} do not fit")
        return Signature(common, (common, t.INT.not_null(), common))

    def spark(arguments: Sequence[str], binding: Binding) -> str:
        return f"{name}({', '.join(arguments)})"

    return FunctionDefinition(
        name, "window", bind, f"{name}(value[, offset[, default]]) OVER (…)", description,
        FunctionKind.AGGREGATE, spark_text=spark,
    )  # fmt: skip


WINDOW_FUNCTIONS = {
    each.name: each
    for each in (
        _ranking("ROW_NUMBER", t.BIGINT.not_null(), "The number of the row in its partition."),
        _ranking("RANK", t.BIGINT.not_null(), "The number of rows before the row's peers, plus one."),
        _ranking("DENSE_RANK", t.BIGINT.not_null(), "The number of different values before the row's, plus one."),
        _ranking("PERCENT_RANK", t.DOUBLE.not_null(), "The rank as a part of the partition, 0 to 1."),
        _ranking("CUME_DIST", t.DOUBLE.not_null(), "The part of the partition up to the row and its peers."),
        _ntile(),
        _neighbour("LAG", "The value of the row that is `offset` before."),
        _neighbour("LEAD", "The value of the row that is `offset` after."),
    )
}
"""Functions by name that need OVER and a window with an order."""

WITHOUT_FRAME = frozenset(WINDOW_FUNCTIONS)
