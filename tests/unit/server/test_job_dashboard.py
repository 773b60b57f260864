"""Job mode: a job serves itself, from the setting alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.server.rest_server import Rest, end, eventually, running, start_job


def test_a_plain_program_serves_its_job_if_it_is_told_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    client = start_job(tmp_path, **{"headwater.rest.enabled": "true", "rest.port": "0"})
    printed = ""

    def address() -> re.Match[str] | None:
        nonlocal printed
        printed += capfd.readouterr().err
        return re.search(r"headwater: dashboard at http://127\.0\.0\.1:(\d+)\n", printed)

    try:
        rest = Rest(int(eventually("the address", address)[1]))
        assert [job["id"] for job in rest.get("/jobs")["jobs"]] == [running(client)]
        assert rest.get("/config")["features"]["web-submit"] is False
        assert b"<title>" in rest.ask("GET", "/").raw
    finally:
        end(client)
    eventually("the port is closed", lambda: not _answers(rest))


def test_a_bad_address_is_told_and_the_job_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    client = start_job(tmp_path, **{"headwater.rest.enabled": "true", "rest.bind-address": "0.0.0.0"})
    printed = ""

    def told() -> bool:
        nonlocal printed
        printed += capfd.readouterr().err
        return "headwater: no dashboard: rest.bind-address is 0.0.0.0" in printed

    try:
        eventually("the reason", told)
        running(client)
    finally:
        end(client)


def _answers(rest: Rest) -> bool:
    try:
        return rest.ask("GET", "/config").status == 200
    except OSError:
        return False
