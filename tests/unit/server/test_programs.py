"""Uploads: they arrive whole, under a name that cannot leave the folder, and are run with what the client says."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from headwater.common.errors import HeadwaterError
from headwater.server.cluster import RunRequest
from tests.unit.server.rest_server import Answer, Rest, serving

TRAVERSAL = (
    "../evil.py", "..%2fevil.py", "/etc/evil.py", "..", ".", "", ".hidden.py", "a/b.py", "a\\b.py", "..\\evil.py",
    "evil.py\0.py", "evil\n.py", "~/evil.py", "file:evil.py", "C:\\evil.py", "%2e%2e%2fevil.py", "....//evil.py",
    "x" * 300 + ".py", "é.py", "evil.sh", "evil", "evil.py ", "con|x.py", "$(x).py", "`x`.py", "-rf;.py",
)  # fmt: skip


class Submitted:
    """Remembers what it was asked to run."""

    def __init__(self) -> None:
        self.requests: list[tuple[Path, RunRequest]] = []

    def submit(self, program: Path, request: RunRequest) -> str:
        self.requests.append((program, request))
        if "fail" in request.program_args:
            raise HeadwaterError("the program ended: NameError")
        return request.job_id or "1" * 32

    def plan(self, program: Path, request: RunRequest) -> dict[str, Any]:
        self.requests.append((program, request))
        if "fail" in request.program_args:
            raise HeadwaterError("the program has no plan: NameError")
        return {"nodes": []}


class Served(NamedTuple):
    rest: Rest
    submitted: Submitted
    folder: Path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    submitted = Submitted()
    with serving(tmp_path, submissions=submitted, **{"rest.server.max-content-length": "64 kb"}) as rest:
        yield Served(rest, submitted, tmp_path)


def upload(rest: Rest, name: str, content: bytes = b"print(1)", path: str = "/jars/upload") -> Answer:
    disposition = f'Content-Disposition: form-data; name="jarfile"; filename="{name}"'.encode()
    body = b"--mark\r\n" + disposition + b"\r\nContent-Type: text/x-python\r\n\r\n" + content + b"\r\n--mark--\r\n"
    return rest.ask("POST", path, body, headers={"Content-Type": "multipart/form-data; boundary=mark"})


def test_a_program_is_uploaded_listed_run_and_deleted(served: Served) -> None:
    rest, submitted, _ = served
    content = bytes(range(256)) * 100
    answer = upload(rest, "job.py", content)
    assert answer.status == 200 and answer.json["status"] == "success"
    path = Path(answer.json["filename"])
    assert path.read_bytes() == content and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (listed,) = rest.get("/jars")["files"]
    assert listed["name"] == "job.py" and listed["id"] == path.name and rest.get("/programs")["files"] == [listed]
    helper = upload(rest, "helper.whl", path="/programs/upload").json["filename"].rpartition("/")[2]
    sent = {
        "programArgsList": ["--a", "b c"],
        "parallelism": 2,
        "jobId": "A" * 32,
        "flinkConfiguration": {"a.b": True, "c": 1},
        "pythonFiles": [helper],
        "savepointPath": "/sp",
        "unknown": 1,
    }
    run = rest.ask("POST", f"/jars/{listed['id']}/run", sent)
    assert run.json == {"jobid": "a" * 32, "applicationId": "a" * 32}
    ((program, request),) = submitted.requests
    assert program == path and request.program_args == ("--a", "b c") and request.parallelism == 2
    assert request.configuration == {"a.b": "true", "c": "1"} and request.savepoint_path == "/sp"
    assert [each.name for each in request.python_files] == [helper]
    query = "?program-args=x+%22y+z%22&parallelism=3&allowNonRestoredState=true"
    assert rest.ask("POST", f"/programs/{listed['id']}/run{query}").status == 200
    assert submitted.requests[-1][1] == RunRequest(
        program_args=("x", "y z"), parallelism=3, allow_non_restored_state=True
    )
    failed = rest.ask("POST", f"/jars/{listed['id']}/run", {"programArgs": "fail"})
    assert failed.status == 400 and failed.errors == ["the program ended: NameError"]
    assert rest.ask("DELETE", f"/jars/{listed['id']}").json == {}
    assert rest.ask("DELETE", f"/jars/{listed['id']}").status == 404
    assert rest.ask("POST", f"/jars/{listed['id']}/run", {}).status == 404


@pytest.mark.parametrize("name", TRAVERSAL)
def test_no_name_leaves_the_folder(served: Served, name: str) -> None:
    rest, _, folder = served
    upload(rest, "job.py")
    before = files(folder)
    answer = upload(rest, name)
    if name == "C:\\evil.py":  # the reader of uploads drops what old browsers put before a name
        assert answer.status == 200 and Path(answer.json["filename"]).parent == folder / "state" / "programs"
    else:
        assert answer.status == 400 and files(folder) == before


@pytest.mark.parametrize("name", TRAVERSAL)
def test_no_id_reaches_another_file(served: Served, name: str) -> None:
    rest, submitted, folder = served
    upload(rest, "job.py")
    (folder / "state" / "x_evil.py").write_text("x")
    before = files(folder)
    for sent in {quote(name, safe=""), quote(name.replace("evil.py", "x_evil.py"), safe="")}:
        assert rest.ask("DELETE", f"/jars/{sent}").status in (400, 404, 405)
        assert rest.ask("POST", f"/jars/{sent}/run", {}).status in (400, 404, 405)
    assert files(folder) == before and not submitted.requests


def test_a_link_in_the_folder_is_no_program(served: Served) -> None:
    rest, _, folder = served
    path = Path(upload(rest, "job.py").json["filename"])
    (folder / "secret").write_text("x")
    (path.parent / "a_link.py").symlink_to(folder / "secret")
    assert [each["name"] for each in rest.get("/jars")["files"]] == ["job.py"]
    assert rest.ask("DELETE", "/jars/a_link.py").status == 404 and (folder / "secret").exists()


def test_what_is_too_long_is_refused_and_leaves_nothing(served: Served) -> None:
    rest, _, folder = served
    upload(rest, "job.py")
    before = files(folder)
    assert upload(rest, "big.py", b"x" * 70_000).status == 413
    assert files(folder) == before


@pytest.mark.parametrize(
    "kind,body",
    [
        ("", b"x"),
        ("application/json", b"{}"),
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=", b""),
        ("multipart/form-data; boundary=m", b""),
        ("multipart/form-data; boundary=m", b"--m\r\n"),
        ("multipart/form-data; boundary=m", b"--m\r\nContent-Disposition: x\r\n\r\nx\r\n--m--\r\n"),
        ("multipart/form-data; boundary=m", b'--m\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--m--\r\n'),
        ("multipart/form-data; boundary=m", b"\xff" * 1000),
        ("multipart/form-data; boundary=" + "m" * 300, b"--m"),
        ("multipart/form-data; boundary=\xff", b"--m"),
    ],
)
def test_a_malformed_upload_is_refused(served: Served, kind: str, body: bytes) -> None:
    assert served.rest.ask("POST", "/jars/upload", body, headers={"Content-Type": kind}).status == 400


def test_two_files_are_refused(served: Served) -> None:
    part = b'--m\r\nContent-Disposition: form-data; name="f"; filename="a.py"\r\n\r\nx\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=m"}
    assert served.rest.ask("POST", "/jars/upload", part + part + b"--m--\r\n", headers=headers).status == 400


def test_a_server_of_one_job_takes_no_programs(tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        assert upload(rest, "job.py").status == 404
        assert rest.ask("GET", "/jars").status == 404 and rest.ask("POST", "/jars/x/run", {}).status == 404


def files(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_the_plan_of_a_program_is_asked_with_a_query_or_a_body(served: Served) -> None:
    rest, submitted, _ = served
    path = f"/jars/{upload(rest, 'job.py').json['filename'].rpartition('/')[2]}/plan"
    assert rest.get(f"{path}?programArg=a,b&parallelism=3") == {"plan": {"nodes": []}}
    assert rest.ask("POST", path, {"programArgsList": ["a", "b"], "parallelism": 3}).json == {"plan": {"nodes": []}}
    (_, one), (_, other) = submitted.requests
    assert one == other and one.program_args == ("a", "b") and one.parallelism == 3
    failed = rest.ask("GET", f"{path}?programArg=fail")
    assert failed.status == 400 and "NameError" in failed.errors[0]
    assert rest.ask("GET", "/jars/nothing.py/plan").status == 404
