"""Who may ask what: every route of the table with no token, a wrong one, and that of another job."""

from __future__ import annotations

import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.common import Configuration
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.server.gate import Gate, is_loopback
from headwater.server.rest_settings import RestSettings
from headwater.server.route import Access, Route
from headwater.server.routes import ROUTES
from tests.unit.server.rest_server import Rest, end, running, serving, start_job

TOKEN, JOB_TOKEN, OTHER_JOB_TOKEN = "the-servers-token", "one-jobs-token", "another-jobs-token"
PROTECTED = [route for route in ROUTES if route.access is not Access.PUBLIC]


class NoSubmissions:
    def submit(self, program: Path, request: Any) -> str:
        raise HeadwaterError("nothing is run here")


class Served(NamedTuple):
    rest: Rest
    job: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a token, and two jobs with tokens of their own."""
    folder = tmp_path_factory.mktemp("gate")
    one = start_job(folder, "one", **{"headwater.job.token": JOB_TOKEN})
    other = start_job(folder, "other", **{"headwater.job.token": OTHER_JOB_TOKEN})
    job = running(one)
    try:
        with serving(folder, submissions=NoSubmissions(), **{"headwater.server.token": TOKEN}) as rest:
            rest.token = None  # each test sends its own
            yield Served(rest, job)
    finally:
        end(one)
        end(other)


def path_of(route: Route, job: str) -> str:
    names = {"jobid": job, "subtaskindex": "0", "attempt": "0", "checkpointid": "1", "jarid": "x_y.py"}
    return re.sub(r":(\w+)", lambda name: names.get(name[1], "f" * 32), route.path)


@pytest.mark.parametrize("route", PROTECTED, ids=lambda route: f"{route.method} {route.path}")
def test_no_wrong_and_another_jobs_token_open_nothing(served: Served, route: Route) -> None:
    path = path_of(route, served.job)
    nothing = served.rest.ask(route.method, path)
    assert nothing.status == 401 and nothing.headers["www-authenticate"] == "Bearer" and nothing.errors
    for wrong in ("x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), OTHER_JOB_TOKEN):
        assert served.rest.ask(route.method, path, token=wrong).status == 403, wrong
    if route.access is Access.CLUSTER:
        assert served.rest.ask(route.method, path, token=JOB_TOKEN).status == 403


@pytest.mark.parametrize("route", [route for route in PROTECTED if route.method == "GET"], ids=lambda route: route.path)
def test_the_servers_token_opens_everything_and_a_jobs_token_its_job(served: Served, route: Route) -> None:
    path = path_of(route, served.job)
    assert served.rest.ask("GET", path, token=TOKEN).status not in (401, 403)
    if route.access is Access.JOB:
        assert served.rest.ask("GET", path, token=JOB_TOKEN).status not in (401, 403)


def test_who_may_not_ask_is_not_told_what_there_is(served: Served) -> None:
    for path in ("/nothing", "/jobs/malformed", f"/jobs/{'f' * 32}", "/jobs/%ff", "/jars/../../etc"):
        assert served.rest.ask("GET", path).status in (400, 401)
        assert served.rest.ask("GET", path, token="wrong").status in (400, 403)
    assert served.rest.ask("DELETE", "/jobs").status == 401


def test_a_token_comes_as_a_bearer_and_once(served: Served) -> None:
    for value in (f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN} {TOKEN}", ""):
        assert served.rest.ask("GET", "/jobs", headers={"Authorization": value}).status == 401
    assert served.rest.ask("GET", "/jobs", headers={"authorization": f"bearer  {TOKEN}"}).status == 200


def test_a_jobs_token_protects_it_also_where_the_server_has_none(tmp_path: Path) -> None:
    client = start_job(tmp_path, **{"headwater.job.token": JOB_TOKEN})
    with serving(tmp_path) as rest:
        job = running(client)
        assert rest.ask("GET", "/jobs").status == 200
        assert rest.ask("GET", f"/jobs/{job}").status == 401
        assert rest.ask("PATCH", f"/jobs/{job}").status == 401
        assert rest.ask("PATCH", f"/jobs/{job}", token="x").status == 403
        assert rest.ask("GET", f"/jobs/{job}", token=JOB_TOKEN).status == 200
        end(client)
        assert rest.ask("GET", f"/jobs/{job}/savepoints/{'f' * 32}").status == 401  # it has ended, its token has not


# --- other sites


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with serving(tmp_path_factory.mktemp("open"), **{"headwater.server.allowed-hosts": "proxy.example"}) as rest:
        yield rest


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "127.8.8.8", "[::1]:8081", "proxy.example"]
)
def test_loopback_names_are_answered(open_server: Rest, host: str) -> None:
    assert open_server.ask("GET", "/overview", headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"])
def test_a_name_that_was_bound_to_loopback_is_refused(open_server: Rest, host: str) -> None:
    assert open_server.ask("GET", "/overview", headers={"Host": host}).status == 403


@pytest.mark.parametrize("host", ["", "a b", "localhost:x", "localhost/", "user@localhost", "[::1", "locälhost"])
def test_a_malformed_host_is_refused(open_server: Rest, host: str) -> None:
    assert open_server.ask("GET", "/overview", headers={"Host": host.encode("latin-1").decode("latin-1")}).status == 400


def test_pages_of_other_sites_change_nothing(open_server: Rest) -> None:
    own = f"http://127.0.0.1:{open_server.port}"
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[bad"},
        {"Origin": own.replace("127.0.0.1", "localhost")},
        {"Origin": f"http://127.0.0.1:{open_server.port + 1}"},
        {"Origin": own, "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        for method, path in (("PATCH", f"/jobs/{'f' * 32}"), ("POST", "/jars/upload"), ("DELETE", "/jars/x")):
            assert open_server.ask(method, path, headers=headers).status == 403, headers
    for headers in ({"Origin": own}, {"Origin": own, "Sec-Fetch-Site": "same-origin"}, {}):
        assert open_server.ask("PATCH", f"/jobs/{'f' * 32}", headers=headers).status == 404


def test_answers_carry_headers_for_browsers_and_no_cors(open_server: Rest) -> None:
    for path in ("/overview", "/nothing"):
        answer = open_server.ask("GET", path, headers={"Origin": "http://evil.example"})
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers


# --- where it may listen


@pytest.mark.parametrize("address", ["0.0.0.0", "192.168.1.7", "::", "example.org", "", "127.0.0.1.example.org"])
def test_another_address_needs_a_token(address: str) -> None:
    with pytest.raises(ConfigurationError, match="token"):
        Gate(address)
    Gate(address, TOKEN)
    assert not is_loopback(address)


def test_the_token_is_in_no_repr_and_in_no_error(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    settings = RestSettings.of(Configuration.from_dict({"headwater.server.token-file": str(file)}))
    assert settings.gate.token == TOKEN and TOKEN not in repr(settings)
    file.chmod(0o640)
    with pytest.raises(ConfigurationError, match="others can read"):
        RestSettings.of(Configuration.from_dict({"headwater.server.token-file": str(file)}))


@pytest.mark.parametrize(
    "settings,problem",
    [
        ({"headwater.server.token": "ä b"}, "printable ASCII"),
        ({"headwater.server.token": "a", "headwater.server.token-file": "/x"}, "both set"),
        ({"headwater.server.token-file": "/no/such/file"}, "cannot read"),
        ({"headwater.server.tls-cert": "/x"}, "go together"),
        ({"headwater.server.tls-cert": "/x", "headwater.server.tls-key": "/x"}, "cannot read"),
        ({"rest.port": "http"}, "expected a port"),
        ({"rest.port": "90-80"}, "expected a port"),
        ({"rest.port": "70000"}, "expected a port"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        RestSettings.of(Configuration.from_dict(settings))


def test_ports_are_flinks() -> None:
    def ports(text: str) -> tuple[int, ...]:
        return RestSettings.of(Configuration.from_dict({"rest.port": text})).ports

    assert ports("8081-8083") == (8081, 8082, 8083) and ports("0") == (0,) and ports("1, 5-6") == (1, 5, 6)
    assert ports("8081")[:2] == (8081, 8082)


def test_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    paths = {"headwater.server.tls-cert": str(certificate), "headwater.server.tls-key": str(key)}
    with serving(tmp_path, **paths) as rest:
        rest.tls = ssl.create_default_context(cafile=str(certificate))
        assert rest.get("/jobs") == {"jobs": []}
    with (
        pytest.raises(ConfigurationError, match="cannot be used"),
        serving(tmp_path, **{**paths, "headwater.server.tls-key": str(certificate)}),
    ):
        pass
