from __future__ import annotations

from dataclasses import replace

from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.graph.logical_graph import Edge, LogicalGraph, Node
from headwater.graph.plan import Exchange


def choose_exchanges(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Choose an exchange where the user chose none: FORWARD between equal parallelisms, otherwise spread evenly."""

    def choose(node: Node) -> Node:
        def exchange(edge: Edge) -> Exchange:
            upstream = graph[edge.upstream]
            equal = upstream.parallelism == node.parallelism
            if edge.exchange is Exchange.FORWARD and not equal:
                raise PlanError(
                    f"forward() between {upstream.label()} with parallelism {upstream.parallelism} and "
                    f"{node.label()} with parallelism {node.parallelism}; "
                    f"make them equal, or use rebalance() or rescale()"
                )
            if edge.exchange is not None:
                return edge.exchange
            return Exchange.FORWARD if equal else Exchange.REBALANCE

        return replace(node, edges=tuple(replace(edge, exchange=exchange(edge)) for edge in node.edges))

    return graph.map_nodes(choose)
