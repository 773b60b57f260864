"""Every question that real Flink was asked (`flink_rest/`) is asked here again, about jobs in the same states.

The answer must have the same fields of the same types, and an error the same status. What differs is listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.common.errors import HeadwaterError
from headwater.server.routes import ROUTES
from tests.unit.server.json_shapes import differences, shape_of
from tests.unit.server.kept_history import KeptHistory
from tests.unit.server.rest_server import Rest, end, running, serving, start_job

FILES = sorted((Path(__file__).parent / "flink_rest").glob("*.json"))
RECORDED = [json.loads(path.read_text("utf-8")) for path in FILES]
NOT_SERVED = {
    "/datasets": "no cached intermediate results",
    "/metrics": "Flink has a port of its own for Prometheus; here it is a route",
}
OURS = {
    r"/jobmanager/stdout \w+": 200,  # the recorded cluster had no such file
    r"/taskmanagers/:taskmanagerid unknown": 404,  # Flink: 500
    r"/jobs/:jobid/resource-requirements running": 200,  # Flink: 500, its default scheduler has none
    r"/jobs/:jobid/resource-requirements (finished|failed|cancelled)": 409,  # Flink: 500
    r"/jobs/:jobid/rescaling/:triggerid unknown trigger": 404,  # Flink: 503, it is switched off there
    r".* unknown( vertex| subtask)?( \d)?": 404,  # Flink: its metrics and settings of what does not exist are empty
}
"""{route and case: status here, where it is not Flink's}. The first one that matches counts."""
IN_OTHER_TESTS = re.compile(
    r"/jars/:jarid/plan jar|"
    r".*:triggerid (first|later|stopped|savepoint|unknown$)|/taskmanagers/:taskmanagerid/(log|stdout) task"
)
"""They need an operation, a log, or a program: `test_operations.py`, `test_logs.py`, `test_session.py`."""
MAY_BE_EMPTY = re.compile(
    "user-task-accumulators|user-accumulators|concurrentExceptions|garbageCollectors|options|logs|jars|jvm/|"
    "taskmanagers/:taskmanagerid/metrics|jobmanager/metrics"
)


class Jobs(NamedTuple):
    rest: Rest
    ids: dict[str, str]
    """{case of the recording: job}"""


class NoSubmissions:
    def submit(self, program: Path, request: Any) -> str:
        raise HeadwaterError("nothing is run here")

    def plan(self, program: Path, request: Any) -> dict[str, Any]:
        raise HeadwaterError("nothing is planned here")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    folder = tmp_path_factory.mktemp("contract")
    clients = {
        "running": start_job(folder, "running"),
        "finished": start_job(folder, "finished", count=100),
        "failed": start_job(folder, "failed", count=100, fails_at=80, **{"headwater.epoch.max-records": "10"}),
        "cancelled": start_job(folder, "cancelled"),
    }
    clients["finished"].get_job_execution_result().result(60)
    with pytest.raises(HeadwaterError, match="number 80"):
        clients["failed"].get_job_execution_result().result(60)
    running(clients["cancelled"])
    end(clients["cancelled"])
    running(clients["running"])
    log = folder / "server.log"
    log.write_text("a line\n")
    history = KeptHistory(clients["failed"], clients["finished"], clients["cancelled"])
    try:
        with serving(folder, history=history, submissions=NoSubmissions(), log_file=str(log)) as rest:
            yield Jobs(rest, {case: str(client.get_job_id()) for case, client in clients.items()})
    finally:
        end(clients["running"])


def test_every_route_of_flink_is_served_or_named_here() -> None:
    ours = {(route.method, route.path) for route in ROUTES}
    asked = {(each["method"], each["route"]) for each in RECORDED if each["method"] != "ANY"}
    assert {(method, path) for method, path in asked - ours if path not in NOT_SERVED} == {("GET", "/nothing-here")}


def questions() -> Iterator[Any]:
    for recorded in RECORDED:
        for number, answer in enumerate(recorded["answers"]):
            what = f"{recorded['route']} {answer['case']}"
            if recorded["method"] == "GET" and recorded["route"] not in NOT_SERVED and not IN_OTHER_TESTS.match(what):
                yield pytest.param(recorded["route"], answer, id=f"{what} {number}")


@pytest.mark.parametrize("route,recorded", list(questions()))
def test_the_answer_has_the_shape_of_flinks(jobs: Jobs, route: str, recorded: dict[str, Any]) -> None:
    path = translated(jobs, route, recorded)
    answer = jobs.rest.ask("GET", path)
    what = f"{route} {recorded['case']}"
    expected = next((status for pattern, status in OURS.items() if re.fullmatch(pattern, what)), recorded["status"])
    expected = 400 if recorded["status"] == 400 else expected
    assert answer.status == expected, (path, answer.raw[:300])
    if expected != 200:
        assert answer.errors
    elif isinstance(recorded["body"], (dict, list)) and recorded["status"] == 200:
        problems = list(differences(answer.json, shape_of(recorded["body"]), MAY_BE_EMPTY, route))
        assert not problems, problems


def translated(jobs: Jobs, route: str, recorded: dict[str, Any]) -> str:
    """The recorded path with the ids of our jobs, vertices, checkpoints and executors."""
    path, _, query = recorded["path"].partition("?")
    found = re.fullmatch(re.sub(r":(\w+)", r"(?P<\1>[^/]+)", route), path)
    assert found is not None, path
    names = found.groupdict()
    job = jobs.ids.get(recorded["case"].split()[0], jobs.ids["running"])
    if "jobid" in names and not re.fullmatch("f{32}|not-a-job-id", names["jobid"]):
        names["jobid"] = job
    if "vertexid" in names and not re.fullmatch("f{32}|no-vertex", names["vertexid"]):
        vertices = [vertex["id"] for vertex in jobs.rest.get(f"/jobs/{job}")["vertices"]]
        is_source = names["vertexid"] == recorded_source() and "checkpoints" not in route
        names["vertexid"] = vertices[0 if is_source else 1]
    if names.get("checkpointid", "x").isdigit() and names["checkpointid"] != "99999999":
        names["checkpointid"] = str(jobs.rest.get(f"/jobs/{job}/checkpoints")["latest"]["completed"]["id"])
    if names.get("taskmanagerid", "nothing") != "nothing":
        names["taskmanagerid"] = jobs.rest.get("/taskmanagers")["taskmanagers"][0]["id"]
    filled = re.sub(r":(\w+)", lambda name: names[name[1]], route)
    return f"{filled}?{query}" if query else filled


def test_the_accumulators_of_an_attempt_and_what_is_measured_in_the_job_manager(jobs: Jobs) -> None:
    vertex = (
        f"/jobs/{jobs.ids['running']}/vertices/{jobs.rest.get('/jobs/' + jobs.ids['running'])['vertices'][1]['id']}"
    )
    (by_subtask, *_) = jobs.rest.get(f"{vertex}/subtasks/accumulators")["subtasks"]
    found = jobs.rest.get(f"{vertex}/subtasks/0/attempts/0/accumulators")
    assert set(found) == {"subtask", "attempt", "id", "user-accumulators"}
    assert (found["subtask"], found["attempt"]) == (by_subtask["subtask"], by_subtask["attempt"]) == (0, 0)
    assert [each["name"] for each in found["user-accumulators"]] == [e["name"] for e in by_subtask["user-accumulators"]]
    assert jobs.rest.ask("GET", f"{vertex}/subtasks/0/attempts/7/accumulators").status == 404
    assert jobs.rest.get(f"{vertex}/jm-operator-metrics") == []


def recorded_source() -> str:
    (plan,) = (each for each in RECORDED if each["route"] == "/jobs/:jobid/plan")
    nodes = plan["answers"][0]["body"]["plan"]["nodes"]
    return next(str(node["id"]) for node in nodes if "inputs" not in node)


def test_the_comparison_can_fail() -> None:
    shape, never = shape_of({"a": 1, "b": [{"c": "x"}]}), re.compile("never")
    assert not list(differences({"a": 2, "b": [{"c": "y"}]}, shape, never))
    assert list(differences({"a": 2}, shape, never)) == ["/b is missing"]
    assert list(differences({"a": "2", "b": []}, shape, never)) == ["/a: str instead of number", "/b is empty"]
    assert list(differences({"a": 2, "b": [{}], "d": 1}, shape, never)) == ["/d is new", "/b[]/c is missing"]
