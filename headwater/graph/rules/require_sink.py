from __future__ import annotations

from headwater.common.errors import PlanError
from headwater.graph.logical_graph import LogicalGraph, PlanSettings


def require_sink(graph: LogicalGraph, settings: PlanSettings) -> LogicalGraph:
    """Refuse a job that is empty, or whose results go nowhere."""
    if not graph.nodes:
        raise PlanError(
            f"job '{settings.job_name}' is empty: nothing was built since the last execute(); "
            f"start with a source such as env.from_collection(...) and end with a sink such as .print()"
        )
    if not any(not node.is_source and node.operator.sink is not None for node in graph):
        names = ", ".join(f"'{node.name}'" for node in graph)
        raise PlanError(
            f"job '{settings.job_name}' has no sink: the results of {names} would go nowhere; "
            f"add .print(), .sink_to(...), .add_sink(...) or use execute_and_collect()"
        )
    return graph
