from __future__ import annotations

from headwater.common.config_options import PIPELINE_NAME
from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.graph.logical_graph import LogicalGraph


def require_sink(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Refuse a job that is empty, or whose results go nowhere."""
    if not graph.nodes:
        raise PlanError(
            f"job '{settings.get(PIPELINE_NAME)}' is empty: nothing was built since the last execute(); "
            f"start with a source such as env.from_collection(...) and end with a sink such as .print()"
        )
    if not any(not node.is_source and node.operator.sink is not None for node in graph):
        names = ", ".join(f"'{node.name}'" for node in graph)
        raise PlanError(
            f"job '{settings.get(PIPELINE_NAME)}' has no sink: the results of {names} would go nowhere; "
            f"add .print(), .sink_to(...), .add_sink(...) or use execute_and_collect()"
        )
    return graph
