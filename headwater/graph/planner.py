"""`plan`: turns the API's transformations into the runtime's plan."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from headwater.common.config_options import MAX_PARALLELISM, PIPELINE_NAME, RUNTIME_MODE
from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.graph.expand import expand
from headwater.graph.logical_graph import Edge, LogicalGraph, Node
from headwater.graph.plan import Exchange, InputSpec, JobPlan, OperatorSpec, SourceSpec, StageSpec
from headwater.graph.rules import RULES
from headwater.graph.transformation import SourceTransformation, Transformation


def plan(transformations: Iterable[Transformation], settings: Configuration) -> JobPlan:
    """Plan the job that `transformations` (its sinks, and operators that nobody reads) describe.

    `settings` must be resolved: nothing that has a default is unset.
    Does not change the transformations: they can be planned again, with other settings.
    Raises PlanError for a graph that cannot run, SerializationError for functions that cannot be pickled.
    """
    graph = expand(transformations)
    for rule in RULES:
        graph = rule(graph, settings)
    return JobPlan(
        name=settings.get(PIPELINE_NAME),
        max_parallelism=settings.get(MAX_PARALLELISM),
        sources=tuple(_source_spec(node) for node in graph if node.is_source),
        stages=_stages(graph, settings),
        batch_mode=_is_batch(graph, settings),
        needs_ticks=any(not node.is_source and node.operator.needs_ticks for node in graph),
        settings=settings,
    )


def _is_batch(graph: LogicalGraph, settings: Configuration) -> bool:
    mode = settings.get(RUNTIME_MODE)
    endless = [node for node in graph if isinstance(node.origin, SourceTransformation) and not node.origin.bounded]
    if mode == "BATCH" and endless:
        raise PlanError(
            f"{endless[0].label()} is unbounded, but the job runs in BATCH mode, which needs every source to end; "
            f"use STREAMING or AUTOMATIC"
        )
    return mode == "BATCH" or (mode == "AUTOMATIC" and not endless)


def _stages(graph: LogicalGraph, settings: Configuration) -> tuple[StageSpec, ...]:
    stages = []
    for index in range(max(node.stage for node in graph) + 1):
        members = [node for node in graph if node.stage == index]
        stages.append(
            StageSpec(
                index=index,
                parallelism=max(node.parallelism for node in members),
                operators=tuple(_operator_spec(node, settings) for node in members if not node.is_source),
            )
        )
    return tuple(stages)


def _source_spec(node: Node) -> SourceSpec:
    assert isinstance(node.origin, SourceTransformation)
    return SourceSpec(node.id, node.uid, node.name, node.origin.source, node.parallelism)


def _operator_spec(node: Node, settings: Configuration) -> OperatorSpec:
    origin = node.operator
    configured = {argument: settings.get(option) for argument, option in origin.configured.items()}
    return OperatorSpec(
        id=node.id,
        uid=node.uid,
        name=node.name,
        factory=partial(origin.factory, **configured) if configured else origin.factory,
        inputs=tuple(_input_spec(edge) for edge in node.edges),
        parallelism=node.parallelism,
        stage=node.stage,
        keyed=origin.keyed,
        needs_slot=node.needs_slot,
        sink=origin.sink,
    )


def _input_spec(edge: Edge) -> InputSpec:
    return InputSpec(
        upstream=edge.upstream,
        input_index=edge.input_index,
        side_tag=edge.side_tag,
        exchange=edge.exchange or Exchange.FORWARD,
        chained=edge.chained,
        key_selector=edge.key_selector,
        partitioner=edge.partitioner,
        splitter=edge.splitter,
    )
