"""Reducing and aggregating state: a value state and a user's function. The same for every backend."""

from __future__ import annotations

from typing import Any

from headwater.state.api import AggregatingState, ReducingState, ValueState


class FoldingReducingState(ReducingState[Any]):
    """Keeps the reduced value in `values`."""

    __slots__ = ("_reduce", "_values")

    def __init__(self, values: ValueState[Any], reduce_function: Any) -> None:
        self._values = values
        self._reduce = getattr(reduce_function, "reduce", reduce_function)

    def get(self) -> Any:
        return self._values.value()

    def add(self, value: Any) -> None:
        # `value()` counts as a touch, so a function that changes its first argument in place is safe.
        current = self._values.value()
        self._values.update(value if current is None else self._reduce(current, value))

    def clear(self) -> None:
        self._values.clear()


class FoldingAggregatingState(AggregatingState[Any, Any]):
    """Keeps the accumulator in `values`."""

    __slots__ = ("_function", "_values")

    def __init__(self, values: ValueState[Any], agg_function: Any) -> None:
        self._values = values
        self._function = agg_function

    def get(self) -> Any:
        accumulator = self._values.value()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = self._values.value()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._values.update(self._function.add(value, accumulator))

    def clear(self) -> None:
        self._values.clear()

    def take_accumulator(self) -> Any:
        """Remove the accumulator and return it, or None."""
        accumulator = self._values.value()
        self._values.clear()
        return accumulator

    def merge_accumulator(self, accumulator: Any) -> None:
        """Merge `accumulator`, which is given away, into what is stored."""
        current = self._values.value()
        self._values.update(accumulator if current is None else self._function.merge(current, accumulator))
