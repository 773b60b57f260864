"""`/jobs/:jobid/series`: windows of a key over past and present. Flink has no such path."""

from __future__ import annotations

from typing import Any, cast

from headwater.common.query_error import QueryError
from headwater.queryable_state.control_locator import ControlLocator
from headwater.queryable_state.reader import StateReader
from headwater.queryable_state.series import BEGINNING_MS, END_MS, Series, read_series, time_ms
from headwater.server.cluster import RunningJob
from headwater.server.route import Call, Field, Route
from headwater.server.routes.state import ask_driver, job_of, key_of
from headwater.server.state_readers import QueryHttpError


async def listing(call: Call) -> dict[str, Any]:
    return {"series": await ask_driver(call, "series")}


async def windows(call: Call) -> dict[str, Any]:
    name, key = call.name["series"], key_of(call.name["key"])
    from_ms, to_ms = _bound(call, "from", BEGINNING_MS), _bound(call, "to", END_MS)
    job = await job_of(call)

    def read(reader: StateReader) -> Series:
        running = cast(RunningJob, job)  # there is a reader for no other one
        return read_series(reader, ControlLocator(running.directory, running.card), name, key, from_ms, to_ms)

    found = await call.services.state_readers.read(job, read)
    return found.to_json()


def _bound(call: Call, name: str, otherwise: int) -> int:
    text = call.query.get(name)
    try:
        return otherwise if text is None else time_ms(text, name)
    except QueryError as error:
        raise QueryHttpError(error) from None


SERIES = "/jobs/:jobid/series"
ROUTES = (
    Route("GET", SERIES, listing, "The series of a job: their windows, and where closed ones are archived"),
    Route(
        "GET",
        f"{SERIES}/:series/:key",
        windows,
        "The windows of a key in a range of time: closed ones from the archive, open ones from state, each once",
        query=(
            Field("from", description="windows that end after it: milliseconds since 1970, or ISO 8601"),
            Field("to", description="windows that begin before it"),
        ),
    ),
)
