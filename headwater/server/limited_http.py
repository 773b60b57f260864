"""uvicorn's HTTP protocol with limits that it lacks: on the head of a request, and on the time that it takes to come.

What cannot be parsed is answered in the same JSON as all other errors.
"""

from __future__ import annotations

import asyncio
import http
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headwater.server.app import MAX_HEADER_BYTES

HEAD_SECONDS = 20.0
"""Time for a client to send a request's head."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection. It is closed if a head is too long, or too slow."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._in_head = True
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._deadline is None:  # another request on a connection that was kept open
                self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_slow)
        super().data_received(data)
        if self._in_head and self._head_bytes > 2 * MAX_HEADER_BYTES and not self.transport.is_closing():
            self._refuse(431, "the head of the request is too long")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._stop_clock()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _too_slow(self) -> None:
        self._deadline = None
        if self._in_head and not self.transport.is_closing():
            if self._head_bytes:
                self._refuse(408, f"no request came in {HEAD_SECONDS:g} s")
            else:
                self.transport.close()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int, text: str) -> None:
        """Answer and close, unless another answer on this connection is under way. The app's own comes too late."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_started:
            cycle.disconnected = True
            cycle.message_event.set()
        if cycle is None or cycle.response_complete or not cycle.response_started:
            body = msgspec.json.encode({"errors": [text]})
            head = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()
