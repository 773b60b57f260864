"""Window joins and co-groups: window functions on the records of both streams, each tagged with its stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.operators.functions.join import CoGroupFunction, FlatJoinFunction
from headwater.operators.functions.plain import Function
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.functions.window import WindowFunction
from headwater.operators.user_function import method_of

FIRST = 0
SECOND = 1


class Tag:
    """Puts the number of its stream before each record, so that both can go into one window."""

    __slots__ = ("_side",)

    def __init__(self, side: int) -> None:
        self._side = side

    def __call__(self, value: Any) -> tuple[int, Any]:
        return self._side, value


class KeyOfTagged:
    """Returns the key of a tagged record, with the key selector of its stream."""

    __slots__ = ("_keys_of",)

    def __init__(self, key_of_first: Any, key_of_second: Any) -> None:
        self._keys_of = (key_of_first, key_of_second)

    def __call__(self, tagged: tuple[int, Any]) -> Any:
        return self._keys_of[tagged[0]](tagged[1])


class _OnBothSides(WindowFunction[Any, Any, Any, Any]):
    """Splits a window's records by stream and calls the user's function. Opens and closes that function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.function, Function):
            self.function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        first: list[Any] = []
        second: list[Any] = []
        sides = (first, second)
        for side, value in inputs:
            sides[side].append(value)
        return self._evaluate(first, second)

    def _evaluate(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        raise NotImplementedError


class CoGroupWindowFunction(_OnBothSides):
    """Runs a `CoGroupFunction`, or a function of two lists."""

    def __init__(self, function: CoGroupFunction | Any) -> None:
        super().__init__(function)
        self._co_group = method_of(function, "co_group", "co_group")

    def _evaluate(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        return self._co_group(first, second)  # type: ignore[no-any-return]


class JoinWindowFunction(_OnBothSides):
    """Runs a `JoinFunction`, a `FlatJoinFunction` or a function of a pair, for each pair of a window."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._join = method_of(function, "join", "join")
        self._flat = isinstance(function, FlatJoinFunction)

    def _evaluate(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        join = self._join
        if self._flat:
            return (result for one in first for other in second for result in join(one, other) or ())
        return (join(one, other) for one in first for other in second)
