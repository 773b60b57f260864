"""The executors of all running jobs, which Flink's clients know as task managers."""

from __future__ import annotations

import asyncio
from typing import Any

from headwater.server.cluster import Job, RefusedByJob, described
from headwater.server.http_error import HttpError
from headwater.server.now import now_ms
from headwater.server.services import Services
from headwater.server.shapes.task_managers import task_managers

Found = list[tuple[dict[str, Any], dict[str, Any]]]
"""[(executor, its job's description)]"""


async def executors(services: Services) -> Found:
    """Ask all jobs at once. One that does not answer has none."""
    parts = await asyncio.gather(*(_of(job) for job in await services.open_jobs()))
    return [each for part in parts for each in part]


async def _of(job: Job) -> Found:
    facts = await described(job)
    if not facts["vertices"]:
        return []
    try:
        progress = (await job.ask("status"))["progress"]
    except (HttpError, RefusedByJob):
        return []  # it has just ended
    return [(manager, facts) for manager in task_managers(facts, progress, now_ms())]
