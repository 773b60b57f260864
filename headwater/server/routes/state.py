"""`/jobs/:jobid/state`: what keyed state a running job has, and what is in it. Flink has no such path."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.reader import ISOLATIONS, StateReader, StateValue
from headwater.server.cluster import Job
from headwater.server.http_error import HttpError
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.state_readers import QueryHttpError
from headwater.state.query.json_form import key_from_json, key_from_text, to_json

T = TypeVar("T")
MOST_KEYS = 1000


async def listing(call: Call) -> dict[str, Any]:
    operators = await read_state(call, lambda reader: reader.describe())
    return {"operators": operators}


async def location(call: Call) -> dict[str, Any]:
    return await ask_driver(call, "locate_state")


async def slot_query(call: Call) -> dict[str, Any]:
    """For slots that live in the driver's own process: they have no sockets."""
    return await ask_driver(call, "ask_slot", **call.body)


async def value(call: Call) -> dict[str, Any]:
    operator, state = call.name["operator"], call.name["state"]
    key = key_of(call.name["key"])
    isolation = call.query.get("isolation", ISOLATIONS[0])
    (found,) = await read_state(call, lambda reader: reader.get(operator, state, [key], isolation))
    if not found.found:
        text = f"state '{state}' of operator '{operator}' has no value for key {key!r} as of epoch {found.epoch}"
        raise QueryHttpError(QueryError(QueryProblem.UNKNOWN_KEY, text))
    return _row(found)


async def values(call: Call) -> dict[str, Any]:
    operator, state, query = call.name["operator"], call.name["state"], call.query
    isolation = query.get("isolation", ISOLATIONS[0])
    if "keys" in query:
        keys = _keys(query["keys"])
        rows = await read_state(call, lambda reader: reader.get(operator, state, keys, isolation))
        return {"values": [_row(row) if row.found else _row(row) | {"found": False} for row in rows], "next-page": None}
    bounds = {name: key_of(query[field]) for name, field in (("start", "from"), ("stop", "to")) if field in query}
    options = {name: query[name] for name in ("prefix", "limit", "page") if name in query}
    page = await read_state(call, lambda reader: reader.scan(operator, state, isolation=isolation, **bounds, **options))
    return {"values": [_row(row) for row in page.rows], "next-page": page.next_page}


async def job_of(call: Call) -> Job:
    try:
        return await call.job()
    except HttpError as error:
        if error.status == 404:
            raise QueryHttpError(QueryError(QueryProblem.UNKNOWN_JOB, error.text)) from None
        raise


async def ask_driver(call: Call, verb: str, **arguments: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = await (await job_of(call)).ask(verb, **arguments)
    except QueryError as error:
        raise QueryHttpError(error) from None
    return found


async def read_state(call: Call, read: Callable[[StateReader], T]) -> T:
    return await call.services.state_readers.read(await job_of(call), read)


def _row(found: StateValue) -> dict[str, Any]:
    return {"key": to_json(found.key), "value": found.value, "epoch": found.epoch}


def key_of(text: str) -> Any:
    try:
        return key_from_text(text)
    except QueryError as error:
        raise QueryHttpError(error) from None


def _keys(text: str) -> list[Any]:
    """A JSON list of keys, or words with commas in between."""
    try:
        if text.startswith("["):
            found = json.loads(text)
            keys = [key_from_json(each) for each in found]
        else:
            keys = [key_from_text(part) for part in text.split(",") if part]
        if len(keys) > MOST_KEYS:
            raise QueryError(QueryProblem.BAD_REQUEST, f"{len(keys)} keys are asked for; at most {MOST_KEYS} at once")
    except (ValueError, RecursionError):
        raise QueryHttpError(QueryError(QueryProblem.BAD_KEY, "keys is neither a JSON list nor words")) from None
    except QueryError as error:
        raise QueryHttpError(error) from None
    return keys


STATE = "/jobs/:jobid/state"
ISOLATION = Field("isolation", choices=ISOLATIONS, description="values of the last checkpoint, or the newest")
ROUTES = (
    Route("GET", STATE, listing, "The operators with keyed state, and their states: types, numbers of keys, sizes"),
    Route("GET", f"{STATE}/location", location, "Where the slots are, and the secret to read from them"),
    Route(
        "POST",
        f"{STATE}/query",
        slot_query,
        "Asks a slot through the driver, if it has no socket",
        body=(
            Field("stage", Kind.INTEGER, required=True),
            Field("partition", Kind.INTEGER, required=True),
            Field("query", Kind.OBJECT, required=True),
        ),
    ),
    Route(
        "GET",
        f"{STATE}/:operator/:state",
        values,
        "Entries of a state: some keys, or a scan in the order of the keys, page by page",
        query=(
            Field("keys", description='a JSON list of keys, such as ["a", 1], or words with commas in between'),
            Field("from", description="the first key, as JSON"),
            Field("to", description="the key behind the last, as JSON"),
            Field("prefix", description="keys that are text and begin with this"),
            Field("limit", Kind.INTEGER, "entries per page"),
            Field("page", description="next-page of the answer before"),
            ISOLATION,
        ),
    ),
    Route("GET", f"{STATE}/:operator/:state/:key", value, "The value of one key", query=(ISOLATION,)),
)
