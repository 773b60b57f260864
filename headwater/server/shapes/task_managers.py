"""Flink's JSON of task managers. Here they are a job's executors: the hosts on which its slots are, and the driver's.

What a driver does not know of its executors (the memory of other hosts, and of their JVMs) is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.server.shapes.job import Description, task_manager_id
from headwater.server.shapes.vertex import hosts

_NO_MEMORY = {"taskHeapMemory": 0, "taskOffHeapMemory": 0, "managedMemory": 0, "networkMemory": 0}
_MEMORY = (
    "frameworkHeap", "taskHeap", "frameworkOffHeap", "taskOffHeap", "networkMemory", "managedMemory", "jvmMetaspace",
    "jvmOverhead", "totalFlinkMemory", "totalProcessMemory",
)  # fmt: skip
_PROCESS = (
    "heapUsed", "heapCommitted", "heapMax", "nonHeapUsed", "nonHeapCommitted", "nonHeapMax", "directCount",
    "directUsed", "directMax", "mappedCount", "mappedUsed", "mappedMax", "nettyShuffleMemorySegmentsAvailable",
    "nettyShuffleMemorySegmentsUsed", "nettyShuffleMemorySegmentsTotal", "nettyShuffleMemoryAvailable",
    "nettyShuffleMemoryUsed", "nettyShuffleMemoryTotal",
)  # fmt: skip


def tasks_by_host(job: Description, progress: Mapping[str, Any]) -> dict[str, int]:
    """{host: subtasks that run there}, the driver's host first."""
    found = {job["host"]: 0}
    for vertex in job["vertices"]:
        for host in hosts(progress, vertex, job):
            found[host] = found.get(host, 0) + 1
    return found


def task_managers(job: Description, progress: Mapping[str, Any], now_ms: int) -> list[dict[str, Any]]:
    """The executors of one job."""
    tasks = tasks_by_host(job, progress)
    return [_task_manager(job, host, _slots(job, tasks, host), tasks[host], now_ms) for host in tasks]


def _slots(job: Description, tasks: Mapping[str, int], host: str) -> int:
    """Flink's slots: each holds one subtask of every vertex."""
    return -(-tasks[host] // max(1, len(job["vertices"])))


def _task_manager(job: Description, host: str, slots: int, tasks: int, now_ms: int) -> dict[str, Any]:
    return {
        "id": task_manager_id(job, host),
        "path": host,
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": now_ms,
        "slotsNumber": slots,
        "freeSlots": 0,
        "assignedTasks": tasks,
        "totalResource": _resource(slots),
        "freeResource": _resource(0),
        "hardware": {"managedMemory": 0, **_hardware(job, host, slots)},
        "memoryConfiguration": dict.fromkeys(_MEMORY, 0),
    }


def _hardware(job: Description, host: str, slots: int) -> dict[str, int]:
    """The driver knows its own machine. Of others it knows the slots."""
    known: dict[str, int] = job.get("hardware", {}) if host == job["host"] else {}
    return {"cpuCores": slots, "physicalMemory": 0, "freeMemory": 0, **known}


def _resource(cores: int) -> dict[str, Any]:
    return {"cpuCores": float(cores), **_NO_MEMORY, "extendedResources": {}}


def details(manager: Mapping[str, Any], job: Description) -> dict[str, Any]:
    """`/taskmanagers/:taskmanagerid`."""
    slot = {"jobId": job["job_id"], "resource": _resource(1), "assignedTasks": len(job["vertices"])}
    return {
        **manager,
        "allocatedSlots": [slot] * manager["slotsNumber"],
        "metrics": {**dict.fromkeys(_PROCESS, 0), "garbageCollectors": []},
    }
