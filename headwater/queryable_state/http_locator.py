"""Finds a job's slots through a job server, over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.slot.query.requests import Json

_PROBLEMS = {401: QueryProblem.UNAUTHORIZED, 403: QueryProblem.UNAUTHORIZED, 404: QueryProblem.UNKNOWN_JOB}


class HttpLocator:
    """One job of one server. Opens a connection per request: locations are cached, so requests are rare."""

    def __init__(
        self, host: str, port: int, token: str | None, job_id: str, seconds: float = 10.0, *, tls: bool = False
    ) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._job_id = job_id
        self._seconds = seconds
        self._tls = tls

    def locate(self) -> Json:
        found: Json = self._request("GET", f"/jobs/{quote(self._job_id, safe='')}/state/location")
        return found

    def ask_slot(self, stage: int, partition: int, request: Json) -> Json:
        body = {"stage": stage, "partition": partition, "query": request}
        found: Json = self._request("POST", f"/jobs/{quote(self._job_id, safe='')}/state/query", body)
        return found

    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> Json:
        body = {"series": series, "key": key, "from_ms": from_ms, "to_ms": to_ms, "epoch": epoch}
        found: Json = self._request("POST", f"/jobs/{quote(self._job_id, safe='')}/series/archive", body)
        return found

    def _request(self, method: str, path: str, body: Json | None = None, hops: int = 3) -> Any:
        connection = (
            http.client.HTTPSConnection(
                self._host, self._port, timeout=self._seconds, context=ssl.create_default_context()
            )
            if self._tls
            else http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
        )
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            answer = json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise QueryError(
                QueryProblem.UNREACHABLE, f"the job server {self._host}:{self._port} does not answer: {error}"
            ) from None
        finally:
            connection.close()
        if response.status == 200:
            return answer
        if response.status == 307 and hops:  # this server stands by: ask the one that leads from now on
            leader = urlsplit(response.headers.get("Location", ""))
            if leader.hostname and leader.port:
                self._host, self._port, self._tls = leader.hostname, leader.port, leader.scheme == "https"
                return self._request(method, path, body, hops - 1)
        if isinstance(answer, dict) and "code" in answer:
            raise QueryError.from_json({"text": answer["errors"][0], **answer})
        text = "; ".join(answer.get("errors", ())) if isinstance(answer, dict) else ""
        problem = _PROBLEMS.get(response.status, QueryProblem.FAILED)
        if response.status == 503:
            problem = QueryProblem.UNREACHABLE
        raise QueryError(problem, text or f"the job server answered with status {response.status}")
