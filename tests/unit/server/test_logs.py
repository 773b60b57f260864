"""Logs over REST: of a real driver that a real server runs."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from headwater.cli.main import main
from tests.unit.server.jobs.real_servers import ServerProcess, Storage
from tests.unit.server.rest_server import Rest
from tests.waiting import wait_until


class Served(NamedTuple):
    rest: Rest
    job: str
    log: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    storage = Storage(tmp_path_factory.mktemp("logs"))
    folder = storage.submitted_by_hand(100_000, 100)
    server = ServerProcess(storage.path)
    try:
        rest = Rest(int(server.address.rpartition(":")[2]))
        storage.driver()
        wait_until(lambda: rest.ask("GET", f"/jobs/{folder.job_id}/log").status == 200, "the server leads")
        yield Served(rest, folder.job_id, folder.log)
    finally:
        server.end(signal.SIGKILL)
        storage.end_drivers()


def test_a_jobs_log_is_listed_and_read_from_its_end(served: Served) -> None:
    rest, job, _ = served
    whole = rest.ask("GET", f"/jobs/{job}/log")
    assert whole.headers["content-type"] == "text/plain; charset=UTF-8" and b"it begins\n" in whole.raw
    (listed,) = rest.get(f"/jobs/{job}/logs")["logs"]
    assert listed["name"] == "log" and listed["size"] >= len(whole.raw) and listed["mtime"] > 0
    assert rest.ask("GET", f"/jobs/{job}/logs/log").raw.startswith(whole.raw)
    assert len(rest.ask("GET", f"/jobs/{job}/log?tail=5").raw) == 5
    assert rest.ask("GET", f"/jobs/{job}/log?tail=999999999").raw.startswith(whole.raw)
    assert rest.ask("GET", f"/jobs/{job}/log?begin=3").raw.startswith(whole.raw[3:])
    assert rest.ask("GET", f"/jobs/{job}/log?begin=999999999").raw == b""


def test_who_follows_a_log_misses_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither of an empty log, nor a line like the one before it, half a letter, much at once, or an emptied log."""
    written = [b"tick\n", b"tick\n", b"caf\xc3", b"\xa9\n", b"x" * 200_000 + b"\n", b"", b"again\n"]
    left = iter(written)

    def sleep(seconds: float) -> None:
        part = next(left, b"")
        if not part:
            os.truncate(served.log, 0)
        with served.log.open("ab") as file:
            file.write(part)
        if left.__length_hint__() == 0 and next(ends, False):
            raise KeyboardInterrupt

    ends = iter([False, True])
    before = served.log.read_bytes()
    os.truncate(served.log, 0)
    monkeypatch.setattr("headwater.cli.logs.time.sleep", sleep)
    try:
        code = main(["logs", "-m", f"127.0.0.1:{served.rest.port}", served.job, "-f"])
    finally:
        served.log.write_bytes(before)
    assert code == 130 and capsys.readouterr().out == b"".join(written).decode()


@pytest.mark.parametrize("name", ["other", "SUBMISSION", "..%2fSUBMISSION", "%2e%2e%2f%2e%2e", ".", "%00", "log%2f.."])
def test_no_name_reaches_another_file(served: Served, name: str) -> None:
    rest, job, _ = served
    assert rest.ask("GET", f"/jobs/{job}/logs/{name}").status in (400, 404)
    assert rest.ask("GET", f"/jobmanager/logs/{name}").status in (400, 404)


def test_an_executor_shows_the_log_of_its_driver(served: Served) -> None:
    rest, _, _ = served
    wait_until(lambda: rest.get("/taskmanagers")["taskmanagers"], "the first epoch")
    manager = rest.get("/taskmanagers")["taskmanagers"][0]["id"]
    for path in ("log", "stdout"):
        assert b"it begins\n" in rest.ask("GET", f"/taskmanagers/{manager}/{path}").raw
    assert [each["name"] for each in rest.get(f"/taskmanagers/{manager}/logs")["logs"]] == ["log"]
    assert b"it begins\n" in rest.ask("GET", f"/taskmanagers/{manager}/logs/log").raw
    assert rest.ask("GET", f"/taskmanagers/{manager}/logs/SUBMISSION").status == 404


def test_where_logs_are(served: Served) -> None:
    rest, job, _ = served
    wait_until(lambda: rest.get("/taskmanagers")["taskmanagers"], "the first epoch")
    manager = rest.get("/taskmanagers")["taskmanagers"][0]["id"]
    for asked in ("jobmanager", f"taskmanagers/{manager}"):
        url = rest.get(f"/jobs/{job}/{asked}/log-url")["url"]
        assert b"it begins\n" in rest.ask("GET", url.removeprefix(f"http://127.0.0.1:{rest.port}")).raw
    assert rest.ask("GET", f"/jobs/{job}/taskmanagers/nothing/log-url").status == 404


def test_a_server_that_prints_to_a_pipe_has_no_log(served: Served) -> None:
    assert served.rest.get("/jobmanager/logs") == {"logs": []}
    answer = served.rest.ask("GET", "/jobmanager/log")
    assert answer.status == 404 and re.search("has no log file", answer.errors[0])


def test_a_file_that_is_cut_while_it_is_sent_keeps_its_announced_length(tmp_path: Path) -> None:
    import asyncio

    from headwater.server.log_files import _parts

    path = tmp_path / "log"
    path.write_bytes(b"x" * 10)

    async def sent() -> bytes:
        return b"".join([part async for part in _parts(str(path), 0, 25)])

    assert asyncio.run(sent()) == b"x" * 10 + b"\0" * 15
