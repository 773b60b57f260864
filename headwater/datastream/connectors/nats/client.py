"""A connection to NATS: made where it is used. The only file that imports nats."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.secrets import resolve, without_passwords
from headwater.datastream.connectors.event_loop import LoopThread
from headwater.datastream.connectors.library import library

CONNECT_SECONDS: Final = 5.0
CALL_SECONDS: Final = 60.0
TLS_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Options of a URL, by the names that Redis' URLs have."""
T = TypeVar("T")


def check_library() -> None:
    library("nats", "NATS", "nats")


def checked_url(url: Any, what: str) -> str:
    if not isinstance(url, str) or "://" not in url:
        raise ConfigurationError(f"{what}: expected a URL such as nats://host:4222, found {url!r}")
    unknown = [name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True) if name not in TLS_FILES]
    if unknown:
        raise ConfigurationError(
            f"{what}: {unknown[0]!r} is no option of a URL; expected one of {', '.join(TLS_FILES)}"
        )
    return url


def tls_context(url: str, what: str) -> ssl.SSLContext | None:
    """How to check the server, and who we are, by the files that the URL names. None: as the machine is set up."""
    files = dict(parse_qsl(urlsplit(url).query))
    if not files:
        return None
    authority, certificate, key = (files.get(name) for name in TLS_FILES)
    try:
        context = ssl.create_default_context(cafile=authority)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # one of ssl is such a one, too
        raise ConfigurationError(f"{what}: cannot use the files for TLS {files}: {error}") from None
    return context


class NatsClient:
    """A connection that is made anew by itself when it breaks. Its errors name the owner and the server."""

    def __init__(self, owner: str, url: str) -> None:
        self.owner = owner
        self.shown = without_passwords(url)
        self.last_problem = ""
        self._nats = library("nats", "NATS", "nats")
        self._loop = LoopThread("nats")
        logging.getLogger("nats.aio.client").setLevel(logging.CRITICAL)  # errors are told by those who see them
        try:
            self.connection: Any = self.run("cannot connect", self._connect(resolve(url, owner)))
        except BaseException:
            self._loop.close()
            raise
        self.js: Any = self.connection.jetstream()

    async def _connect(self, url: str) -> Any:
        async def problem(error: Exception) -> None:
            self.last_problem = str(error) or type(error).__name__

        return await self._nats.connect(
            url.partition("?")[0],
            tls=tls_context(url, self.owner),
            connect_timeout=CONNECT_SECONDS,
            max_reconnect_attempts=2,
            reconnect_time_wait=0.5,
            error_cb=problem,
        )

    def run(self, what: str, work: Coroutine[Any, Any, T], seconds: float = CALL_SECONDS) -> T:
        """Wait for `work`. `what` it failed to do is in the error."""
        try:
            return self._loop.run(work, seconds)
        except HeadwaterError:
            raise
        except Exception as error:
            raise self.failed(what, error) from None

    def failed(self, what: str, error: Exception) -> HeadwaterError:
        text = str(error) or type(error).__name__
        if self.last_problem and self.last_problem not in text:
            text = f"{text} ({self.last_problem})"
        message = f"{self.owner}: {what} at NATS {self.shown}: {without_passwords(text)}"
        permanent = (self._nats.js.errors.NotFoundError, self._nats.js.errors.BadRequestError)
        refused = any(words in text.lower() for words in ("authorization", "certificate verify failed"))
        return HeadwaterError(message) if isinstance(error, permanent) or refused else ExternalSystemError(message)

    def stream(self, name: str) -> Any:
        """What is known of a stream. Raises if there is none."""
        return self.run(f"cannot read stream '{name}'", self.js.stream_info(name))

    def close(self) -> None:
        try:
            self._loop.run(self.connection.close(), CONNECT_SECONDS)
        except Exception:
            logging.getLogger("headwater.nats").debug("cannot close a connection", exc_info=True)
        self._loop.close()


def once(client: Callable[[], NatsClient], stream: str) -> Callable[[], None]:
    """A check that the stream is there."""

    def check() -> None:
        made = client()
        try:
            made.stream(stream)
        finally:
            made.close()

    return check
