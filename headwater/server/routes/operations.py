"""What is done to jobs: cancel, savepoint, stop, checkpoint, rescale; and savepoints that are thrown away.

All but cancelling takes its time: the client gets a trigger's id and asks again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from headwater.checkpoint.savepoint.savepoint import dispose_savepoint
from headwater.checkpoint.storage.base import StorageSpec, is_remote, local_path
from headwater.common.config_options import STORAGE_OPTIONS, resolve
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.server.cluster import Job, described
from headwater.server.http_error import HttpError, not_reachable
from headwater.server.names import hex_id
from headwater.server.route import Call, Field, Kind, Route

_SAVEPOINT, _CHECKPOINT, _RESCALING, _DISPOSAL = "savepoint", "checkpoint", "rescaling", "savepoint disposal"


async def running_job(call: Call) -> Job:
    """Raises HttpError 404 or, if the job has ended, 409."""
    job = await call.job()
    if job.ended:
        state = (await job.ask("describe"))["status"]
        _refuse_if_over(state)
        raise not_reachable(f"the driver of job {job.job_id} is being started ({state})")
    return job


def _refuse_if_over(state: str) -> None:
    if state in ("FINISHED", "CANCELED", "FAILED"):
        raise HttpError(409, f"the job has already reached another terminal state ({state}).")


async def cancel(call: Call) -> dict[str, Any]:
    if call.query.get("mode") == "stop":
        raise HttpError(410, "The termination mode stop has been removed. Please use 'POST /jobs/:jobid/stop'.")
    job = await call.job()
    _refuse_if_over((await described(job))["status"])  # also of one whose driver is just about to end
    if not await asyncio.to_thread(call.cluster.cancel, job.job_id):
        await (await running_job(call)).ask("cancel")
    return {}


async def savepoint(call: Call) -> dict[str, str]:
    job = await running_job(call)
    stop = call.body.get("cancel-job", False)
    work = _located(job, "stop" if stop else "savepoint", call.body.get("target-directory"))
    return _start(call, _SAVEPOINT, work)


async def stop(call: Call) -> dict[str, str]:
    job = await running_job(call)
    work = _located(job, "stop", call.body.get("targetDirectory"), drain=call.body.get("drain", False))
    return _start(call, _SAVEPOINT, work)


async def _located(job: Job, verb: str, directory: str | None, **more: Any) -> dict[str, Any]:
    given = {"directory": directory} if directory is not None else {}
    return {"location": await job.ask(verb, seconds=None, **given, **more)}


async def checkpoint(call: Call) -> dict[str, str]:
    job = await running_job(call)

    async def work() -> dict[str, Any]:
        return {"checkpointId": await job.ask("trigger_checkpoint", seconds=None)}

    return _start(call, _CHECKPOINT, work())


async def rescale(call: Call) -> dict[str, str]:
    if "parallelism" not in call.query:
        raise HttpError(400, "Cannot resolve query parameter (parallelism): it is missing")
    job = await running_job(call)

    wanted = call.query["parallelism"]

    async def work() -> dict[str, Any]:
        stood_still_seconds = await job.ask("rescale", seconds=None, parallelism=wanted)
        kept = (await job.ask("status"))["parallelism"]
        if stood_still_seconds == 0 and kept != wanted:  # nothing changed, and not because it was so already
            raise HeadwaterError(f"the job keeps parallelism {kept}: the program sets it; nothing was done")
        return {}

    return _start(call, _RESCALING, work())


async def dispose(call: Call) -> dict[str, str]:
    path = call.body["savepoint-path"]
    options: dict[str, str] = resolve(Configuration()).get(STORAGE_OPTIONS, {})
    where = StorageSpec(path, options) if is_remote(path) else local_path(path)

    async def work() -> dict[str, Any]:
        try:
            await asyncio.to_thread(dispose_savepoint, where)
        except (OSError, ValueError) as error:
            raise HeadwaterError(f"Could not dispose savepoint {path}: {error}") from None
        return {}

    return call.services.triggers.start(_DISPOSAL, "", work())


def _start(call: Call, operation: str, work: Any) -> dict[str, str]:
    given = call.body.get("triggerId")
    try:
        chosen = hex_id(given) if given is not None else None
    except ValueError as error:
        work.close()
        raise HttpError(400, f"triggerId is {given!r}; expected {error}") from None
    return call.services.triggers.start(operation, call.name["jobid"], work, chosen)


def status_of(operation: str) -> Any:
    async def status(call: Call) -> dict[str, Any]:
        return call.services.triggers.status(operation, call.name.get("jobid", ""), call.name["triggerid"])

    return status


MODE = Field("mode", Kind.TEXT, "cancel; stop is done by POST /jobs/:jobid/stop", ("cancel", "stop"))
TRIGGER_ID = Field("triggerId", Kind.TEXT, "32 hex digits that the client chooses, so that it can ask twice")
FORMAT = Field("formatType", Kind.TEXT, "accepted and ignored: there is one format", ("CANONICAL", "NATIVE"))
SAVEPOINT_BODY = (
    Field("cancel-job", Kind.BOOLEAN, "end the job with the savepoint"),
    Field("target-directory", Kind.TEXT, "where the savepoint's own directory is made"),
    FORMAT,
    TRIGGER_ID,
)
STOP_BODY = (
    Field("drain", Kind.BOOLEAN, "let all timers and windows fire first"),
    Field("targetDirectory", Kind.TEXT, "where the savepoint's own directory is made"),
    FORMAT,
    TRIGGER_ID,
)
CHECKPOINT_BODY = (
    Field("checkpointType", Kind.TEXT, "accepted and ignored", ("CONFIGURED", "FULL", "INCREMENTAL")),
    TRIGGER_ID,
)
PARALLELISM = Field("parallelism", Kind.INTEGER, "the new parallelism")
PATH = Field("savepoint-path", Kind.TEXT, "the savepoint's directory", required=True)

ROUTES = (
    Route("PATCH", "/jobs/:jobid", cancel, "Cancel a job", (MODE,), status=202),
    Route("POST", "/jobs/:jobid/savepoints", savepoint, "Make a savepoint", body=SAVEPOINT_BODY, status=202),
    Route("GET", "/jobs/:jobid/savepoints/:triggerid", status_of(_SAVEPOINT), "How far a savepoint is"),
    Route("POST", "/jobs/:jobid/stop", stop, "End a job with a savepoint", body=STOP_BODY, status=202),
    Route("GET", "/jobs/:jobid/stop/:triggerid", status_of(_SAVEPOINT), "How far a stop is"),
    Route("POST", "/jobs/:jobid/checkpoints", checkpoint, "Make a checkpoint now", body=CHECKPOINT_BODY, status=202),
    Route("GET", "/jobs/:jobid/checkpoints/:triggerid", status_of(_CHECKPOINT), "How far a checkpoint is"),
    Route("PATCH", "/jobs/:jobid/rescaling", rescale, "Change the parallelism of a job", (PARALLELISM,), status=202),
    Route("GET", "/jobs/:jobid/rescaling/:triggerid", status_of(_RESCALING), "How far a rescaling is"),
    Route("POST", "/savepoint-disposal", dispose, "Delete a savepoint", body=(PATH,)),
    Route("GET", "/savepoint-disposal/:triggerid", status_of(_DISPOSAL), "How far a deletion is"),
)
