"""map, on streams with and without keys."""

from __future__ import annotations

from typing import Any

from headwater.operators.results import taken
from headwater.operators.user_function import KeyedOperator, UserFunctionOperator, method_of


class MapOperator(UserFunctionOperator):
    """Replaces each record by `function(record)`; timestamps stay."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._map = method_of(function, "map", "map")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            results = taken(position, self._map)
        except Exception as error:
            raise self.failure(error, values, position) from error
        self.output.emit(results, timestamps)


class KeyedMapOperator(KeyedOperator):
    """As `MapOperator`, for a function that uses the state of the record's key."""

    def __init__(self, key_selector: Any, function: Any) -> None:
        super().__init__(key_selector, function)
        self._map = method_of(function, "map", "map")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            results = taken(self.keyed(position), self._map)
        except Exception as error:
            raise self.failure(error, values, position) from error
        self.output.emit(results, timestamps)
