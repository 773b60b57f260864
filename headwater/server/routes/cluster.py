"""`/overview`, `/config`, `/jobs`, `/jobs/overview`: the cluster and its jobs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from headwater.server.executors import executors
from headwater.server.now import now_ms
from headwater.server.route import Call, Route
from headwater.server.shapes.job import overview_entry
from headwater.version import __version__

REFRESH_MS = 3000
_ENDED = {"FINISHED": "jobs-finished", "CANCELED": "jobs-cancelled", "FAILED": "jobs-failed"}


async def overview(call: Call) -> dict[str, Any]:
    jobs, managers = await asyncio.gather(call.cluster.descriptions(), executors(call.services))
    counts = dict.fromkeys(("jobs-running", *_ENDED.values()), 0)
    for job in jobs:
        counts[_ENDED.get(job["status"], "jobs-running")] += 1
    return {
        "taskmanagers": len(managers),
        "slots-total": sum(manager["slotsNumber"] for manager, _ in managers),
        "slots-available": 0,
        **counts,
        "flink-version": f"headwater {__version__}",
        "flink-commit": "",
    }


async def config(call: Call) -> dict[str, Any]:
    return {
        "refresh-interval": REFRESH_MS,
        "timezone-name": time.tzname[time.localtime().tm_isdst > 0],
        "timezone-offset": time.localtime().tm_gmtoff * 1000,
        "flink-version": f"headwater {__version__}",
        "flink-revision": "",
        "features": {
            "web-submit": call.services.submissions is not None,
            "web-cancel": True,
            "web-rescale": True,
            "web-history": False,
        },
    }


async def jobs(call: Call) -> dict[str, Any]:
    found = await call.cluster.descriptions()
    return {"jobs": [{"id": job["job_id"], "status": job["status"]} for job in found]}


async def jobs_overview(call: Call) -> dict[str, Any]:
    now = now_ms()
    return {"jobs": [overview_entry(job, now) for job in await call.cluster.descriptions()]}


ROUTES = (
    Route("GET", "/overview", overview, "How many executors, slots and jobs there are"),
    Route("GET", "/config", config, "What a web page needs to know of this server"),
    Route("GET", "/jobs", jobs, "Ids and states of all jobs"),
    Route("GET", "/jobs/overview", jobs_overview, "All jobs with their names, times and tasks"),
)
