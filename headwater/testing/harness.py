"""Runs one operator, or one user function, without a job: in milliseconds, with a clock that the test turns.

    harness = OneInputOperatorHarness(CountPerUser(), key_selector=lambda click: click.user)
    harness.process_element(Click("ann"), timestamp=10)
    harness.process_watermark(100)
    assert harness.get_output() == [("ann", 1)]

A harness is one partition. `snapshot()` ends an epoch and returns what a job would persist; a second harness can
`restore` it. `fail_epoch()` simulates a process that dies during an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headwater.common.connector import Sink
from headwater.common.errors import PlanError, short_repr
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.operators.base import Operator
from headwater.operators.filter import FilterOperator, KeyedFilterOperator
from headwater.operators.flat_map import FlatMapOperator, KeyedFlatMapOperator
from headwater.operators.functions import plain as functions
from headwater.operators.map import KeyedMapOperator, MapOperator
from headwater.operators.process import KeyedProcessOperator, ProcessOperator
from headwater.operators.reduce import KeyedReduceOperator
from headwater.operators.sink import SinkOperator
from headwater.operators.timestamps import TimestampsAndWatermarksOperator
from headwater.operators.user_function import KeyedOperator
from headwater.state.copying import captured
from headwater.testing.operator_harness import OperatorHarness

_UNKEYED: dict[type, Callable[[Any], Operator]] = {
    functions.MapFunction: MapOperator,
    functions.FlatMapFunction: FlatMapOperator,
    functions.FilterFunction: FilterOperator,
    functions.ProcessFunction: ProcessOperator,
    Sink: SinkOperator,
    WatermarkStrategy: TimestampsAndWatermarksOperator,
}
_KEYED: dict[type, Callable[[Any, Any], Operator]] = {
    functions.MapFunction: KeyedMapOperator,
    functions.FlatMapFunction: KeyedFlatMapOperator,
    functions.FilterFunction: KeyedFilterOperator,
    functions.ReduceFunction: KeyedReduceOperator,
    functions.KeyedProcessFunction: KeyedProcessOperator,
}


class OneInputOperatorHarness(OperatorHarness):
    """One partition of one operator with one input. Usable as a context manager, which closes it."""

    def __init__(self, operator: Any, key_selector: Any = None, **settings: Any) -> None:
        """`operator` is an `Operator`, a function object, a `Sink` or a `WatermarkStrategy`.

        A function for a keyed stream needs a `key_selector`. A lambda does not say what it is for: wrap it in the
        operator, for example `MapOperator(lambda value: value + 1)`. `settings` are those of `OperatorHarness`: name,
        partition, parallelism, max_parallelism, clock, batch_mode, job_parameters.
        """
        super().__init__(_as_operator(operator, key_selector), keyed=key_selector is not None, **settings)

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Process one record."""
        self.process_elements([value], None if timestamp is None else [timestamp])

    def process_elements(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> None:
        """Process records as one batch, as they arrive in a job."""
        self.open()
        batch = list(map(captured, values))
        if isinstance(self.operator, KeyedOperator):
            self._check_route(self.operator.key_of, batch)
        self.operator.process_batch(batch, None if timestamps is None else list(timestamps))


def _as_operator(operator: Any, key_selector: Any) -> Operator:
    if isinstance(operator, Operator):
        return operator
    if key_selector is not None:
        for kind, make_keyed in _KEYED.items():
            if isinstance(operator, kind):
                return make_keyed(key_selector, operator)
    for kind, make in _UNKEYED.items():
        if isinstance(operator, kind):
            return make(operator)
    if isinstance(operator, tuple(_KEYED)):
        raise PlanError(f"{type(operator).__name__} is for keyed streams; pass a key_selector")
    raise PlanError(
        f"expected an operator, a function object, a sink or a watermark strategy, found {short_repr(operator)}; "
        "wrap a plain function in its operator, for example MapOperator(function)"
    )
