"""`/jobs/:jobid/checkpoints`: statistics, settings, one checkpoint, and its part of one vertex."""

from __future__ import annotations

from typing import Any

from headwater.server.cluster import Job, RefusedByJob
from headwater.server.http_error import HttpError
from headwater.server.route import Call, Route
from headwater.server.routes.jobs import figures
from headwater.server.shapes import checkpoints as shape


async def statistics(call: Call) -> dict[str, Any]:
    job = await call.job()
    counts, progress = (await figures(job)).get("job", {}), (await job.ask("status"))["progress"]
    return shape.statistics(await job.ask("checkpoints"), await job.ask("describe"), counts, progress)


async def config(call: Call) -> dict[str, Any]:
    job = await call.job()
    return shape.config(await job.ask("describe"))


async def details(call: Call) -> dict[str, Any]:
    job = await call.job()
    return shape.details(await _checkpoint(call, job), await job.ask("describe"))


async def subtasks(call: Call) -> dict[str, Any]:
    job = await call.job()
    stats = await _checkpoint(call, job)
    for vertex in stats["vertices"]:
        if vertex["id"] == call.name["vertexid"]:
            return shape.subtask_details(stats, vertex)
    raise HttpError(
        404, f"There is no checkpoint statistics for task {call.name['vertexid']}: there is no such vertex, or no state"
    )


async def _checkpoint(call: Call, job: Job) -> dict[str, Any]:
    number = call.name["checkpointid"]
    try:
        answer: dict[str, Any] = await job.ask("checkpoint", id=number)
    except RefusedByJob as error:
        raise HttpError(404, f"Could not find checkpointing statistics for checkpoint {number}: {error}") from None
    return answer


DETAILS = "/jobs/:jobid/checkpoints/details/:checkpointid"
ROUTES = (
    Route("GET", "/jobs/:jobid/checkpoints", statistics, "Statistics of the last checkpoints"),
    Route("GET", "/jobs/:jobid/checkpoints/config", config, "When and how checkpoints are made"),
    Route("GET", DETAILS, details, "One checkpoint, with its part of each vertex"),
    Route("GET", f"{DETAILS}/subtasks/:vertexid", subtasks, "One checkpoint of the subtasks of one vertex"),
)
