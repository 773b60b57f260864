"""What a job tells about itself to whoever asks: its graph, its times, its exceptions, one of its checkpoints."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from headwater.common.errors import HeadwaterError
from headwater.common.job_status import JobStatus
from headwater.graph.plan import JobPlan
from headwater.runtime.job.checkpoint_stats import CheckpointStats, PartStats
from headwater.runtime.job.vertices import Vertex, plan_json, vertices_of


def description(
    plan: JobPlan, job_id: str, status: JobStatus, since_ms: Mapping[JobStatus, int], settings: Mapping[str, str]
) -> dict[str, Any]:
    """Return the answer to `describe`, as far as the job itself knows it."""
    ended = [since_ms[each] for each in since_ms if each.is_globally_terminal_state()]
    return {
        "job_id": job_id,
        "name": plan.name,
        "status": status.name,
        "start_time": since_ms[JobStatus.CREATED],
        "end_time": ended[0] if ended else None,
        "timestamps": {each.name: since_ms.get(each, 0) for each in JobStatus},
        "parallelism": max(stage.parallelism for stage in plan.stages),
        "max_parallelism": plan.max_parallelism,
        "plan": plan_json(plan, job_id),
        "vertices": [asdict(vertex) for vertex in vertices_of(plan)],
        "config": dict(settings),
        "log_file": log_file(),
    }


def with_tasks(history: dict[str, Any], plan: JobPlan) -> dict[str, Any]:
    """Return the exception history with the vertex and Flink's task name of each entry, where they are known."""
    return history | {"entries": [entry | _task(entry, plan) for entry in history["entries"]]}


def checkpoint_details(history: Sequence[CheckpointStats], epoch: object, plan: JobPlan) -> dict[str, Any]:
    """Return one checkpoint, with the part of each vertex that has state, and of its subtasks."""
    found = [each for each in history if each.epoch == epoch]
    if not found:
        known = f"{history[0].epoch} to {history[-1].epoch}" if history else "none yet"
        raise HeadwaterError(f"no statistics of a checkpoint of epoch {epoch}; there are those of epochs {known}")
    stats = found[-1]
    vertices = [
        {"id": vertex.id, "name": vertex.name, "parallelism": vertex.parallelism, "subtasks": subtasks}
        for vertex in _stateful(plan)
        if (subtasks := [_subtask(part) for part in stats.parts if part.stage == vertex.stage])
    ]
    return stats.as_dict() | {"vertices": vertices}


def log_file() -> str | None:
    """Return the file that this process's standard error goes to; None if it goes elsewhere."""
    try:
        return os.readlink("/proc/self/fd/2") if stat.S_ISREG(os.fstat(2).st_mode) else None
    except OSError:
        return None


def _subtask(part: PartStats) -> dict[str, Any]:
    return {"index": part.partition, **{key: value for key, value in asdict(part).items() if key != "stage"}}


def _stateful(plan: JobPlan) -> list[Vertex]:
    """One vertex for each stage with slots: a partition writes one part, whatever number of vertices share it."""
    in_slots = {each.uid: each.stage for stage in plan.stages for each in stage.operators if each.needs_slot}
    found: dict[int, Vertex] = {}
    for vertex in vertices_of(plan):
        if any(operator.uid in in_slots for operator in vertex.operators):
            found.setdefault(vertex.stage, vertex)
    return list(found.values())


def _task(entry: Mapping[str, Any], plan: JobPlan) -> dict[str, Any]:
    stage, operator = entry["stage"], entry["operator"]
    here = [vertex for vertex in vertices_of(plan) if stage is None or vertex.stage == stage]
    having = [vertex for vertex in here if any(each.name.endswith(operator or "\0") for each in vertex.operators)]
    if stage is None and not having:
        return {"vertex": None, "task_name": None}
    vertex = (having or here)[0]
    subtask = f" ({entry['partition'] + 1}/{vertex.parallelism})" if entry["partition"] is not None else ""
    return {"vertex": vertex.id, "task_name": f"{vertex.name}{subtask}"}
