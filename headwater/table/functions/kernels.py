"""Ways to make a kernel: from a function of Arrow, or from a Python function that is called row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from headwater.table.functions.arguments import repeated
from headwater.table.functions.definition import Binding, Column, Kernel, SparkText
from headwater.table.functions.frame import Frame
from headwater.table.types.arrow import to_arrow
from headwater.table.types.spark import spark_type


def vectorised(function: Callable[..., Any]) -> Kernel:
    """A kernel that hands all arguments to a function of pyarrow.compute."""

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        return function(*columns)

    return compute


def row_by_row(function: Callable[..., Any], strict: bool = True) -> Kernel:
    """A kernel that calls a Python function for every row. `strict`: NULL if one argument is NULL, without a call."""

    def compute(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
        kind = to_arrow(binding.result_type)
        if all(isinstance(each, pa.Scalar) for each in columns):
            values = [each.as_py() for each in columns]
            found = None if strict and any(each is None for each in values) else function(*values)
            return pa.scalar(found, kind)
        rows = zip(*(_values(each, frame.rows) for each in columns), strict=True)
        if strict:
            return pa.array([None if None in row else function(*row) for row in map(_Row, rows)], kind)
        return pa.array([function(*row) for row in rows], kind)

    return compute


class _Row(tuple[Any, ...]):
    """A row in which `None in row` compares by identity only: values may be arrays or decimals."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return any(each is value for each in self)


def _values(column: Column, rows: int) -> Iterable[Any]:
    return [column.as_py()] * rows if isinstance(column, pa.Scalar) else column.to_pylist()


def as_array(column: Column, rows: int) -> pa.Array:
    """A scalar repeated for every row."""
    return repeated(column, rows) if isinstance(column, pa.Scalar) else column


def spark(template: str) -> SparkText:
    """Spark's expression from a template: {0} is the first argument, {all} all of them, {type} the result's type."""

    def text(arguments: Sequence[str], binding: Binding) -> str:
        everything = ", ".join(arguments)
        return template.format(*arguments, all=everything, type=spark_type(binding.result_type))

    return text


def infix(sign: str) -> Callable[[Sequence[str]], str]:
    """Write a call as `a sign b`."""
    return lambda arguments: f"({f' {sign} '.join(arguments)})"
