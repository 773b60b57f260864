"""Reducing and aggregating state, made of a value state and the user's function. The same for every backend."""

from __future__ import annotations

from typing import Any, Protocol

from headwater.state.api import AggregatingState, ReducingState
from headwater.state.copying import captured


class FoldedValues(Protocol):
    """What a backend's value state, with or without a TTL, has beside PyFlink's methods."""

    def value(self) -> Any: ...

    def update(self, value: Any, given_away: bool = False) -> None:
        """`given_away`: nobody else holds any part of `value` that can change, so that it need not be copied."""

    def clear(self) -> None: ...

    def live(self) -> Any:
        """The value itself: a function may change it in place, if what it returns is then stored with `update`."""


class FoldingReducingState(ReducingState[Any]):
    """Keeps the reduced value in `values`."""

    __slots__ = ("_reduce", "_values")

    def __init__(self, values: FoldedValues, reduce_function: Any) -> None:
        self._values = values
        self._reduce = getattr(reduce_function, "reduce", reduce_function)

    def get(self) -> Any:
        return self._values.value()

    def add(self, value: Any) -> None:
        current = self._values.live()
        self._values.update(value if current is None else self._reduce(current, captured(value)))

    def clear(self) -> None:
        self._values.clear()


class FoldingAggregatingState(AggregatingState[Any, Any]):
    """Keeps the accumulator in `values`."""

    __slots__ = ("_function", "_values")

    def __init__(self, values: FoldedValues, agg_function: Any) -> None:
        self._values = values
        self._function = agg_function

    def get(self) -> Any:
        accumulator = self._values.value()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = self._values.live()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._values.update(self._function.add(captured(value), accumulator))

    def clear(self) -> None:
        self._values.clear()

    def take_accumulator(self) -> Any:
        """Remove the accumulator and return it, or None."""
        accumulator = self._values.value()
        self._values.clear()
        return accumulator

    def merge_accumulator(self, accumulator: Any) -> None:
        """Merge `accumulator`, which is given away, into what is stored."""
        current = self._values.live()
        self._values.update(accumulator if current is None else self._function.merge(current, accumulator))
