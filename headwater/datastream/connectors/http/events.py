"""Server-sent events as a source (`text/event-stream`)."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.common.rejected import Rejected
from headwater.common.secrets import resolve, resolved
from headwater.datastream.connectors.buffered_source import Buffer, Feed, Position, Received, log
from headwater.datastream.connectors.decoding_reader import Message
from headwater.datastream.connectors.http.client import PASSING, checked_url, connect
from headwater.datastream.connectors.url_stream import UrlFeed, UrlSettings, UrlSource, UrlSourceBuilder

SILENCE_SECONDS: Final = 60.0
"""Servers send a comment now and then: after so long without a byte the connection is made anew."""


class ServerSentEvent(NamedTuple):
    """One event."""

    data: str
    event: str = "message"
    id: str = ""


def _data(event: ServerSentEvent) -> bytes:
    return event.data.encode()


class SseSource(UrlSource):
    """Reads events, in the driver.

    If they have ids, the server is asked for what follows the last one (`Last-Event-ID`), after a break and after a
    restart: whether it has that, is up to the server. Without ids, events are lost while nobody is connected, and so
    are those that no durable checkpoint has when the driver dies.
    """

    @staticmethod
    def builder() -> SseSourceBuilder:
        return SseSourceBuilder()

    def new_feed(self) -> Feed:
        return _SseFeed(self.settings)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        known = rejected.attributes
        event = ServerSentEvent((rejected.raw or b"").decode(), str(known["event"]), str(known["id"]))
        return self.settings.decode(event)


class _SseFeed(UrlFeed):
    owner = "SseSource"

    def __init__(self, settings: UrlSettings) -> None:
        super().__init__(settings)
        self._last_id = ""
        self._response: Any = None
        self._connection: http.client.HTTPConnection | None = None

    def start(self, position: Position, buffer: Buffer) -> None:
        self._last_id = position.token or ""
        super().start(position, buffer)

    def connect(self) -> None:
        owner = self.owner
        parts = urlsplit(resolve(self.settings.url, owner))
        headers = {"Accept": "text/event-stream", **resolved(self.settings.headers, owner)}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        try:
            connection = self._connection = connect(parts, SILENCE_SECONDS)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers=headers)
            self._response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ExternalSystemError(f"{owner}: cannot read {self.shown}: {type(error).__name__}: {error}") from None
        status = self._response.status
        kind = self._response.headers.get("Content-Type", "")
        if status != 200 or not kind.startswith("text/event-stream"):
            text = f"{owner}: {self.shown} answers {status} {self._response.reason} with content of type '{kind}'"
            self._connection.close()
            if status in PASSING:
                raise ExternalSystemError(text)
            raise HeadwaterError(f"{text}; expected 200 and text/event-stream")

    def receive(self, buffer: Buffer) -> None:
        try:
            for event in self._events():
                buffer.put(_received(event, self.shown))
            log.info("SseSource: %s ended the stream; connecting again", self.shown)
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            if not self.closed.is_set():
                log.warning("SseSource: reading %s: %s; connecting again", self.shown, error)

    def _events(self) -> Iterator[ServerSentEvent]:
        """As the standard says: fields by line, an event ends with an empty line.

        Only then its id counts: the rest of an event that is cut off must come again.
        """
        data: list[str] = []
        kind, id = "", self._last_id
        while line := self._response.readline():
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if not text:
                self._last_id = id
                if data:
                    yield ServerSentEvent("\n".join(data), kind or "message", self._last_id)
                data, kind = [], ""
                continue
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "event":
                kind = value
            elif name == "id" and "\0" not in value:
                id = value
            elif name == "retry" and value.isdigit():
                self.retry_seconds = int(value) / 1000

    def close(self) -> None:
        self.closed.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                if self._connection.sock is not None:
                    self._connection.sock.close()
                self._connection.close()


def _received(event: ServerSentEvent, url: str) -> Received:
    where = f"{url}, event {event.id!r}" if event.id else url
    message = Message(event, event.data.encode(), where, None, {"event": event.event, "id": event.id})
    return Received(message, event.id)


class SseSourceBuilder(UrlSourceBuilder):
    """Collects the settings of an `SseSource`. Messages are `ServerSentEvent`s; a schema reads their data."""

    owner = "SseSource"
    bytes_of = _data

    def set_url(self, url: str) -> SseSourceBuilder:
        return self._with(url=checked_url(url, "SseSource: set_url"))

    def build(self) -> SseSource:
        checked_url(self._settings.url, "SseSource: set_url")
        return SseSource(self._settings)
