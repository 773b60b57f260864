"""How functions of users are called on columns. Each kernel is pickled into the workers with its function."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError, UserFunctionError, short_repr, user_traceback
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.table.functions.aggregation import Offsets
from headwater.table.functions.definition import Binding, Column
from headwater.table.functions.frame import Frame
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.user.values import column_of, python_values

if TYPE_CHECKING:
    from headwater.operators.base import OperatorContext
    from headwater.table.udf import UserDefinedFunction

MAX_CONCURRENT = 10
"""So many calls of an asynchronous function run at the same time, as in Flink."""


class _Life:
    """Whether a function was opened in this process, and for whom. The calls of one function share it."""

    def __init__(self) -> None:
        self.opened = False
        self.users = 0
        self.context: OperatorContext | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _Life, ()


class UserKernel:
    """Calls a user's function. Opens it before the first call in a process. `place`: where the call stands in SQL."""

    def __init__(self, function: UserDefinedFunction, name: str, place: str = "") -> None:
        self.function = function
        self.name = name
        self.place = place
        self._life = _Life()

    def at(self, place: str) -> UserKernel:
        """The same for a call at a place of SQL text."""
        other = copy.copy(self)
        other.place = place
        return other

    def attach(self, context: OperatorContext) -> None:
        """An operator will call the function. `open` sees the context of the first one."""
        self._life.users += 1
        self._life.context = self._life.context or context

    def detach(self) -> None:
        """The operator ends. The last one closes the function."""
        life = self._life
        life.users -= 1
        if life.users:
            return
        life.context = None
        if life.opened:
            life.opened = False
            try:
                self.function.close()
            except Exception as error:
                raise self.failed(error, "close()") from error

    def opened(self) -> UserDefinedFunction:
        if not self._life.opened:
            from headwater.table.udf import FunctionContext

            try:
                context = self._life.context
                self.function.open(FunctionContext(None if context is None else RuntimeContext(context)))
            except Exception as error:
                raise self.failed(error, "open()") from error
            self._life.opened = True
        return self.function

    def failed(self, error: BaseException, row: Any) -> UserFunctionError:
        if isinstance(error, UserFunctionError):
            return error
        where = f"{self.name} at {self.place}" if self.place else self.name
        return UserFunctionError(where, short_repr(row), -1, user_traceback(error), short_repr(error))

    def rows(self, columns: Sequence[Column], binding: Binding, frame: Frame) -> list[tuple[Any, ...]]:
        """The arguments of each row."""
        if not columns:
            return [()] * frame.rows
        values = [
            python_values(column, kind, frame.rows) for column, kind in zip(columns, binding.arg_types, strict=True)
        ]
        return list(zip(*values, strict=True))


class RowKernel(UserKernel):
    """A scalar function, row by row."""

    def __call__(self, columns: Sequence[Column], binding: Binding, frame: Frame) -> pa.Array:
        eval_: Callable[..., Any] = self.opened().eval  # type: ignore[attr-defined]
        found = []
        for row in self.rows(columns, binding, frame):
            try:
                found.append(eval_(*row))
            except Exception as error:
                raise self.failed(error, row) from error
        return column_of(found, binding.result_type, self.name)


