"""Functions of users, with the names of pyflink.table.udf.

@udf(result_type=DataTypes.BIGINT())
def add(i, j):
    return i + j

t_env.create_temporary_system_function("add", add)      # SELECT add(a, b) FROM t
table.select(add(col("a"), col("b")))
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from headwater.common.errors import SqlError
from headwater.metrics import MetricGroup
from headwater.operators.base import OperatorContext
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.table.data_view import ListView, MapView
from headwater.table.expression import Expression, node_of
from headwater.table.functions.definition import FunctionDefinition
from headwater.table.types.logical import LogicalType, RowType
from headwater.table.types.type_text import parse_type
from headwater.table.user.calls import UserCall

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ListView",
    "MapView",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
    "UserDefinedFunctionWrapper",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]


class FunctionContext:
    """What `open` may know. In batch mode, where Spark calls functions, it knows no job: defaults, and no metrics."""

    def __init__(self, runtime_context: RuntimeContext | None = None) -> None:
        self._runtime = runtime_context or RuntimeContext(OperatorContext("", "", 0, 1, 1))

    def get_metric_group(self) -> MetricGroup:
        """Where the function registers its counters, gauges, meters and distributions."""
        return self._runtime.get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """One of the job's global parameters (`pipeline.global-job-parameters`)."""
        return self._runtime.get_job_parameter(key, default_value)

    def get_task_name(self) -> str:
        """The operator's name."""
        return self._runtime.get_task_name()

    def get_task_name_with_subtasks(self) -> str:
        """For example `Calc (3/6)`: partitions count from 1 here."""
        return self._runtime.get_task_name_with_subtasks()

    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""
        return self._runtime.get_number_of_parallel_subtasks()

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups."""
        return self._runtime.get_max_number_of_parallel_subtasks()

    def get_index_of_this_subtask(self) -> int:
        """This partition, from 0. Partitions in one process share a function: then the first one's."""
        return self._runtime.get_index_of_this_subtask()

    def get_attempt_number(self) -> int:
        """How often the job was started before."""
        return self._runtime.get_attempt_number()


class UserDefinedFunction:
    """Base of all functions of users. An instance is pickled into the workers, and opened there before the first call.

    `close` is called when a job on streams ends; never in batch mode, nor when a worker is ended from outside: let it
    free things, not save them.
    """

    def open(self, function_context: FunctionContext) -> None:
        """Prepare for calls."""

    def close(self) -> None:
        """Free what `open` took."""

    def is_deterministic(self) -> bool:
        """False: two calls with the same arguments may differ. Such a function takes no rows that are updated."""
        return True


class ScalarFunction(UserDefinedFunction, ABC):
    """A value of the values of a row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any: ...


class AsyncScalarFunction(UserDefinedFunction, ABC):
    """A value that has to be waited for; several calls run at the same time. Results keep the order of the rows."""

    @abstractmethod
    def eval(self, *args: Any) -> Awaitable[Any]: ...


class TableFunction(UserDefinedFunction, ABC):
    """Rows (or single values) of the values of a row: `eval` yields them, or returns a list."""

    @abstractmethod
    def eval(self, *args: Any) -> Any: ...


class ImperativeAggregateFunction(UserDefinedFunction, ABC):
    """An aggregate with an accumulator. Here it is made anew of the rows of a group whenever they change.

    So every aggregate can take rows back: `retract` and `merge` are not called.
    """

    @abstractmethod
    def create_accumulator(self) -> Any: ...

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None: ...

    def retract(self, accumulator: Any, *args: Any) -> None:
        raise RuntimeError("Method retract is not implemented")

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        raise RuntimeError("Method merge is not implemented")

    def get_result_type(self) -> LogicalType | str:
        raise RuntimeError("Method get_result_type is not implemented")

    def get_accumulator_type(self) -> LogicalType | str:
        raise RuntimeError("Method get_accumulator_type is not implemented")


class AggregateFunction(ImperativeAggregateFunction):
    """A value of the rows of a group."""

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any: ...


class TableAggregateFunction(ImperativeAggregateFunction):
    """Rows of the rows of a group, for `flat_aggregate`."""

    @abstractmethod
    def emit_value(self, accumulator: Any) -> Iterable[Any]: ...


class UserDefinedFunctionWrapper:
    """A function with its types. Calling it gives an Expression of the Table API."""

    def __init__(
        self,
        function: UserDefinedFunction,
        kind: str,
        name: str,
        input_types: Sequence[LogicalType] | None,
        result_type: LogicalType | None,
        pandas: bool,
        deterministic: bool,
    ) -> None:
        self.function = function
        self.kind = kind
        """SCALAR, ASYNC, TABLE, AGGREGATE or TABLE AGGREGATE."""
        self.name = name
        self.input_types = input_types
        self.result_type = result_type
        self.pandas = pandas
        self.deterministic = deterministic
        self._names: tuple[str, ...] = ()

    def definition(self, name: str | None = None) -> FunctionDefinition:
        """The function of SQL that this is, by the name under which it was registered."""
        from headwater.table.user.definitions import definition_of

        return definition_of(self, name or self.name)

    def __call__(self, *args: Any) -> Expression:
        arguments = tuple(map(node_of, args))
        called = Expression(UserCall((self.name,), arguments, definition=self.definition()))
        return called.alias(*self._names) if self._names else called

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """The same function with names for the columns it gives, for `flat_map`, `join_lateral` or `aggregate`."""
        other = copy.copy(self)
        other._names = alias_names
        return other


_FUNC_TYPES = ("general", "pandas")


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
    udf_type: str | None = None,
) -> Any:
    """A scalar function of a Python function, a ScalarFunction or an AsyncScalarFunction. Also a decorator.

    Without `result_type` the annotation says it. `func_type="pandas"`: it takes and gives Series of a whole batch.
    `udf_type` is the old name of `func_type`.
    """
    return _made("SCALAR", f, input_types, result_type, deterministic, name, udf_type or func_type)


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """A table function of a Python function (which yields rows) or a TableFunction. Also a decorator."""
    return _made("TABLE", f, input_types, result_types, deterministic, name, "general")


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
    udf_type: str | None = None,
) -> Any:
    """An aggregate of an AggregateFunction, or with `func_type="pandas"` of a function of Series. Also a decorator.

    `accumulator_type` is not needed: accumulators are not stored.
    """
    return _made("AGGREGATE", f, input_types, result_type, deterministic, name, udf_type or func_type)


def udtaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
    udf_type: str | None = None,
) -> Any:
    """A table aggregate of a TableAggregateFunction, for `flat_aggregate`. `accumulator_type` is not needed."""
    return _made("TABLE AGGREGATE", f, input_types, result_type, deterministic, name, udf_type or func_type)


class _Delegating(ScalarFunction):
    """A Python function as a ScalarFunction (or any function with `eval`)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def eval(self, *args: Any) -> Any:
        return self._function(*args)


