"""The commands that operate running jobs, against a control socket with a job behind it that only remembers."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.cli.main import main
from headwater.cli.table import duration
from headwater.common.dead_letter import DeadLetter
from headwater.common.job_status import JobStatus
from headwater.runtime.job.checkpoint_stats import CheckpointStats, PartStats
from headwater.runtime.job.control import ControlServer, open_control
from tests.unit.runtime.fake_job import FakeJob
from tests.waiting import wait_until

Out = pytest.CaptureFixture[str]


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "headwater"


class Jobs:
    """Starts fake jobs in the user's run directory and ends them when they are asked to."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self.servers: list[ControlServer] = []

    def start(self, job_id: str, name: str, checkpoint_dir: str = "") -> FakeJob:
        job = FakeJob()
        server = open_control(str(self._state_dir), job, job_id, name, checkpoint_dir, lambda: len(job.asked) + 2)
        assert server is not None
        self.servers.append(server)
        return job

    def end_when(self, happens: Callable[[], bool], status: JobStatus, problem: str = "") -> None:
        """Ends the first job as soon as `happens()`."""

        def end() -> None:
            while not happens():
                threading.Event().wait(0.001)
            self.servers[0].close(status, problem)

        threading.Thread(target=end, daemon=True).start()


@pytest.fixture
def jobs(state_dir: Path) -> Iterator[Jobs]:
    jobs = Jobs(state_dir)
    yield jobs
    for server in jobs.servers:
        server.close(JobStatus.FINISHED)


