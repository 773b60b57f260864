"""flat_map on two connected streams."""

from __future__ import annotations

from typing import Any

from headwater.operators.flat_map import FlatMapOperator, KeyedFlatMapOperator
from headwater.operators.user_function import method_of


class CoFlatMapOperator(FlatMapOperator):
    """Runs a `CoFlatMapFunction` on two streams of which at least one has no keys."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "flat_map1")
        self._methods = (self._flat_map, method_of(function, "flat_map2", "flat_map"))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self._flat_map = self._methods[input_index]
        super().process_batch(values, timestamps)


class KeyedCoFlatMapOperator(KeyedFlatMapOperator):
    """Runs a `CoFlatMapFunction` on two keyed streams; it may use the state of the record's key."""

    def __init__(self, key_selector1: Any, key_selector2: Any, function: Any) -> None:
        super().__init__(key_selector1, function, "flat_map1")
        self._methods = (self._flat_map, method_of(function, "flat_map2", "flat_map"))
        self.keys_of = (self.key_of, method_of(key_selector2, "get_key", "key_by"))

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self._flat_map, self.key_of = self._methods[input_index], self.keys_of[input_index]
        super().process_batch(values, timestamps)
