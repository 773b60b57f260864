"""From a physical plan to the transformations of a DataStream job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from headwater.common.connector import Sink
from headwater.graph.plan import Exchange
from headwater.graph.transformation import (
    OperatorTransformation,
    PartitionTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)
from headwater.operators.base import Operator
from headwater.operators.sink import SinkOperator
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.operators.base import EpochOperator
from headwater.table.stream.physical import Physical


class Translator:
    """Makes transformations. Nodes that are the same object become one: a source that two queries read is read once."""

    def __init__(self, keep_late: bool = False) -> None:
        self._keep_late = keep_late
        self.late: list[Transformation] = []
        """With `keep_late`: what tells its late rows in a side output."""
        self._made: dict[int, Transformation] = {}
        self._kept: list[Physical] = []  # so that no id is used twice

    def node(self, plan: Physical) -> Transformation:
        if id(plan) not in self._made:
            self._kept.append(plan)
            self._made[id(plan)] = self._make(plan)
        return self._made[id(plan)]

    def sink(self, plan: Physical) -> OperatorTransformation:
        """The sink itself, behind the operator that orders its rows."""
        assert plan.sink is not None
        return sink_node(self.node(plan), plan.sink.sink, plan.detail, plan.uid, plan.parallelism)

    def _make(self, plan: Physical) -> Transformation:
        if plan.stream is not None:
            return self._operator(plan, (plan.stream,))
        if plan.source is not None:
            return SourceTransformation(
                name=plan.detail,
                source=plan.source.source,
                bounded=plan.source.source.bounded,
                uid=plan.uid or None,
                parallelism=plan.parallelism,
                parallelism_fixed=plan.parallelism is not None,
            )
        inputs = tuple(self.node(each) for each in plan.inputs)
        if plan.factory is None:
            return UnionTransformation(name=plan.kind, upstreams=inputs)
        if plan.keys is not None:
            inputs = tuple(
                PartitionTransformation(
                    name="by key", upstream=each, exchange=Exchange.SPLIT, splitter=KeyColumns(places).split
                )
                for each, places in zip(inputs, plan.keys, strict=True)
            )
        return self._operator(plan, inputs)

    def _operator(self, plan: Physical, inputs: tuple[Transformation, ...]) -> OperatorTransformation:
        assert plan.factory is not None
        keyed = plan.keys is not None
        more: dict[str, Any] = {}
        if plan.uid:
            more["uid"] = plan.uid
        factory = plan.factory
        keep_late = self._keep_late and _drops_late(factory())
        made = OperatorTransformation(
            name=named(plan),
            kind=f"sql {plan.kind}",
            upstreams=inputs,
            factory=partial(_keeping_late, factory) if keep_late else factory,
            keyed=keyed,
            needs_slot=keyed,
            keeps_state_per_split=plan.per_split,
            needs_ticks=plan.ticks,
            parallelism=plan.parallelism,
            parallelism_of_input=not keyed,
            **more,
        )
        if keep_late:
            self.late.append(made)
        return made


def _drops_late(operator: Operator) -> bool:
    return isinstance(operator, EpochOperator) and operator.drops_late


def _keeping_late(factory: Callable[[], Operator]) -> Operator:
    operator = factory()
    assert isinstance(operator, EpochOperator)
    operator.keeps_late = True
    return operator


def named(plan: Physical) -> str:
    return f"{plan.kind}({plan.detail})" if plan.detail else plan.kind


def sink_node(
    upstream: Transformation, sink: Sink, name: str, uid: str, parallelism: int | None
) -> OperatorTransformation:
    return OperatorTransformation(
        name=name,
        kind="sink",
        uid=f"{uid}-writer" if uid else None,
        upstreams=(upstream,),
        factory=partial(SinkOperator, sink),
        function=sink,
        sink=sink,
        parallelism=parallelism,
        parallelism_of_input=parallelism is None,
    )
