from __future__ import annotations

from dataclasses import replace

from headwater.common.config_options import MAX_PARALLELISM, PARALLELISM
from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.graph.logical_graph import LogicalGraph, Node


def resolve_parallelism(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Give every node its parallelism: its own, its input's or the job's; never more than the job's maximum."""
    resolved: dict[int, int] = {}
    job_maximum = settings.get(MAX_PARALLELISM)

    def resolve(node: Node) -> Node:
        origin = node.origin
        if origin.parallelism is not None:
            parallelism = origin.parallelism
        elif origin.parallelism_of_input and node.edges:
            parallelism = max(resolved[edge.upstream] for edge in node.edges)
        else:
            parallelism = settings.get(PARALLELISM)
        resolved[node.id] = parallelism
        if parallelism > job_maximum:
            raise PlanError(
                f"{node.label()} has parallelism {parallelism}, more than the job's max parallelism "
                f"{job_maximum}; lower it, or raise {MAX_PARALLELISM.key} before the first run"
            )
        if origin.max_parallelism not in (None, job_maximum):
            raise PlanError(
                f"{node.label()} has max parallelism {origin.max_parallelism}, the job has {job_maximum}; "
                f"all operators of a job share one: use env.set_max_parallelism({origin.max_parallelism})"
            )
        return replace(node, parallelism=parallelism)

    return graph.map_nodes(resolve)
