"""A client of schema registries with Confluent's REST interface, and the frame that names a schema in a message."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.common.errors import (
    ConfigurationError,
    ExternalSystemError,
    HeadwaterError,
    SerializationError,
    short_repr,
)
from headwater.common.secrets import resolve

__all__ = ["RegisteredSchema", "SchemaRegistryClient", "SchemaRegistryError"]

FRAME_BYTES: Final = 5
_MAGIC: Final = 0
_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_ATTEMPTS: Final = 4
_TOO_MANY: Final = 429
_SERVER_ERRORS: Final = 500
_FIRST_PAUSE_SECONDS: Final = 0.2
_SETTINGS: Final = ("basic.auth.user.info", "bearer.auth.token", "ssl.ca.location", "timeout.seconds")


class SchemaRegistryError(HeadwaterError):
    """The registry refused. `status` is that of HTTP. One that does not answer is an `ExternalSystemError`."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text, status)
        self.text = text
        self.status = status

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as the registry has it."""

    text: str
    references: tuple[str, ...] = ()
    """The texts of the schemas that it refers to, each after those that it refers to itself."""


class SchemaRegistryClient:
    """Asks once: what an id or a registered schema means never changes, so answers are kept.

    Pickles carry the settings, not the answers. Errors do not show passwords or tokens.
    """

    def __init__(self, url: str, settings: Mapping[str, str] | None = None) -> None:
        """:param settings: basic.auth.user.info (`user:password`), bearer.auth.token, ssl.ca.location, timeout.seconds.

        Passwords and tokens may be references, `${env:NAME}` or `${file:path}`. The URL may have `user:password@`, too.
        """
        parts = urllib.parse.urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"schema registry: expected a URL such as http://host:8081, found {_hidden(url)}")
        self._given = (url, dict(settings or {}))
        unknown = sorted(set(self._given[1]) - set(_SETTINGS))
        if unknown:
            raise ConfigurationError(
                f"schema registry: unknown setting {unknown[0]!r}; expected {', '.join(_SETTINGS)}"
            )
        address = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
        self._base = f"{parts.scheme}://{address}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"
        self._user_info = self._given[1].get("basic.auth.user.info")
        if self._user_info is None and parts.username is not None:
            self._user_info = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        self._timeout = _seconds(self._given[1].get("timeout.seconds", "10"))
        self._schemas: dict[int, RegisteredSchema] = {}
        self._ids: dict[tuple[str, str], int] = {}  # by (subject, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return SchemaRegistryClient, self._given

    def __repr__(self) -> str:
        return f"SchemaRegistryClient({self._base})"

    def schema(self, schema_id: int) -> RegisteredSchema:
        """The schema with this id."""
        found = self._schemas.get(schema_id)
        if found is None:
            answer = self._ask("GET", f"/schemas/ids/{schema_id}", f"schema {schema_id}")
            found = self._schemas[schema_id] = self._registered(answer)
        return found

    def latest(self, subject: str) -> tuple[int, RegisteredSchema]:
        """The id and the text of the newest version of `subject`. Asks every time."""
        answer = self._ask("GET", f"/subjects/{_quoted(subject)}/versions/latest", f"subject {subject!r}")
        return int(answer["id"]), self._registered(answer)

    def register(self, subject: str, text: str) -> int:
        """The id of the schema `text` under `subject`; a new version of it, if the registry allows it."""
        key = (subject, text)
        if key not in self._ids:
            path = f"/subjects/{_quoted(subject)}/versions"
            answer = self._ask("POST", path, f"subject {subject!r}", {"schema": text})
            self._ids[key] = int(answer["id"])
        return self._ids[key]

    def lookup(self, subject: str, text: str) -> int:
        """The id that the schema `text` has under `subject` already; SchemaRegistryError if it has none."""
        key = (subject, text)
        if key not in self._ids:
            answer = self._ask("POST", f"/subjects/{_quoted(subject)}", f"subject {subject!r}", {"schema": text})
            self._ids[key] = int(answer["id"])
        return self._ids[key]

    def _authorization(self) -> str | None:
        """Resolved when it is used: a password by reference is in no pickle."""
        token = self._given[1].get("bearer.auth.token")
        if self._user_info is not None:
            user_info = resolve(self._user_info, "schema registry: basic.auth.user.info")
            return "Basic " + base64.b64encode(user_info.encode()).decode()
        return None if token is None else f"Bearer {resolve(token, 'schema registry: bearer.auth.token')}"

    def _registered(self, answer: Any) -> RegisteredSchema:
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise SchemaRegistryError(f"schema registry {self._base}: expected an Avro schema, found {kind}")
        references: dict[str, None] = {}  # an ordered set
        for reference in answer.get("references") or ():
            path = f"/subjects/{_quoted(reference['subject'])}/versions/{int(reference['version'])}"
            found = self._registered(self._ask("GET", path, f"the referenced schema {reference['name']!r}"))
            references.update(dict.fromkeys((*found.references, found.text)))
        return RegisteredSchema(answer["schema"], tuple(references))

    def _ask(self, method: str, path: str, what: str, body: Any = None) -> Any:
        """Ask, again after a while if the registry cannot answer now."""
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._answer(method, path, what, body)
            except SchemaRegistryError as error:
                if error.status != _TOO_MANY and error.status < _SERVER_ERRORS:
                    raise
                if attempt == _ATTEMPTS:
                    raise ExternalSystemError(str(error)) from None
            except ExternalSystemError:
                if attempt == _ATTEMPTS:
                    raise
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    def _answer(self, method: str, path: str, what: str, body: Any) -> Any:
        request = urllib.request.Request(self._base + path, method=method)
        request.add_header("Accept", _CONTENT_TYPE)
        authorization = self._authorization()
        if authorization is not None:
            request.add_header("Authorization", authorization)
        if body is not None:
            request.add_header("Content-Type", _CONTENT_TYPE)
            request.data = json.dumps(body).encode()
        certificates = self._given[1].get("ssl.ca.location")
        try:
            encrypted = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=certificates))
            opener = urllib.request.build_opener(_NoRedirects, encrypted)
            with opener.open(request, timeout=self._timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode("utf-8", "replace")
            raise SchemaRegistryError(
                f"schema registry {self._base} refused {what}: HTTP {error.code} {_message(said)}", error.code
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ExternalSystemError(f"schema registry {self._base} does not answer about {what}: {reason}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: whoever it leads to would get the password."""

    def redirect_request(self, *args: Any) -> None:
        return None


def framed(schema_id: int) -> bytes:
    """The first bytes of a message whose schema has this id."""
    return bytes([_MAGIC]) + schema_id.to_bytes(4, "big")


def schema_id_of(message: bytes) -> int:
    """The id in the frame of `message`. SerializationError if there is no frame."""
    if len(message) < FRAME_BYTES or message[0] != _MAGIC:
        raise SerializationError(
            f"message {short_repr(message, 200)} does not begin with the frame of a schema registry (a zero byte, then "
            "the id of its schema in four); was it written without a registry?"
        )
    return int.from_bytes(message[1:FRAME_BYTES], "big")


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:
        raise ConfigurationError(f"schema registry: timeout.seconds is {text!r}; expected a number of seconds")
    return seconds


def _message(answer: str) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:200]


def _hidden(url: object) -> str:
    """A URL for an error: without what may be a password."""
    return repr(url.rpartition("@")[2] if isinstance(url, str) else url)
