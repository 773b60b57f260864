"""Thousands of malformed requests (100,000 with `make test-long`) to the server of a job: a 4xx each, and no harm."""

from __future__ import annotations

import itertools
import logging
import os
import socket
from collections import Counter
from pathlib import Path

import pytest

from headwater.common.job_status import JobStatus
from tests.unit.server.malformed_requests import Malformed
from tests.unit.server.rest_server import end, running, serving, start_job
from tests.unit.server.test_gate import NoSubmissions

REQUESTS = int(os.environ.get("MALFORMED_REQUESTS", "3000"))
SEED = int(os.environ.get("SEED", "12"))


def status_of(port: int, request: bytes) -> int:
    """Send bytes, and return the status of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.settimeout(30)
        answer = b""
        try:
            connection.sendall(request)
            while b"\r\n" not in answer and (part := connection.recv(1 << 16)):
                answer += part
        except ConnectionError:
            pass  # it answered and closed before it had read everything
    head = answer.split(b"\r\n")[0].split(b" ")
    return int(head[1]) if len(head) > 1 and head[0] == b"HTTP/1.1" else 0


@pytest.mark.timeout(3600)
def test_a_malformed_request_is_refused_and_does_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = start_job(tmp_path)
    caplog.set_level(logging.WARNING, "headwater.server")
    seen: Counter[tuple[str, int]] = Counter()
    try:
        job = running(client)
        with serving(tmp_path, submissions=NoSubmissions()) as rest:
            before = open_files()
            for kind, request in itertools.islice(Malformed(SEED, job), REQUESTS):
                status = status_of(rest.port, request)
                assert 400 <= status < 500, (kind, status, request[:400])
                seen[kind, status] += 1
            assert rest.get("/overview")["jobs-running"] == 1
            assert open_files() <= before + 20, "connections are left open"
            assert rest.get("/jars")["files"] == []
        assert client.get_job_status().result() is JobStatus.RUNNING
        assert not (tmp_path / "savepoints").exists() and not list(tmp_path.rglob("*.exe"))
        ours = [record.message for record in caplog.records if record.name.startswith("headwater.server")]
        assert ours == [], "nothing failed inside the server"
        assert len({kind for kind, _ in seen}) == 8, seen
    finally:
        end(client)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
