"""Arrays, maps and rows: constructors, access, and functions over their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, row_by_row, spark
from headwater.table.functions.signatures import ARRAY, BOOL, INT32, TEXT, call, first, unified
from headwater.table.types import casts
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot

FAMILY = "collections"


def _bind_array(arguments: Sequence[BoundArgument]) -> Signature:
    if not arguments:
        raise FunctionTypeError("ARRAY needs an element; CAST(ARRAY[NULL] AS ...) gives it a type")
    common = unified(arguments, "the elements of ARRAY")
    return Signature(t.ArrayType(element=common, nullable=False), (common,) * len(arguments))


def _array(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    rows = zip(*(as_array(each, frame.rows).to_pylist() for each in columns), strict=True)
    return pa.array([list(row) for row in rows], to_arrow(binding.result_type))


def _bind_map(arguments: Sequence[BoundArgument]) -> Signature:
    if not arguments or len(arguments) % 2:
        raise FunctionTypeError("MAP needs pairs of a key and a value: MAP['a', 1, 'b', 2]")
    key, value = unified(arguments[0::2], "the keys of MAP"), unified(arguments[1::2], "the values of MAP")
    return Signature(t.MapType(key=key, value=value, nullable=False), (key, value) * (len(arguments) // 2))


def _map(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    """Of two equal keys the last counts."""
    rows = zip(*(as_array(each, frame.rows).to_pylist() for each in columns), strict=True)
    return pa.array(
        [list(dict(zip(row[0::2], row[1::2], strict=True)).items()) for row in rows], to_arrow(binding.result_type)
    )


def _bind_row(arguments: Sequence[BoundArgument]) -> Signature:
    fields = tuple(t.RowField(f"EXPR${at}", each.type) for at, each in enumerate(arguments))
    return Signature(t.RowType(fields=fields, nullable=False), tuple(each.type for each in arguments))


def _row(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    kind = to_arrow(binding.result_type)
    arrays = [as_array(each, frame.rows).cast(field.type) for each, field in zip(columns, kind, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _bind_item(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 2:
        raise FunctionTypeError("takes a collection and a key: a[1], m['key']")
    kind, key = arguments[0].type, arguments[1].type
    if isinstance(kind, t.ArrayType):
        if not t.is_integer(key):
            raise FunctionTypeError(f"an array takes an INT as its index, found {key.sql()}")
        if isinstance(arguments[1].literal, int) and arguments[1].literal < 1:
            raise FunctionTypeError(f"the index of an array starts at 1, found {arguments[1].literal}")
        return Signature(kind.element.with_nullable(True), (kind, key))
    if isinstance(kind, t.MapType):
        if not casts.implicit_cast(key.with_nullable(True), kind.key.with_nullable(True)):
            raise FunctionTypeError(f"the map has keys of {kind.key.sql()}, found {key.sql()}")
        return Signature(kind.value.with_nullable(True), (kind, kind.key.with_nullable(key.nullable)))
    if isinstance(kind, t.RowType) and isinstance(arguments[1].literal, int):
        at = arguments[1].literal
        if not 1 <= at <= len(kind.fields):
            raise FunctionTypeError(f"the row has {len(kind.fields)} fields, found index {at}")
        return Signature(kind.fields[at - 1].type.with_nullable(True), (kind, key))
    raise FunctionTypeError(f"{kind.sql()} has no elements")


def _item(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    kind = binding.arg_types[0]
    if isinstance(kind, t.RowType):
        return pc.struct_field(as_array(columns[0], frame.rows), [binding.literal(1) - 1])
    if isinstance(kind, t.MapType):
        return row_by_row(lambda pairs, key: dict(pairs).get(key))(columns, binding, frame)
    return row_by_row(_element_at)(columns, binding, frame)


def _element_at(values: list[Any], index: int) -> Any:
    if index < 1:
        raise ComputationError(f"the index of an array starts at 1, found {index}")
    return values[index - 1] if index <= len(values) else None


def _spark_item(arguments: Sequence[str], binding: Binding) -> str | None:
    kind = binding.arg_types[0]
    if isinstance(kind, t.MapType):
        return f"try_element_at({arguments[0]}, {arguments[1]})"
    if isinstance(kind, t.RowType):
        name = kind.fields[binding.literal(1) - 1].name
        return f"{arguments[0]}.`{name}`"
    return f"get({arguments[0]}, {arguments[1]} - 1)"


def _bind_field(arguments: Sequence[BoundArgument]) -> Signature:
    kind, name = arguments[0].type, arguments[1].literal
    if not isinstance(kind, t.RowType):
        raise FunctionTypeError(f"{kind.sql()} has no fields")
    field = kind.field(name)
    if field is None:
        known = ", ".join(each.name for each in kind.fields)
        raise FunctionTypeError(f"the row has no field '{name}'; it has {known}")
    return Signature(field.type.with_nullable(field.type.nullable or kind.nullable), (kind, arguments[1].type))


def _field(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    return pc.struct_field(as_array(columns[0], frame.rows), binding.literal(1))


def _cardinality(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values = as_array(columns[0], frame.rows)
    if pa.types.is_map(values.type):
        return row_by_row(len)(columns, binding, frame)
    return pc.list_value_length(values)


def _bind_cardinality(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 1 or arguments[0].type.root not in (TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.MULTISET):
        raise FunctionTypeError("CARDINALITY takes an array, a map or a multiset")
    return Signature(t.INT.with_nullable(arguments[0].type.nullable), (arguments[0].type,))


def _element_of(kind: LogicalType) -> LogicalType:
    if not isinstance(kind, t.ArrayType):
        raise FunctionTypeError(f"takes an array, found {kind.sql()}")
    return kind.element


def _with_element(
    result: Callable[[t.ArrayType, LogicalType], LogicalType], widen: bool = False
) -> Callable[[Sequence[BoundArgument]], Signature]:
    """(array, element): the element has the array's element type; `widen`: both get what they have in common."""

    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if len(arguments) != 2:
            raise FunctionTypeError(f"takes an array and an element, found {len(arguments)} arguments")
        element = _element_of(arguments[0].type)
        common = casts.common_type([element, arguments[1].type])
        if common is None or (not widen and not common.same_kind(element)):
            raise FunctionTypeError(f"the array has elements of {element.sql()}, found {arguments[1].type.sql()}")
        array = t.ArrayType(element=common if widen else element, nullable=arguments[0].type.nullable)
        nullable = arguments[0].type.nullable
        return Signature(result(array, common).with_nullable(nullable), (array, common.with_nullable(True)))

    return bind


