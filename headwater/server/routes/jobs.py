"""`/jobs/:jobid` and what is told about a job as a whole."""

from __future__ import annotations

from typing import Any

from headwater.server.cluster import Job, RefusedByJob
from headwater.server.now import now_ms
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.shapes import job as shape
from headwater.server.shapes.vertex import job_details


async def figures(job: Job) -> dict[str, Any]:
    """The job's answer to `metrics`; empty if it has none."""
    try:
        answer: dict[str, Any] = await job.ask("metrics")
    except RefusedByJob:
        return {}
    return answer


async def details(call: Call) -> dict[str, Any]:
    job = await call.job()
    return job_details(await job.ask("describe"), await figures(job), now_ms())


async def status(call: Call) -> dict[str, Any]:
    job = await call.job()
    return {"status": (await job.ask("describe"))["status"]}


async def plan(call: Call) -> dict[str, Any]:
    job = await call.job()
    return {"plan": (await job.ask("describe"))["plan"]}


async def config(call: Call) -> dict[str, Any]:
    job = await call.job()
    return shape.job_config(await job.ask("describe"))


async def exceptions(call: Call) -> dict[str, Any]:
    job = await call.job()
    return shape.exceptions(await job.ask("exceptions"), await job.ask("describe"), call.query.get("maxExceptions"))


async def execution_result(call: Call) -> dict[str, Any]:
    job = await call.job()
    return shape.execution_result(await job.ask("describe"), await job.ask("exceptions"), now_ms())


async def accumulators(call: Call) -> dict[str, Any]:
    """The job's counters, as Flink shows the accumulators of functions."""
    job = await call.job()
    counters = (await job.ask("status"))["progress"].get("counters", {})
    return {
        "job-accumulators": [],
        "user-task-accumulators": [
            {"name": name, "type": "LongCounter", "value": str(value)} for name, value in sorted(counters.items())
        ],
        "serialized-user-task-accumulators": {},
    }


async def why(call: Call) -> dict[str, Any]:
    job = await call.job()
    return {"causes": await job.ask("why")}


async def live(call: Call) -> Any:
    return await figures(await call.job())


MOST_EXCEPTIONS = Field("maxExceptions", Kind.INTEGER, "how many exceptions, the newest first")

ROUTES = (
    Route("GET", "/jobs/:jobid", details, "A job with its vertices, times and plan"),
    Route("GET", "/jobs/:jobid/status", status, "The state of a job"),
    Route("GET", "/jobs/:jobid/plan", plan, "The job graph"),
    Route("GET", "/jobs/:jobid/config", config, "The settings of a job; secrets are hidden"),
    Route("GET", "/jobs/:jobid/exceptions", exceptions, "What failed, newest first", (MOST_EXCEPTIONS,)),
    Route("GET", "/jobs/:jobid/execution-result", execution_result, "How a job ended"),
    Route("GET", "/jobs/:jobid/accumulators", accumulators, "The counters of a job"),
    Route("GET", "/jobs/:jobid/why", why, "Why there is no output: the causes, most likely first"),
    Route("GET", "/jobs/:jobid/live", live, "All figures of a job at once, with their history"),
)
