"""map on two connected streams."""

from __future__ import annotations

from typing import Any

from headwater.operators.base import Output
from headwater.operators.results import taken
from headwater.operators.user_function import KeyedOperator, UserFunctionOperator, method_of


class CoMapOperator(UserFunctionOperator):
    """Runs a `CoMapFunction` on two streams of which at least one has no keys."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._methods = (method_of(function, "map1", "map"), method_of(function, "map2", "map"))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            results = taken(position, self._methods[input_index])
        except Exception as error:
            raise self.failure(error, values, position) from error
        emit_without_none(self.output, results, timestamps)


class KeyedCoMapOperator(KeyedOperator):
    """Runs a `CoMapFunction` on two keyed streams; it may use the state of the record's key."""

    def __init__(self, key_selector1: Any, key_selector2: Any, function: Any) -> None:
        super().__init__(key_selector1, function)
        self._methods = (method_of(function, "map1", "map"), method_of(function, "map2", "map"))
        self.keys_of = (self.key_of, method_of(key_selector2, "get_key", "key_by"))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self.key_of = self.keys_of[input_index]
        position = iter(values)
        try:
            results = taken(self.keyed(position), self._methods[input_index])
        except Exception as error:
            raise self.failure(error, values, position) from error
        emit_without_none(self.output, results, timestamps)


def emit_without_none(output: Output, results: list[Any], timestamps: list[int | None] | None) -> None:
    """Emit one result per record, but none where it is None, as in PyFlink's connected map."""
    if any(result is None for result in results):
        if timestamps is not None:
            pairs = zip(results, timestamps, strict=True)
            timestamps = [timestamp for result, timestamp in pairs if result is not None]
        results = [result for result in results if result is not None]
    if results:
        output.emit(results, timestamps)
