"""Metrics of jobs, vertices and subtasks, by Flink's names."""

from __future__ import annotations

import asyncio
from typing import Any

from headwater.server.cluster import Job
from headwater.server.http_error import HttpError
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.routes.jobs import figures
from headwater.server.routes.vertices import SUBTASK, VERTEX, facts_of
from headwater.server.shapes.metrics import AGGREGATES, aggregates, indexed, listed

GET = Field("get", Kind.TEXTS, "names of metrics, separated by commas; without, the names that there are")
AGG = Field("agg", Kind.TEXTS, f"which of {', '.join(AGGREGATES)}; all of them if none is given")
JOBS = Field("jobs", Kind.TEXTS, "ids of jobs, separated by commas; all jobs if none is given")
SUBTASKS = Field("subtasks", Kind.TEXTS, "numbers of subtasks, separated by commas; all if none is given")


async def job_metrics(call: Call) -> list[dict[str, str]]:
    return listed((await figures(await call.job())).get("job", {}), call.query.get("get"))


async def all_jobs_metrics(call: Call) -> list[dict[str, Any]]:
    wanted = set(call.query.get("jobs", ()))
    jobs = [job for job in await call.cluster.jobs() if not wanted or job.job_id in wanted]
    parts = await asyncio.gather(*(_job_figures(job) for job in jobs if not job.ended))
    return aggregates(parts, call.query.get("get"), aggregates_of(call))


async def _job_figures(job: Job) -> dict[str, Any]:
    try:
        found: dict[str, Any] = (await figures(job)).get("job", {})
    except HttpError:
        return {}  # one that does not answer
    return found


async def vertex_metrics(call: Call) -> list[dict[str, str]]:
    return listed(indexed((await facts_of(call)).figures), call.query.get("get"))


async def subtasks_metrics(call: Call) -> list[dict[str, Any]]:
    parts = (await facts_of(call)).figures
    if "subtasks" in call.query:
        try:
            parts = [parts[int(number)] for number in call.query["subtasks"] if int(number) < len(parts)]
        except (ValueError, IndexError):
            raise HttpError(400, "Cannot resolve query parameter (subtasks); expected numbers of subtasks") from None
    return aggregates(parts, call.query.get("get"), aggregates_of(call))


async def subtask_metrics(call: Call) -> list[dict[str, str]]:
    parts, index = (await facts_of(call)).figures, call.name["subtaskindex"]
    if index >= len(parts):
        raise HttpError(404, f"Subtask {index} does not exist: the vertex has {len(parts)}")
    return listed(parts[index], call.query.get("get"))


def aggregates_of(call: Call) -> list[str]:
    chosen: list[str] = call.query.get("agg", [])
    unknown = [name for name in chosen if name not in AGGREGATES]
    if unknown:
        raise HttpError(400, f"Cannot resolve query parameter (agg); expected {', '.join(AGGREGATES)}")
    return chosen


ROUTES = (
    Route("GET", "/jobs/metrics", all_jobs_metrics, "Metrics of jobs, aggregated", (GET, AGG, JOBS)),
    Route("GET", "/jobs/:jobid/metrics", job_metrics, "Metrics of a job", (GET,)),
    Route("GET", f"{VERTEX}/metrics", vertex_metrics, "Metrics of a vertex: subtask, dot, name", (GET,)),
    Route("GET", f"{VERTEX}/subtasks/metrics", subtasks_metrics, "Aggregated over subtasks", (GET, AGG, SUBTASKS)),
    Route("GET", f"{SUBTASK}/metrics", subtask_metrics, "Metrics of a subtask", (GET,)),
)
