"""What is done to jobs over REST: savepoint, stop, checkpoint, rescale, cancel, and savepoints thrown away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.checkpoint.savepoint.savepoint import is_savepoint
from headwater.common.job_status import JobStatus
from headwater.runtime.job.handle import LocalJobClient
from headwater.server.http_error import HttpError
from headwater.server.routes.resource_requirements import wanted_parallelism
from tests.unit.server.json_shapes import differences, shape_of
from tests.unit.server.rest_server import Rest, end, eventually, running, serving, start_job

NEVER = re.compile("never")


class Served(NamedTuple):
    rest: Rest
    client: LocalJobClient
    job: str
    folder: Path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    client = start_job(tmp_path)
    try:
        with serving(tmp_path) as rest:
            yield Served(rest, client, running(client), tmp_path)
    finally:
        end(client)


def recorded(name: str, case: str) -> Any:
    text = (Path(__file__).parent / "flink_rest" / f"{name}.json").read_text("utf-8")
    return next(answer["body"] for answer in json.loads(text)["answers"] if answer["case"] == case)


def done(rest: Rest, path: str) -> Any:
    """Wait for the operation; its answers have the shape of Flink's all the time."""

    def completed() -> Any:
        answer = rest.get(path)
        assert answer["status"]["id"] in ("IN_PROGRESS", "COMPLETED")
        if answer["status"]["id"] == "IN_PROGRESS":
            assert answer == recorded("jobs_jobid_savepoints_triggerid.get", "first")
            return None
        return answer

    return eventually(path, completed)["operation"]


def test_a_savepoint_is_made_and_thrown_away(served: Served) -> None:
    rest, _, job, folder = served
    trigger = rest.ask("POST", f"/jobs/{job}/savepoints", {"target-directory": str(folder / "mine")})
    assert trigger.status == 202 and set(trigger.json) == {"request-id"}
    made = done(rest, f"/v1/jobs/{job}/savepoints/{trigger.json['request-id']}")
    expected = shape_of(recorded("jobs_jobid_savepoints_triggerid.get", "later")["operation"])
    assert not list(differences(made, expected, NEVER))
    assert is_savepoint(made["location"]) and Path(made["location"]).parent == folder / "mine"
    latest = rest.get(f"/jobs/{job}/checkpoints")["latest"]
    assert latest["savepoint"]["external_path"] == made["location"] and latest["savepoint"]["is_savepoint"]
    assert latest["restored"] is None and not latest["completed"]["is_savepoint"]
    disposal = rest.ask("POST", "/savepoint-disposal", {"savepoint-path": made["location"]})
    assert disposal.status == 200
    assert done(rest, f"/savepoint-disposal/{disposal.json['request-id']}") == {}
    assert not Path(made["location"]).exists()


def test_only_savepoints_are_thrown_away(served: Served) -> None:
    rest, _, _, folder = served
    (folder / "precious").mkdir()
    (folder / "precious" / "file").write_text("x")
    for path in (folder / "precious", folder / "numbers", folder / "nothing", f"{folder}/numbers/../precious"):
        disposal = rest.ask("POST", "/savepoint-disposal", {"savepoint-path": str(path)}).json["request-id"]
        failure = done(rest, f"/savepoint-disposal/{disposal}")
        expected = recorded("savepoint-disposal_triggerid.get", "unknown")["operation"]
        assert not list(differences(failure, shape_of(expected), NEVER))
    assert (folder / "precious" / "file").exists() and list((folder / "numbers").iterdir())


def test_the_parallelism_changes_by_resource_requirements(served: Served) -> None:
    rest, _, job, _ = served
    path = f"/jobs/{job}/resource-requirements"
    before = rest.get(path)
    vertices = rest.get(f"/jobs/{job}")["vertices"]
    now = {vertex["id"]: vertex["parallelism"] for vertex in vertices}
    assert {vertex: each["parallelism"]["upperBound"] for vertex, each in before.items()} == now
    assert rest.ask("PUT", path, before).json == {}
    more = {vertex: {"parallelism": {"lowerBound": 1, "upperBound": 3}} for vertex in now}
    changed = rest.ask("PUT", path, more)
    assert (changed.status, changed.json) == (200, {}), changed.raw
    assert rest.get(path) == more
    first, *others = now
    for bad in (
        {},
        {first: more[first]},
        more | {"f" * 32: more[first]},
        more | {first: {"parallelism": {"lowerBound": 1, "upperBound": 2}}},
        more | {first: {"parallelism": {"lowerBound": 4, "upperBound": 3}}},
        more | {first: {"parallelism": {"upperBound": -1}}},
        more | {first: 3},
    ):
        assert rest.ask("PUT", path, bad).status == 400, bad
    assert rest.get(path) == more and others
    for malformed in (b"[1]", b" ", b"{"):
        assert rest.ask("PUT", path, malformed).status == 400


def test_a_vertex_whose_parallelism_the_program_sets_keeps_it() -> None:
    def bounds(**upper: int) -> dict[str, object]:
        return {vertex: {"parallelism": {"lowerBound": 1, "upperBound": each}} for vertex, each in upper.items()}

    assert wanted_parallelism(bounds(a=4, b=1), {"a": 2, "b": 1}, 2) == 4
    with pytest.raises(HttpError, match="vertex b keeps parallelism 1"):
        wanted_parallelism(bounds(a=4, b=4), {"a": 2, "b": 1}, 2)


