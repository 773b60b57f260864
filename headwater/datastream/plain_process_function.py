"""Lets `process` take a plain function `(value, ctx)`, or a generator, where PyFlink wants a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headwater.operators.functions.plain import KeyedProcessFunction, ProcessFunction

Process = Callable[[Any, Any], Iterable[Any] | None]


class PlainProcessFunction(ProcessFunction):
    """`function(value, ctx)` as a ProcessFunction."""

    def __init__(self, function: Process) -> None:
        # An attribute of the instance hides the method below: the operator then calls the function itself.
        self.process_element = function  # type: ignore[method-assign,assignment]

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        raise AssertionError("hidden by the attribute")


class PlainKeyedProcessFunction(KeyedProcessFunction):
    """`function(value, ctx)` as a KeyedProcessFunction without timers."""

    def __init__(self, function: Process) -> None:
        self.process_element = function  # type: ignore[method-assign,assignment]

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        raise AssertionError("hidden by the attribute")
