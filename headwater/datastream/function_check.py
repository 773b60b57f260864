"""Is this argument a function of the right kind? Asked when a method is called: the error points at the line."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from headwater.common.callables import accepts, signature_text
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.operators.functions.plain import Function

_METHOD_FOR = {
    "FilterFunction": "filter",
    "FlatMapFunction": "flat_map",
    "MapFunction": "map",
    "ReduceFunction": "reduce",
    "SinkFunction": "add_sink",
}


def checked_function(method: str, function: Any, function_class: type[Function]) -> Any:
    """Return `function` if `method` can take it: a `function_class`, or what looks like one, or a callable.

    A class that is no function class is a callable like any other: `map(str)`.
    """
    expected = f"{method}() expects a function or {_article(function_class.__name__)}"
    (wanted,) = function_class.__abstractmethods__
    if isinstance(function, type) and (issubclass(function, Function) or hasattr(function, wanted)):
        raise TypeMismatchError(
            f"{expected}, found the class {function.__name__}; did you forget to call it: {function.__name__}()?"
        )
    if isinstance(function, type):
        return partial(function)  # wrapped, or later checks take the class for a forgotten call
    if isinstance(function, function_class):
        _check_arguments(expected, getattr(function, wanted), function_class, wanted)
        return function
    if isinstance(function, Function):
        raise TypeMismatchError(f"{expected}, found {_article(_kind(function))}{_hint(method, function)}")
    if inspect.iscoroutinefunction(function):
        raise TypeMismatchError(f"{expected}, found a coroutine function, which nobody would await")
    if not callable(function) and not callable(getattr(function, wanted, None)):
        raise TypeMismatchError(f"{expected}, found {short_repr(function)}")
    called = getattr(function, wanted, None)
    _check_arguments(expected, called if callable(called) else function, function_class, wanted)
    return function


def checked_function_class(method: str, function: Any, *classes: type[Function]) -> None:
    """Raise unless `function` is an instance of one of `classes`. For methods that cannot take a plain function."""
    expected = f"{method}() expects {' or '.join(_article(cls.__name__) for cls in classes)}"
    if isinstance(function, type) and issubclass(function, Function):
        raise TypeMismatchError(
            f"{expected}, found the class {function.__name__}; did you forget to call it: {function.__name__}()?"
        )
    if isinstance(function, classes):
        return
    if isinstance(function, Function):
        raise TypeMismatchError(f"{expected}, found {_article(_kind(function))}")
    raise TypeMismatchError(f"{expected}, found {short_repr(function)}")


def check_no_generator(method: str, function: Any, instead: str = "flat_map()") -> None:
    """Raise for a generator function where one result per record is expected: the records would be generators."""
    called = function if callable(function) else getattr(function, method, None)
    if inspect.isgeneratorfunction(called) or inspect.isgeneratorfunction(getattr(function, method, None)):
        raise TypeMismatchError(f"{method}() got a generator function, but wants one result; use {instead}")


def _check_arguments(expected: str, called: Any, function_class: type[Function], wanted: str) -> None:
    """Raise if `called` cannot be called as `function_class` declares."""
    parameters = list(inspect.signature(getattr(function_class, wanted)).parameters)[1:]
    if not accepts(called, len(parameters)):
        raise TypeMismatchError(f"{expected} of ({', '.join(parameters)}), found {signature_text(called)}")


def _kind(function: Function) -> str:
    """Return the name of the nearest class of headwater that `function` extends."""
    return next(cls.__name__ for cls in type(function).__mro__ if cls.__module__.startswith("headwater.operators."))


def _hint(method: str, function: Function) -> str:
    kind = _kind(function)
    if method == "process" and kind == "KeyedProcessFunction":
        return "; call key_by(...) first"
    if method == "process" and kind == "ProcessFunction":
        return "; a keyed stream takes a KeyedProcessFunction"
    return f"; did you mean {_METHOD_FOR[kind]}()?" if kind in _METHOD_FOR else ""


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
