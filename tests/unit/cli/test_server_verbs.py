"""The verbs with -m host:port: a real server, real drivers, and the lines that Flink prints."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.cli.main import main
from headwater.cli.run_arguments import parse_run_arguments
from headwater.server.client import RestClient, is_server_address
from headwater.server.jobs.job_folder import JobFolder, job_ids
from tests.unit.server.jobs.real_servers import ServerProcess, Storage
from tests.waiting import wait_until

ENDLESS = ("100000", "100")
IN_PROCESS = ("-D", "headwater.master=in-process", "-D", "headwater.epoch.duration=50 ms")


class Cli:
    def __init__(self, storage: Storage, address: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.storage = storage
        self._address = address
        self._capsys = capsys

    def __call__(self, verb: str, *words: str, code: int = 0) -> str:
        """Run a verb against the server, and return what it printed."""
        self._capsys.readouterr()
        found = main([verb, "-m", self._address, *words])
        printed = self._capsys.readouterr()
        assert found == code, printed.err + printed.out
        return printed.out if code == 0 else printed.err

    def submit(self, *words: str, code: int = 0) -> str:
        program = str(self.storage.program)
        return self("run", *words, *IN_PROCESS, program, str(self.storage.out), *ENDLESS, code=code)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    storage = Storage(tmp_path)
    server = ServerProcess(storage.path)
    address = server.address.removeprefix("http://")
    try:
        yield Cli(storage, address, capsys)
    finally:
        server.end(signal.SIGKILL)
        storage.end_drivers()


def test_the_day_of_an_operator(cli: Cli, tmp_path: Path) -> None:
    """Submit, look, savepoint, checkpoint, rescale, stop; start again from the savepoint; cancel; dispose."""
    submitted = cli.submit("-d", "-p", "1")
    match = re.fullmatch(r"Job has been submitted with JobID ([0-9a-f]{32})\n", submitted)
    assert match is not None, submitted
    job = match[1]
    row = rf"\d\d\.\d\d\.\d{{4}} [\d:]{{8}} : {job} : counts \(RUNNING\)"
    assert re.search(rf"\n-+ Running/Restarting Jobs -+\n{row}\n-+\n", cli("list"))
    assert " IN/S " in cli("top", "--once") and "Source: numbers" in cli("top", "counts", "--once")
    assert "->" in cli("why", job)
    assert "completed" in cli("checkpoints", job)
    assert cli("list", "-s") == "Waiting for response...\nNo scheduled jobs.\n"
    savepoints = tmp_path / "savepoints"
    made = cli("savepoint", job, str(savepoints))
    match = re.search(r"Savepoint completed\. Path: (\S+)\nYou can resume", made)
    assert match is not None and Path(match[1]).is_dir(), made
    assert f"for job {job} completed.\nYou can resume your program from this checkpoint" in cli("checkpoint", "counts")
    assert cli("rescale", job[:8], "-p", "2") == f"Rescaled job {job}. Its new parallelism is 2.\n"
    assert "it begins" in cli("logs", job)
    stopped = cli("stop", job, "--savepointPath", str(savepoints))
    suspending = f'Suspending job "{job}" with a CANONICAL savepoint.\n'
    suspending += f"Triggering stop-with-savepoint for job {job}.\nWaiting for response...\n"
    match = re.fullmatch(re.escape(suspending) + r"Savepoint completed\. Path: (\S+)\n", stopped)
    assert match is not None, stopped
    assert re.search(rf" Terminated Jobs -+\n.* : {job} : counts \(FINISHED\)", cli("list", "-a"))
    again = cli.submit("-d", "--fromSavepoint", match[1], "--allowNonRestoredState").split()[-1]
    assert again != job
    cancelled = cli("cancel", "-s", str(savepoints), again).splitlines()
    assert cancelled[1] == f"Cancelling job {again} with CANONICAL savepoint to {savepoints}."
    stored = cancelled[2].removeprefix(f"Cancelled job {again}. Savepoint stored in ").removesuffix(".")
    again = cli.submit("-d", "--fromSavepoint", stored).split()[-1]
    assert cli("cancel", again) == f"Cancelling job {again}.\nCancelled job {again}.\n"
    folders = [JobFolder(cli.storage.path, each) for each in job_ids(cli.storage.path)]
    wait_until(
        lambda: all(folder.has_ended for folder in folders), "the server has noticed"
    )  # before, it cancels again
    assert "already reached another terminal state (CANCELED)" in cli("cancel", again, code=1)
    disposed = cli("savepoint", "-d", match[1])
    path = match[1]
    assert disposed == f"Disposing savepoint '{path}'.\nWaiting for response...\nSavepoint '{path}' disposed.\n"
    assert not Path(path).exists()
    assert "only a savepoint can be disposed of" in cli("savepoint", "-d", path, code=1)


def test_a_client_that_waits_is_told_the_end(cli: Cli, tmp_path: Path) -> None:
    arguments = (*IN_PROCESS, "-py", str(cli.storage.program), str(cli.storage.out))
    told = cli("run", *arguments, "30", "1000")
    lines = told.splitlines()
    job = lines[0].split()[-1]
    assert lines[1:3] == ["Program execution finished", f"Job with JobID {job} has finished."]
    assert re.fullmatch(r"Job Runtime: \d+ ms", lines[3])
    failing = tmp_path / "failing.py"
    failing.write_text(cli.storage.program.read_text().replace("(a[0], a[1] + b[1])", "1 // 0"))
    told = cli("run", *IN_PROCESS, str(failing), str(cli.storage.out), "30", "1000", code=1)
    assert "ZeroDivisionError" in told


def test_files_of_the_program_travel_with_it(cli: Cli, tmp_path: Path) -> None:
    package = tmp_path / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text("COUNT = 30\n")
    single = tmp_path / "rates.py"
    single.write_text("RATE = 1000\n")
    program = tmp_path / "with_files.py"
    source = cli.storage.program.read_text()
    program.write_text(
        "import helpers, rates\n" + source.replace("int(sys.argv[2]), int(sys.argv[3])", "helpers.COUNT, rates.RATE")
    )
    required = tmp_path / "needs.txt"
    required.write_text("no-such-package==9\n")
    files = ("-pyfs", f"{package},{single}")
    cli("run", *files, *IN_PROCESS, str(program), str(cli.storage.out))
    assert "not installed: no-such-package==9" in cli(
        "run", *files, "-pyreq", str(required), *IN_PROCESS, str(program), str(cli.storage.out), code=1
    )
    assert list((cli.storage.path / "programs").iterdir()) == [], "uploads go when the job has its copies"


def test_what_goes_wrong_is_said_in_a_line(cli: Cli, tmp_path: Path) -> None:
    assert "the server has no job 'nothing'; it has: none" in cli("cancel", "nothing", code=1)
    assert "cannot read '/no/such.py'" in cli("run", "/no/such.py", code=2)
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no luck')\n")
    assert "RuntimeError: no luck" in cli("run", "-d", str(broken), code=1)
    assert "parallelism" in cli.submit("-d", "-p", "0", code=1)


@pytest.mark.parametrize(
    "verb",
    ["list", "cancel", "stop", "savepoint", "checkpoint", "checkpoints", "rescale", "logs", "top", "why"],
)
def test_wrong_usage_of_every_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    job = [] if verb in ("list", "top") else ["j"]
    more = ["-p", "2"] if verb == "rescale" else []
    assert main([verb, "-m", "local[2]", *job, *more]) == 2
    assert "-m local[2]: expected host:port, or https://host:port" in capsys.readouterr().err
    assert main([verb, "-m", "127.0.0.1:1", *job, *more]) == 1
    assert "the server at http://127.0.0.1:1 does not answer: Connection refused" in capsys.readouterr().err
    assert main([verb, "--nonsense", *job, *more]) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "-d", "x.py"], "-d needs a server to leave the job to"),
        (["info", "-m", "host:1", "x.py"], "is a server, but this runs here"),
        (["server", "-D", "nonsense"], "expected key=value"),
        (["server", "surplus"], "unrecognized arguments: surplus"),
        (["logs", "j", "-n", "0"], "expected 1 or more"),
        (["top", "--interval", "0"], "expected more than 0"),
    ],
)
def test_wrong_usage(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local-cluster[2,1,1024]", "yarn", "in-process",
                                    "spark://host:7077", "k8s://https://host:443"])  # fmt: skip
def test_a_spark_master_is_never_taken_for_a_server(master: str) -> None:
    assert not is_server_address(master)
    given = parse_run_arguments(["-m", master, "x.py"])
    assert given.server is None and given.settings.to_dict() == {"headwater.master": master}


@pytest.mark.parametrize("address", ["host:8081", "127.0.0.1:1", "[::1]:8081", "http://h:1", "https://a.b-c.d:443/"])
def test_a_server_is_never_taken_for_a_spark_master(address: str) -> None:
    given = parse_run_arguments(["-m", address, "x.py"])
    assert given.server == address and given.settings.to_dict() == {}
    RestClient(address)


def test_a_program_keeps_its_own_options() -> None:
    given = parse_run_arguments(["x.py", "-d", "-py", "-pyfs", "a"])
    assert given.arguments == ["-d", "-py", "-pyfs", "a"] and not given.detached


def test_info_prints_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = Storage(tmp_path)
    assert main(["info", str(storage.program), str(tmp_path), "1", "1"]) == 0
    printed = capsys.readouterr().out
    assert " Execution Plan " in printed and '"Source: numbers"' in printed and "it begins" not in printed


def test_a_server_refuses_a_storage_that_others_can_enter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    assert main(["server", "--storage", str(tmp_path / "open"), "--port", "0"]) == 1
    assert "only user" in capsys.readouterr().err
    assert main(["server", "--storage", "s3://bucket/jobs", "--port", "0"]) == 1
    assert "expected a directory that all servers mount" in capsys.readouterr().err
    assert main(["server", "--storage", str(tmp_path / "mine"), "--host", "0.0.0.0", "--port", "0"]) == 1
    assert "token" in capsys.readouterr().err
    shared = ["-D", f"execution.checkpointing.dir={tmp_path}"]
    assert main(["server", "--storage", str(tmp_path / "mine"), "--port", "0", *shared]) == 1
    assert "a setting of one job" in capsys.readouterr().err


def test_settings_of_the_server_are_those_of_its_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a cluster's are in Flink. Only the state directory is not the client's to choose: the server looks there."""
    storage = Storage(tmp_path)
    words = ("headwater.state.dir=" + str(tmp_path / "state"), "pipeline.max-parallelism=7", "parallelism.default=2")
    server = ServerProcess(storage.path, *(part for word in words for part in ("-D", word)))
    try:
        cli = Cli(storage, server.address.removeprefix("http://"), capsys)
        job = cli.submit("-d", "-p", "1", "-D", f"headwater.state.dir={tmp_path / 'elsewhere'}").split()[-1]
        assert f"{job} : counts (RUNNING)" in cli("list")
        told = RestClient(server.address).get(f"/jobs/{job}")
        assert told["maxParallelism"] == 7 and {each["parallelism"] for each in told["vertices"]} == {1}
    finally:
        server.end(signal.SIGKILL)
        storage.end_drivers()


def test_local_logs_and_checkpoint_say_what_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for verb in ("logs", "checkpoint"):
        assert main([verb, "nothing", "--state-dir", str(tmp_path)]) == 1
        assert "no job runs here" in capsys.readouterr().err
