"""flat_map, on streams with and without keys."""

from __future__ import annotations

from typing import Any

from headwater.operators.user_function import KeyedOperator, UserFunctionOperator, method_of


class FlatMapOperator(UserFunctionOperator):
    """Replaces each record by what `function(record)` yields; each result has the record's timestamp."""

    def __init__(self, function: Any, method: str = "flat_map") -> None:
        super().__init__(function)
        self._flat_map = method_of(function, method, "flat_map")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        function = self._flat_map
        position = iter(values)
        results: list[Any]
        result_timestamps: list[int | None] | None = None
        try:
            if timestamps is None:
                results = [result for value in position for result in function(value) or ()]
            else:
                results, result_timestamps = [], []
                for value, timestamp in zip(position, timestamps, strict=True):
                    results.extend(function(value) or ())
                    result_timestamps += [timestamp] * (len(results) - len(result_timestamps))
        except Exception as error:
            raise self.failure(error, values, position) from error
        if results:
            self.output.emit(results, result_timestamps)


class KeyedFlatMapOperator(KeyedOperator):
    """As `FlatMapOperator`, for a function that uses the state of the record's key."""

    def __init__(self, key_selector: Any, function: Any, method: str = "flat_map") -> None:
        super().__init__(key_selector, function)
        self._flat_map = method_of(function, method, "flat_map")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        function, key_of, backend = self._flat_map, self.key_of, self._backend
        results: list[Any] = []
        result_timestamps: list[int | None] | None = None if timestamps is None else []
        extend = results.extend
        position = iter(values)
        try:
            if timestamps is None or result_timestamps is None:
                for value in position:
                    backend.current_key = key_of(value)
                    extend(function(value) or ())
            else:
                for value, timestamp in zip(position, timestamps, strict=True):
                    backend.current_key = key_of(value)
                    extend(function(value) or ())
                    result_timestamps += [timestamp] * (len(results) - len(result_timestamps))
        except Exception as error:
            raise self.failure(error, values, position) from error
        if results:
            self.output.emit(results, result_timestamps)
