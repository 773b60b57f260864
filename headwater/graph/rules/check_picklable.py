from __future__ import annotations

from headwater.common.configuration import Configuration
from headwater.common.errors import SerializationError
from headwater.graph.logical_graph import LogicalGraph, Node
from headwater.graph.picklability import explain_unpicklable, is_picklable
from headwater.graph.transformation import SourceTransformation


def check_picklable(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Refuse functions that cannot be pickled, before Spark starts, and say which attribute is at fault."""
    for node in graph:
        if isinstance(node.origin, SourceTransformation):
            _check(node, node.origin.source, node.origin.source)
        else:
            _check(node, node.operator.factory, node.operator.function)
        for edge in node.edges:
            _check(node, edge.key_selector, edge.key_selector, "key selector of ")
            _check(node, edge.partitioner, edge.partitioner, "partitioner of ")
            _check(node, edge.splitter, edge.splitter, "splitter of ")
    return graph


def _check(node: Node, shipped: object, blamed: object, role: str = "") -> None:
    """`shipped` must be picklable; `blamed` is the part of it that the user wrote."""
    if is_picklable(shipped):
        return
    reason = explain_unpicklable(blamed) or explain_unpicklable(shipped)
    raise SerializationError(f"{role}{node.label()}: {reason}")
