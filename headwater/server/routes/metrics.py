"""Metrics of jobs, vertices and subtasks, by Flink's names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response

from headwater.metrics.prometheus import CONTENT_TYPE, exposition
from headwater.server.cluster import Job
from headwater.server.http_error import HttpError
from headwater.server.names import index
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
    jobs = [job for job in await call.services.open_jobs() if not wanted or job.job_id in wanted]
    parts = [found.get("job", {}) for found in await asyncio.gather(*(_figures_or_none(job) for job in jobs))]
    return aggregates(parts, call.query.get("get"), aggregates_of(call))


async def _figures_or_none(job: Job) -> dict[str, Any]:
    try:
        return await figures(job)
    except HttpError:
        return {}  # one that does not answer


async def prometheus(call: Call) -> Response:
    """One page for a scrape of all jobs. A job that does not answer is missing from it, and the others are there."""
    jobs = await call.services.open_jobs()
    found = await asyncio.gather(*(_figures_or_none(job) for job in jobs))
    return _page((job.job_id, job.card.name, each) for job, each in zip(jobs, found, strict=True))


async def job_prometheus(call: Call) -> Response:
    job = await call.job()
    name = (await job.ask("describe"))["name"]
    return _page([(job.job_id, name, await figures(job))])


def _page(jobs: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Response:
    return Response(exposition(jobs), media_type=CONTENT_TYPE)


async def coordinator_metrics(call: Call) -> list[dict[str, str]]:
    """Flink's metrics of a vertex that are measured in the job manager. Here operators measure in slots only."""
    await facts_of(call)
    return []


async def vertex_metrics(call: Call) -> list[dict[str, str]]:
    return listed(indexed((await facts_of(call)).figures), call.query.get("get"))


async def subtasks_metrics(call: Call) -> list[dict[str, Any]]:
    parts = (await facts_of(call)).figures
    if "subtasks" in call.query:
        try:
            chosen = {index(number) for number in call.query["subtasks"]}
        except ValueError:
            raise HttpError(400, "Cannot resolve query parameter (subtasks); expected numbers of subtasks") from None
        parts = [part for number, part in enumerate(parts) if number in chosen]
    return aggregates(parts, call.query.get("get"), aggregates_of(call))


async def subtask_metrics(call: Call) -> list[dict[str, str]]:
    parts, number = (await facts_of(call)).figures, call.name["subtaskindex"]
    if number >= len(parts):
        raise HttpError(404, f"Subtask {number} does not exist: the vertex has {len(parts)}")
    return listed(parts[number], call.query.get("get"))


def aggregates_of(call: Call) -> list[str]:
    chosen: list[str] = call.query.get("agg", [])
    unknown = [name for name in chosen if name not in AGGREGATES]
    if unknown:
        raise HttpError(400, f"Cannot resolve query parameter (agg); expected {', '.join(AGGREGATES)}")
    return chosen


ROUTES = (
    Route("GET", "/metrics", prometheus, "All figures of all running jobs, for Prometheus", answer="text/plain"),
    Route("GET", "/jobs/:jobid/prometheus", job_prometheus, "The same of one job", answer="text/plain"),
    Route("GET", "/jobs/metrics", all_jobs_metrics, "Metrics of jobs, aggregated", (GET, AGG, JOBS)),
    Route("GET", "/jobs/:jobid/metrics", job_metrics, "Metrics of a job", (GET,)),
    Route("GET", f"{VERTEX}/metrics", vertex_metrics, "Metrics of a vertex: subtask, dot, name", (GET,)),
    Route("GET", f"{VERTEX}/jm-operator-metrics", coordinator_metrics, "Metrics of its coordinators: none", (GET,)),
    Route("GET", f"{VERTEX}/subtasks/metrics", subtasks_metrics, "Aggregated over subtasks", (GET, AGG, SUBTASKS)),
    Route("GET", f"{SUBTASK}/metrics", subtask_metrics, "Metrics of a subtask", (GET,)),
)
