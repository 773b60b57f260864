"""reduce: one rolling value per key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.common.ids import MAX_WATERMARK
from headwater.operators.results import taken
from headwater.operators.user_function import KeyedOperator, method_of
from headwater.state.descriptors import ValueStateDescriptor

STATE_NAME = "reduced"

_MAX_RESULTS_HELD = 4096


class KeyedReduceOperator(KeyedOperator):
    """Reduces the records of each key into one value.

    STREAMING emits the value after every record, with the record's timestamp. BATCH emits it once per key, at the end
    of input, in the order in which the keys came; its timestamp is then the end of time, as in Flink.
    """

    def __init__(self, key_selector: Any, reduce_function: Any) -> None:
        super().__init__(key_selector, reduce_function)
        self._reduce = method_of(reduce_function, "reduce", "reduce")
        self._saw_timestamps = False

    def open(self) -> None:
        self._state = self._backend.get_state(ValueStateDescriptor(STATE_NAME))
        super().open()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        position = iter(values)
        try:
            results = taken(self._reduced(position))
        except Exception as error:
            raise self.failure(error, values, position) from error
        if self.context.batch_mode:
            self._saw_timestamps = self._saw_timestamps or timestamps is not None
        else:
            self.output.emit(results, timestamps)

    def _reduced(self, values: Iterable[Any]) -> Iterator[Any]:
        """Reduce each record; yields what is to be emitted."""
        reduce, get, update = self._reduce, self._state.value, self._state.update
        rolling = not self.context.batch_mode
        for value in self.keyed(values):
            so_far = get()
            reduced = value if so_far is None else reduce(so_far, value)
            update(reduced)
            if rolling:
                yield reduced

    def end_of_input(self) -> None:
        if not self.context.batch_mode:
            return
        results: list[Any] = []
        for key in list(self._backend.keys(STATE_NAME)):
            self._backend.current_key = key
            results.append(self._state.value())
            if len(results) >= _MAX_RESULTS_HELD:
                self._emit_final(results)
                results = []
        self._emit_final(results)

    def _emit_final(self, results: list[Any]) -> None:
        if results:
            self.output.emit(results, [MAX_WATERMARK] * len(results) if self._saw_timestamps else None)
