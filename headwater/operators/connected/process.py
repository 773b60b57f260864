"""process on two connected streams: one function, one state, one set of timers for both."""

from __future__ import annotations

from typing import Any

from headwater.operators.process import KeyedProcessOperator, ProcessOperator
from headwater.operators.user_function import method_of


class CoProcessOperator(ProcessOperator):
    """Runs a `CoProcessFunction` on two streams of which at least one has no keys."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "process_element1")
        self._methods = (self._process, method_of(function, "process_element2", "process"))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self._process = self._methods[input_index]
        super().process_batch(values, timestamps)


class KeyedCoProcessOperator(KeyedProcessOperator):
    """Runs a `KeyedCoProcessFunction`, or a `CoProcessFunction`, on two keyed streams."""

    def __init__(self, key_selector1: Any, key_selector2: Any, function: Any) -> None:
        super().__init__(key_selector1, function, "process_element1")
        self._methods = (self._process, method_of(function, "process_element2", "process"))
        self.keys_of = (self.key_of, method_of(key_selector2, "get_key", "key_by"))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        # Choose the method once per batch: the loop is then the same as with a single input.
        self._process, self.key_of = self._methods[input_index], self.keys_of[input_index]
        super().process_batch(values, timestamps)