def test_list(jobs: Jobs, capsys: Out) -> None:
    jobs.start("aaa111", "payments", "/mnt/payments")
    jobs.start("bbb222", "a batch job")
    assert main(["list"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["ID", "NAME", "STATUS", "EPOCH", "RECORDS/S", "UPTIME", "PARALLELISM", "CHECKPOINTS"]
    cells = first.split()
    assert cells[:5] == ["aaa111", "payments", "RUNNING", "7", "1,234"]
    assert cells[-2:] == ["2", "/mnt/payments"]
    assert second.split()[-1] == "none"
    assert main(["list", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert [each["job_id"] for each in described] == ["aaa111", "bbb222"]
    assert described[0]["pid"] == os.getpid() and described[0]["progress"]["epoch"] == 7


def test_list_of_nothing(state_dir: Path, capsys: Out) -> None:
    assert main(["list"]) == 0
    assert capsys.readouterr().out == f"no job runs (looked in {state_dir}/run)\n"


def test_another_state_directory(tmp_path: Path, jobs: Jobs, capsys: Out) -> None:
    assert main(["list", "--state-dir", str(tmp_path / "other")]) == 0
    assert "no job runs" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["aaa111", "aaa", "payments", "DIR", "DIR/", "LINK"])
def test_a_job_has_several_names(word: str, jobs: Jobs, tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "job")
    job = jobs.start("aaa111", "payments", str(tmp_path / "job"))
    jobs.start("bbb222", "other", str(tmp_path / "other"))
    job.path.set_result("/sp/savepoint-1")
    wanted = word.replace("DIR", str(tmp_path / "job")).replace("LINK", str(tmp_path / "link"))
    assert main(["savepoint", "trigger", wanted, "sub/sp"]) == 0
    assert capsys.readouterr().out == "/sp/savepoint-1\n"
    assert job.asked == [("savepoint", os.path.abspath("sub/sp"))], "the job's working directory is another one"


@pytest.mark.parametrize("command", [["stop"], ["cancel"], ["rescale", "-p", "2"], ["savepoint", "trigger"]])
def test_no_such_job(command: list[str], jobs: Jobs, capsys: Out) -> None:
    assert main([*command, "payments"]) == 1
    assert "no job runs here, so there is no 'payments'; looked in " in capsys.readouterr().err
    jobs.start("aaa111", "payments")
    jobs.start("aaa222", "payments")
    assert main([*command, "paymenst"]) == 1
    told = capsys.readouterr().err
    assert told == (
        f"headwater {' '.join(word for word in command if word.isalpha())}: no running job is 'paymenst'; did you mean "
        "'payments'? running: aaa111 'payments', aaa222 'payments'\n"
    )
    for several in ("payments", "aaa"):
        assert main([*command, several]) == 1
        assert (
            f"'{several}' means 2 jobs: aaa111 'payments', aaa222 'payments'; give the id, or more"
            in capsys.readouterr().err
        )
    assert main(command) == 2
    assert "required: JOB" in capsys.readouterr().err


def test_stop(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    job.path.set_result("/sp/savepoint-1")
    jobs.end_when(lambda: bool(job.asked), JobStatus.FINISHED)
    assert main(["stop", "payments", "--drain", "--savepoint-dir", "/sp"]) == 0
    assert capsys.readouterr().out == (
        'Draining job "aaa111" with a CANONICAL savepoint.\nTriggering stop-with-savepoint for job aaa111.\n'
        "Waiting for response...\nSavepoint completed. Path: /sp/savepoint-1\njob 'payments' stopped\n"
    )
    assert job.asked == [("stop", True, "/sp")]


@pytest.mark.parametrize(
    ("words", "told", "asked"),
    [
        (["savepoint", "trigger", "payments", "/sp", "-detached"], "savepoint", ("savepoint", "/sp")),
        (["stop", "payments", "-p", "/sp", "-detached"], "stop-with-savepoint", ("stop", False, "/sp")),
    ],
)
def test_detached_from_a_savepoint(words: list[str], told: str, asked: object, jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")  # its savepoint is never complete
    assert main(words) == 0
    assert capsys.readouterr().out.endswith(f"Triggering {told} in detached mode for job aaa111.\n")
    wait_until(lambda: job.asked == [asked], "the request")


@pytest.mark.parametrize("words", [["savepoint", "trigger"], ["stop"]])
def test_the_formats_of_savepoints(words: list[str], jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    job.path.set_result("/sp/savepoint-1")
    jobs.end_when(lambda: len(job.asked) == 2, JobStatus.FINISHED)
    words = [*words, "payments", *(["-p"] if words == ["stop"] else []), "/sp"]
    assert main([*words, "-type", "NATIVE", "-detached"]) == 0
    assert "there is one format of savepoints" in capsys.readouterr().err
    assert main([*words, "--type", "canonical"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, "-type", "binary"]) == 2
    assert "invalid choice: 'binary'" in capsys.readouterr().err


def test_a_stop_that_fails(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    job.path.set_exception(OSError("disk full"))
    assert main(["stop", "payments"]) == 1
    assert "headwater stop: OSError: disk full" in capsys.readouterr().err


def test_cancel(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    jobs.end_when(job.cancelling.is_set, JobStatus.CANCELED)
    assert main(["cancel", "aaa"]) == 0
    assert capsys.readouterr().out == "Cancelling job aaa111.\nCancelled job aaa111.\n"


@pytest.mark.parametrize(
    "words", [["-s", "/sp", "payments"], ["payments", "-s", "/sp"], ["payments", "-s"], ["-s", "aaa"]]
)
def test_cancel_with_a_savepoint_as_in_flink(words: list[str], jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    job.path.set_result("/sp/savepoint-1")
    jobs.end_when(lambda: bool(job.asked), JobStatus.FINISHED)
    assert main(["cancel", *words]) == 0
    deprecated, cancelling, cancelled = capsys.readouterr().out.splitlines()
    assert deprecated.startswith("DEPRECATION WARNING")
    given = "/sp" in words
    where = "/sp" if given else "default savepoint directory"
    assert cancelling == f"Cancelling job aaa111 with CANONICAL savepoint to {where}."
    assert cancelled == "Cancelled job aaa111. Savepoint stored in /sp/savepoint-1."
    assert job.asked == [("stop", False, "/sp" if given else None)]


def test_a_savepoint_in_flinks_words(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    job.path.set_result("/sp/savepoint-1")
    assert main(["savepoint", "payments", "/sp"]) == 0
    assert capsys.readouterr().out == (
        "Triggering savepoint for job aaa111.\nWaiting for response...\nSavepoint completed. Path: /sp/savepoint-1\n"
        "You can resume your program from this savepoint with the run command.\n"
    )
    assert job.asked == [("savepoint", "/sp")]
    assert main(["savepoint", "nobody", "/sp"]) == 1
    assert "no running job is 'nobody'" in capsys.readouterr().err


def test_a_full_checkpoint_is_taken_as_configured(jobs: Jobs, capsys: Out) -> None:
    jobs.start("aaa111", "payments")
    assert main(["checkpoint", "payments", "-full"]) == 0
    printed = capsys.readouterr()
    assert "Checkpoint(CONFIGURED) 8 for job aaa111 completed." in printed.out and "as configured" in printed.err


def test_the_server_of_the_settings_is_asked(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    jobs.start("aaa111", "payments")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("HEADWATER_REST_ADDRESS", "127.0.0.1")
    monkeypatch.setenv("HEADWATER_REST_PORT", str(port))
    for words in (["list"], ["cancel", "payments"], ["why", "payments"], ["state", "ls", "payments"]):
        assert main(words) == 1
        assert f"127.0.0.1:{port}" in capsys.readouterr().err, words
    assert main(["list", "-m", "local"]) == 0
    assert "payments" in capsys.readouterr().out


def test_a_job_that_fails_while_it_is_cancelled(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    jobs.end_when(job.cancelling.is_set, JobStatus.FAILED, "the sink is gone")
    assert main(["cancel", "aaa"]) == 1
    assert "job 'payments' failed meanwhile: the sink is gone" in capsys.readouterr().err


def test_rescale(jobs: Jobs, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.start("aaa111", "payments")
    job.seconds.set_result(1.25)
    job.epochs = itertools.count(7)
    assert main(["rescale", "payments", "-p", "3"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "job 'payments': parallelism 2 -> 3; it stood still for 1.2 s"
    assert re.fullmatch(r"the next epoch was complete .* after the request", second)
    assert job.asked == [("rescale", 3)]
    monkeypatch.setattr("headwater.cli.rescale._NEXT_EPOCH_SECONDS", 0.1)
    job.epochs = itertools.repeat(7)
    assert main(["rescale", "payments", "-p", "4"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1, "a job without input has no next epoch"
    assert main(["rescale", "payments"]) == 2
    assert main(["rescale", "payments", "-p", "many"]) == 2
    assert "invalid int value: 'many'" in capsys.readouterr().err


def test_a_rescale_that_changes_nothing(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    job.seconds.set_result(0.0)
    assert main(["rescale", "payments", "-p", "2"]) == 0
    assert capsys.readouterr().out == "job 'payments' has parallelism 2 already; nothing was done\n"
    job.asked.clear()
    assert main(["rescale", "payments", "-p", "3"]) == 0
    assert capsys.readouterr().out == "job 'payments' keeps parallelism 2: the program sets it; nothing was done\n"


def test_savepoints_need_a_place(jobs: Jobs, capsys: Out) -> None:
    jobs.start("aaa111", "payments")
    assert main(["savepoint", "trigger", "payments"]) == 1
    assert capsys.readouterr().err == "headwater savepoint trigger: no directory was given for the savepoint\n"


def statistics() -> list[CheckpointStats]:
    parts = (PartStats(1, 0, 7_000, 2_000, 3.0, 40.0, 100.0), PartStats(1, 1, 6_000, 1_000, 5.0, 30.0, 350.0))
    done = CheckpointStats(41, "completed", None, 1_700_000_000_000, 1_500.0, 9_000_000, parts)
    return [done, CheckpointStats(42, "failed", "partition (1, 0): disk full", 1_700_000_001_000, 20.0, 0)]


def test_checkpoints_of_a_running_job(jobs: Jobs, capsys: Out) -> None:
    job = jobs.start("aaa111", "payments")
    assert main(["checkpoints", "payments"]) == 0
    assert capsys.readouterr().out == "no checkpoint has ended yet\n"
    job.statistics = [each.as_dict() for each in statistics()]
    assert main(["checkpoints", "payments"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[1].split()) == ("41 completed 2023-11-14 22:13:20 1.5 s 5 ms 40 ms 250 ms 9,000,000 3,000")
    assert lines[-1] == "epoch 42: partition (1, 0): disk full"
    assert main(["checkpoints", "payments", "--epoch", "41"]) == 0
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:]] == [
        "1 0 100 ms 3 ms 40 ms 7,000 2,000",
        "1 1 350 ms 5 ms 30 ms 6,000 1,000",
    ]
    assert main(["checkpoints", "payments", "--epoch", "7"]) == 1
    assert "epoch 7; there are those of epochs 41 to 42" in capsys.readouterr().err
    assert main(["checkpoints", "payments", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["waiting_for_slowest_ms"] == 250.0


def test_what_a_running_job_retains(jobs: Jobs, tmp_path: Path, capsys: Out) -> None:
    jobs.start("aaa111", "payments", str(tmp_path / "job"))
    jobs.start("bbb111", "batch")
    for job, problem in (
        ("payments", "job 'payments' retains no checkpoint yet: "),
        ("batch", "job 'batch' runs without checkpoints"),
    ):
        assert main(["checkpoints", job, "--retained"]) == 1
        assert problem in capsys.readouterr().err
    layout = CheckpointLayout(tmp_path / "job")
    layout.create()
    ManifestStore(layout).write(Manifest("aaa111", "payments", 7, 1, 0, 0, "", 128))
    assert main(["checkpoints", "payments", "--retained"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(f"-s {tmp_path / 'job'}@7")
    jobs.start("ccc111", "payments", str(tmp_path / "other"))
    assert main(["checkpoints", "payments", "--retained"]) == 1
    assert "'payments' means 2 jobs" in capsys.readouterr().err


def test_checkpoints_of_nothing(jobs: Jobs, capsys: Out) -> None:
    assert main(["checkpoints", "/nowhere"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        "headwater checkpoints: '/nowhere' is neither a running job nor a directory with checkpoints"
    )
    assert told.endswith("no job runs\n")
    jobs.start("aaa111", "payments")
    assert main(["checkpoints", "/nowhere"]) == 1
    assert capsys.readouterr().err.endswith("the running jobs are aaa111 'payments'\n")


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1_000, "1.0 s"), (59_900, "59.9 s"), (60_000, "1 min"), (3_661_000, "1 h 1 min"),
     (90_000_000, "1 d 1 h"), (86_400_000, "1 d")],
)  # fmt: skip
def test_durations(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


def test_the_dead_letters_of_a_running_job(jobs: Jobs, tmp_path: Path, capsys: Out) -> None:
    job = jobs.start("aaa111", "orders")
    letter = DeadLetter("an-id", "aaa111", "parse", "map-1", "function", "ValueError", "epoch 3", None, "'x'", 3, 0)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "part-0").write_bytes(letter.to_json() + b"\n")
    described = {"config": {"headwater.dead-letters.dir": str(tmp_path / "letters")}}
    job.describe = lambda: described  # type: ignore[method-assign]
    assert main(["dead-letters", "list", "orders"]) == 0
    assert "parse" in capsys.readouterr().out
    assert main(["dead-letters", "show", "aaa", "an"]) == 0
    assert "operator: parse (map-1)" in capsys.readouterr().out
    described["config"].clear()
    assert main(["dead-letters", "list", "orders"]) == 1
    assert "job 'orders' runs without headwater.dead-letters.dir" in capsys.readouterr().err
