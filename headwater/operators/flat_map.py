"""flat_map, on streams with and without keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headwater.operators.base import Output
from headwater.operators.results import taken
from headwater.operators.user_function import KeyedOperator, UserFunctionOperator, method_of


class FlatMapOperator(UserFunctionOperator):
    """Replaces each record by what `function(record)` yields; each result has the record's timestamp."""

    def __init__(self, function: Any, method: str = "flat_map") -> None:
        super().__init__(function)
        self._flat_map = method_of(function, method, "flat_map")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            results = _flat_mapped(self._flat_map, position, timestamps)
        except Exception as error:
            raise self.failure(error, values, position) from error
        _emit(self.output, *results)


class KeyedFlatMapOperator(KeyedOperator):
    """As `FlatMapOperator`, for a function that uses the state of the record's key."""

    def __init__(self, key_selector: Any, function: Any, method: str = "flat_map") -> None:
        super().__init__(key_selector, function)
        self._flat_map = method_of(function, method, "flat_map")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            results = _flat_mapped(self._flat_map, self.keyed(position), timestamps)
        except Exception as error:
            raise self.failure(error, values, position) from error
        _emit(self.output, *results)


def _flat_mapped(
    function: Callable[[Any], Any], values: Iterable[Any], timestamps: list[int | None] | None
) -> tuple[list[Any], list[int | None] | None]:
    if timestamps is None:
        return taken(result for value in values for result in function(value) or ()), None
    stamps: list[int | None] = []

    def stamped() -> Iterator[Any]:
        for value, timestamp in zip(values, timestamps, strict=True):
            for result in function(value) or ():
                stamps.append(timestamp)
                yield result

    return taken(stamped()), stamps


def _emit(output: Output, results: list[Any], timestamps: list[int | None] | None) -> None:
    if results:
        output.emit(results, timestamps)
