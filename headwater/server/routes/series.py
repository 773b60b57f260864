"""`/jobs/:jobid/series`: windows of a key over past and present. Flink has no such path."""

from __future__ import annotations

from typing import Any

from headwater.common.query_error import QueryError, QueryProblem
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS
from headwater.queryable_state.series import read_series, time_ms
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.routes.state import ask_driver, key_of, read_state
from headwater.server.state_readers import QueryHttpError
from headwater.state.query.json_form import MAX_KEY_CHARS


async def listing(call: Call) -> dict[str, Any]:
    return {"series": await ask_driver(call, "series")}


async def windows(call: Call) -> dict[str, Any]:
    name, key = call.name["series"], key_of(call.name["key"])
    from_ms, to_ms = _bound(call, "from", BEGINNING_MS), _bound(call, "to", END_MS)
    found = await read_state(call, lambda reader: read_series(reader, name, key, from_ms, to_ms))
    return found.to_json()


async def archive(call: Call) -> dict[str, Any]:
    """For clients that read slots themselves: only the driver reaches the archive."""
    if max(len(call.body["key"]), len(call.body["series"])) > MAX_KEY_CHARS:
        text = f"a key, and the name of a series, has at most {MAX_KEY_CHARS} characters"
        raise QueryHttpError(QueryError(QueryProblem.BAD_KEY, text))
    found: dict[str, Any] = await ask_driver(call, "read_archive", **call.body)
    return found


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
    Route(
        "POST",
        f"{SERIES}/archive",
        archive,
        "Closed windows of a key, for clients that read slots directly",
        body=(
            Field("series", required=True),
            Field("key", description="as JSON", required=True),
            *(Field(name, Kind.INTEGER, required=True) for name in ("from_ms", "to_ms", "epoch")),
        ),
    ),
)
