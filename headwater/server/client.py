"""A small client of the REST server, for the command line: follows the leader, and says errors as the server does."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from headwater.common.errors import HeadwaterError

_ADDRESS: Final = re.compile(r"(?:(https?)://)?([A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})/?")
TIMEOUT_SECONDS: Final = 90.0
TAKEOVER_SECONDS: Final = 15.0
"""How long nobody may lead, or a driver be started, before it is an error."""
_POLL_SECONDS: Final = 0.2
_MOST_HOPS: Final = 5


def is_server_address(text: str) -> bool:
    """Return True for `host:port` and `http(s)://host:port`. No Spark master looks like that."""
    return _ADDRESS.fullmatch(text) is not None


class RestError(HeadwaterError):
    """The server refused. `status` is HTTP's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class RestClient:
    """Asks one server, or whoever leads in its place. One connection per request."""

    def __init__(self, address: str, token: str | None = None) -> None:
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise HeadwaterError(f"'{address}' is not the address of a server; expected host:port or https://host:port")
        self._base = f"{match[1] or 'http'}://{match[2]}:{match[3]}"
        self._token = token

    @property
    def base(self) -> str:
        """The server's address: `http://host:port`."""
        return self._base

    @property
    def token(self) -> str | None:
        return self._token

    def get(self, path: str, **query: Any) -> Any:
        return self._json("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._json("POST", path, json.dumps(body).encode(), "application/json")

    def patch(self, path: str) -> Any:
        return self._json("PATCH", path)

    def delete(self, path: str) -> Any:
        return self._json("DELETE", path)

    def content(self, path: str, **query: Any) -> bytes:
        return self._request("GET", path + (f"?{urlencode(query)}" if query else ""))

    def upload(self, path: Path) -> str:
        """Send a file, and return its id there."""
        border = secrets.token_hex(16)
        name = quote(path.name)
        head = f'--{border}\r\nContent-Disposition: form-data; name="jarfile"; filename="{name}"\r\n'
        body = head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + path.read_bytes()
        body += f"\r\n--{border}--\r\n".encode()
        answer = self._json("POST", "/jars/upload", body, f"multipart/form-data; boundary={border}")
        return str(answer["filename"]).rpartition("/")[2]

    def wait(self, path: str, trigger: str) -> dict[str, Any]:
        """Wait for what was triggered, as long as it takes, and return what came of it."""
        while True:
            answer = self.get(f"{path}/{trigger}")
            if answer["status"]["id"] == "COMPLETED":
                operation: dict[str, Any] = answer["operation"]
                cause = operation.get("failure-cause")
                if cause is not None:
                    raise HeadwaterError(str(cause.get("stack-trace") or cause.get("class") or cause).strip())
                return operation
            time.sleep(_POLL_SECONDS)

    def _json(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        content = self._request(method, path, body, kind)
        try:
            return json.loads(content) if content else {}
        except ValueError:
            raise HeadwaterError(f"{self._base}{path} did not answer with JSON: is it a headwater server?") from None

    def _request(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> bytes:
        """Send a request. While nobody leads, ask again for a while: every request may be repeated."""
        deadline = time.monotonic() + TAKEOVER_SECONDS
        while True:
            status, headers, content = self._follow(method, path, body, kind)
            if status != 503 or time.monotonic() > deadline:
                break
            time.sleep(min(1.0, float(headers.get("Retry-After") or 1)))
        if 200 <= status < 300:
            return content
        raise RestError(status, _text(status, content, self._base))

    def _follow(
        self, method: str, path: str, body: bytes | None, kind: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request, and send it again to the server that the answer names, if it names one."""
        url = self._base + path
        for _ in range(_MOST_HOPS):
            status, headers, content = self._send(method, url, body, kind)
            location = headers.get("Location", "")
            if status != 307 or not location.startswith(("http://", "https://")):
                return status, headers, content
            if self._base.startswith("https:") and not location.startswith("https:"):
                raise HeadwaterError(f"{url} sends its clients to {location}, which is not encrypted; nothing was sent")
            url = location
        raise HeadwaterError(f"{self._base}: the servers send their clients to each other; ask again in a few seconds")

    def _send(self, method: str, url: str, body: bytes | None, kind: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        parts = urlsplit(url)
        assert parts.hostname is not None
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
        headers = {"Content-Type": kind} if kind else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or error or type(error).__name__
            raise HeadwaterError(f"the server at {parts.scheme}://{parts.netloc} does not answer: {reason}") from None
        finally:
            connection.close()


def _text(status: int, content: bytes, base: str) -> str:
    try:
        errors = json.loads(content)["errors"]
        text = "\n".join(str(each) for each in errors)
    except (ValueError, KeyError, TypeError):
        text = f"{base} answered with HTTP status {status}"
    if status == 401:
        text += " (set HEADWATER_SERVER_TOKEN, or HEADWATER_SERVER_TOKEN_FILE)"
    return text
