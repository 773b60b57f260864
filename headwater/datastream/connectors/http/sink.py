"""A request for each record: webhooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final

from headwater.common.callables import unfit
from headwater.common.connector import Committer
from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.row_changes import is_insert_only
from headwater.common.secrets import without_passwords
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.http.client import HttpClient, checked_url, shown_headers
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.message_sink import MessageSink
from headwater.datastream.connectors.spool import Spooled

KEY_HEADER: Final = "Idempotency-Key"
UNDER_WAY: Final = 100
"""Requests that wait for a thread, per thread."""


class HttpSink(MessageSink):
    """Sends a request for each record of a checkpoint when that is durable: at least once.

    Each request has an `Idempotency-Key` that is the same whenever it is repeated, after a lost answer or by another
    driver. A server that remembers keys (Stripe's rule) so sees each record once.
    """

    owner = "HttpSink"

    def __init__(
        self,
        url: str | Callable[[Any], str],
        body_of: Callable[[Any], bytes],
        method: str,
        headers: Mapping[str, str],
        concurrency: int,
        attempts: int,
    ) -> None:
        self.url = url
        self.body_of = body_of
        self.insert_only = is_insert_only(body_of)
        self.method = method
        self.headers = dict(headers)
        self.concurrency = concurrency
        self.attempts = attempts

    @staticmethod
    def builder() -> HttpSinkBuilder:
        return HttpSinkBuilder()

    def __repr__(self) -> str:
        url = without_passwords(self.url) if isinstance(self.url, str) else "several URLs"
        return f"HttpSink({self.method} {url}, {shown_headers(self.headers)})"

    def create_committer(self) -> Committer:
        return HttpCommitter(self)

    def message(self, record: Any) -> tuple[str, bytes]:
        url = self.url if isinstance(self.url, str) else self.url(record)
        body = self.body_of(record)
        if not isinstance(body, bytes):
            raise SerializationError(
                f"HttpSink: the body of record {short_repr(record)} is {short_repr(body)}; expected bytes"
            )
        return _url(url, record), body


def _url(url: Any, record: Any) -> str:
    try:
        return checked_url(url, f"HttpSink: record {short_repr(record)}")
    except ConfigurationError as error:
        raise SerializationError(str(error)) from None


class HttpCommitter(NotedCommitter):
    """Sends the requests of an epoch, several at once."""

    def __init__(self, sink: HttpSink) -> None:
        super().__init__("HttpSink")
        self._sink = sink
        self._local = threading.local()
        self._clients: list[HttpClient] = []
        self._pool: ThreadPoolExecutor | None = None

    def check(self) -> None:
        if isinstance(self._sink.url, str):
            HttpClient(self.owner, self._sink.headers).check(self._sink.method, self._sink.url)

    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._sink.concurrency, "http-sink")
        requests = self.messages(committables, tuple[str, bytes])
        while some := list(islice(requests, UNDER_WAY * self._sink.concurrency)):
            list(self._pool.map(self._request, some))

    def _request(self, request: tuple[str, tuple[str, bytes]]) -> None:
        client: HttpClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = HttpClient(self.owner, self._sink.headers, self._sink.attempts)
            self._clients.append(client)
        key, (url, body) = request
        client.request(self._sink.method, url, body, {KEY_HEADER: key})

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        for client in self._clients:
            client.close()


class HttpSinkBuilder:
    """Collects the settings of an `HttpSink`."""

    def __init__(self) -> None:
        self._url: str | Callable[[Any], str] = ""
        self._body_of: Callable[[Any], bytes] | None = None
        self._method = "POST"
        self._headers = {"Content-Type": "application/json"}
        self._concurrency = 4
        self._attempts = 5

    def set_url(self, url: str | Callable[[Any], str]) -> HttpSinkBuilder:
        """The URL of all requests, or a function from a record to its URL."""
        if not isinstance(url, str) and (found := unfit(url, 1)):
            raise ConfigurationError(f"HttpSink: set_url: expected a URL or a function of a record, found {found}")
        self._url = checked_url(url, "HttpSink: set_url") if isinstance(url, str) else url
        return self

    def set_body(self, body: SerializationSchema | Callable[[Any], bytes]) -> HttpSinkBuilder:
        """A schema, or a function from a record to bytes."""
        serialize: Any = getattr(body, "serialize", body)
        if found := unfit(serialize, 1):
            raise ConfigurationError(f"HttpSink: set_body: expected a SerializationSchema or a function, found {found}")
        self._body_of = serialize
        return self

    def set_method(self, method: str) -> HttpSinkBuilder:
        if method not in ("POST", "PUT", "PATCH", "DELETE"):
            raise ConfigurationError(f"HttpSink: set_method: expected POST, PUT, PATCH or DELETE, found {method!r}")
        self._method = method
        return self

    def set_header(self, name: str, value: str) -> HttpSinkBuilder:
        """A header of all requests. The value may refer to a secret: "Bearer ${env:TOKEN}"."""
        self._headers[name] = str(value)
        return self

    def set_concurrency(self, requests: int) -> HttpSinkBuilder:
        """How many requests run at once. 1: in the order of the records of each partition."""
        self._concurrency = _positive(requests, "set_concurrency")
        return self

    def set_attempts(self, attempts: int) -> HttpSinkBuilder:
        """How often a request is tried, with growing pauses, before the job's restart strategy decides."""
        self._attempts = _positive(attempts, "set_attempts")
        return self

    def build(self) -> HttpSink:
        if not self._url or self._body_of is None:
            raise ConfigurationError("HttpSink: call set_url('https://...') and set_body(...)")
        return HttpSink(self._url, self._body_of, self._method, self._headers, self._concurrency, self._attempts)


def _positive(number: Any, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ConfigurationError(f"HttpSink: {what}: expected 1 or more, found {number!r}")
    return number