def test_stop_ends_the_job_with_a_savepoint_that_is_told_afterwards(served: Served) -> None:
    rest, client, job, folder = served
    trigger = rest.ask("POST", f"/jobs/{job}/stop", {"drain": True}).json["request-id"]
    made = done(rest, f"/jobs/{job}/savepoints/{trigger}")
    assert is_savepoint(made["location"]) and Path(made["location"]).parent == folder / "savepoints"
    client.get_job_execution_result().result(30)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert rest.get(f"/jobs/{job}/stop/{trigger}")["operation"] == made
    assert rest.ask("GET", f"/jobs/{job}").status == 404


def test_a_job_tells_what_it_was_restored_from(served: Served) -> None:
    rest, _, job, folder = served
    trigger = rest.ask("POST", f"/jobs/{job}/stop", {}).json["request-id"]
    made = done(rest, f"/jobs/{job}/stop/{trigger}")["location"]
    again = start_job(folder, "again", **{"execution.state-recovery.path": made})
    try:
        restored = rest.get(f"/jobs/{running(again)}/checkpoints")["latest"]["restored"]
        assert restored["is_savepoint"] and restored["external_path"] == made and restored["restore_timestamp"] > 0
        assert set(restored) == set(recorded("jobs_jobid_checkpoints.get", "failed")["latest"]["restored"])
    finally:
        end(again)


def test_a_checkpoint_is_made_now(served: Served) -> None:
    rest, _, job, _ = served
    trigger = rest.ask("POST", f"/jobs/{job}/checkpoints", {"checkpointType": "FULL"})
    assert trigger.status == 202
    made = done(rest, f"/jobs/{job}/checkpoints/{trigger.json['request-id']}")
    assert set(made) == {"checkpointId"}
    history = eventually("it in the history", lambda: rest.get(f"/jobs/{job}/checkpoints")["latest"]["completed"])
    assert history["id"] >= made["checkpointId"]


def test_the_parallelism_is_changed(served: Served) -> None:
    rest, _, job, _ = served
    vertices = {vertex["parallelism"] for vertex in rest.get(f"/jobs/{job}")["vertices"]}
    assert vertices == {2}
    trigger = rest.ask("PATCH", f"/jobs/{job}/rescaling?parallelism=3").json["request-id"]
    assert done(rest, f"/jobs/{job}/rescaling/{trigger}") == {}
    assert {vertex["parallelism"] for vertex in rest.get(f"/jobs/{job}")["vertices"]} == {3}
    # The program fixes the parallelism of all operators: nothing can be done, and that is no success.
    fixed = start_job(served.folder, "fixed", fixed_parallelism=1)
    try:
        path = f"/jobs/{running(fixed)}/rescaling"
        refused = done(rest, f"{path}/{rest.ask('PATCH', f'{path}?parallelism=3').json['request-id']}")
        assert "the job keeps parallelism 1: the program sets it" in refused["failure-cause"]["stack-trace"]
    finally:
        end(fixed)
    for bad in ("", "?parallelism=-1", "?parallelism=x", "?parallelism=1.5"):
        assert rest.ask("PATCH", f"/jobs/{job}/rescaling{bad}").status == 400
    impossible = rest.ask("PATCH", f"/jobs/{job}/rescaling?parallelism=100000").json["request-id"]
    assert "expected a parallelism" in done(rest, f"/jobs/{job}/rescaling/{impossible}")["failure-cause"]["stack-trace"]


def test_a_job_is_cancelled(served: Served) -> None:
    rest, client, job, _ = served
    assert rest.ask("PATCH", f"/jobs/{job}?mode=nonsense").status == 400
    assert rest.ask("PATCH", f"/jobs/{job}?mode=stop").status == 410
    assert client.get_job_status().result() is JobStatus.RUNNING
    answer = rest.ask("PATCH", f"/jobs/{job}?mode=cancel")
    assert (answer.status, answer.json) == (202, {})
    eventually("its end", lambda: client.get_job_status().result() is JobStatus.CANCELED)


def test_a_client_may_ask_twice_with_one_trigger_id(served: Served) -> None:
    rest, _, job, folder = served
    body = {"triggerId": "a" * 32, "target-directory": str(folder / "once")}
    for _ in range(2):
        assert rest.ask("POST", f"/jobs/{job}/savepoints", body).json == {"request-id": "a" * 32}
    done(rest, f"/jobs/{job}/savepoints/{'a' * 32}")
    assert len(list((folder / "once").iterdir())) == 1
    assert rest.ask("POST", f"/jobs/{job}/savepoints", {"triggerId": "../x"}).status == 400


def test_a_malformed_body_does_nothing(served: Served) -> None:
    rest, client, job, _ = served
    for body in (b"{", b"[]", b'"x"', b"[" * 100_000, b'{"drain": 1}', b'{"targetDirectory": {}}', b"\xff"):
        assert rest.ask("POST", f"/jobs/{job}/stop", body).status == 400
    assert client.get_job_status().result() is JobStatus.RUNNING
