"""`/jobs/:jobid/resource-requirements`: Flink 2's way to change the parallelism of a running job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headwater.common.errors import short_repr
from headwater.server.cluster import RefusedByJob
from headwater.server.http_error import HttpError
from headwater.server.route import Call, Route
from headwater.server.routes.operations import running_job

_EXPECTED = 'expected {"parallelism": {"lowerBound": 1, "upperBound": 4}}'


async def requirements(call: Call) -> dict[str, Any]:
    described = await (await running_job(call)).ask("describe")
    return {
        vertex["id"]: {"parallelism": {"lowerBound": 1, "upperBound": vertex["parallelism"]}}
        for vertex in described["vertices"]
    }


async def change(call: Call) -> dict[str, Any]:
    """Answers when the job has its new parallelism."""
    job = await running_job(call)
    body = msgspec.json.decode((await call.request.body()).strip() or b"{}")
    vertices = {vertex["id"]: vertex["parallelism"] for vertex in (await job.ask("describe"))["vertices"]}
    parallelism = (await job.ask("status"))["parallelism"]
    wanted = wanted_parallelism(body, vertices, parallelism)
    if wanted != parallelism:
        try:
            await job.ask("rescale", seconds=None, parallelism=wanted)
        except RefusedByJob as error:
            raise HttpError(409, str(error)) from None
        if (await job.ask("status"))["parallelism"] != wanted:
            raise HttpError(409, f"the job keeps parallelism {parallelism}: the program sets it; nothing was done")
    return {}


def wanted_parallelism(body: Mapping[str, Any], vertices: Mapping[str, int], parallelism: int) -> int:
    """Return the parallelism that the job is to have. `vertices`: {vertex: parallelism now}. Raises HttpError 400.

    A job has one parallelism. Vertices with another one have it from the program, and keep it.
    """
    if set(body) != set(vertices):
        names = [f"no vertex {each}" for each in sorted(set(body) - set(vertices))]
        names += [f"nothing is said of vertex {each}" for each in sorted(set(vertices) - set(body))]
        raise HttpError(400, f"the requirements do not fit the job: {'; '.join(names)}")
    bounds = {vertex: _upper_bound(vertex, each) for vertex, each in body.items()}
    fixed = [vertex for vertex, now in vertices.items() if now != parallelism and bounds[vertex] != now]
    if fixed:
        raise HttpError(400, f"vertex {fixed[0]} keeps parallelism {vertices[fixed[0]]}: the program sets it")
    found = {bounds[vertex] for vertex, now in vertices.items() if now == parallelism}
    if len(found) > 1:
        raise HttpError(
            400, f"the upper bounds are {', '.join(map(str, sorted(found)))}; a job has one parallelism: give one bound"
        )
    return found.pop() if found else parallelism


def _upper_bound(vertex: str, requirement: Any) -> int:
    bounds = requirement.get("parallelism") if isinstance(requirement, dict) else None
    lower, upper = (bounds.get("lowerBound", 1), bounds.get("upperBound")) if isinstance(bounds, dict) else (1, None)
    if type(lower) is not int or type(upper) is not int or not 1 <= lower <= upper:
        raise HttpError(400, f"the requirement of vertex {vertex} is {short_repr(requirement)}; {_EXPECTED}")
    return upper


PATH = "/jobs/:jobid/resource-requirements"
ROUTES = (
    Route("GET", PATH, requirements, "The parallelism of each vertex of a running job"),
    Route("PUT", PATH, change, "Change the parallelism of a job; {vertex: its bounds}, as GET answers", body=()),
)
