"""Requests over HTTP, with retry. Connections are kept open; each client is for one thread."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError, short_repr
from headwater.common.secrets import HIDDEN, resolve, resolved, without_passwords

CONNECT_SECONDS: Final = 10.0
PASSING: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Answers after which another try makes sense."""
MOST_SECONDS: Final = 30.0
"""The longest wait between two tries, whatever the server asks for."""


def checked_url(url: Any, what: str) -> str:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{what}: expected a URL such as https://host/path, found {short_repr(url)}")
    return str(url)


class HttpClient:
    """Sends requests. A request that cannot be sent, or is refused for now, is tried again a few times."""

    def __init__(self, owner: str, headers: Mapping[str, str], attempts: int = 5, seconds: float = 30.0) -> None:
        self.owner = owner
        self._headers = resolved(headers, owner)
        self._secrets = [value for key, value in self._headers.items() if value != headers[key] or _is_secret(key)]
        self._attempts = attempts
        self._seconds = seconds
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def check(self, method: str, url: str) -> None:
        """Raise `ExternalSystemError` unless the host of a URL can be reached. Sends no request."""
        connection = connect(urlsplit(resolve(url, self.owner)), CONNECT_SECONDS)
        try:
            connection.connect()
        except OSError as error:
            raise ExternalSystemError(self._text(method, url, f"{type(error).__name__}: {error}")) from None
        finally:
            connection.close()

    def request(self, method: str, url: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Return the body of the answer. Raises `ExternalSystemError` after the last try, or an error for good."""
        problem = ""
        for attempt in range(1, self._attempts + 1):
            wait = min(0.1 * 4 ** (attempt - 1), MOST_SECONDS)
            try:
                response = self._send(method, url, body, {**self._headers, **(headers or {})})
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                self._forget(url)
                problem = f"{type(error).__name__}: {error}"
            else:
                if 200 <= response.status < 300:
                    return content
                problem = f"{response.status} {response.reason}: {short_repr(content, 200)}"
                if response.status not in PASSING:
                    raise HeadwaterError(self._text(method, url, problem))
                with contextlib.suppress(ValueError):
                    wait = min(float(response.headers.get("Retry-After", wait)), MOST_SECONDS)
            if attempt < self._attempts:
                time.sleep(wait)
        raise ExternalSystemError(self._text(method, url, f"{problem}; tried {self._attempts} times"))

    def _text(self, method: str, url: str, problem: str) -> str:
        return without_passwords(f"{self.owner}: {method} {url.split('?')[0]}: {problem}", *self._secrets)

    def _send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        parts = urlsplit(resolve(url, self.owner))
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = self._connections.get((parts.scheme, parts.netloc))
        if connection is None:
            connection = self._connections[(parts.scheme, parts.netloc)] = connect(parts, self._seconds)
        connection.request(method, path, body, dict(headers))
        return connection.getresponse()

    def _forget(self, url: str) -> None:
        parts = urlsplit(resolve(url, self.owner))
        connection = self._connections.pop((parts.scheme, parts.netloc), None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def connect(parts: Any, seconds: float) -> http.client.HTTPConnection:
    """A connection to the host of a URL that was split."""
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=seconds, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)


def _is_secret(header: str) -> bool:
    return header.lower() in ("authorization", "cookie", "x-api-key") or "token" in header.lower()


def shown_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: HIDDEN if _is_secret(name) else value for name, value in headers.items()}
