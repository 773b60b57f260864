"""Base of sources that read a stream at a URL: one connection in the driver, made again when it breaks."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.common.secrets import without_passwords
from headwater.datastream.connectors.buffered_source import Buffer, BufferedSource, Feed, Position, log
from headwater.datastream.connectors.decoding_reader import Decode, DecodingBuilder, whole

RETRY_SECONDS: Final = 1.0


@dataclass(frozen=True)
class UrlSettings:
    """What a builder collects."""

    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    greetings: tuple[str, ...] = ()
    """Sent after each connect."""
    decode: Decode = field(default=whole)


class UrlSource(BufferedSource):
    """Reads messages of one URL."""

    def __init__(self, settings: UrlSettings) -> None:
        super().__init__(settings.decode)
        self.settings = settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({without_passwords(self.settings.url)})"


class UrlFeed(Feed):
    """Receives in a thread, and connects again until it is closed."""

    owner: ClassVar[str]
    """The source's name, for errors and logs."""

    def __init__(self, settings: UrlSettings) -> None:
        self.settings = settings
        self.shown = without_passwords(settings.url)
        self.retry_seconds = RETRY_SECONDS
        self.closed = threading.Event()

    def start(self, position: Position, buffer: Buffer) -> None:
        self.connect()
        threading.Thread(target=self._run, args=(buffer,), name=self.owner, daemon=True).start()

    @abstractmethod
    def connect(self) -> None:
        """Raise ExternalSystemError for a fault that may pass, another HeadwaterError for one that stays."""

    @abstractmethod
    def receive(self, buffer: Buffer) -> None:
        """Put messages into the buffer until the stream ends. Says in the log why it ended, and raises nothing."""

    def _run(self, buffer: Buffer) -> None:
        while not self.closed.is_set():
            self.receive(buffer)
            while not self.closed.wait(self.retry_seconds):
                try:
                    self.connect()
                    break
                except ExternalSystemError as error:
                    log.warning("%s; trying again", error)
                except HeadwaterError as error:
                    buffer.fail(error)
                    return


class UrlSourceBuilder(DecodingBuilder[UrlSettings]):
    """Collects settings. A subclass adds `set_url` and `build`."""

    def __init__(self) -> None:
        super().__init__(UrlSettings())

    def set_header(self, name: str, value: str) -> Self:
        """A header of the request. The value may refer to a secret: "Bearer ${env:TOKEN}"."""
        return self._with(headers={**self._settings.headers, name: str(value)})
