"""filter, on streams with and without keys."""

from __future__ import annotations

from itertools import compress
from typing import Any

from headwater.operators.user_function import KeyedOperator, UserFunctionOperator, method_of


class FilterOperator(UserFunctionOperator):
    """Keeps the records for which `function(record)` is true."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._keep = method_of(function, "filter", "filter")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        keep = self._keep
        position = iter(values)
        try:
            if timestamps is None:
                kept = [value for value in position if keep(value)]
            else:
                flags = [bool(keep(value)) for value in position]
                kept = list(compress(values, flags))
                timestamps = list(compress(timestamps, flags))
        except Exception as error:
            raise self.failure(error, values, position) from error
        if kept:
            self.output.emit(kept, timestamps)


class KeyedFilterOperator(KeyedOperator):
    """As `FilterOperator`, for a function that uses the state of the record's key."""

    def __init__(self, key_selector: Any, function: Any) -> None:
        super().__init__(key_selector, function)
        self._keep = method_of(function, "filter", "filter")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        keep, key_of, backend = self._keep, self.key_of, self._backend
        flags: list[bool] = []
        append = flags.append
        position = iter(values)
        try:
            for value in position:
                backend.current_key = key_of(value)
                append(bool(keep(value)))
        except Exception as error:
            raise self.failure(error, values, position) from error
        if any(flags):
            kept_timestamps = None if timestamps is None else list(compress(timestamps, flags))
            self.output.emit(list(compress(values, flags)), kept_timestamps)
