from __future__ import annotations

from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.graph.logical_graph import LogicalGraph

MAX_INPUTS = 256
"""A chunk has one byte for the number of the consumer's input."""


def limit_inputs(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Refuse an operator that reads more than `MAX_INPUTS` streams."""
    for node in graph:
        if len(node.edges) > MAX_INPUTS:
            raise PlanError(
                f"{node.label()} reads {len(node.edges)} streams, at most {MAX_INPUTS} can be united in front of one "
                f"operator; put a map() behind parts of the union"
            )
    return graph
