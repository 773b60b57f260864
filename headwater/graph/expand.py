"""Turns the API's transformations into nodes and edges. Virtual transformations become properties of edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from headwater.common.errors import PlanError
from headwater.graph.logical_graph import Edge, LogicalGraph, Node
from headwater.graph.transformation import (
    OperatorTransformation,
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)


def expand(transformations: Iterable[Transformation]) -> LogicalGraph:
    """Return all physical nodes that `transformations` need, renumbered from 0 in construction order.

    Ids depend on the program only, not on what else this process built before: a job gets the same ids at every start.
    """
    reached = reach_upstream(transformations)
    physical = sorted((node for node in reached if isinstance(node, PhysicalTransformation)), key=lambda node: node.id)
    numbers = {transformation.id: number for number, transformation in enumerate(physical)}
    nodes = {}
    for transformation in physical:
        edges: list[Edge] = []
        if isinstance(transformation, OperatorTransformation):
            for input_index, upstream in enumerate(transformation.upstreams):
                edges += (replace(edge, input_index=input_index) for edge in _edges_from(upstream, numbers))
        number = numbers[transformation.id]
        nodes[number] = Node(number, transformation, tuple(edges))
    return LogicalGraph(nodes)


def reach_upstream(transformations: Iterable[Transformation]) -> list[Transformation]:
    """Return these and all that they depend on, each once."""
    seen: dict[int, Transformation] = {}
    pending = list(transformations)
    while pending:
        node = pending.pop()
        if node.id not in seen:
            seen[node.id] = node
            pending += node.inputs()
    return list(seen.values())


def _edges_from(upstream: Transformation, numbers: dict[int, int]) -> Iterator[Edge]:
    """Yield the edges that carry the records of `upstream`, which may be virtual."""
    if isinstance(upstream, PhysicalTransformation):
        yield Edge(numbers[upstream.id])
    elif isinstance(upstream, UnionTransformation):
        for part in upstream.upstreams:
            yield from _edges_from(part, numbers)
    elif isinstance(upstream, PartitionTransformation):
        # The last partitioning before an operator wins, as in Flink: rebalance().key_by(...) is a key_by.
        for edge in _edges_from(upstream.upstream, numbers):
            yield replace(
                edge,
                exchange=upstream.exchange,
                key_selector=upstream.key_selector,
                key_type=upstream.key_type,
                partitioner=upstream.partitioner,
                splitter=upstream.splitter,
            )
    elif isinstance(upstream, SideOutputTransformation):
        for edge in _edges_from(upstream.upstream, numbers):
            if edge.side_tag is not None:
                raise PlanError(
                    f"side output '{upstream.tag_id}' is read from side output '{edge.side_tag}'; "
                    f"read it from the operator that emits it"
                )
            # A partitioning between the operator and its side output concerned the main output only.
            yield Edge(edge.upstream, side_tag=upstream.tag_id, side_type=upstream.output_type)
    else:
        raise AssertionError(f"no rule for {type(upstream).__name__}")
