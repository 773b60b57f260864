"""Requests to `_bulk`: several actions in one, some of which may fail."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from headwater.common.errors import ExternalSystemError, HeadwaterError, short_repr
from headwater.common.secrets import resolve
from headwater.datastream.connectors.batch_retry import left_over
from headwater.datastream.connectors.http.client import HttpClient

MOST_WAIT_SECONDS: Final = 30.0
PASSING: Final = frozenset((408, 409, 429))
"""Answers to an action, besides 5xx, after which another try makes sense. 409: somebody else writes the document."""


class FlushBackoffType(Enum):
    """How long to wait before what failed is sent again."""

    CONSTANT = 0
    EXPONENTIAL = 1
    NONE = 2
    """It is not sent again: the job's restart strategy decides."""


class Action(NamedTuple):
    """What to do with a document."""

    index_name: str
    id: str
    document: bytes
    """JSON."""
    update: bool
    """Change the fields that the document has, or make it. False: put the document in place of what is there."""

    @property
    def key(self) -> tuple[str, str]:
        return self.index_name, self.id

    def lines(self, doc_type: str | None) -> bytes:
        target = {"_index": self.index_name, "_id": self.id} | ({"_type": doc_type} if doc_type else {})
        if self.update:
            head, body = {"update": target}, b'{"doc":' + self.document + b',"doc_as_upsert":true}'
        else:
            head, body = {"index": target}, self.document
        return msgspec.json.encode(head) + b"\n" + body + b"\n"


@dataclass(frozen=True)
class BulkSettings:
    """Where the cluster is, and how to talk to it."""

    hosts: tuple[str, ...] = ()
    path_prefix: str = ""
    username: str = ""
    password: str = ""
    doc_type: str | None = None
    max_actions: int = 1000
    max_bytes: int = 5 << 20
    backoff: FlushBackoffType = FlushBackoffType.EXPONENTIAL
    retries: int = 8
    delay_ms: int = 100
    socket_seconds: float = 30.0


class BulkClient:
    """Sends actions until all are done. For one thread."""

    def __init__(self, owner: str, settings: BulkSettings) -> None:
        self._owner = owner
        self._settings = settings
        headers = {"Content-Type": "application/x-ndjson"}
        if settings.username:
            login = f"{settings.username}:{resolve(settings.password, f'{owner}: set_connection_password')}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        self._http = HttpClient(owner, headers, attempts=1, seconds=settings.socket_seconds)
        self._host = 0

    def check(self) -> None:
        """Raise if no host is there, or it does not let us in."""
        problem: Exception | None = None
        for _ in self._settings.hosts:
            try:
                self._http.request("GET", self._url(""), b"")
                return
            except ExternalSystemError as error:
                problem = error
                self._host += 1
        assert problem is not None, "there is a host"
        raise problem

    def send(self, actions: Sequence[Action]) -> None:
        """Do all, those of one document in order. What is refused for good raises."""
        settings = self._settings
        attempt = 0
        while actions:
            try:
                again, problem = left_over(actions, self._bulk(actions))
            except ExternalSystemError as error:
                again, problem = list(actions), str(error)
                self._host += 1
            if problem is None:
                return
            attempt = 0 if len(again) < len(actions) else attempt + 1
            if settings.backoff is FlushBackoffType.NONE or attempt > settings.retries:
                raise ExternalSystemError(
                    f"{self._owner}: {len(again)} actions were not done, after {attempt} tries: {problem}"
                )
            growth = 2**attempt if settings.backoff is FlushBackoffType.EXPONENTIAL else 1
            time.sleep(min(settings.delay_ms / 1000 * growth, MOST_WAIT_SECONDS))
            actions = again

    def _url(self, path: str) -> str:
        host = self._settings.hosts[self._host % len(self._settings.hosts)]
        prefix = self._settings.path_prefix.strip("/")
        return f"{host}/{prefix}/{path}" if prefix else f"{host}/{path}"

    def _bulk(self, actions: Sequence[Action]) -> list[str | None]:
        """Return, for each action, why it was not done for now."""
        body = b"".join(action.lines(self._settings.doc_type) for action in actions)
        content = self._http.request("POST", self._url("_bulk"), body)
        try:
            items: list[dict[str, Any]] = [next(iter(item.values())) for item in msgspec.json.decode(content)["items"]]
            statuses = [int(item["status"]) for item in items]
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError, StopIteration):
            statuses = []
        if len(statuses) != len(actions):
            raise HeadwaterError(
                f"{self._owner}: POST {self._url('_bulk')}: expected an answer for each of {len(actions)} actions, "
                f"found {short_repr(content, 200)}; is this Elasticsearch?"
            )
        return [self._problem(*each) for each in zip(actions, statuses, items, strict=True)]

    def _problem(self, action: Action, status: int, item: dict[str, Any]) -> str | None:
        if 200 <= status < 300:
            return None
        reason = f"{status} {short_repr(item.get('error'), 400)}"
        if status in PASSING or status >= 500:
            return reason
        raise HeadwaterError(
            f"{self._owner}: Elasticsearch refuses document '{action.id}' of index '{action.index_name}': {reason}; it "
            f"is {short_repr(action.document, 300)}. Correct the index (its mapping, perhaps) and start the job again"
        )

    def close(self) -> None:
        self._http.close()
