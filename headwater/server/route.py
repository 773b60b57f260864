"""One route: how it is asked for, who answers, and what its query and body may contain.

The table of routes routes requests, opens the gate and is the OpenAPI document, so the three cannot differ.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from headwater.common.errors import short_repr
from headwater.server.http_error import HttpError

if TYPE_CHECKING:
    from headwater.server.cluster import Cluster, Job
    from headwater.server.services import Services

MOST_QUERY_FIELDS = 100
_JSON_SPACE = b" \t\r\n"


class Access(Enum):
    """Who may ask. PUBLIC: everybody, for pages without data. JOB: also the holder of that job's token."""

    PUBLIC = "public"
    CLUSTER = "cluster"
    JOB = "job"


class Kind(Enum):
    """The type of one field of a query or of a JSON body."""

    TEXT = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    TEXTS = "array"
    OBJECT = "object"


@dataclass(frozen=True)
class Field:
    """One field of a query or of a JSON body. In a query, a list is repeated or separated by commas."""

    name: str
    kind: Kind = Kind.TEXT
    description: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False

    def from_text(self, texts: list[str]) -> Any:
        """Return the value that a query gives."""
        if self.kind is Kind.TEXTS:
            return [part for text in texts for part in text.split(",") if part]
        text = texts[-1]
        if self.kind is Kind.INTEGER:
            if not text.isascii() or not text.isdigit() or len(text) > 18:
                raise self._bad("query", text)
            return int(text)
        if self.kind is Kind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise self._bad("query", text)
            return text.lower() == "true"
        return self._chosen("query", text)

    def from_json(self, value: Any) -> Any:
        """Return the value that a body gives."""
        fits = {
            Kind.TEXT: isinstance(value, str),
            Kind.INTEGER: isinstance(value, int) and not isinstance(value, bool),
            Kind.BOOLEAN: isinstance(value, bool),
            Kind.TEXTS: isinstance(value, list) and all(isinstance(each, str) for each in value),
            Kind.OBJECT: isinstance(value, dict),
        }[self.kind]
        if not fits:
            raise self._bad("body", value)
        return self._chosen("body", value) if self.kind is Kind.TEXT else value

    def _chosen(self, where: str, text: str) -> str:
        if self.choices and text not in self.choices:
            raise self._bad(where, text)
        return text

    def _bad(self, where: str, value: object) -> HttpError:
        expected = f"one of {', '.join(self.choices)}" if self.choices else self.kind.value
        return HttpError(
            400, f"Cannot resolve {where} parameter ({self.name}) from value {short_repr(value)}; expected {expected}."
        )


@dataclass(frozen=True)
class Route:
    """Method and path as Flink's documentation has them: `GET`, `/jobs/:jobid`."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Any]]
    """Returns what becomes JSON, or a response. Raises HttpError."""
    summary: str
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    """Fields of a JSON object; empty: the handler reads the names in it itself. None: there is no JSON body."""
    status: int = 200
    access: Access = Access.CLUSTER
    answer: str = "application/json"
    """Content type of the answer, for the OpenAPI document."""
    file_field: str = ""
    """Of a route that takes a file as multipart/form-data: the field's name. The handler reads it."""

    def __post_init__(self) -> None:
        if ":jobid" in self.path and self.access is Access.CLUSTER:
            object.__setattr__(self, "access", Access.JOB)

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/")) if self.path != "/" else ()


@dataclass
class Call:
    """One request on its way to its handler."""

    request: Request
    route: Route
    name: Mapping[str, Any]
    """{name in the path: its value, parsed}"""
    query: Mapping[str, Any]
    """{field: value}, for the fields that were given"""
    services: Services
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        return self.services.cluster

    async def job(self) -> Job:
        """Return the job that the path names. Raises HttpError 404."""
        return await self.services.cluster.job(self.name["jobid"])


def read_query(route: Route, raw: bytes) -> dict[str, Any]:
    """Return the values of the fields that the route knows. Others are ignored, as Flink ignores them."""
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_QUERY_FIELDS)
    except ValueError:
        raise HttpError(400, f"the query has more than {MOST_QUERY_FIELDS} fields, or is malformed") from None
    given: dict[str, list[str]] = {}
    for key, value in pairs:
        given.setdefault(key, []).append(value)
    return {each.name: each.from_text(given[each.name]) for each in route.query if each.name in given}


def read_body(route: Route, raw: bytes) -> dict[str, Any]:
    """Return the fields of the JSON body. No body at all is an empty object; null is a field that is not given."""
    if route.body is None:
        return {}
    try:
        value = msgspec.json.decode(raw) if raw.strip(_JSON_SPACE) else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise HttpError(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise HttpError(400, f"the body is {short_repr(value)}; expected a JSON object")
    found = {
        each.name: each.from_json(value[each.name]) for each in route.body if value.get(each.name, None) is not None
    }
    for each in route.body:
        if each.required and each.name not in found:
            raise HttpError(400, f"Field {each.name} must not be omitted or be null.")
    return found
