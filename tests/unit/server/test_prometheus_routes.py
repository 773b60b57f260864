"""`/metrics`: what Prometheus scrapes, read by Prometheus' own parser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater.runtime.job.handle import LocalJobClient
from tests.unit.server.rest_server import Rest, end, eventually, running, serving, start_job

TOKEN, JOB_TOKEN = "the-servers-token", "one-jobs-token"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scraped")


@pytest.fixture(scope="module")
def jobs(folder: Path) -> Iterator[tuple[LocalJobClient, LocalJobClient]]:
    clients = start_job(folder, "open"), start_job(folder, "closed", **{"headwater.job.token": JOB_TOKEN})
    for client in clients:
        running(client)
    yield clients
    for client in clients:
        end(client)


def scraped(rest: Rest, path: str = "/metrics", token: str | None = None) -> dict[str, dict[str, float]]:
    """{metric: {job name: its sum over subtasks}}"""
    answer = rest.ask("GET", path, token=token)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(answer.raw.decode()):
        assert family.type == "gauge"
        for sample in family.samples:
            by_job = found.setdefault(sample.name, {})
            by_job[sample.labels["job_name"]] = by_job.get(sample.labels["job_name"], 0) + sample.value
    return found


def executors_of(rest: Rest) -> set[str]:
    """The jobs that have executors. Their ids end with the beginning of the job's."""
    return {each["id"].rpartition("-")[2] for each in rest.get("/taskmanagers")["taskmanagers"]}


def test_every_figure_is_there(folder: Path, jobs: tuple[LocalJobClient, LocalJobClient]) -> None:
    task, job = "flink_taskmanager_job_task_", "flink_jobmanager_job_"
    with serving(folder) as rest:
        eventually("a rate", lambda: scraped(rest).get(f"{task}numRecordsInPerSecond", {}).get("open"))
        found = scraped(rest)
    for name in ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut"):
        assert {f"{task}{name}", f"{task}{name}PerSecond"} <= set(found)
    for name in (
        *("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond"),
        *("currentInputWatermark", "currentOutputWatermark", "watermarkLag"),
        *("numLateRecordsDropped", "stateEntries", "stateBytes"),
    ):
        assert f"{task}{name}" in found, name
    for name in (
        *("epochDuration", "planTimeMs", "readTimeMs", "processTimeMs", "ackTimeMs", "cutTimeMs"),
        *("manifestTimeMs", "commitTimeMs", "outputLatency"),
        *("numberOfCompletedCheckpoints", "numberOfFailedCheckpoints", "lastCheckpointDuration", "lastCheckpointSize"),
        "numRestarts",
    ):
        assert f"{job}{name}" in found, name


def test_a_job_with_a_token_is_shown_to_whoever_has_one(
    folder: Path, jobs: tuple[LocalJobClient, LocalJobClient]
) -> None:
    name = "flink_jobmanager_job_epoch"
    closed = jobs[1].get_job_id()
    with serving(folder) as rest:
        assert set(scraped(rest)[name]) == {"open"}
        assert rest.ask("GET", f"/jobs/{closed}/prometheus").status == 401
        assert set(scraped(rest, f"/jobs/{closed}/prometheus", token=JOB_TOKEN)[name]) == {"closed"}
        # Neither are its figures in a sum over jobs, nor its log among the task managers.
        assert rest.get(f"/jobs/metrics?get=numRestarts&jobs={closed}") == []
        assert len(executors_of(rest)) == 1
    with serving(folder, **{"headwater.server.token": TOKEN}) as rest:
        assert rest.ask("GET", "/metrics", token=JOB_TOKEN).status == 403
        assert set(scraped(rest)[name]) == {"open", "closed"}
        assert len(executors_of(rest)) == 2


def test_without_jobs_the_page_is_empty(tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        assert rest.ask("GET", "/metrics").raw == b""
