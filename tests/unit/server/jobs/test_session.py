"""A session server and its drivers, as real processes: whatever is killed, a job runs once, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.machine.processes import start_time
from headwater.runtime.epoch.restart_policy import FixedDelay
from headwater.runtime.job.run_directory import token_digest
from headwater.server.cluster import RunRequest
from headwater.server.http_error import HttpError
from headwater.server.jobs import supervisor
from headwater.server.jobs.job_folder import JobFolder, job_ids
from headwater.server.jobs.records import DriverEnd, DriverRecord, JobRecord, Order
from headwater.server.jobs.session_jobs import SessionJobs, SubmissionFailedError
from tests.unit.server.jobs.real_servers import ServerProcess, Storage, expected, server_here
from tests.unit.server.json_shapes import differences, shape_of
from tests.waiting import wait_until

ROUNDS = int(os.environ.get("SERVER_ROUNDS", "1"))
pytestmark = pytest.mark.timeout(120 * ROUNDS)
TAKEOVER_SECONDS = float(os.environ.get("TAKEOVER_SECONDS", "60"))
"""A busy machine needs patience. `make test-long` allows the ten seconds that are promised."""


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    storage = Storage(tmp_path)
    yield storage
    storage.end_drivers()


@pytest.fixture
def servers(storage: Storage) -> Iterator[list[ServerProcess]]:
    started: list[ServerProcess] = []
    yield started
    for each in started:
        each.end(signal.SIGKILL)


def get(address: str, path: str) -> Any:
    with urllib.request.urlopen(address + path, timeout=30) as answer:
        return json.load(answer)


def leads(server: ServerProcess) -> bool:
    request = urllib.request.Request(f"{server.address}/jobs")
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        opener = urllib.request.build_opener(_NoRedirect)
        return bool(opener.open(request, timeout=30).status == 200)
    return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


# --- one server


def test_the_plan_of_a_program_is_flinks_and_nothing_is_started(storage: Storage) -> None:
    recorded = Path(__file__).parents[1] / "flink_rest" / "jars_jarid_plan.get.json"
    (shape,) = (a["body"]["plan"] for a in json.loads(recorded.read_text("utf-8"))["answers"] if a["status"] == 200)
    with server_here(storage.path) as server:
        plan = server.plan(storage.program, storage.request(10, 10))
        assert not list(differences(plan, shape_of(shape), re.compile("never")))
        assert plan["name"] == "counts" and len(plan["nodes"]) == 2
        assert server.job_ids() == []
        with pytest.raises(SubmissionFailedError, match="IndexError"):
            server.plan(storage.program, RunRequest())
        storage.program.write_text("print(1)")
        with pytest.raises(SubmissionFailedError, match="without a call of execute"):
            server.plan(storage.program, RunRequest())


def test_a_program_runs_to_its_end_and_is_kept_in_history(storage: Storage) -> None:
    with server_here(storage.path) as jobs:
        job_id = jobs.submit(storage.program, storage.request(60, 1_000))
        assert jobs.job_ids() == [job_id]
        wait_until(lambda: storage.folder().has_ended, "it ends")
        told = jobs.answer(job_id, "describe")
        assert told is not None
        assert (told["status"], told["name"], told["job_id"]) == ("FINISHED", "counts", job_id)
        assert told["end_time"] >= told["start_time"] and told["plan"]["nodes"] and told["config"]
        checkpoints = jobs.answer(job_id, "checkpoints")
        assert checkpoints and jobs.answer(job_id, "checkpoint", id=checkpoints[-1]["epoch"])["vertices"]
        assert jobs.answer(job_id, "exceptions") == {"entries": [], "truncated": False}
        figures = jobs.answer(job_id, "metrics")
        assert figures is not None and figures["job"]["numRecordsIn"] == 60 and figures["history"]
        assert "it begins" in storage.folder().log.read_text()
        with pytest.raises(HeadwaterError, match="has ended already"):
            jobs.cancel(job_id)
    assert storage.results() == expected(60)


def test_a_killed_driver_is_started_again_and_nothing_comes_twice(storage: Storage) -> None:
    with server_here(storage.path) as jobs:
        job_id = jobs.submit(storage.program, storage.request(300, 150))
        for number in (1, 2):
            seen = len(storage.results())
            wait_until(lambda seen=seen: len(storage.results()) > seen, "it has committed output")  # type: ignore[misc]
            os.kill(storage.driver(number), signal.SIGKILL)
        wait_until(lambda: storage.folder().has_ended, "it ends")
        assert len(storage.folder().starts()) == 3
        told = jobs.answer(job_id, "exceptions")
        assert told is not None
        assert [entry["exception_name"] for entry in told["entries"]] == ["DriverDied", "DriverDied"]
        assert "signal 9" in told["entries"][0]["message"] and told["entries"][0]["host"] == socket.gethostname()
    assert storage.results() == expected(300)


def test_a_driver_that_dies_too_often_fails_the_job(storage: Storage) -> None:
    with server_here(storage.path, attempts=1) as jobs:
        job_id = jobs.submit(storage.program, storage.request(100_000, 100))
        for number in (1, 2):
            os.kill(storage.driver(number), signal.SIGKILL)
        wait_until(lambda: storage.folder().has_ended, "it is given up")
        assert jobs.answer(job_id, "status")["status"] == "FAILED"  # type: ignore[index]
        kept = storage.folder().history()
        assert kept is not None and "started 2 times, which is the limit" in kept.problem


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("print('hello')\n", "without a call of execute"),
        ("raise RuntimeError('no luck')\n", "RuntimeError: no luck"),
        ("import sys\nsys.exit('left early')\n", "left early"),
        ("this is no python\n", "SyntaxError"),
    ],
)
def test_a_program_that_begins_no_job_is_refused_with_its_last_lines(storage: Storage, program: str, says: str) -> None:
    storage.program.write_text(program)
    with server_here(storage.path) as jobs:
        with pytest.raises(SubmissionFailedError, match=says):
            jobs.submit(storage.program, storage.request(1, 1))
        assert len(storage.folder().starts()) == 1, "a program that failed is not started again"
        (job_id,) = jobs.job_ids()
        told = jobs.answer(job_id, "exceptions")
        assert told is not None and says in told["entries"][0]["stacktrace"]


def test_a_job_that_fails_is_not_started_again(storage: Storage) -> None:
    failing = storage.program.read_text().replace("(a[0], a[1] + b[1])", "1 // 0")
    storage.program.write_text(failing)
    with server_here(storage.path) as jobs:
        with contextlib.suppress(SubmissionFailedError):
            jobs.submit(storage.program, storage.request(60, 1_000))
        wait_until(lambda: storage.folder().has_ended, "it fails")
        (job_id,) = jobs.job_ids()
        told = jobs.answer(job_id, "exceptions")
        assert told is not None and told["entries"][0]["exception_name"] == "ZeroDivisionError"
        assert "1 // 0" in told["entries"][0]["stacktrace"]
    assert len(storage.folder().starts()) == 1


def test_a_cancelled_job_ends_also_between_two_drivers(storage: Storage) -> None:
    with server_here(storage.path) as jobs:
        job_id = jobs.submit(storage.program, storage.request(100_000, 100))
        assert jobs.cancel(job_id)
        os.kill(storage.driver(), signal.SIGKILL)
        wait_until(lambda: storage.folder().has_ended, "it ends")
        assert jobs.answer(job_id, "status")["status"] == "CANCELED"  # type: ignore[index]
        assert not jobs.cancel("f" * 32), "it is nobody's"


def test_a_jobs_token_is_known_also_after_its_end_and_to_the_next_server(storage: Storage) -> None:
    request = storage.request(30, 1_000, **{"headwater.job.token": "one-jobs-token"})
    with server_here(storage.path) as jobs:
        job_id = jobs.submit(storage.program, request)
        wait_until(lambda: storage.folder().has_ended, "it ends")
    with server_here(storage.path) as jobs:
        assert jobs.token_digest(job_id) == token_digest("one-jobs-token")
        assert jobs.token_digest("f" * 32) == ""
    secret = b"one-jobs-token"
    assert secret not in (storage.folder().path / "HISTORY").read_bytes(), "what is shown must not contain it"


def test_a_job_that_is_being_started_says_so(storage: Storage) -> None:
    folder = storage.submitted_by_hand(30, 1_000)
    jobs = SessionJobs(storage.path, FixedDelay(3, 100), 100)  # nobody starts it
    assert jobs.answer(folder.job_id, "describe")["status"] == "INITIALIZING"  # type: ignore[index]
    with pytest.raises(HttpError, match="is being started") as refused:
        jobs.answer(folder.job_id, "metrics")
    assert refused.value.status == 503 and refused.value.headers["Retry-After"]
    with pytest.raises(HttpError, match="stands by") as refused:
        jobs.cancel(folder.job_id)
    assert refused.value.status == 503


def test_a_submission_that_is_repeated_with_its_id_is_the_same(storage: Storage) -> None:
    request = storage.request(100_000, 100)
    chosen = RunRequest(program_args=request.program_args, configuration=request.configuration, job_id="b" * 32)
    with server_here(storage.path) as jobs:
        assert jobs.submit(storage.program, chosen) == jobs.submit(storage.program, chosen) == "b" * 32
        assert len(storage.folder().starts()) == 1
        with pytest.raises(HeadwaterError, match="belongs to another submission"):
            jobs.submit(storage.program, RunRequest(program_args=("else",), job_id="b" * 32))


def test_what_cannot_run_is_refused_before_anything_is_kept(storage: Storage, tmp_path: Path) -> None:
    text = tmp_path / "0_notes.txt"
    text.write_text("")
    with server_here(storage.path) as jobs:
        with pytest.raises(ConfigurationError, match=r"parallelism.default: expected"):
            jobs.submit(storage.program, RunRequest(parallelism=-1))
        with pytest.raises(HeadwaterError, match="two files of the submission have the same name"):
            jobs.submit(storage.program, RunRequest(python_files=(storage.program,)))
        with pytest.raises(HeadwaterError, match=r"expected a Python file or a zip"):
            jobs.submit(text, RunRequest())
        with pytest.raises(HeadwaterError, match="is not a job id"):
            jobs.submit(storage.program, RunRequest(job_id="../../etc"))
    assert job_ids(storage.path) == []


def test_a_zip_and_files_beside_it_are_found_by_the_program(storage: Storage, tmp_path: Path) -> None:
    helper = tmp_path / "0_helper.py"
    helper.write_text("RATE = 1000\n")
    archive = tmp_path / "0_app.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("app/__init__.py", "")
        file.writestr("app/counts.py", "COUNT = 30\n")
        source = storage.program.read_text().replace(
            "int(sys.argv[2]), int(sys.argv[3])", "app.counts.COUNT, helper.RATE"
        )
        file.writestr("app/main.py", "import app.counts\nimport helper\n" + source)
    request = storage.request(0, 0)
    chosen = RunRequest(
        entry_class="app.main",
        program_args=request.program_args,
        configuration=request.configuration,
        python_files=(helper,),
    )
    with server_here(storage.path) as jobs:
        jobs.submit(archive, chosen)
        wait_until(lambda: storage.folder().has_ended, "it ends")
        with pytest.raises(SubmissionFailedError, match=r"app.zip has no __main__.py to run"):
            jobs.submit(archive, RunRequest(configuration=request.configuration))
        bomb = tmp_path / "0_bomb.zip"
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("__main__.py", b"#" * (100 << 20))
        assert bomb.stat().st_size < 200_000
        with pytest.raises(SubmissionFailedError, match=r"has 104,857,600 bytes; at most"):
            jobs.submit(bomb, RunRequest(configuration=request.configuration))
    assert storage.results() == expected(30)


def test_one_damaged_record_does_not_stop_the_other_jobs(storage: Storage) -> None:
    broken = JobFolder(storage.path, "c" * 32)
    broken.create()
    (broken.path / "SUBMISSION").write_bytes(b"?" * 40)
    with server_here(storage.path) as jobs:
        job_id = jobs.submit(storage.program, storage.request(30, 1_000))
        wait_until(lambda: JobFolder(storage.path, job_id).has_ended, "it ends")
        assert jobs.job_ids() == [job_id]
    assert storage.results() == expected(30)


# --- records that another server left


def test_a_job_between_its_driver_and_its_history_says_how_it_stands(storage: Storage) -> None:
    folder = storage.submitted_by_hand(30, 1_000)
    jobs = SessionJobs(storage.path, FixedDelay(1, 0), 5)  # it does not lead, so nobody tends the job

    def status() -> str:
        return str(jobs.answer(folder.job_id, "describe")["status"])  # type: ignore[index]

    assert status() == "INITIALIZING"
    folder.order(1, Order("gone", 1))
    folder.take(1, DriverRecord(os.getpid(), "another boot/1", socket.gethostname(), 1))
    folder.began(1, JobRecord(folder.job_id, "", {"job_id": folder.job_id, "name": "counts", "timestamps": {}}))
    assert status() == "RESTARTING"
    folder.cancel()
    assert status() == "CANCELLING"
    folder.ended(1, DriverEnd("CANCELED", 0, 2))
    assert status() == "CANCELED"


def test_a_pid_that_is_another_process_by_now_is_not_taken_for_the_driver(storage: Storage) -> None:
    folder = storage.submitted_by_hand(30, 1_000)
    folder.order(1, Order("gone", 1))
    folder.take(1, DriverRecord(os.getpid(), "another boot/1", socket.gethostname(), 1))
    with server_here(storage.path):
        wait_until(lambda: folder.has_ended, "it ends")
    assert len(folder.starts()) == 2 and folder.starts()[0].death is not None
    assert storage.results() == expected(30)


def test_an_order_of_a_server_that_died_is_taken_back(storage: Storage) -> None:
    folder = storage.submitted_by_hand(30, 1_000)
    folder.order(1, Order("gone", 1))
    with server_here(storage.path):
        wait_until(lambda: folder.has_ended, "it ends")
    first, second = folder.starts()
    assert first.driver is not None and first.driver.revoked_by and first.death is None
    assert second.end is not None and storage.results() == expected(30)


@pytest.mark.parametrize("resumable", [True, False])
def test_a_job_whose_host_is_silent_goes_on_here_if_it_has_checkpoints(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, resumable: bool
) -> None:
    monkeypatch.setattr(supervisor, "REMOTE_SECONDS", 0.5)
    folder = storage.submitted_by_hand(30, 1_000)
    folder.order(1, Order("elsewhere", 1))
    folder.take(1, DriverRecord(1, "boot/1", "elsewhere", 1))
    folder.began(1, JobRecord(folder.job_id, "", {"job_id": folder.job_id, "name": "counts", "timestamps": {}}
                              | ({"checkpoint_dir": "x"} if resumable else {})))  # fmt: skip
    with server_here(storage.path):
        wait_until(lambda: folder.has_ended, "it ends")
    kept = folder.history()
    assert kept is not None
    assert kept.status == ("FINISHED" if resumable else "FAILED"), kept.problem
    assert len(folder.starts()) == 1 + resumable


def test_a_driver_that_was_replaced_ends(storage: Storage) -> None:
    with server_here(storage.path) as jobs:
        jobs.submit(storage.program, storage.request(100_000, 100))
        driver = storage.folder().starts()[0].driver
    assert driver is not None
    storage.folder().order(2, Order("elsewhere", 1))
    wait_until(lambda: start_time(driver.pid) != driver.start_time, "it ends")
    assert "was started elsewhere; this driver ends" in storage.folder().log.read_text()


# --- servers that are killed or stopped


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_server_that_is_killed_finds_its_jobs_again(
    storage: Storage, servers: list[ServerProcess], round_: int
) -> None:
    folder = storage.submitted_by_hand(100_000, 100)
    servers.append(ServerProcess(storage.path))
    pid = storage.driver()
    assert get(servers[0].address, "/jobs")["jobs"] == [{"id": folder.job_id, "status": "RUNNING"}]
    servers[0].end(signal.SIGKILL)
    seen = len(storage.results())
    wait_until(lambda: len(storage.results()) > seen, "the job goes on without a server")
    servers.append(ServerProcess(storage.path))
    wait_until(lambda: leads(servers[1]), "it leads")
    assert get(servers[1].address, f"/jobs/{folder.job_id}")["state"] == "RUNNING"
    os.kill(pid, signal.SIGKILL)  # it is noticed although it is nobody's child
    storage.driver(2)
    seen = len(storage.results())
    wait_until(lambda: len(storage.results()) > seen, "the second driver goes on where the first one was")
    folder.cancel()
    wait_until(lambda: folder.has_ended, "it ends")
    assert [start.death is not None for start in folder.starts()] == [True, False]
    results = storage.results()
    assert results == expected(len(results)), "nothing is lost, and nothing came twice"
    assert get(servers[1].address, f"/jobs/{folder.job_id}")["state"] == "CANCELED"


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_second_server_takes_over(
    storage: Storage, servers: list[ServerProcess], how: signal.Signals, round_: int
) -> None:
    folder = storage.submitted_by_hand(100_000, 100)
    servers.append(ServerProcess(storage.path))
    pid = storage.driver()
    servers.append(ServerProcess(storage.path))
    first, second = servers
    assert not leads(second)
    assert get(second.address, "/jobs")["jobs"][0]["id"] == folder.job_id, "the client is sent to the leader"
    first.process.send_signal(how)
    wait_until(lambda: leads(second), "the second one leads", TAKEOVER_SECONDS)
    assert get(second.address, "/jobs")["jobs"] == [{"id": folder.job_id, "status": "RUNNING"}]
    assert storage.driver() == pid and len(folder.starts()) == 1, "the job was adopted, not started again"
    if how is signal.SIGSTOP:
        first.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not leads(first), "the first one refuses")
        assert leads(second)
    os.kill(pid, signal.SIGKILL)
    assert storage.driver(2) != pid
    drivers = [start.driver for start in folder.starts()]
    assert len(drivers) == 2


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_two_servers_that_start_at_once_start_one_driver(
    storage: Storage, servers: list[ServerProcess], round_: int
) -> None:
    folder = storage.submitted_by_hand(30, 1_000)
    servers += [ServerProcess(storage.path), ServerProcess(storage.path)]
    wait_until(lambda: folder.has_ended, "it ends")
    wait_until(lambda: sum(leads(each) for each in servers) == 1, "one of them leads")
    taken = [start for start in folder.starts() if start.driver is not None and not start.driver.revoked_by]
    assert len(taken) == 1 and storage.results() == expected(30)
