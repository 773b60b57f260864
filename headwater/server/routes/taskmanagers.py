"""`/taskmanagers`: the executors of running jobs. Each belongs to one job."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from headwater.server import log_files
from headwater.server.executors import executors
from headwater.server.http_error import HttpError
from headwater.server.route import Call, Route
from headwater.server.routes.jobmanager import TAIL, TEXT, url_of
from headwater.server.routes.metrics import AGG, GET, aggregates_of
from headwater.server.shapes import task_managers as shape
from headwater.server.shapes.metrics import aggregates, listed


async def executor(call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
    wanted = call.name["taskmanagerid"]
    for manager, job in await executors(call.services):
        if manager["id"] == wanted:
            return manager, job
    raise HttpError(404, f"Could not find TaskExecutor {wanted}")


async def task_managers(call: Call) -> dict[str, Any]:
    return {"taskmanagers": [manager for manager, _ in await executors(call.services)]}


async def details(call: Call) -> dict[str, Any]:
    return shape.details(*await executor(call))


def _figures(manager: dict[str, Any]) -> dict[str, float]:
    return {"taskSlotsTotal": manager["slotsNumber"], "numAssignedTasks": manager["assignedTasks"]}


async def metrics(call: Call) -> list[dict[str, str]]:
    return listed(_figures((await executor(call))[0]), call.query.get("get"))


async def all_metrics(call: Call) -> list[dict[str, Any]]:
    parts = [_figures(manager) for manager, _ in await executors(call.services)]
    return aggregates(parts, call.query.get("get"), aggregates_of(call))


async def log_url(call: Call) -> dict[str, str]:
    job = await call.job()
    managers = [manager["id"] for manager, each in await executors(call.services) if each["job_id"] == job.job_id]
    if call.name["taskmanagerid"] not in managers:
        raise HttpError(404, f"job {job.job_id} has no TaskExecutor {call.name['taskmanagerid']}")
    return {"url": url_of(call, f"/taskmanagers/{call.name['taskmanagerid']}/log")}


async def logs(call: Call) -> dict[str, Any]:
    return log_files.listed((await executor(call))[1].get("log_file"))


async def log(call: Call) -> Response:
    manager, job = await executor(call)
    whose = f"the driver of {manager['id']}"
    return log_files.log_response(job.get("log_file"), whose, call.query.get("tail"), call.name.get("filename"))


ONE = "/taskmanagers/:taskmanagerid"
ROUTES = (
    Route("GET", "/taskmanagers", task_managers, "The executors of all running jobs, with their slots"),
    Route("GET", "/taskmanagers/metrics", all_metrics, "Their metrics, aggregated", (GET, AGG)),
    Route("GET", ONE, details, "One executor"),
    Route("GET", f"{ONE}/metrics", metrics, "Its metrics", (GET,)),
    Route("GET", f"{ONE}/logs", logs, "The log files of its driver: Spark keeps those of executors"),
    Route("GET", f"{ONE}/logs/:filename", log, "One of them", (TAIL,), answer=TEXT),
    Route("GET", f"{ONE}/log", log, "The log of its driver", (TAIL,), answer=TEXT),
    Route("GET", "/jobs/:jobid/taskmanagers/:taskmanagerid/log-url", log_url, "Where the log of a job's executor is"),
    Route("GET", f"{ONE}/stdout", log, "The same", (TAIL,), answer=TEXT),
)
