"""Finds out which states a program asks for: opens its operators on empty state, one partition each, without Spark.

Of the user's functions, only `open()` and `close()` are called.
"""

from __future__ import annotations

import contextlib
from typing import Any

from headwater.checkpoint.savepoint.compatibility import AskedState, ProgramFacts, ProgramOperator
from headwater.graph.plan import JobPlan, OperatorSpec
from headwater.operators.base import OperatorContext
from headwater.operators.window.base import WindowOperatorBase
from headwater.state.api import BroadcastState, ListState, ReadOnlyBroadcastState, State
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.panes import ElementPanes, FoldedPanes
from headwater.state.snapshot.layout import StateLayout


def program_facts(plan: JobPlan) -> ProgramFacts:
    """Open every operator of `plan` that keeps state, and return the states that they ask for."""
    specs = [spec for stage in plan.stages for spec in stage.operators if spec.needs_slot]
    operators = {spec.uid: _opened(spec, plan) for spec in specs}
    sinks = [spec.uid for stage in plan.stages for spec in stage.operators if spec.sink is not None]
    return ProgramFacts(
        plan.max_parallelism, operators, frozenset(source.uid for source in plan.sources), frozenset(sinks)
    )


def _opened(spec: OperatorSpec, plan: JobPlan) -> ProgramOperator:
    asked: dict[str, AskedState] = {}
    context = OperatorContext(
        uid=spec.uid,
        name=spec.name,
        partition=0,
        parallelism=1,
        max_parallelism=plan.max_parallelism,
        job_name=plan.name,
        keyed_backend=_NotingKeyedBackend(spec.uid, plan.max_parallelism, asked) if spec.keyed else None,
        operator_backend=_NotingOperatorBackend(spec.uid, asked),
        batch_mode=plan.batch_mode,
        job_parameters=plan.job_parameters,
    )
    operator = spec.factory()
    problem = ""
    if spec.sink is None:  # do not open a sink's writer: it has no named state, and opens files
        operator.setup(context, _Nowhere())
        try:
            operator.open()
        except Exception as error:
            problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        with contextlib.suppress(Exception):
            operator.close()
    asks_later = isinstance(operator, WindowOperatorBase)
    return ProgramOperator(spec.uid, spec.name, tuple(asked.values()), asks_later, problem)


class _NotingKeyedBackend(HeapKeyedStateBackend):
    def __init__(self, uid: str, max_parallelism: int, asked: dict[str, AskedState]) -> None:
        super().__init__(uid, max_parallelism, range(max_parallelism))
        self._asked = asked

    def _get_state(self, descriptor: StateDescriptor, namespaced: bool) -> State:
        layout = StateLayout.of(descriptor, namespaced)
        self._asked[descriptor.name] = AskedState(descriptor.name, layout, layout.kind, descriptor)
        return super()._get_state(descriptor, namespaced)

    def get_folded_panes(self, name: str) -> FoldedPanes:
        self._note_panes(name, "folded panes")
        return super().get_folded_panes(name)

    def get_element_panes(self, name: str) -> ElementPanes:
        self._note_panes(name, "element panes")
        return super().get_element_panes(name)

    def _note_panes(self, name: str, kind: str) -> None:
        self._asked[name] = AskedState(name, StateLayout(kind, ttl=False, namespaced=True), kind)


class _NotingOperatorBackend(OperatorStateBackend):
    def __init__(self, uid: str, asked: dict[str, AskedState]) -> None:
        super().__init__(uid)
        self._noted = asked

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        self._note(state_descriptor, "operator list")
        return super().get_list_state(state_descriptor)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        self._note(state_descriptor, "broadcast")
        return super().get_broadcast_state(state_descriptor)

    def get_read_only_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        self._note(state_descriptor, "broadcast")
        return super().get_read_only_broadcast_state(state_descriptor)

    def _note(self, descriptor: StateDescriptor, kind: str) -> None:
        self._noted[descriptor.name] = AskedState(descriptor.name, StateLayout.of(descriptor), kind, descriptor)


class _Nowhere:
    """The output of an operator that never runs."""

    def emit(self, values: list[Any], timestamps: list[int | None] | None) -> None: ...

    def emit_side(self, tag_id: str, values: list[Any], timestamps: list[int | None] | None) -> None: ...

    def emit_watermark(self, watermark: int) -> None: ...

    def emit_idle(self, idle: bool) -> None: ...
