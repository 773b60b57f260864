"""Flink's JSON of a vertex and its subtasks.

The partitions of a job run and stop together, so their states and times are the job's. The figures are those of the
`metrics` verb: `{"vertices": {id: {"aggregate": {name: number}, "subtasks": [{name: number}]}}}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwater.server.shapes.job import (
    TASK_STATES,
    Description,
    duration_ms,
    ended_ms,
    started_ms,
    task_counts,
    task_manager_id,
    task_state,
    timestamps,
)

Figures = Mapping[str, float]
Metrics = Mapping[str, Any]
"""A job's answer to `metrics`; empty if it has none."""

_IO_METRICS = {
    "read-bytes": "numBytesIn",
    "write-bytes": "numBytesOut",
    "read-records": "numRecordsIn",
    "write-records": "numRecordsOut",
    "accumulated-backpressured-time": "accumulateBackPressuredTimeMs",
    "accumulated-idle-time": "accumulateIdleTimeMs",
    "accumulated-busy-time": "accumulateBusyTimeMs",
}
"""{field of Flink's JSON: metric}"""
_DURATIONS = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
_PERCENTILES = {"p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}
BACK_PRESSURE = (("high", 0.5), ("low", 0.1), ("ok", 0.0))
"""(level, least share of time), as Flink has them."""


def vertex_figures(metrics: Metrics, vertex_id: str) -> Figures:
    found: Figures = metrics.get("vertices", {}).get(vertex_id, {}).get("aggregate", {})
    return found


def subtask_figures(metrics: Metrics, vertex: Mapping[str, Any]) -> list[Figures]:
    """The figures of each subtask, empty ones where there are none."""
    known: Sequence[Figures] = metrics.get("vertices", {}).get(vertex["id"], {}).get("subtasks", [])
    return [known[index] if index < len(known) else {} for index in range(vertex["parallelism"])]


def job_details(job: Description, metrics: Metrics, now_ms: int) -> dict[str, Any]:
    """`/jobs/:jobid`."""
    return {
        "jid": job["job_id"],
        "application-id": job["job_id"],
        "name": job["name"],
        "isStoppable": False,
        "state": job["status"],
        "job-type": job["plan"].get("type", "STREAMING"),
        "schedulerType": "Default",
        "start-time": started_ms(job),
        "end-time": ended_ms(job),
        "duration": duration_ms(job, now_ms),
        "maxParallelism": job["max_parallelism"],
        "now": now_ms,
        "timestamps": timestamps(job),
        "vertices": [_vertex(job, vertex, metrics, now_ms) for vertex in job["vertices"]],
        "status-counts": task_counts(job),
        "plan": job["plan"],
        "pending-operators": 0,
    }


def _vertex(job: Description, vertex: Mapping[str, Any], metrics: Metrics, now_ms: int) -> dict[str, Any]:
    return {
        "id": vertex["id"],
        "slotSharingGroupId": job["job_id"],
        "name": vertex["name"],
        "maxParallelism": vertex["max_parallelism"],
        "parallelism": vertex["parallelism"],
        "status": task_state(job),
        "start-time": started_ms(job),
        "end-time": ended_ms(job),
        "duration": duration_ms(job, now_ms),
        "tasks": _counts(job, vertex["parallelism"]),
        "metrics": io_metrics([vertex_figures(metrics, vertex["id"])]),
    }


def _counts(job: Description, tasks: int) -> dict[str, int]:
    return {**dict.fromkeys(TASK_STATES, 0), task_state(job): tasks}


def io_metrics(figures: Sequence[Figures]) -> dict[str, Any]:
    """Flink's `metrics` object, summed up. `complete` says whether the figure is known."""
    found: dict[str, Any] = {}
    for name, metric in _IO_METRICS.items():
        known = [each[metric] for each in figures if metric in each]
        found[name] = float(sum(known)) if name == "accumulated-busy-time" else int(sum(known))
        if not name.startswith("accumulated"):
            found[f"{name}-complete"] = bool(known)
    return found


def aggregated(values: Iterable[float]) -> dict[str, int]:
    """Flink's statistics over subtasks."""
    ordered = sorted(values)
    if not ordered:
        ordered = [0]
    return {
        "min": int(ordered[0]),
        "max": int(ordered[-1]),
        "avg": int(sum(ordered) / len(ordered)),
        "sum": int(sum(ordered)),
        **{name: int(percentile(ordered, share)) for name, share in _PERCENTILES.items()},
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """Interpolated between neighbours, as Flink's statistics are (commons-math)."""
    position = share * (len(ordered) + 1) - 1
    low = max(0, min(len(ordered) - 1, math.floor(position)))
    high = min(len(ordered) - 1, low + 1)
    return ordered[low] + (ordered[high] - ordered[low]) * min(1.0, max(0.0, position - low))


def hosts(progress: Mapping[str, Any], vertex: Mapping[str, Any], job: Description) -> list[str]:
    """The host of each subtask: its slot's; of a stage without slots, the driver's, for Spark may run it anywhere."""
    driver: str = job.get("host") or ""
    names = {job.get("slot_host"): driver}  # slots call the driver's host by its address
    places = {
        (slot["stage"], slot["partition"]): names.get(slot["host"], slot["host"]) for slot in progress.get("slots", ())
    }
    return [places.get((vertex["stage"], index), driver) for index in range(vertex["parallelism"])]


def subtask(
    job: Description, vertex: Mapping[str, Any], index: int, host: str, figures: Figures, attempt: int, now_ms: int
) -> dict[str, Any]:
    """One subtask, as `/jobs/:jobid/vertices/:vertexid` and `.../subtasks/:subtaskindex` have it."""
    return {
        "subtask": index,
        "status": task_state(job),
        "attempt": attempt,
        "endpoint": host,
        "start-time": started_ms(job),
        "end-time": ended_ms(job),
        "duration": duration_ms(job, now_ms),
        "metrics": io_metrics([figures]),
        "taskmanager-id": task_manager_id(job, host),
        "status-duration": status_durations(job, now_ms),
        "start_time": started_ms(job),
    }


def status_durations(job: Description, now_ms: int) -> dict[str, int]:
    running = int(job["timestamps"].get("RUNNING") or 0)
    end = ended_ms(job) if ended_ms(job) >= 0 else now_ms
    return {
        **dict.fromkeys(_DURATIONS, 0),
        "CREATED": max(0, (running or end) - started_ms(job)),
        "RUNNING": max(0, end - running) if running else -1,
    }


def vertex_details(
    job: Description, vertex: Mapping[str, Any], subtasks: Sequence[Mapping[str, Any]], now_ms: int
) -> dict[str, Any]:
    """`/jobs/:jobid/vertices/:vertexid`."""
    return {
        "id": vertex["id"],
        "name": vertex["name"],
        "parallelism": vertex["parallelism"],
        "maxParallelism": vertex["max_parallelism"],
        "now": now_ms,
        "subtasks": list(subtasks),
        "aggregated": _aggregates(subtasks),
    }


def _aggregates(subtasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "metrics": {name: aggregated(each["metrics"][name] for each in subtasks) for name in _IO_METRICS},
        "status-duration": {
            state: aggregated(each["status-duration"][state] for each in subtasks) for state in _DURATIONS
        },
    }


def by_task_manager(
    job: Description, vertex: Mapping[str, Any], subtasks: Sequence[Mapping[str, Any]], now_ms: int
) -> dict[str, Any]:
    """`/jobs/:jobid/vertices/:vertexid/taskmanagers`."""
    managers: dict[str, list[Mapping[str, Any]]] = {}
    for each in subtasks:
        managers.setdefault(each["taskmanager-id"], []).append(each)
    return {
        "id": vertex["id"],
        "name": vertex["name"],
        "now": now_ms,
        "taskmanagers": [
            {
                "endpoint": theirs[0]["endpoint"],
                "status": task_state(job),
                "start-time": started_ms(job),
                "end-time": ended_ms(job),
                "duration": duration_ms(job, now_ms),
                "metrics": _summed([each["metrics"] for each in theirs]),
                "status-counts": _counts(job, len(theirs)),
                "taskmanager-id": manager,
                "aggregated": _aggregates(theirs),
            }
            for manager, theirs in managers.items()
        ],
    }


def _summed(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: all(each[name] for each in metrics) if name.endswith("-complete") else sum(each[name] for each in metrics)
        for name in metrics[0]
    }


def subtask_times(job: Description, vertex: Mapping[str, Any], endpoints: Sequence[str], now_ms: int) -> dict[str, Any]:
    """`/jobs/:jobid/vertices/:vertexid/subtasktimes`."""
    known = timestamps(job)
    times = dict.fromkeys(TASK_STATES, 0)
    for state in ("CREATED", "RUNNING", "FINISHED", "CANCELED", "FAILED"):
        times[state] = known[state]
    times["CANCELING"] = known["CANCELLING"]
    return {
        "id": vertex["id"],
        "name": vertex["name"],
        "now": now_ms,
        "subtasks": [
            {"subtask": index, "endpoint": host, "duration": duration_ms(job, now_ms), "timestamps": times}
            for index, host in enumerate(endpoints)
        ],
    }


def back_pressure(figures: Sequence[Figures], time_ms: int) -> dict[str, Any]:
    """`/jobs/:jobid/vertices/:vertexid/backpressure`. `deprecated`: there are no figures (yet)."""
    if not any("backPressuredTimeMsPerSecond" in each for each in figures):
        return {"status": "deprecated"}
    subtasks: list[dict[str, Any]] = []
    for index, each in enumerate(figures):
        ratio = each.get("backPressuredTimeMsPerSecond", 0) / 1000
        level = _level(ratio)
        subtasks.append(
            {
                "subtask": index,
                "backpressureLevel": level,
                "ratio": ratio,
                "idleRatio": each.get("idleTimeMsPerSecond", 0) / 1000,
                "busyRatio": each.get("busyTimeMsPerSecond", 0) / 1000,
                "backpressure-level": level,
            }
        )
    worst = _level(max(each["ratio"] for each in subtasks))
    return {
        "status": "ok",
        "backpressureLevel": worst,
        "end-timestamp": time_ms,
        "subtasks": subtasks,
        "backpressure-level": worst,
    }


def _level(ratio: float) -> str:
    return next(level for level, least in BACK_PRESSURE if ratio > least or level == "ok")