def _array_itself(array: t.ArrayType, element: LogicalType) -> LogicalType:
    return array


def _merged(arguments: Sequence[BoundArgument]) -> Signature:
    """Several arrays of one element type."""
    if not arguments:
        raise FunctionTypeError("takes arrays, found nothing")
    for each in arguments:
        _element_of(each.type)
    common = unified(arguments, "the arrays")
    return Signature(common, (common,) * len(arguments))


def _two_merged(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 2:
        raise FunctionTypeError(f"takes 2 arrays, found {len(arguments)} arguments")
    return _merged(arguments)


def _same_array(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 1:
        raise FunctionTypeError(f"takes an array, found {len(arguments)} arguments")
    _element_of(arguments[0].type)
    return Signature(arguments[0].type, (arguments[0].type,))


def _of_element(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 1:
        raise FunctionTypeError(f"takes an array, found {len(arguments)} arguments")
    return Signature(_element_of(arguments[0].type).with_nullable(True), (arguments[0].type,))


def _unique(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if each not in found:
            found.append(each)
    return found


def _known(values: list[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def _sort_key(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _sorted(values: list[Any], ascending: bool = True, nulls_first: bool | None = None) -> list[Any]:
    first = ascending if nulls_first is None else nulls_first
    known = sorted(_known(values), key=_sort_key, reverse=not ascending)
    missing = [None] * (len(values) - len(known))
    return missing + known if first else known + missing


def _slice(values: list[Any], start: int, end: int | None = None) -> list[Any]:
    """Both ends are included; negative ones count from the end."""
    size = len(values)
    stop = size if end is None else end
    begin = size + start + 1 if start < 0 else max(1, start)
    finish = size + stop + 1 if stop < 0 else min(size, max(1, stop) if stop == 0 else stop)
    if not values or begin > finish or begin > size or finish < 1:
        return []
    return values[max(1, begin) - 1 : finish]


def _joined(values: list[str | None], separator: str, missing: str | None = None) -> str:
    return separator.join(
        each if each is not None else missing  # type: ignore[misc]
        for each in values
        if each is not None or missing is not None
    )


def _extreme(pick: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    return lambda values: pick(_known(values), key=_sort_key, default=None)


def _only(values: list[Any]) -> Any:
    if len(values) > 1:
        raise ComputationError(f"ELEMENT takes an array of one element at most, found {len(values)}")
    return values[0] if values else None


def _map_part(part: str) -> Callable[[Sequence[BoundArgument]], Signature]:
    def bind(arguments: Sequence[BoundArgument]) -> Signature:
        if len(arguments) != 1 or not isinstance(arguments[0].type, t.MapType):
            raise FunctionTypeError("takes a map")
        kind = arguments[0].type
        element: LogicalType = kind.key if part == "key" else kind.value
        if part == "entry":
            element = t.RowType(fields=(t.RowField("key", kind.key), t.RowField("value", kind.value)))
        return Signature(t.ArrayType(element=element, nullable=kind.nullable), (kind,))

    return bind


def _bind_from_arrays(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) != 2:
        raise FunctionTypeError("takes an array of keys and one of values")
    key, value = (_element_of(each.type) for each in arguments)
    nullable = any(each.type.nullable for each in arguments)
    return Signature(t.MapType(key=key, value=value, nullable=nullable), tuple(each.type for each in arguments))


def _from_arrays(keys: list[Any], values: list[Any]) -> list[tuple[Any, Any]]:
    if len(keys) != len(values):
        raise ComputationError(f"MAP_FROM_ARRAYS: {len(keys)} keys and {len(values)} values")
    if None in keys:
        raise ComputationError("MAP_FROM_ARRAYS: a key is NULL")
    return list(dict(zip(keys, values, strict=True)).items())


def _bind_union(arguments: Sequence[BoundArgument]) -> Signature:
    if not arguments or any(not isinstance(each.type, t.MapType) for each in arguments):
        raise FunctionTypeError("takes maps")
    common = unified(arguments, "the maps")
    return Signature(common, (common,) * len(arguments))


def _define(
    name: str, bind: Any, syntax: str, text: str, compute: Any, spark_text: Any = None, written: Any = None
) -> FunctionDefinition:
    native = spark(spark_text) if isinstance(spark_text, str) else spark_text
    return FunctionDefinition(name, FAMILY, bind, syntax, text, compute=compute, spark_text=native, text=written)


FUNCTIONS = (
    _define(
        "ARRAY",
        _bind_array,
        "ARRAY[a, ...]",
        "An array of these.",
        _array,
        "array({all})",
        lambda a: f"ARRAY[{', '.join(a)}]",
    ),
    _define("MAP", _bind_map, "MAP[key, value, ...]", "A map of these.", _map, None, lambda a: f"MAP[{', '.join(a)}]"),
    _define(
        "ROW",
        _bind_row,
        "ROW(a, ...)",
        "A row of these.",
        _row,
        lambda a, b: "named_struct(" + ", ".join(f"'EXPR${at}', {each}" for at, each in enumerate(a)) + ")",
    ),
    _define(
        "ITEM",
        _bind_item,
        "a[i], m[key]",
        "The element at an index from 1, or of a key; NULL if there is none.",
        _item,
        _spark_item,
        lambda a: f"{a[0]}[{a[1]}]",
    ),
    _define(
        "FIELD",
        _bind_field,
        "row.name",
        "A field of a row.",
        _field,
        lambda a, b: f"{a[0]}.`{b.literal(1)}`",
        lambda a: f"{a[0]}.{a[1]}",
    ),
    _define(
        "CARDINALITY",
        _bind_cardinality,
        "CARDINALITY(c)",
        "How many elements an array or map has.",
        _cardinality,
        "nullif(cardinality({0}), -1)",
    ),
    _define("ELEMENT", _of_element, "ELEMENT(a)", "The only element; NULL of an empty array.", row_by_row(_only)),
    _define(
        "ARRAY_CONTAINS",
        _with_element(lambda array, element: t.BOOLEAN),
        "ARRAY_CONTAINS(a, x)",
        "True if x is among the elements; a NULL is found too.",
        row_by_row(lambda values, x: None if values is None else x in values, strict=False),
    ),
    _define(
        "ARRAY_APPEND",
        _with_element(_array_itself, True),
        "ARRAY_APPEND(a, x)",
        "The array with x at its end.",
        row_by_row(lambda values, x: None if values is None else [*values, x], strict=False),
    ),
    _define(
        "ARRAY_PREPEND",
        _with_element(_array_itself, True),
        "ARRAY_PREPEND(a, x)",
        "The array with x in front.",
        row_by_row(lambda values, x: None if values is None else [x, *values], strict=False),
    ),
    _define(
        "ARRAY_REMOVE",
        _with_element(_array_itself),
        "ARRAY_REMOVE(a, x)",
        "The array without any x.",
        row_by_row(lambda values, x: None if values is None else [each for each in values if each != x], strict=False),
    ),
    _define(
        "ARRAY_POSITION",
        _with_element(lambda array, element: t.INT),
        "ARRAY_POSITION(a, x)",
        "Where x is first, from 1; 0 if it is not there.",
        row_by_row(lambda values, x: values.index(x) + 1 if x in values else 0),
    ),
    _define(
        "ARRAY_CONCAT",
        _merged,
        "ARRAY_CONCAT(a, ...)",
        "All arrays one after the other.",
        row_by_row(lambda *arrays: [each for values in arrays for each in values]),
        "concat({all})",
    ),
    _define("ARRAY_DISTINCT", _same_array, "ARRAY_DISTINCT(a)", "Each element once.", row_by_row(_unique)),
    _define(
        "ARRAY_EXCEPT",
        _two_merged,
        "ARRAY_EXCEPT(a, b)",
        "The elements of a that are not in b, each once.",
        row_by_row(lambda one, other: _unique([each for each in one if each not in other])),
    ),
    _define(
        "ARRAY_INTERSECT",
        _two_merged,
        "ARRAY_INTERSECT(a, b)",
        "The elements that are in both, each once.",
        row_by_row(lambda one, other: _unique([each for each in one if each in other])),
    ),
    _define(
        "ARRAY_UNION",
        _two_merged,
        "ARRAY_UNION(a, b)",
        "The elements of both, each once.",
        row_by_row(lambda one, other: _unique([*one, *other])),
    ),
    _define(
        "ARRAY_REVERSE",
        _same_array,
        "ARRAY_REVERSE(a)",
        "Backwards.",
        row_by_row(lambda values: values[::-1]),
        "reverse({0})",
    ),
    _define(
        "ARRAY_SLICE",
        call(ARRAY, INT32, INT32, result=first, optional=1),
        "ARRAY_SLICE(a, from [, to])",
        "The elements from one index to another, both included.",
        row_by_row(_slice),
    ),
    _define(
        "ARRAY_SORT",
        call(ARRAY, BOOL, BOOL, result=first, optional=2),
        "ARRAY_SORT(a [, ascending [, nulls first]])",
        "In order; NULLs first if ascending.",
        row_by_row(_sorted),
    ),
    _define(
        "ARRAY_MAX",
        _of_element,
        "ARRAY_MAX(a)",
        "The greatest element; NULLs are skipped.",
        row_by_row(_extreme(max)),
        "array_max({0})",
    ),
    _define(
        "ARRAY_MIN",
        _of_element,
        "ARRAY_MIN(a)",
        "The least element; NULLs are skipped.",
        row_by_row(_extreme(min)),
        "array_min({0})",
    ),
    _define(
        "ARRAY_JOIN",
        call(ARRAY, TEXT, TEXT, result=t.STRING, optional=1),
        "ARRAY_JOIN(a, separator [, null])",
        "The strings joined; NULLs are left out, or written as `null` says.",
        row_by_row(_joined),
    ),
    _define(
        "MAP_KEYS",
        _map_part("key"),
        "MAP_KEYS(m)",
        "The keys.",
        row_by_row(lambda pairs: [key for key, _ in pairs]),
        "map_keys({0})",
    ),
    _define(
        "MAP_VALUES",
        _map_part("value"),
        "MAP_VALUES(m)",
        "The values.",
        row_by_row(lambda pairs: [value for _, value in pairs]),
        "map_values({0})",
    ),
    _define(
        "MAP_ENTRIES",
        _map_part("entry"),
        "MAP_ENTRIES(m)",
        "Rows of key and value.",
        row_by_row(lambda pairs: [{"key": key, "value": value} for key, value in pairs]),
        "map_entries({0})",
    ),
    _define(
        "MAP_FROM_ARRAYS",
        _bind_from_arrays,
        "MAP_FROM_ARRAYS(keys, values)",
        "A map of two arrays.",
        row_by_row(_from_arrays),
    ),
    _define(
        "MAP_UNION",
        _bind_union,
        "MAP_UNION(m, ...)",
        "All pairs; of equal keys the last map's counts.",
        row_by_row(lambda *maps: list({key: value for pairs in maps for key, value in pairs}.items())),
    ),
)
