from __future__ import annotations

from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.graph.logical_graph import LogicalGraph, Node


def check_uids(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Refuse two nodes with one uid: they would restore each other's state."""
    owners: dict[str, Node] = {}
    for node in graph:
        owner = owners.setdefault(node.uid, node)
        if owner is not node:
            raise PlanError(
                f"uid '{node.uid}' is used twice: by {owner.label()} and by {node.label()}; "
                f"a uid names the state of one operator, so give each its own"
            )
    return graph
