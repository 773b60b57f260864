from __future__ import annotations

from dataclasses import replace

from headwater.common.configuration import Configuration
from headwater.graph.logical_graph import LogicalGraph, Node
from headwater.graph.plan import Exchange


def chain_operators(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Chain along every forward edge inside one stage: the upstream operator calls the next one directly.

    Two nodes of one stage with an edge between them always have the same parallelism: any edge that is not FORWARD, or
    is cut, starts a new stage.
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
