"""The ASGI application: finds the route, opens the gate, parses, calls the handler, answers errors as Flink does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headwater.common.errors import HeadwaterError
from headwater.server.cluster import RefusedByJob
from headwater.server.http_error import HttpError
from headwater.server.names import hex_id
from headwater.server.route import Access, Call, Route, read_body, read_query
from headwater.server.router import Match, Router
from headwater.server.services import Services

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_HEADER_BYTES = 32 << 10
MAX_JSON_BYTES = 1 << 20
RECEIVE_SECONDS = 30.0
"""How long a client may be silent in the middle of a request's body."""

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class App:
    """Answers requests. Holds no state but its services."""

    def __init__(self, routes: Iterable[Route], services: Services) -> None:
        self.router = Router(routes)
        self.services = services
        services.routes = self.router.routes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(f"this server speaks HTTP only, not {scope['type']}")
        reading = LimitedBody(receive, self.services.max_content_bytes)
        try:
            response = await self._answer(Request(scope, reading), reading)
        except HttpError as error:
            response = error.response()
        except ClientDisconnect:
            return
        except RefusedByJob as error:
            response = HttpError(400, str(error)).response()
        except HeadwaterError as error:
            log.warning("%s %s failed: %s", scope["method"], scope["path"], error)
            response = HttpError(500, str(error)).response()
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            response = HttpError(500, "Internal server error.").response()
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        if not reading.complete:
            response.headers["Connection"] = "close"  # nobody reads the rest of the body
        await response(scope, receive, send)

    async def _answer(self, request: Request, reading: LimitedBody) -> Response:
        headers = request.headers
        if sum(len(name) + len(value) for name, value in headers.raw) > MAX_HEADER_BYTES:
            raise HttpError(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes")
        gate = self.services.gate
        gate.check_origin(request.method not in ("GET", "HEAD"), headers)
        try:
            match = self.router.find(request.method, request.scope["raw_path"])
        except HttpError:
            gate.check_token(_UNKNOWN, headers, "")  # who may not ask, is not told what there is
            raise
        await self._authenticate(match, headers)
        await self._refer_to_leader(request, match.route)
        route = match.route
        call = Call(request, route, match.names(), read_query(route, request.scope["query_string"]), self.services)
        if route.body is not None:
            reading.limit = min(reading.limit, MAX_JSON_BYTES)
            call.body = read_body(route, await request.body())
        result = await route.handler(call)
        return result if isinstance(result, Response) else json_response(result, route.status)

    async def _refer_to_leader(self, request: Request, route: Route) -> None:
        """A server that stands by acts on nothing: the client is sent to the leader, with the same request.

        The page itself is shown by every server while nobody leads: it asks again until somebody does.
        """
        leader = await asyncio.to_thread(self.services.leader) if self.services.leader is not None else None
        if leader is None:
            return
        if not leader and route.access is Access.PUBLIC:
            return
        if not leader:
            raise HttpError(503, "no server leads at the moment; ask again in a few seconds", {"Retry-After": "2"})
        query = request.scope["query_string"]
        where = leader + request.scope["raw_path"].decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        raise HttpError(307, f"this server stands by; {leader} leads", {"Location": where})

    async def _authenticate(self, match: Match, headers: Headers) -> None:
        digest = ""
        if match.route.access is Access.JOB:
            with contextlib.suppress(ValueError):  # not an id: nobody's token opens it
                digest = await self.services.cluster.token_digest(hex_id(match.texts["jobid"]))
        self.services.gate.check_token(match.route, headers, digest)


class LimitedBody:
    """The request's body, with a limit to its length and to the client's silence."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._bytes = 0
        self.limit = limit
        self.complete = False

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout(RECEIVE_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(408, f"no more of the request came in {RECEIVE_SECONDS:g} s") from None
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self._bytes > self.limit:
                raise HttpError(413, f"the body is longer than {self.limit} bytes")
        return message


def json_response(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json; charset=UTF-8")


async def _nothing(call: Call) -> None:
    """Never called."""


_UNKNOWN = Route("GET", "/", _nothing, "a path that is not known")
