"""Aggregate functions. NULLs are skipped unless said otherwise; DISTINCT, FILTER and ORDER BY are the binder's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.aggregation import (
    AccumulatorColumn,
    AggregateRecipe,
    Fold,
    Offsets,
    gather_by_folding,
)
from headwater.table.functions.casting.arrays import cast_column
from headwater.table.functions.casting.from_text import EXACT, fit_decimal
from headwater.table.functions.casting.spark import spark_cast_text
from headwater.table.functions.definition import Binding, BoundArgument, FunctionDefinition, FunctionKind, Signature
from headwater.table.functions.signatures import ANY, NUMBER, TEXT, call, first
from headwater.table.types import decimals
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.spark import spark_type

FAMILY = "aggregates"
_UNORDERED = (TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.ROW, TypeRoot.MULTISET, TypeRoot.RAW)
_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INTEGER: 32, TypeRoot.BIGINT: 64}
SparkAggregate = Callable[[Sequence[str], Binding, str, str], str]
"""(arguments, binding, "DISTINCT " or "", suffix): Spark's text, the suffix behind each aggregate function."""


def _define(
    name: str,
    bind: Any,
    syntax: str,
    text: str,
    recipe: AggregateRecipe,
    spark: SparkAggregate,
    aliases: tuple[str, ...] = (),
    note: str = "",
) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        FAMILY,
        bind,
        syntax,
        text,
        kind=FunctionKind.AGGREGATE,
        recipe=recipe,
        spark_aggregate_text=spark,
        aliases=aliases,
        note=note,
    )


def _folding(accumulators: Any, contribute: Any, finish: Any) -> AggregateRecipe:
    return AggregateRecipe(gather_by_folding(accumulators, contribute, finish), accumulators, contribute, finish)


# COUNT


def _bind_count(arguments: Sequence[BoundArgument]) -> Signature:
    return Signature(t.BIGINT.not_null(), tuple(each.type for each in arguments))


def _count_columns(binding: Binding) -> tuple[AccumulatorColumn, ...]:
    return (AccumulatorColumn("count", t.BIGINT.not_null()),)


def _count_contribution(arrays: Sequence[pa.Array], weights: pa.Array, binding: Binding) -> tuple[pa.Array, ...]:
    found = weights
    for each in arrays:
        found = pc.if_else(pc.is_valid(each), found, pa.scalar(0, weights.type))
    return (found,)


