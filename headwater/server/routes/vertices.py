"""`/jobs/:jobid/vertices/:vertexid`: a vertex, its subtasks, where they run, and how busy they are."""

from __future__ import annotations

from typing import Any

from headwater.server.cluster import Job, RefusedByJob
from headwater.server.http_error import HttpError
from headwater.server.now import now_ms
from headwater.server.route import Call, Route
from headwater.server.routes.jobs import figures
from headwater.server.shapes import vertex as shape
from headwater.server.shapes.metrics import watermarks as watermark_list


class VertexFacts:
    """What the job that the path names tells of the vertex that the path names."""

    def __init__(self, job: dict[str, Any], vertex: dict[str, Any], metrics: dict[str, Any], progress: Any) -> None:
        self.job = job
        self.vertex = vertex
        self.metrics = metrics
        self.progress = progress
        self.figures = shape.subtask_figures(metrics, vertex)
        self.hosts = shape.hosts(progress, vertex, job)

    def subtasks(self) -> list[dict[str, Any]]:
        attempt = int(self.progress.get("restarts", 0))
        now = now_ms()
        return [
            shape.subtask(self.job, self.vertex, index, self.hosts[index], self.figures[index], attempt, now)
            for index in range(self.vertex["parallelism"])
        ]


async def facts_of(call: Call) -> VertexFacts:
    """Raises HttpError 404 if there is no such vertex."""
    job = await call.job()
    described = await job.ask("describe")
    for vertex in described["vertices"]:
        if vertex["id"] == call.name["vertexid"]:
            return VertexFacts(described, vertex, await figures(job), await progress_of(job))
    raise HttpError(404, f"JobVertex {call.name['vertexid']} not found")


async def progress_of(job: Job) -> dict[str, Any]:
    try:
        progress: dict[str, Any] = (await job.ask("status"))["progress"]
    except RefusedByJob:
        return {}
    return progress


async def details(call: Call) -> dict[str, Any]:
    facts = await facts_of(call)
    return shape.vertex_details(facts.job, facts.vertex, facts.subtasks(), now_ms())


async def task_managers(call: Call) -> dict[str, Any]:
    facts = await facts_of(call)
    return shape.by_task_manager(facts.job, facts.vertex, facts.subtasks(), now_ms())


async def subtask(call: Call) -> dict[str, Any]:
    subtasks = (await facts_of(call)).subtasks()
    index = call.name["subtaskindex"]
    if index >= len(subtasks):
        raise HttpError(404, f"Subtask {index} does not exist: the vertex has {len(subtasks)}")
    found: dict[str, Any] = subtasks[index]
    return found


async def attempt(call: Call) -> dict[str, Any]:
    found = await subtask(call)
    if call.name["attempt"] != found["attempt"]:
        raise HttpError(404, f"Attempt {call.name['attempt']} is not known; the current one is {found['attempt']}")
    return found


async def subtask_times(call: Call) -> dict[str, Any]:
    facts = await facts_of(call)
    return shape.subtask_times(facts.job, facts.vertex, facts.hosts, now_ms())


async def back_pressure(call: Call) -> dict[str, Any]:
    facts = await facts_of(call)
    if facts.job.get("end_time"):
        return shape.back_pressure([], 0)  # nothing waits any more
    return shape.back_pressure(facts.figures, int(facts.metrics.get("time", 0)))


async def watermarks(call: Call) -> list[dict[str, str]]:
    return watermark_list((await facts_of(call)).figures)


async def accumulators(call: Call) -> dict[str, Any]:
    facts = await facts_of(call)
    return {"id": facts.vertex["id"], "user-accumulators": _counters(facts)}


async def subtask_accumulators(call: Call) -> dict[str, Any]:
    facts = await facts_of(call)
    attempt = int(facts.progress.get("restarts", 0))
    return {
        "id": facts.vertex["id"],
        "parallelism": facts.vertex["parallelism"],
        "subtasks": [
            {"subtask": index, "attempt": attempt, "endpoint": host, "user-accumulators": _counters(facts, index)}
            for index, host in enumerate(facts.hosts)
        ],
    }


async def attempt_accumulators(call: Call) -> dict[str, Any]:
    facts, found = await facts_of(call), await attempt(call)
    name = f"{facts.vertex['id']}_{found['subtask']}_{found['attempt']}"
    counters = _counters(facts, found["subtask"])
    return {"subtask": found["subtask"], "attempt": found["attempt"], "id": name, "user-accumulators": counters}


def _counters(facts: VertexFacts, index: int | None = None) -> list[dict[str, str]]:
    """The metrics that functions of the vertex registered: {operator uid: {partition: {metric: value}}}."""
    measured = facts.progress.get("metrics", {})
    totals: dict[str, float] = {}
    for operator in facts.vertex["operators"]:
        for partition, metrics in measured.get(operator["uid"], {}).items():
            if index is None or int(partition) == index:
                for name, value in metrics.items():
                    if isinstance(value, (int, float)):
                        totals[name] = totals.get(name, 0) + value
    return [{"name": name, "type": "LongCounter", "value": str(value)} for name, value in sorted(totals.items())]


VERTEX = "/jobs/:jobid/vertices/:vertexid"
SUBTASK = f"{VERTEX}/subtasks/:subtaskindex"
ROUTES = (
    Route("GET", VERTEX, details, "A vertex and its subtasks"),
    Route("GET", f"{VERTEX}/taskmanagers", task_managers, "The subtasks of a vertex by executor"),
    Route("GET", SUBTASK, subtask, "One subtask"),
    Route("GET", f"{SUBTASK}/attempts/:attempt", attempt, "One attempt of one subtask: the current one is known"),
    Route(
        "GET", f"{SUBTASK}/attempts/:attempt/accumulators", attempt_accumulators,
        "The counters of the functions of one subtask",
    ),
    Route("GET", f"{VERTEX}/subtasktimes", subtask_times, "When the subtasks came into which state"),
    Route("GET", f"{VERTEX}/backpressure", back_pressure, "How busy and how back-pressured the subtasks are"),
    Route("GET", f"{VERTEX}/watermarks", watermarks, "The watermark of each subtask's input"),
    Route("GET", f"{VERTEX}/accumulators", accumulators, "The counters of the vertex's functions"),
    Route("GET", f"{VERTEX}/subtasks/accumulators", subtask_accumulators, "The same by subtask"),
)  # fmt: skip
