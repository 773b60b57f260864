"""A user's function as a function of SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.aggregation import AggregateRecipe
from headwater.table.functions.definition import (
    Binding,
    BoundArgument,
    FunctionDefinition,
    FunctionKind,
    Signature,
)
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, RowField, RowType
from headwater.table.user.kernels import (
    AggregateKernel,
    AsyncKernel,
    PandasAggregateKernel,
    PandasKernel,
    RowKernel,
    TableKernel,
    UserKernel,
)

if TYPE_CHECKING:
    from headwater.table.udf import UserDefinedFunctionWrapper


def definition_of(wrapper: UserDefinedFunctionWrapper, name: str) -> FunctionDefinition:
    """The definition under a name. Both engines call the function in Python."""
    assert wrapper.result_type is not None
    kind = wrapper.kind
    bind = BindUser(name, None if wrapper.input_types is None else tuple(wrapper.input_types), wrapper.result_type)
    made = FunctionDefinition(
        name,
        "user",
        bind,
        f"{name}(…)",
        (type(wrapper.function).__doc__ or "A function of the user.").strip(),
        deterministic=wrapper.deterministic,
    )
    if kind.endswith("AGGREGATE"):
        gather: UserKernel
        if wrapper.pandas and not hasattr(wrapper.function, "accumulate"):
            gather = PandasAggregateKernel(wrapper.function, name)
        else:
            gather = AggregateKernel(wrapper.function, name, tables=kind == "TABLE AGGREGATE")
        recipe = AggregateRecipe(gather, ordered=True)
        return replace(made, kind=FunctionKind.AGGREGATE, recipe=recipe, spark_aggregate_text=spark_rows)
    if kind == "TABLE":
        return replace(made, kind=FunctionKind.TABLE, compute=TableKernel(wrapper.function, name))
    kernel = PandasKernel if wrapper.pandas else AsyncKernel if kind == "ASYNC" else RowKernel
    return replace(made, compute=kernel(wrapper.function, name))


def placed(definition: FunctionDefinition, place: str) -> FunctionDefinition:
    """The same for a call at a place of SQL text, which errors then name."""
    if isinstance(definition.compute, UserKernel):
        return replace(definition, compute=definition.compute.at(place))
    recipe = definition.recipe
    if recipe is not None and isinstance(recipe.gather, UserKernel):
        return replace(definition, recipe=replace(recipe, gather=recipe.gather.at(place)))
    return definition


class BindUser:
    """The types of a call: as many arguments as `inputs`, cast to these; without them, whatever comes."""

    def __init__(self, name: str, inputs: tuple[LogicalType, ...] | None, result: LogicalType) -> None:
        self.name = name
        self.inputs = inputs
        self.result = result

    def __call__(self, arguments: Sequence[BoundArgument]) -> Signature:
        given = [each.type for each in arguments]
        if self.inputs is None:
            return Signature(self.result, tuple(given))
        shown = ", ".join(each.sql() for each in self.inputs)
        if len(given) != len(self.inputs):
            raise FunctionTypeError(f"{self.name} takes {len(self.inputs)} arguments ({shown}), got {len(given)}")
        for place, (found, wanted) in enumerate(zip(given, self.inputs, strict=True), 1):
            if not casts.implicit_cast(found.with_nullable(True), wanted.with_nullable(True)):
                raise FunctionTypeError(
                    f"argument {place} of {self.name} is {wanted.sql()}, got {found.sql()}; CAST it"
                )
        return Signature(self.result, self.inputs)


def row_of(types: Sequence[LogicalType]) -> RowType:
    """The columns of a table function, which are called f0, f1 and so on."""
    return RowType(fields=tuple(RowField(f"f{place}", each) for place, each in enumerate(types)))


def rows_type(row: RowType) -> LogicalType:
    """What a table function gives for one row: an array of rows."""
    return t.ArrayType(element=row)


def spark_rows(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    """The rows of a group for an aggregate that Spark calls in Python."""
    fields = ", ".join(f"'{place}', {text}" for place, text in enumerate(arguments))
    return f"{binding.udf_name()}(COLLECT_LIST({distinct}NAMED_STRUCT({fields})){suffix})"
