"""`/taskmanagers`: the executors of running jobs. Each belongs to one job."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from headwater.server import log_files
from headwater.server.executors import executors
from headwater.server.http_error import HttpError
from headwater.server.route import Call, Route
from headwater.server.routes.jobmanager import TAIL, TEXT
from headwater.server.routes.metrics import AGG, GET, aggregates_of
from headwater.server.shapes import task_managers as shape
from headwater.server.shapes.metrics import aggregates, listed


async def _one(call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
    wanted = call.name["taskmanagerid"]
    for manager, job in await executors(call.services):
        if manager["id"] == wanted:
            return manager, job
    raise HttpError(404, f"Could not find TaskExecutor {wanted}")


async def task_managers(call: Call) -> dict[str, Any]:
    return {"taskmanagers": [manager for manager, _ in await executors(call.services)]}


async def details(call: Call) -> dict[str, Any]:
    return shape.details(*await _one(call))


def _figures(manager: dict[str, Any]) -> dict[str, float]:
    return {"taskSlotsTotal": manager["slotsNumber"], "numAssignedTasks": manager["assignedTasks"]}


async def metrics(call: Call) -> list[dict[str, str]]:
    return listed(_figures((await _one(call))[0]), call.query.get("get"))


async def all_metrics(call: Call) -> list[dict[str, Any]]:
    parts = [_figures(manager) for manager, _ in await executors(call.services)]
    return aggregates(parts, call.query.get("get"), aggregates_of(call))


async def logs(call: Call) -> dict[str, Any]:
    return log_files.listed((await _one(call))[1].get("log_file"))


async def log(call: Call) -> Response:
    manager, job = await _one(call)
    return log_files.log_response(job.get("log_file"), f"the driver of {manager['id']}", call.query.get("tail"))


ONE = "/taskmanagers/:taskmanagerid"
ROUTES = (
    Route("GET", "/taskmanagers", task_managers, "The executors of all running jobs, with their slots"),
    Route("GET", "/taskmanagers/metrics", all_metrics, "Their metrics, aggregated", (GET, AGG)),
    Route("GET", ONE, details, "One executor"),
    Route("GET", f"{ONE}/metrics", metrics, "Its metrics", (GET,)),
    Route("GET", f"{ONE}/logs", logs, "The log files of its driver: Spark keeps those of executors"),
    Route("GET", f"{ONE}/log", log, "The log of its driver", (TAIL,), answer=TEXT),
    Route("GET", f"{ONE}/stdout", log, "The same", (TAIL,), answer=TEXT),
)
