"""Flink's JSON of a job: in a list, on its own, its settings and its exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.common.config.job_options import RESTART_STRATEGY
from headwater.common.job_status import JobStatus

TASK_STATES = (
    "CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED",
    "RECONCILING",
)  # fmt: skip
"""Flink's states of a task."""

_TASK_STATE = {
    "INITIALIZING": "CREATED",
    "CREATED": "CREATED",
    "RUNNING": "RUNNING",
    "FAILING": "CANCELING",
    "FAILED": "CANCELED",
    "CANCELLING": "CANCELING",
    "CANCELED": "CANCELED",
    "FINISHED": "FINISHED",
    "RESTARTING": "SCHEDULED",
    "SUSPENDED": "CANCELED",
    "RECONCILING": "RECONCILING",
}
"""{state of a job: state of its tasks}. All tasks of a job run and stop together; the task that failed is FAILED."""

Description = Mapping[str, Any]
"""A job's answer to `describe`."""


def task_state(job: Description) -> str:
    return _TASK_STATE.get(job["status"], "RECONCILING")


def started_ms(job: Description) -> int:
    return int(job["start_time"])


def ended_ms(job: Description) -> int:
    """When the job ended; -1 if it has not."""
    return int(job["end_time"]) if job.get("end_time") else -1


def duration_ms(job: Description, now_ms: int) -> int:
    end = ended_ms(job)
    return max(0, (now_ms if end < 0 else end) - started_ms(job))


def task_counts(job: Description) -> dict[str, int]:
    """Return {state: tasks} over all vertices."""
    counts = dict.fromkeys(TASK_STATES, 0)
    counts[task_state(job)] = sum(vertex["parallelism"] for vertex in job["vertices"])
    return counts


def overview_entry(job: Description, now_ms: int) -> dict[str, Any]:
    """One job in `/jobs/overview`."""
    counts = task_counts(job)
    return {
        "jid": job["job_id"],
        "name": job["name"],
        "jobType": job["plan"].get("type", "STREAMING"),
        "schedulerType": "Default",
        "start-time": started_ms(job),
        "end-time": ended_ms(job),
        "duration": duration_ms(job, now_ms),
        "state": job["status"],
        "last-modification": last_change_ms(job),
        "tasks": {"total": sum(counts.values()), **{state.lower(): count for state, count in counts.items()}},
        "pending-operators": 0,
    }


def last_change_ms(job: Description) -> int:
    return max([started_ms(job), *(int(each) for each in job["timestamps"].values() if each)])


def timestamps(job: Description) -> dict[str, int]:
    """{state: when the job came into it, 0 if never}, with all states that Flink has."""
    known = job["timestamps"]
    return {
        "INITIALIZING": started_ms(job),
        **{status.name: int(known.get(status.name) or 0) for status in JobStatus},
    }


def job_config(job: Description) -> dict[str, Any]:
    """`/jobs/:jobid/config`. Settings that may be secrets come hidden from the job."""
    settings = {key: str(value) for key, value in job["config"].items()}
    return {
        "jid": job["job_id"],
        "name": job["name"],
        "execution-config": {
            "restart-strategy": settings.get(RESTART_STRATEGY.key, "Cluster level default restart strategy"),
            "job-parallelism": job["parallelism"],
            "object-reuse-mode": False,
            "user-config": settings,
        },
    }


def exceptions(answer: Mapping[str, Any], job: Description, most: int | None) -> dict[str, Any]:
    """`/jobs/:jobid/exceptions`, newest first."""
    entries = answer["entries"][:most] if most is not None else answer["entries"]
    return {
        "exceptionHistory": {
            "entries": [_exception(entry, job) for entry in entries],
            "truncated": bool(answer["truncated"]) or len(entries) < len(answer["entries"]),
        }
    }


def _exception(entry: Mapping[str, Any], job: Description) -> dict[str, Any]:
    host = entry.get("host")
    return {
        "exceptionName": entry["exception_name"],
        "stacktrace": entry["stacktrace"],
        "timestamp": entry["timestamp_ms"],
        "failureLabels": {},
        **({"taskName": entry["task_name"]} if entry.get("task_name") else {}),
        **({"endpoint": host, "taskManagerId": task_manager_id(job, host)} if host else {}),
        "concurrentExceptions": [],
    }


def task_manager_id(job: Description, host: str) -> str:
    """The id of a job's executor on a host, in the look of Flink's: an executor belongs to one driver."""
    return f"{host}:{job.get('pid') or 0}-{job['job_id'][:6]}"


def execution_result(job: Description, failures: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """`/jobs/:jobid/execution-result`."""
    outcome = {"FINISHED": "SUCCEEDED", "CANCELED": "CANCELED", "FAILED": "FAILED"}.get(job["status"])
    if outcome is None:
        return {"status": {"id": "IN_PROGRESS"}}
    return {
        "status": {"id": "COMPLETED"},
        "job-execution-result": {
            "id": job["job_id"],
            "name": job["name"],
            "application-status": outcome,
            "accumulator-results": {},
            "net-runtime": duration_ms(job, now_ms),
            "application-id": job["job_id"],
            "start-time": started_ms(job),
            "end-time": ended_ms(job),
            **({"failure-cause": _failure(failures)} if outcome == "FAILED" else {}),
        },
    }


def _failure(failures: Mapping[str, Any]) -> dict[str, str]:
    entry = failures["entries"][0] if failures["entries"] else {"exception_name": "", "stacktrace": ""}
    return {"class": entry["exception_name"], "stack-trace": entry["stacktrace"], "serialized-throwable": ""}