def _count_spark(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    return f"COUNT({distinct}{', '.join(arguments) or '*'}){suffix}"


COUNT = _folding(_count_columns, _count_contribution, lambda columns, binding: columns[0])


# SUM and AVG


def _total_type(kind: LogicalType) -> LogicalType:
    return decimals.total(kind) if isinstance(kind, t.DecimalType) else kind.with_nullable(True)


def _wide(kind: LogicalType) -> LogicalType:
    """The type in which a sum is kept."""
    if isinstance(kind, t.DecimalType):
        return decimals.total(kind).not_null()
    return t.BIGINT.not_null() if t.is_integer(kind) else t.DOUBLE.not_null()


def _sum_columns(binding: Binding) -> tuple[AccumulatorColumn, ...]:
    count = AccumulatorColumn("count", t.BIGINT.not_null())
    return (AccumulatorColumn("sum", _wide(binding.arg_types[0])), count)


def _weighted(values: pa.Array, weights: pa.Array, kind: pa.DataType) -> pa.Array:
    """Each value as often as its weight says; NULL counts as nothing."""
    if pa.types.is_decimal(kind):
        wide = values.cast(pa.decimal128(38, kind.scale))
        product = pc.if_else(pc.greater(weights, 0), wide, pc.negate(wide))
        single = pc.equal(pc.abs(weights), 1)
        if not pc.all(single, min_count=0).as_py():
            pairs = zip(values.to_pylist(), weights.to_pylist(), strict=True)
            product = pa.array([None if value is None else value * weight for value, weight in pairs], wide.type)
        return pc.fill_null(product, Decimal(0))
    return pc.fill_null(pc.multiply(values.cast(kind), weights.cast(kind)), 0)


def _sum_contribution(arrays: Sequence[pa.Array], weights: pa.Array, binding: Binding) -> tuple[pa.Array, ...]:
    kind = to_arrow(_wide(binding.arg_types[0]))
    return _weighted(arrays[0], weights, kind), *_count_contribution(arrays, weights, binding)


def _only_where_counted(values: pa.Array, counts: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater(counts, 0), values, pa.scalar(None, values.type))


def _finish_sum(columns: Sequence[pa.Array], binding: Binding) -> pa.Array:
    total, count = columns
    return _only_where_counted(total.cast(to_arrow(binding.result_type), safe=False), count)


def _finish_mean(columns: Sequence[pa.Array], binding: Binding) -> pa.Array:
    total, count = columns
    some = pc.if_else(pc.greater(count, 0), count, pa.scalar(1, pa.int64()))
    result = binding.result_type
    if isinstance(result, t.DecimalType):
        pairs = zip(total.to_pylist(), some.to_pylist(), strict=True)
        means = [_mean(one, other, result) for one, other in pairs]
        return _only_where_counted(pa.array(means, to_arrow(result)), count)
    mean = pc.divide(total, some.cast(total.type))
    return _only_where_counted(mean.cast(to_arrow(result), safe=False), count)


def _mean(total: Decimal | None, count: int, result: t.DecimalType) -> Decimal | None:
    return None if total is None else fit_decimal(EXACT.divide(total, Decimal(count)), result.precision, result.scale)


def _cut(text: str, kind: LogicalType) -> str:
    """The low bits of a BIGINT as a smaller integer; floats and decimals by a cast."""
    bits = _BITS.get(kind.root)
    if bits is None or bits == 64:
        return f"CAST({text} AS {spark_type(kind)})"
    return f"CAST(shiftright(shiftleft({text}, {64 - bits}), {64 - bits}) AS {spark_type(kind)})"


def _sum_spark(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    result = binding.result_type
    if isinstance(result, t.DecimalType):
        return f"try_sum({distinct}CAST({arguments[0]} AS {spark_type(result)})){suffix}"
    return _cut(f"SUM({distinct}{arguments[0]}){suffix}", result)


def _mean_spark(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    result, kind = binding.result_type, binding.arg_types[0]
    if isinstance(kind, t.DecimalType):
        total = f"try_sum({distinct}CAST({arguments[0]} AS {spark_type(decimals.total(kind))})){suffix}"
        count = f"COUNT({distinct}{arguments[0]}){suffix}"
        return f"try_cast(try_divide({total}, {count}) AS {spark_type(result)})"
    if t.is_integer(kind):
        total = f"SUM({distinct}CAST({arguments[0]} AS BIGINT)){suffix}"
        return _cut(f"({total} div nullif(COUNT({distinct}{arguments[0]}){suffix}, 0))", result)
    return f"CAST(AVG({distinct}{arguments[0]}){suffix} AS {spark_type(result)})"


def _bind_sum(arguments: Sequence[BoundArgument]) -> Signature:
    return call(NUMBER, result=lambda types: _total_type(types[0]), nullable=True)(arguments)


def _mean_type(kind: LogicalType) -> LogicalType:
    return decimals.mean(kind) if isinstance(kind, t.DecimalType) else kind


def _bind_mean(arguments: Sequence[BoundArgument]) -> Signature:
    return call(NUMBER, result=lambda types: _mean_type(types[0]), nullable=True)(arguments)


SUM = _folding(_sum_columns, _sum_contribution, _finish_sum)
AVG = _folding(_sum_columns, _sum_contribution, _finish_mean)


# MIN and MAX


def _extreme(fold: Fold) -> AggregateRecipe:
    def columns(binding: Binding) -> tuple[AccumulatorColumn, ...]:
        return (AccumulatorColumn(fold.value, binding.result_type, fold),)

    def contribute(arrays: Sequence[pa.Array], weights: pa.Array, binding: Binding) -> tuple[pa.Array, ...]:
        return (arrays[0],)

    return _folding(columns, contribute, lambda found, binding: found[0])


def _bind_extreme(arguments: Sequence[BoundArgument]) -> Signature:
    found = call(ANY, result=first, nullable=True)(arguments)
    if found.result.root in _UNORDERED:
        raise FunctionTypeError(f"values of {found.result.sql()} have no order")
    return found


def _plain_spark(name: str) -> SparkAggregate:
    return lambda arguments, binding, distinct, suffix: f"{name}({distinct}{arguments[0]}){suffix}"


# Variance


def _moment_columns(binding: Binding) -> tuple[AccumulatorColumn, ...]:
    double = t.DOUBLE.not_null()
    count = AccumulatorColumn("count", t.BIGINT.not_null())
    return AccumulatorColumn("sum", double), AccumulatorColumn("squares", double), count


def _moment_contribution(arrays: Sequence[pa.Array], weights: pa.Array, binding: Binding) -> tuple[pa.Array, ...]:
    values = arrays[0].cast(pa.float64())
    counts = _count_contribution(arrays, weights, binding)
    times = weights.cast(pa.float64())
    squares = pc.multiply(pc.multiply(values, values), times)
    return pc.fill_null(pc.multiply(values, times), 0.0), pc.fill_null(squares, 0.0), *counts


def _variance(sample: bool, root: bool) -> AggregateRecipe:
    def finish(columns: Sequence[pa.Array], binding: Binding) -> pa.Array:
        total, squares, count = columns
        size = pc.if_else(pc.greater(count, 0), count, pa.scalar(1, pa.int64())).cast(pa.float64())
        divisor = pc.subtract(size, 1.0) if sample else size
        enough = pc.greater(count, 1 if sample else 0)
        spread = pc.subtract(squares, pc.divide(pc.multiply(total, total), size))
        found = pc.divide(spread, pc.if_else(enough, divisor, pa.scalar(1.0)))
        found = pc.sqrt(found) if root else found
        found = pc.if_else(enough, found, pa.scalar(None, pa.float64()))
        return _of_double(found, binding.result_type)

    return _folding(_moment_columns, _moment_contribution, finish)


def _of_double(values: pa.Array, result: LogicalType) -> pa.Array:
    return cast_column(values, t.DOUBLE, result, "UTC", lenient=True)


def _variance_spark(name: str, sample: bool) -> SparkAggregate:
    """NaN, which Spark gives for infinite values, is left; one value has no sample variance."""

    def text(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
        return spark_cast_text(
            f"{name}({distinct}CAST({arguments[0]} AS DOUBLE)){suffix}", t.DOUBLE, binding.result_type
        )

    return text


# Aggregates that need all rows


def _each_group(function: Callable[[list[Any]], Any]) -> Any:
    """Gather the values of the first argument of each group as a list."""

    def gather(arrays: Sequence[pa.Array], offsets: Offsets, binding: Binding) -> pa.Array:
        values = arrays[0].to_pylist()
        groups = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        return pa.array([function(values[start:end]) for start, end in groups], to_arrow(binding.result_type))

    return gather


def _known(values: list[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(each) for each in value)
    return tuple(value.items()) if isinstance(value, dict) else value


def _multiset(values: list[Any]) -> list[tuple[Any, int]]:
    first_of = {_hashable(each): each for each in reversed(_known(values))}
    counts = Counter(_hashable(each) for each in _known(values))
    return [(first_of[key], count) for key, count in counts.items()]


def _listagg(arrays: Sequence[pa.Array], offsets: Offsets, binding: Binding) -> pa.Array:
    separator = binding.literal(1, ",")
    return _each_group(lambda values: separator.join(_known(values)) if _known(values) else None)(
        arrays, offsets, binding
    )


def _listagg_spark(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    separator = arguments[1] if len(arguments) > 1 else "','"
    return f"listagg({distinct}{arguments[0]}, {separator}){suffix}"


def _bind_listagg(arguments: Sequence[BoundArgument]) -> Signature:
    found = call(TEXT, TEXT, result=t.STRING, optional=1, nullable=True)(arguments)
    if len(arguments) == 2 and not isinstance(arguments[1].literal, str):
        raise FunctionTypeError("LISTAGG: the separator must be a literal")
    return found


def _collect_spark(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    """A map of each element to how often it is there."""
    listed = f"collect_list({distinct}{arguments[0]}){suffix}"
    return (
        f"map_from_arrays(array_distinct({listed}), transform(array_distinct({listed}), x -> "
        f"CAST(size(filter({listed}, y -> y <=> x)) AS INT)))"
    )


def _array_agg_spark(arguments: Sequence[str], binding: Binding, distinct: str, suffix: str) -> str:
    """Spark's own skips NULLs: wrapped into structs they stay."""
    listed = f"collect_list({distinct}named_struct('v', {arguments[0]})){suffix}"
    return f"nullif(transform({listed}, x -> x.v), CAST(array() AS {spark_type(binding.result_type)}))"


def _first(values: list[Any]) -> Any:
    return next((each for each in values if each is not None), None)


def _bind_collect(arguments: Sequence[BoundArgument]) -> Signature:
    return call(ANY, result=lambda types: t.MultisetType(element=types[0]), nullable=False)(arguments)


def _bind_array_agg(arguments: Sequence[BoundArgument]) -> Signature:
    return call(ANY, result=lambda types: t.ArrayType(element=types[0]), nullable=True)(arguments)


def _bind_edge(arguments: Sequence[BoundArgument]) -> Signature:
    return call(ANY, result=first, nullable=True)(arguments)


_ORDER_NOTE = "Depends on the order of the rows, which a shuffle of Spark does not keep."

FUNCTIONS = (
    _define(
        "COUNT",
        _bind_count,
        "COUNT(*), COUNT(a, ...)",
        "How many rows there are; with arguments, those without a NULL.",
        COUNT,
        _count_spark,
    ),
    _define(
        "SUM",
        _bind_sum,
        "SUM(x)",
        "The sum, in the integer's own type (it wraps around) or DECIMAL(38, scale).",
        SUM,
        _sum_spark,
        note="A BIGINT that overflows wraps around in streams and in Flink; Spark raises an error.",
    ),
    _define(
        "AVG",
        _bind_mean,
        "AVG(x)",
        "The mean, in the number's own type: of integers without its fraction.",
        AVG,
        _mean_spark,
    ),
    _define("MIN", _bind_extreme, "MIN(a)", "The least value.", _extreme(Fold.MIN), _plain_spark("MIN")),
    _define("MAX", _bind_extreme, "MAX(a)", "The greatest value.", _extreme(Fold.MAX), _plain_spark("MAX")),
    _define(
        "STDDEV_POP",
        _bind_mean,
        "STDDEV_POP(x)",
        "The standard deviation of the population.",
        _variance(False, True),
        _variance_spark("stddev_pop", False),
    ),
    _define(
        "STDDEV_SAMP",
        _bind_mean,
        "STDDEV_SAMP(x)",
        "The standard deviation of a sample; NULL of one value.",
        _variance(True, True),
        _variance_spark("stddev_samp", True),
        aliases=("STDDEV",),
    ),
    _define(
        "VAR_POP",
        _bind_mean,
        "VAR_POP(x)",
        "The variance of the population.",
        _variance(False, False),
        _variance_spark("var_pop", False),
    ),
    _define(
        "VAR_SAMP",
        _bind_mean,
        "VAR_SAMP(x)",
        "The variance of a sample; NULL of one value.",
        _variance(True, False),
        _variance_spark("var_samp", True),
        aliases=("VARIANCE",),
    ),
    _define(
        "LISTAGG",
        _bind_listagg,
        "LISTAGG(s [, separator])",
        "The strings joined by the separator (a comma).",
        AggregateRecipe(_listagg, ordered=True),
        _listagg_spark,
        note=_ORDER_NOTE,
    ),
    _define(
        "COLLECT",
        _bind_collect,
        "COLLECT(a)",
        "A multiset of the values.",
        AggregateRecipe(_each_group(_multiset)),
        _collect_spark,
    ),
    _define(
        "ARRAY_AGG",
        _bind_array_agg,
        "ARRAY_AGG(a)",
        "An array of the values, NULLs too.",
        AggregateRecipe(_each_group(lambda values: values or None), ordered=True),
        _array_agg_spark,
        note=_ORDER_NOTE,
    ),
    _define(
        "FIRST_VALUE",
        _bind_edge,
        "FIRST_VALUE(a)",
        "The first value.",
        AggregateRecipe(_each_group(_first), ordered=True),
        lambda a, b, distinct, suffix: f"first({a[0]}, true){suffix}",
        note=_ORDER_NOTE,
    ),
    _define(
        "LAST_VALUE",
        _bind_edge,
        "LAST_VALUE(a)",
        "The last value.",
        AggregateRecipe(_each_group(lambda values: _first(values[::-1])), ordered=True),
        lambda a, b, distinct, suffix: f"last({a[0]}, true){suffix}",
        note=_ORDER_NOTE,
    ),
)
