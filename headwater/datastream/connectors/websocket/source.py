"""Messages of a WebSocket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.rejected import Rejected
from headwater.common.secrets import resolve, resolved, without_passwords
from headwater.datastream.connectors.buffered_source import Buffer, Feed, Received, log
from headwater.datastream.connectors.decoding_reader import Message
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.url_stream import UrlFeed, UrlSettings, UrlSource, UrlSourceBuilder

CONNECT_SECONDS: Final = 10.0


def _bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


class WebSocketSource(UrlSource):
    """Reads messages, in the driver. A WebSocket cannot be asked for messages again: what comes while nobody is
    connected is lost, and so is what no durable checkpoint has when the driver dies. Nothing else is: workers and slots
    may die, and nothing comes twice.
    """

    @staticmethod
    def builder() -> WebSocketSourceBuilder:
        return WebSocketSourceBuilder()

    def new_feed(self) -> Feed:
        return _WebSocketFeed(self.settings)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        raw = rejected.raw or b""
        return self.settings.decode(raw.decode() if rejected.attributes["text"] else raw)


class _WebSocketFeed(UrlFeed):
    owner = "WebSocketSource"

    def __init__(self, settings: UrlSettings) -> None:
        super().__init__(settings)
        self._socket: Any = None

    def connect(self) -> None:
        owner = self.owner
        sync = library("websockets.sync.client", "WebSocket", "websocket")
        errors = library("websockets.exceptions", "WebSocket", "websocket")
        try:
            self._socket = sync.connect(
                resolve(self.settings.url, owner),
                additional_headers=resolved(self.settings.headers, owner),
                open_timeout=CONNECT_SECONDS,
                close_timeout=1,
                max_size=None,
            ).__enter__()
            for greeting in self.settings.greetings:
                self._socket.send(resolve(greeting, owner))
        except errors.InvalidStatus as error:
            text = f"{owner}: {self.shown} answers {error.response.status_code} {error.response.reason_phrase}"
            if error.response.status_code >= 500:
                raise ExternalSystemError(text) from None
            raise HeadwaterError(f"{text}; expected a WebSocket") from None
        except (OSError, errors.WebSocketException) as error:
            text = without_passwords(f"{type(error).__name__}: {error}")
            raise ExternalSystemError(f"{owner}: cannot connect to {self.shown}: {text}") from None

    def receive(self, buffer: Buffer) -> None:
        errors = library("websockets.exceptions", "WebSocket", "websocket")
        try:
            for content in self._socket:
                message = Message(content, _bytes(content), self.shown, None, {"text": int(isinstance(content, str))})
                buffer.put(Received(message))
        except (OSError, errors.WebSocketException):
            pass  # as if the server had ended it
        if not self.closed.is_set():
            log.warning("WebSocketSource: %s is gone; connecting again. Messages may be missing", self.shown)

    def close(self) -> None:
        self.closed.set()
        if self._socket is not None:
            self._socket.close()


class WebSocketSourceBuilder(UrlSourceBuilder):
    """Collects the settings of a `WebSocketSource`. Messages are str or bytes."""

    owner = "WebSocketSource"
    bytes_of = _bytes

    def set_url(self, url: str) -> WebSocketSourceBuilder:
        """ws://host/path or wss://host/path; it may refer to a secret: wss://host/?token=${env:TOKEN}."""
        if not isinstance(url, str) or urlsplit(url).scheme not in ("ws", "wss"):
            raise ConfigurationError(f"WebSocketSource: set_url: expected wss://host/path, found {url!r}")
        return self._with(url=url)

    def set_greetings(self, *messages: str) -> WebSocketSourceBuilder:
        """Sent after each connect, to subscribe to something, say."""
        return self._with(greetings=tuple(map(str, messages)))

    def build(self) -> WebSocketSource:
        library("websockets", "WebSocket", "websocket")
        if not self._settings.url:
            raise ConfigurationError("WebSocketSource: no URL; call set_url('wss://host/path')")
        return WebSocketSource(self._settings)
