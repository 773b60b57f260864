"""Jobs over REST: lists, one job, and what does not exist."""

from __future__ import annotations

from pathlib import Path

from headwater.common.job_status import JobStatus
from tests.unit.server.rest_server import end, running, serving, start_job

UNKNOWN = "f" * 32


def test_a_running_job_is_listed_and_shown(tmp_path: Path) -> None:
    client = start_job(tmp_path)
    with serving(tmp_path) as rest:
        job_id = running(client)
        assert rest.get("/jobs")["jobs"] == [{"id": job_id, "status": "RUNNING"}]
        (listed,) = rest.get("/v1/jobs/overview")["jobs"]
        shown = rest.get(f"/jobs/{job_id}")
        assert listed["name"] == shown["name"] == "numbers"
        assert listed["tasks"]["running"] == sum(vertex["parallelism"] for vertex in shown["vertices"]) == 4
        assert shown["plan"] == rest.get(f"/jobs/{job_id}/plan/")["plan"]
        assert rest.get(f"/jobs/{job_id.upper()}/status") == {"status": "RUNNING"}
        assert end(client) is JobStatus.CANCELED
        assert rest.get("/jobs") == {"jobs": []}


def test_what_does_not_exist_is_told_apart(tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        assert rest.ask("GET", "/nothing").errors == ["Not found: /nothing"]
        assert rest.ask("GET", f"/jobs/{UNKNOWN}").status == 404
        assert rest.ask("GET", f"/jobs/{UNKNOWN}").errors == [f"Job {UNKNOWN} not found"]
        malformed = rest.ask("GET", "/jobs/not-a-job")
        assert malformed.status == 400 and "32 hex digits" in malformed.errors[0]
        wrong = rest.ask("POST", "/jobs")
        assert wrong.status == 405 and wrong.headers["allow"] == "GET, HEAD" and wrong.errors
