from __future__ import annotations

from dataclasses import replace

from headwater.graph.logical_graph import LogicalGraph, Node, PlanSettings
from headwater.graph.plan import Exchange


def chain_operators(graph: LogicalGraph, settings: PlanSettings) -> LogicalGraph:
    """Chain along every forward edge inside one stage: the upstream operator calls the next one directly.

    Two nodes of one stage that are joined by an edge always have one parallelism, because any other edge than a
    FORWARD, and a FORWARD that was cut, starts a new stage.
    """

    def chain(node: Node) -> Node:
        return replace(
            node,
            edges=tuple(
                replace(
                    edge,
                    chained=(edge.exchange is Exchange.FORWARD and graph[edge.upstream].stage == node.stage),
                )
                for edge in node.edges
            ),
        )

    return graph.map_nodes(chain)
