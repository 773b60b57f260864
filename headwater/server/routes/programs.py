"""`/jars`, also as `/programs`: upload a program, run it, delete it. A program is a Python file or a zip of them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from headwater.common.errors import HeadwaterError
from headwater.server.cluster import RunRequest
from headwater.server.http_error import HttpError
from headwater.server.names import file_name, hex_id
from headwater.server.programs import ProgramFolder
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.routes.jobmanager import url_of

PART_BYTES = 256 << 10


def _folder(call: Call) -> ProgramFolder:
    if call.services.programs is None:
        raise HttpError(404, "this server belongs to one job and takes no programs; headwater server does")
    return call.services.programs


async def upload(call: Call) -> dict[str, str]:
    folder = _folder(call)
    kind = call.request.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data"):
        raise HttpError(400, "Exactly 1 file must be sent, received 0: send multipart/form-data with a field jarfile")
    try:
        async with call.request.form(max_files=1, max_fields=10) as form:
            files = [value for value in form.values() if isinstance(value, UploadFile)]
            if len(files) != 1:
                raise HttpError(400, f"Exactly 1 file must be sent, received {len(files)}.")
            program = await folder.add(files[0].filename or "", _parts(files[0]))
    except (MultiPartException, HTTPException, LookupError, ValueError) as error:
        text = getattr(error, "message", None) or getattr(error, "detail", None) or "it is malformed"
        raise HttpError(400, f"the upload cannot be read: {text}") from None
    return {"filename": str(program.path), "status": "success"}


async def _parts(file: UploadFile) -> AsyncIterator[bytes]:
    while part := await file.read(PART_BYTES):
        yield part


async def programs(call: Call) -> dict[str, Any]:
    found = await asyncio.to_thread(_folder(call).list)
    return {
        "address": url_of(call, ""),
        "files": [{"id": each.id, "name": each.name, "uploaded": each.uploaded_ms, "entry": []} for each in found],
    }


async def delete(call: Call) -> dict[str, Any]:
    await asyncio.to_thread(_folder(call).delete, call.name["jarid"])
    return {}


async def run(call: Call) -> dict[str, str]:
    folder, submissions = _folder(call), call.services.submissions
    assert submissions is not None  # a server with a folder runs what is in it
    program = await asyncio.to_thread(folder.get, call.name["jarid"])
    request = await asyncio.to_thread(_request, {**call.query, **call.body}, folder)
    try:
        job_id = await asyncio.to_thread(submissions.submit, program.path, request)
    except HttpError:
        raise  # another server leads by now
    except HeadwaterError as error:
        raise HttpError(400, str(error)) from None
    return {"jobid": job_id, "applicationId": job_id}


async def plan(call: Call) -> dict[str, Any]:
    folder, submissions = _folder(call), call.services.submissions
    assert submissions is not None  # a server with a folder runs what is in it
    program = await asyncio.to_thread(folder.get, call.name["jarid"])
    request = await asyncio.to_thread(_request, {**call.query, **call.body}, folder)
    try:
        return {"plan": await asyncio.to_thread(submissions.plan, program.path, request)}
    except HttpError:
        raise
    except HeadwaterError as error:
        raise HttpError(400, str(error)) from None


def _request(given: dict[str, Any], folder: ProgramFolder) -> RunRequest:
    try:
        words = shlex.split(given.get("programArgs", given.get("program-args", "")))
    except ValueError as error:
        raise HttpError(400, f"programArgs: {error}; programArgsList needs no quotes") from None
    settings = given.get("flinkConfiguration", {})
    if not all(isinstance(value, (str, int, float)) for value in settings.values()):
        raise HttpError(400, "flinkConfiguration has a value that is neither text nor a number")
    parallelism, requirements = given.get("parallelism"), given.get("pythonRequirements")
    if parallelism is not None and parallelism < 1:
        raise HttpError(400, f"parallelism is {parallelism}; expected 1 or more")
    return RunRequest(
        entry_class=given.get("entryClass", given.get("entry-class")),
        program_args=tuple(given.get("programArgsList") or given.get("programArg") or words),
        parallelism=parallelism,
        savepoint_path=given.get("savepointPath"),
        claim_mode=given.get("claimMode"),
        allow_non_restored_state=given.get("allowNonRestoredState", False),
        job_id=_job_id(given.get("jobId")),
        configuration={key: _text(value) for key, value in settings.items()},
        python_files=tuple(_upload(folder, each) for each in given.get("pythonFiles", ())),
        requirements=_upload(folder, requirements) if requirements is not None else None,
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _job_id(text: str | None) -> str | None:
    try:
        return hex_id(text) if text is not None else None
    except ValueError as error:
        raise HttpError(400, f"jobId is {text!r}; expected {error}") from None


def _upload(folder: ProgramFolder, upload_id: str) -> Path:
    try:
        return folder.get(file_name(upload_id)).path
    except ValueError:
        raise HttpError(400, f"{upload_id!r} is not the id of an upload; GET /jars lists them") from None


ENTRY = "for a zip: the module, or the file in it, to run"
RUN_QUERY = (
    Field("entry-class", Kind.TEXT, ENTRY),
    Field("program-args", Kind.TEXT, "arguments in one text, as in a shell"),
    Field("programArg", Kind.TEXTS, "arguments, separated by commas"),
    Field("parallelism", Kind.INTEGER, "partitions of operators that set none"),
    Field("savepointPath", Kind.TEXT, "what to start from"),
    Field("allowNonRestoredState", Kind.BOOLEAN, "drop state that no operator claims"),
)
RUN_BODY = (
    Field("entryClass", Kind.TEXT, ENTRY),
    Field("programArgs", Kind.TEXT, "arguments in one text, as in a shell"),
    Field("programArgsList", Kind.TEXTS, "arguments"),
    Field("parallelism", Kind.INTEGER, "partitions of operators that set none"),
    Field("jobId", Kind.TEXT, "32 hex digits that the client chooses, so that it can ask twice"),
    Field("savepointPath", Kind.TEXT, "what to start from"),
    Field("claimMode", Kind.TEXT, "who owns that savepoint then", ("NO_CLAIM", "CLAIM")),
    Field("allowNonRestoredState", Kind.BOOLEAN, "drop state that no operator claims"),
    Field("flinkConfiguration", Kind.OBJECT, "settings of the job"),
    Field("pythonFiles", Kind.TEXTS, "ids of uploads that the program imports"),
    Field("pythonRequirements", Kind.TEXT, "id of an upload: a requirements file"),
)


_OF_THE_START = ("savepointPath", "allowNonRestoredState", "claimMode", "jobId")
PLAN_QUERY = tuple(field for field in RUN_QUERY if field.name not in _OF_THE_START)
PLAN_BODY = tuple(field for field in RUN_BODY if field.name not in _OF_THE_START)


def _routes(prefix: str) -> tuple[Route, ...]:
    return (
        Route("GET", prefix, programs, "Uploaded programs, the newest first"),
        Route("POST", f"{prefix}/upload", upload, "Upload a program", file_field="jarfile"),
        Route("DELETE", f"{prefix}/:jarid", delete, "Delete a program"),
        Route("GET", f"{prefix}/:jarid/plan", plan, "The plan of a program's job; it is not started", PLAN_QUERY),
        Route("POST", f"{prefix}/:jarid/plan", plan, "The same, asked with a body", PLAN_QUERY, PLAN_BODY),
        Route("POST", f"{prefix}/:jarid/run", run, "Run a program; returns its job's id", RUN_QUERY, RUN_BODY),
    )


ROUTES = (*_routes("/jars"), *_routes("/programs"))
