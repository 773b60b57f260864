"""Runs one operator, or one user function, with two inputs, without a job.

harness = TwoInputOperatorHarness(Enrich(), (lambda order: order.user, lambda user: user.id))
harness.process_element2(User(7, "ann"), timestamp=10)
harness.process_element1(Order(user=7), timestamp=20)
assert harness.get_output() == [("ann", Order(user=7))]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headwater.common.errors import PlanError, short_repr
from headwater.common.ids import MIN_WATERMARK
from headwater.operators.base import Operator
from headwater.operators.connected.broadcast import BroadcastProcessOperator, KeyedBroadcastProcessOperator
from headwater.operators.connected.flat_map import CoFlatMapOperator, KeyedCoFlatMapOperator
from headwater.operators.connected.map import CoMapOperator, KeyedCoMapOperator
from headwater.operators.connected.process import CoProcessOperator, KeyedCoProcessOperator
from headwater.operators.functions import broadcast as functions_broadcast
from headwater.operators.functions import connected as functions_co
from headwater.state.copying import captured
from headwater.state.descriptors import MapStateDescriptor
from headwater.testing.operator_harness import OperatorHarness

_UNKEYED: dict[type, Callable[[Any], Operator]] = {
    functions_co.CoMapFunction: CoMapOperator,
    functions_co.CoFlatMapFunction: CoFlatMapOperator,
    functions_co.CoProcessFunction: CoProcessOperator,
}
_KEYED: dict[type, Callable[[Any, Any, Any], Operator]] = {
    functions_co.CoMapFunction: KeyedCoMapOperator,
    functions_co.CoFlatMapFunction: KeyedCoFlatMapOperator,
    functions_co.CoProcessFunction: KeyedCoProcessOperator,
    functions_co.KeyedCoProcessFunction: KeyedCoProcessOperator,
}
_BROADCAST = (functions_broadcast.BroadcastProcessFunction, functions_broadcast.KeyedBroadcastProcessFunction)


class TwoInputOperatorHarness(OperatorHarness):
    """One partition of one operator with two inputs. Usable as a context manager, which closes it.

    `process_element1` is for the first stream and `process_element2` for the one in `connect(...)`, which is the
    broadcast one in the broadcast state pattern.
    """

    def __init__(
        self,
        operator: Any,
        key_selectors: tuple[Any, Any] | None = None,
        broadcast_states: Sequence[MapStateDescriptor] = (),
        **settings: Any,
    ) -> None:
        """`operator` is an `Operator` with two inputs or a function object for connected streams.

        Functions for two keyed streams need both `key_selectors`; a function for broadcast state needs the
        `broadcast_states`, and only the first key selector if the other stream is keyed. `settings` are those of
        `OperatorHarness`.
        """
        made = _as_operator(operator, key_selectors, tuple(broadcast_states))
        super().__init__(made, keyed=key_selectors is not None, **settings)
        self._inputs: tuple[int, int] = getattr(made, "inputs_of_elements", (0, 1))
        self._watermarks = [MIN_WATERMARK, MIN_WATERMARK]

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Process one record of the first stream."""
        self.process_elements1([value], None if timestamp is None else [timestamp])

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Process one record of the second stream."""
        self.process_elements2([value], None if timestamp is None else [timestamp])

    def process_elements1(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> None:
        """Process records of the first stream as one batch."""
        self._process(0, list(map(captured, values)), timestamps)

    def process_elements2(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> None:
        """Process records of the second stream as one batch."""
        self._process(1, list(map(captured, values)), timestamps)

    def process_watermark1(self, watermark: int) -> None:
        """Advance event time of the first stream to `watermark`. The operator's watermark is the smaller of both."""
        self._advance(0, watermark)

    def process_watermark2(self, watermark: int) -> None:
        """Advance event time of the second stream to `watermark`."""
        self._advance(1, watermark)

    def process_watermark(self, watermark: int) -> None:
        """Advance event time of both streams to `watermark`."""
        self._watermarks = [max(watermark, known) for known in self._watermarks]
        super().process_watermark(watermark)

    def _advance(self, stream: int, watermark: int) -> None:
        self._watermarks[stream] = max(watermark, self._watermarks[stream])
        lower = min(self._watermarks)
        if lower > self.context.watermark:
            super().process_watermark(lower)

    def _process(self, stream: int, values: list[Any], timestamps: Sequence[int | None] | None) -> None:
        self.open()
        input_index = self._inputs[stream]
        key_of = getattr(self.operator, "keys_of", (None, None))[input_index]
        if key_of is not None:
            self._check_route(key_of, values)
        self.operator.process_batch(values, None if timestamps is None else list(timestamps), input_index)


def _as_operator(operator: Any, keys: tuple[Any, Any] | None, states: tuple[MapStateDescriptor, ...]) -> Operator:
    if isinstance(operator, Operator):
        return operator
    if isinstance(operator, _BROADCAST) and not states:
        raise PlanError(f"{type(operator).__name__} needs broadcast_states, the descriptors given to broadcast(...)")
    if isinstance(operator, functions_broadcast.BroadcastProcessFunction):
        return BroadcastProcessOperator(states, operator)
    if keys is not None:
        if isinstance(operator, functions_broadcast.KeyedBroadcastProcessFunction):
            return KeyedBroadcastProcessOperator(keys[0], states, operator)
        for kind, make_keyed in _KEYED.items():
            if isinstance(operator, kind):
                return make_keyed(*keys, operator)
    for kind, make in _UNKEYED.items():
        if isinstance(operator, kind):
            return make(operator)
    if isinstance(operator, (*_KEYED, *_BROADCAST)):
        raise PlanError(f"{type(operator).__name__} is for keyed streams; pass key_selectors")
    raise PlanError(f"expected an operator with two inputs or a function object for them, found {short_repr(operator)}")
