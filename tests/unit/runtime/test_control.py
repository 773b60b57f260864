"""The control socket of a running job: what it answers, who can reach it, and that nobody waits for ever."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import HeadwaterError
from headwater.common.job_status import JobStatus
from headwater.common.machine.processes import start_time
from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.job.control import MAX_REQUEST_BYTES, ControlServer, open_control
from headwater.runtime.job.control_client import Conversation, JobEnd, ask
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from tests.unit.runtime.fake_job import FakeJob


def card_of(job_id: str = "abc123", **more: Any) -> JobCard:
    facts = {"name": "payments", "pid": os.getpid(), "host": socket.gethostname(), "started_ms": 1}
    return JobCard(job_id=job_id, checkpoint_dir="/mnt/payments", **{**facts, **more})


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(str(tmp_path))


@pytest.fixture
def job() -> FakeJob:
    return FakeJob()


@pytest.fixture
def server(directory: RunDirectory, job: FakeJob) -> Iterator[ControlServer]:
    server = ControlServer(directory, card_of(), job, lambda: 2)
    server.start()
    yield server
    server.close(JobStatus.FINISHED)


def test_the_job_is_found_and_answers(directory: RunDirectory, server: ControlServer) -> None:
    (card,) = directory.cards()
    assert (card.job_id, card.name, card.checkpoint_dir) == ("abc123", "payments", "/mnt/payments")
    status = ask(directory, card, "status")
    assert (status["status"], status["parallelism"], status["progress"]["epoch"]) == ("RUNNING", 2, 7)


def test_after_a_moment_with_too_many_open_files_it_answers_again(
    directory: RunDirectory, server: ControlServer
) -> None:
    (card,) = directory.cards()
    path = str(next(directory.path.glob("*.sock")))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket(socket.AF_UNIX) as client:
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            client.connect(path)
            time.sleep(0.2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ask(directory, card, "status", within_seconds=10)["status"] == "RUNNING"


def test_nobody_else_can_enter(directory: RunDirectory, server: ControlServer) -> None:
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700


def test_a_savepoint_is_waited_for(directory: RunDirectory, server: ControlServer, job: FakeJob) -> None:
    with Conversation(directory, directory.cards()[0], "savepoint", directory="/sp") as conversation:
        job.path.set_result("/sp/savepoint-1")
        assert conversation.answer() == "/sp/savepoint-1"
    assert job.asked == [("savepoint", "/sp")]


def test_stop_tells_the_savepoint_and_then_the_end(
    directory: RunDirectory, server: ControlServer, job: FakeJob
) -> None:
    with Conversation(directory, directory.cards()[0], "stop", drain=True, directory="/sp") as conversation:
        job.path.set_result("/sp/savepoint-1")
        assert conversation.answer() == "/sp/savepoint-1"
        server.close(JobStatus.FINISHED)
        assert conversation.end() == JobEnd("FINISHED", "")
    assert job.asked == [("stop", True, "/sp")]


def test_cancel_tells_the_end_and_its_reason(directory: RunDirectory, server: ControlServer, job: FakeJob) -> None:
    with Conversation(directory, directory.cards()[0], "cancel") as conversation:
        assert conversation.answer() is None
        assert job.cancelling.is_set()
        server.close(JobStatus.FAILED, "disk full")
        assert conversation.end() == JobEnd("FAILED", "disk full")


def test_errors_come_back_as_text(directory: RunDirectory, server: ControlServer, job: FakeJob) -> None:
    (card,) = directory.cards()
    with pytest.raises(HeadwaterError, match="no directory was given"):
        ask(directory, card, "savepoint")
    with pytest.raises(HeadwaterError, match="unknown request 'eval'; expected one of status, "):
        ask(directory, card, "eval")
    with pytest.raises(HeadwaterError, match="'directory' is 5; expected text"):
        ask(directory, card, "stop", directory=5)
    job.seconds.set_exception(OSError("no space left"))
    with pytest.raises(HeadwaterError, match="OSError: no space left"):
        ask(directory, card, "rescale", parallelism=3)


@pytest.mark.parametrize("line", [b"not json\n", b"[]\n", b'"status"\n', b"\x80\x04K\x01.\n"])
def test_nonsense_is_an_answer_too(directory: RunDirectory, server: ControlServer, line: bytes) -> None:
    connection = directory.connect(directory.cards()[0])
    with connection, connection.makefile("rb") as answers:
        connection.sendall(line)
        assert "error" in json.loads(answers.readline())


def test_a_long_request_is_answered(directory: RunDirectory, server: ControlServer, job: FakeJob) -> None:
    keys = [f"key-{number:030d}" for number in range(10_000)]  # as many as one query may have
    with pytest.raises(HeadwaterError, match="unknown request 'no such'"):
        ask(directory, directory.cards()[0], "no such", keys=keys)


def test_a_request_that_is_too_long_is_refused_with_a_reason(directory: RunDirectory, server: ControlServer) -> None:
    with pytest.raises(QueryError, match=r"has 4,194,3.. bytes; the driver takes 4,194,304") as caught:
        ask(directory, directory.cards()[0], "status", text="x" * MAX_REQUEST_BYTES)
    assert caught.value.problem is QueryProblem.BAD_REQUEST


def test_a_request_without_end_is_given_up(directory: RunDirectory, server: ControlServer) -> None:
    connection = directory.connect(directory.cards()[0])
    with connection, pytest.raises(OSError):
        for _ in range(MAX_REQUEST_BYTES):
            connection.sendall(b"x" * 4096)
    assert ask(directory, directory.cards()[0], "checkpoints") == []


def test_what_the_job_never_gets_to_ends_with_the_job(
    directory: RunDirectory, server: ControlServer, job: FakeJob
) -> None:
    (card,) = directory.cards()
    with Conversation(directory, card, "rescale", parallelism=3) as conversation:
        while not job.asked:
            threading.Event().wait(0.001)
        server.close(JobStatus.FAILED, "boom")
        with pytest.raises(HeadwaterError, match=r"ended before that was done \(FAILED\)"):
            conversation.answer()
    assert directory.cards() == []
    with pytest.raises(HeadwaterError, match="does not answer"):
        ask(directory, card, "status")


def test_a_job_elsewhere_is_not_asked(directory: RunDirectory) -> None:
    with pytest.raises(HeadwaterError, match="runs on host far-away; run this command there"):
        ask(directory, card_of(host="far-away"), "status")


def test_another_process_with_the_pid_of_a_dead_one_and_a_zombie_are_not_the_job(directory: RunDirectory) -> None:
    directory.create()
    zombie = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    its_start = start_time(zombie.pid)
    assert its_start is not None
    directory.publish(card_of("mine", process=start_time(os.getpid())))
    directory.publish(card_of("reused", process="another boot/1", started_ms=2))
    directory.publish(card_of("child", pid=zombie.pid, process=its_start, started_ms=3))
    assert [card.job_id for card in directory.cards()] == ["mine", "child"]
    assert zombie.stdin is not None
    zombie.stdin.close()
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has taken its exit code
    assert [card.job_id for card in directory.cards()] == ["mine"]
    zombie.wait()


def test_cards_of_dead_processes_are_removed(directory: RunDirectory) -> None:
    directory.create()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    directory.publish(card_of("dead", pid=dead.pid))
    directory.publish(card_of("elsewhere", pid=dead.pid, host="far-away", started_ms=5))
    directory.publish(card_of("alive", started_ms=3))
    (directory.path / "foreign.json").write_text("{}")
    assert [card.job_id for card in directory.cards()] == ["alive", "elsewhere"]
    assert not list(directory.path.glob("dead*"))


def test_two_runs_with_one_job_id_do_not_meet(directory: RunDirectory, server: ControlServer, job: FakeJob) -> None:
    second = ControlServer(directory, card_of(started_ms=2), job, lambda: 9)
    second.start()
    assert [ask(directory, card, "status")["parallelism"] for card in directory.cards()] == [2, 9]
    second.close(JobStatus.FINISHED)
    assert [ask(directory, card, "status")["parallelism"] for card in directory.cards()] == [2]


def test_long_paths_are_no_obstacle(tmp_path: Path, job: FakeJob) -> None:
    directory = RunDirectory(str(tmp_path / ("d" * 120)))
    server = ControlServer(directory, card_of(), job, lambda: 2)
    server.start()
    assert ask(directory, directory.cards()[0], "status")["name"] == "payments"
    server.close(JobStatus.FINISHED)
    assert list(directory.path.iterdir()) == []


def test_a_directory_that_others_can_enter_is_not_used(
    tmp_path: Path, job: FakeJob, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").mkdir(mode=0o755)
    os.chmod(tmp_path / "run", 0o755)
    assert open_control(str(tmp_path), job, "id", "payments", "", lambda: 1) is None
    assert "job 'payments' cannot be operated from another terminal" in caplog.text
    assert "only user" in caplog.text
    with pytest.raises(HeadwaterError, match="only user"):
        RunDirectory(str(tmp_path)).cards()
