"""filter, on streams with and without keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any

from headwater.operators.results import taken
from headwater.operators.user_function import KeyedOperator, UserFunctionOperator, method_of
from headwater.state.copying import PlainList, are_plain


class FilterOperator(UserFunctionOperator):
    """Keeps the records for which `function(record)` is true."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._keep = method_of(function, "filter", "filter")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            kept, kept_timestamps = _filtered(self._keep, position, values, timestamps)
        except Exception as error:
            raise self.failure(error, values, position) from error
        if kept:
            self.output.emit(kept, kept_timestamps)


class KeyedFilterOperator(KeyedOperator):
    """As `FilterOperator`, for a function that uses the state of the record's key."""

    def __init__(self, key_selector: Any, function: Any) -> None:
        super().__init__(key_selector, function)
        self._keep = method_of(function, "filter", "filter")

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            kept, kept_timestamps = _filtered(self._keep, self.keyed(position), values, timestamps)
        except Exception as error:
            raise self.failure(error, values, position) from error
        if kept:
            self.output.emit(kept, kept_timestamps)


def _filtered(
    keep: Callable[[Any], Any], position: Iterable[Any], values: list[Any], timestamps: list[int | None] | None
) -> tuple[list[Any], list[int | None] | None]:
    """What `keep` wants of `position`, which goes through `values`."""
    if not are_plain(values):  # the function may keep a record that it has seen, and change it later
        flags: list[bool] = []
        kept = taken(_passed(keep, position, flags))
    elif timestamps is None:
        return PlainList([value for value in position if keep(value)]), None
    else:
        flags = [bool(keep(value)) for value in position]
        kept = PlainList(compress(values, flags))
    return kept, None if timestamps is None else list(compress(timestamps, flags))


def _passed(keep: Callable[[Any], Any], values: Iterable[Any], flags: list[bool]) -> Iterator[Any]:
    for value in values:
        flags.append(bool(keep(value)))
        if flags[-1]:
            yield value
