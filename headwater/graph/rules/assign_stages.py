from __future__ import annotations

from dataclasses import replace

from headwater.common.configuration import Configuration
from headwater.graph.logical_graph import Edge, LogicalGraph, Node
from headwater.graph.plan import Exchange


def assign_stages(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Put every node into the earliest stage that all its inputs can reach: one further for each shuffle.

    A node that needs a slot must not be in stage 0, where any free Python worker reads splits: it goes to stage 1, and
    its chain is cut there. An input from an earlier stage passes through the stages in between.
    """
    nodes: dict[int, Node] = {}
    for node in graph:
        stage = max((nodes[edge.upstream].stage + _is_shuffle(edge) for edge in node.edges), default=0)
        needs_slot = False
        if not node.is_source:
            if node.operator.needs_slot:
                stage = max(stage, 1)
            needs_slot = node.operator.needs_slot or (node.operator.keeps_state_per_split and stage > 0)
        nodes[node.id] = replace(node, stage=stage, needs_slot=needs_slot)
    return LogicalGraph(nodes)


def _is_shuffle(edge: Edge) -> bool:
    return edge.cut or edge.exchange is not Exchange.FORWARD
