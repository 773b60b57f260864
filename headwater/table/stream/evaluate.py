"""Computes typed expressions on Arrow columns, with the kernels of the function library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.functions.arguments import repeated
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Literal, Required, Rex, TypeWord
from headwater.table.types.arrow import to_arrow

Compiled = Callable[[pa.RecordBatch, Frame], pa.Array | pa.Scalar]


def compiled(rex: Rex, columns: Sequence[Column]) -> Compiled:
    """Prepare an expression over rows of `columns`. What it gives is a scalar if it depends on no column."""
    places = {column.id: place for place, column in enumerate(columns)}
    return _compiled(rex, places)


def evaluated(expression: Compiled, rows: pa.RecordBatch, frame: Frame) -> pa.Array:
    """The value for every row."""
    found = expression(rows, frame)
    return repeated(found, rows.num_rows) if isinstance(found, pa.Scalar) else found


def _compiled(rex: Rex, places: dict[int, int]) -> Compiled:
    match rex:
        case ColumnRef():
            place = places[rex.column.id]
            return lambda rows, frame: rows.column(place)
        case Literal():
            value = literal_scalar(rex)
            return lambda rows, frame: value
        case TypeWord():
            nothing = pa.scalar(None)
            return lambda rows, frame: nothing
        case Required():
            return _required(_compiled(rex.operand, places), rex.text)
        case FunctionCall():
            return _call(rex, [_compiled(each, places) for each in rex.arguments])
    raise SqlError(f"{type(rex).__name__} is no expression of one row; a rule should have replaced it")


def _call(rex: FunctionCall, arguments: list[Compiled]) -> Compiled:
    binding = rex.binding

    def call(rows: pa.RecordBatch, frame: Frame) -> pa.Array:
        return binding.kernel([each(rows, frame) for each in arguments], frame)

    return call


def _required(operand: Compiled, text: str) -> Compiled:
    def required(rows: pa.RecordBatch, frame: Frame) -> pa.Array | pa.Scalar:
        found = operand(rows, frame)
        missing = (not found.is_valid and rows.num_rows) if isinstance(found, pa.Scalar) else found.null_count
        if missing:
            raise SqlError(text)
        return found

    return required


def literal_scalar(literal: Literal) -> pa.Scalar:
    value: Any = literal.value
    return pa.scalar(value, to_arrow(literal.type))