class AsyncKernel(UserKernel):
    """A scalar function whose calls wait for something: many at a time."""

    def __call__(self, columns: Sequence[Column], binding: Binding, frame: Frame) -> pa.Array:
        rows = self.rows(columns, binding, frame)
        # One loop per batch: a loop may not outlive a fork.
        return column_of(asyncio.run(self._all(rows)), binding.result_type, self.name)

    async def _all(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        eval_: Callable[..., Any] = self.opened().eval  # type: ignore[attr-defined]
        places = asyncio.Semaphore(MAX_CONCURRENT)

        async def one(row: tuple[Any, ...]) -> Any:
            async with places:
                try:
                    return await eval_(*row)
                except Exception as error:
                    raise self.failed(error, row) from error

        return await asyncio.gather(*(one(row) for row in rows))


class PandasKernel(UserKernel):
    """A scalar function of pandas: Series in, Series out, of a whole batch."""

    def __call__(self, columns: Sequence[Column], binding: Binding, frame: Frame) -> pa.Array:
        arguments = [_series(column, frame.rows) for column in columns]
        shown = f"a batch of {frame.rows} rows"
        try:
            found = self.opened().eval(*arguments)  # type: ignore[attr-defined]
        except Exception as error:
            raise self.failed(error, shown) from error
        return _from_pandas(found, binding.result_type, self.name, frame.rows)


class TableKernel(UserKernel):
    """A table function: for each row an array of rows."""

    def __call__(self, columns: Sequence[Column], binding: Binding, frame: Frame) -> pa.Array:
        eval_: Callable[..., Any] = self.opened().eval  # type: ignore[attr-defined]
        found = []
        for row in self.rows(columns, binding, frame):
            try:
                found.append(rows_of(eval_(*row)))
            except Exception as error:
                raise self.failed(error, row) from error
        return column_of(found, binding.result_type, self.name)


def rows_of(given: Any) -> list[Any]:
    """What a table function gave: nothing, one row or value, or several."""
    if given is None:
        return []
    if isinstance(given, str | bytes | dict | tuple) or not hasattr(given, "__iter__") or hasattr(given, "_fields"):
        return [given]
    return list(given)


class AggregateKernel(UserKernel):
    """An aggregate: the accumulator of each group is made anew of all its rows. `tables`: it gives rows."""

    def __init__(self, function: UserDefinedFunction, name: str, tables: bool = False) -> None:
        super().__init__(function, name)
        self.tables = tables

    def __call__(self, arrays: Sequence[pa.Array], offsets: Offsets, binding: Binding) -> pa.Array:
        function: Any = self.opened()
        rows = self.rows(arrays, binding, Frame(int(offsets[-1])))
        found = []
        for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            row: Any = ()
            try:
                accumulator = function.create_accumulator()
                for row in rows[start:end]:
                    function.accumulate(accumulator, *row)
                row = "the result"
                found.append(list(function.emit_value(accumulator)) if self.tables else function.get_value(accumulator))
            except Exception as error:
                raise self.failed(error, row) from error
        return column_of(found, binding.result_type, self.name)


class PandasAggregateKernel(UserKernel):
    """An aggregate of pandas: the Series of a group in, a value out."""

    def __call__(self, arrays: Sequence[pa.Array], offsets: Offsets, binding: Binding) -> pa.Array:
        function: Any = self.opened()
        series = [array.to_pandas() for array in arrays]
        found = []
        for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            try:
                found.append(function.eval(*(each.iloc[start:end] for each in series)))
            except Exception as error:
                raise self.failed(error, f"a group of {end - start} rows") from error
        plain = [each.item() if isinstance(each, np.generic) else each for each in found]
        return column_of([None if _is_missing(each) else each for each in plain], binding.result_type, self.name)


def _series(column: Column, rows: int) -> Any:
    if isinstance(column, pa.Scalar):
        column = pa.array([column.as_py()] * rows, column.type)
    return column.to_pandas()


def _from_pandas(found: Any, type_: t.LogicalType, name: str, rows: int) -> pa.Array:
    import pandas

    if not isinstance(found, pandas.Series):
        raise SqlError(f"function {name} of pandas gave {type(found).__name__}, expected a Series")
    if len(found) != rows:
        raise SqlError(f"function {name} of pandas gave {len(found)} values for {rows} rows")
    if found.dtype == object:
        return column_of([None if _is_missing(value) else value for value in found], type_, name)
    return _cast(pa.Array.from_pandas(found), type_, name)


def _is_missing(value: Any) -> bool:
    """NaN and NaT, which are not equal to themselves, and pandas.NA, which is neither."""
    import pandas

    return value is None or value is pandas.NA or (not isinstance(value, list | dict) and bool(value != value))


def _cast(array: pa.Array, type_: t.LogicalType, name: str) -> pa.Array:
    try:
        return array.cast(to_arrow(type_))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SqlError(f"function {name} gave {array.type}, its result type is {type_.sql()}: {error}") from None
