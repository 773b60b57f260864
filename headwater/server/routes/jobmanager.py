"""`/jobmanager`: this server itself; and the settings and logs of a job's driver, which is its job manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from headwater.server import log_files, process_facts
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.routes.cluster import overview
from headwater.server.routes.metrics import GET
from headwater.server.shapes.metrics import listed


def _settings(settings: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"key": key, "value": str(settings[key])} for key in sorted(settings)]


async def config(call: Call) -> list[dict[str, str]]:
    return _settings(call.services.settings)


async def job_config(call: Call) -> list[dict[str, str]]:
    job = await call.job()
    return _settings((await job.ask("describe"))["config"])


async def environment(call: Call) -> dict[str, Any]:
    return process_facts.environment()


async def logs(call: Call) -> dict[str, Any]:
    return log_files.listed(call.services.log_file)


async def log(call: Call) -> Response:
    return log_files.log_response(
        call.services.log_file, "the server", call.query.get("tail"), call.name.get("filename")
    )


async def metrics(call: Call) -> list[dict[str, str]]:
    seen = await overview(call)
    figures = process_facts.figures() | {
        "numRunningJobs": seen["jobs-running"],
        "numRegisteredTaskManagers": seen["taskmanagers"],
        "taskSlotsTotal": seen["slots-total"],
        "taskSlotsAvailable": seen["slots-available"],
    }
    return listed(figures, call.query.get("get"))


async def job_logs(call: Call) -> dict[str, Any]:
    job = await call.job()
    return log_files.listed((await job.ask("describe")).get("log_file"))


async def job_log(call: Call) -> Response:
    job = await call.job()
    path = (await job.ask("describe")).get("log_file")
    whose = f"the driver of job {job.job_id}"
    asked = call.query
    return log_files.log_response(path, whose, asked.get("tail"), call.name.get("filename"), asked.get("begin"))


async def job_log_url(call: Call) -> dict[str, str]:
    job = await call.job()
    return {"url": url_of(call, f"/jobs/{job.job_id}/log")}


def url_of(call: Call, path: str) -> str:
    """Return the address of a path of this server, as the client reached it."""
    return f"{call.request.scope['scheme']}://{call.request.headers.get('host', 'localhost')}{path}"


TAIL = Field("tail", Kind.INTEGER, "only the last so many bytes")
BEGIN = Field("begin", Kind.INTEGER, "only from this byte on: who follows a log asks for what is new")
TEXT = "text/plain"
ROUTES = (
    Route("GET", "/jobmanager/config", config, "The server's settings; secrets are hidden"),
    Route("GET", "/jobmanager/environment", environment, "The server's Python"),
    Route("GET", "/jobmanager/logs", logs, "The server's log files"),
    Route("GET", "/jobmanager/logs/:filename", log, "One of them", (TAIL,), answer=TEXT),
    Route("GET", "/jobmanager/log", log, "The server's log", (TAIL,), answer=TEXT),
    Route("GET", "/jobmanager/stdout", log, "The same: output and log go to one place", (TAIL,), answer=TEXT),
    Route("GET", "/jobmanager/metrics", metrics, "Metrics of the server", (GET,)),
    Route("GET", "/jobs/:jobid/jobmanager/config", job_config, "The settings of a job's driver; secrets are hidden"),
    Route("GET", "/jobs/:jobid/jobmanager/log-url", job_log_url, "Where the log of a job's driver is"),
    Route("GET", "/jobs/:jobid/logs", job_logs, "The log files of a job's driver"),
    Route("GET", "/jobs/:jobid/logs/:filename", job_log, "One of them", (TAIL, BEGIN), answer=TEXT),
    Route("GET", "/jobs/:jobid/log", job_log, "The log of a job's driver", (TAIL, BEGIN), answer=TEXT),
)
