from __future__ import annotations

from dataclasses import replace

from headwater.common.config_options import OPERATOR_CHAINING
from headwater.common.configuration import Configuration
from headwater.graph.logical_graph import Edge, LogicalGraph, Node
from headwater.graph.transformation import ChainingStrategy, OperatorTransformation


def cut_chains(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Mark the edges along which the user forbade chaining. Each costs a shuffle."""

    def cut(node: Node) -> Node:
        def is_cut(edge: Edge) -> bool:
            upstream = graph[edge.upstream].origin
            return (
                not settings.get(OPERATOR_CHAINING)
                or node.operator.chaining is not ChainingStrategy.ALWAYS
                or (isinstance(upstream, OperatorTransformation) and upstream.chaining is ChainingStrategy.NEVER)
            )

        return replace(node, edges=tuple(replace(edge, cut=is_cut(edge)) for edge in node.edges))

    return graph.map_nodes(lambda node: node if node.is_source else cut(node))