_CLASSES: dict[str, tuple[type, ...]] = {
    "SCALAR": (ScalarFunction, AsyncScalarFunction),
    "TABLE": (TableFunction,),
    "AGGREGATE": (AggregateFunction,),
    "TABLE AGGREGATE": (TableAggregateFunction,),
}


def _made(
    kind: str, f: Any, input_types: Any, result_type: Any, deterministic: bool | None, name: str | None, func_type: str
) -> Any:
    if func_type not in _FUNC_TYPES:
        raise SqlError(f"func_type is 'general' or 'pandas', found {func_type!r}")
    if f is None:
        return lambda function: _made(kind, function, input_types, result_type, deterministic, name, func_type)
    if inspect.isclass(f):
        raise SqlError(f"{f.__name__} is a class; give an instance: {f.__name__}()")
    pandas = func_type == "pandas"
    function = f
    if not isinstance(f, UserDefinedFunction):
        if kind.endswith("AGGREGATE") and not pandas:
            raise SqlError(f"{f!r} is no {_CLASSES[kind][0].__name__}; a plain function is one for func_type='pandas'")
        if not callable(f):
            raise SqlError(f"{f!r} is no function")
        function = _Delegating(f)
    elif not isinstance(f, _CLASSES[kind]) and not (pandas and kind == "AGGREGATE"):
        expected = " or ".join(each.__name__ for each in _CLASSES[kind])
        raise SqlError(f"{type(f).__name__} is no {expected}")
    code = f if isinstance(function, _Delegating) else getattr(f, "eval", None)
    if kind == "SCALAR" and (isinstance(f, AsyncScalarFunction) or inspect.iscoroutinefunction(code)):
        kind = "ASYNC"
    chosen = name or getattr(f, "__name__", None) or type(f).__name__
    if inspect.iscoroutinefunction(code) and pandas:
        raise SqlError(f"{chosen}: a function of pandas cannot be async")
    if deterministic is not None and isinstance(f, UserDefinedFunction) and f.is_deterministic() != deterministic:
        raise SqlError(f"{chosen}: deterministic={deterministic}, but is_deterministic() is {f.is_deterministic()}")
    certain = function.is_deterministic() if deterministic is None else deterministic
    inputs = None if input_types is None else [_type(each) for each in _listed(input_types)]
    return UserDefinedFunctionWrapper(
        function, kind, chosen, inputs, _result(kind, f, code, result_type, chosen), pandas, certain
    )


def _result(kind: str, f: Any, code: Any, given: Any, name: str) -> LogicalType:
    from headwater.table.user.annotations import returned, row_types_of, type_of
    from headwater.table.user.definitions import row_of, rows_type

    if kind == "TABLE":
        if given is None:
            return rows_type(row_of(row_types_of(returned(code, name), name)))
        if isinstance(given, str | LogicalType):
            found = _type(given)
            return rows_type(found if isinstance(found, RowType) else row_of([found]))
        return rows_type(row_of([_type(each) for each in given]))
    if given is None and kind.endswith("AGGREGATE"):
        if isinstance(f, ImperativeAggregateFunction) and (
            type(f).get_result_type is not ImperativeAggregateFunction.get_result_type
        ):
            given = f.get_result_type()
        elif kind == "TABLE AGGREGATE":
            return rows_type(row_of(row_types_of(returned(f.emit_value, name), name)))
        else:
            code = code if code is not None else f.get_value
    found = type_of(returned(code, name), name) if given is None else _type(given)
    if kind == "TABLE AGGREGATE":
        return rows_type(found if isinstance(found, RowType) else row_of([found]))
    return found


def _type(given: Any) -> LogicalType:
    if isinstance(given, str):
        return parse_type(given)
    if not isinstance(given, LogicalType):
        raise SqlError(f"{given!r} is no type; use DataTypes or the type's text, such as 'BIGINT'")
    return given


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | LogicalType) else list(given)
