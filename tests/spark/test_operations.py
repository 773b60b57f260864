"""A job in a process of its own, operated by the command line as a person on call would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.testing import CollectingSink
from tests.waiting import wait_until

KEYS = 20

PROGRAM = """
import sys
from headwater.common import WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import CollectingSink


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % KEYS, count


env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda index: index, rate_per_second=1000)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
counts = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
counts.sink_to(CollectingSink(sys.argv[1])).uid("out")
env.execute("operated")
""".replace("KEYS", str(KEYS))

CHANGED = PROGRAM.replace("yield value % 20, count", "yield value % 20, -count if value % 20 == 7 else count")

Say = Callable[..., str]


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    """Run a command that must end with `code`, and return what it said."""

    def run(*words: Any, code: int = 0) -> str:
        capfd.readouterr()
        assert main([str(word) for word in words]) == code, capfd.readouterr()
        told = capfd.readouterr()
        return told.out if code == 0 else told.out + told.err

    return run


class Terminal:
    """Where jobs are started."""

    def __init__(self, directory: Path) -> None:
        self.output = directory / "out"
        self.programs = {"old": directory / "old.py", "new": directory / "new.py"}
        self.programs["old"].write_text(PROGRAM)
        self.programs["new"].write_text(CHANGED)
        self._directory = directory
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, *words: Any) -> subprocess.Popen[bytes]:
        """`headwater run` with the old program."""
        command = [
            sys.executable,
            "-m",
            "headwater",
            "run",
            "-m",
            "local[2]",
            *words,
            self.programs["old"],
            self.output,
        ]
        with open(self._directory / f"log-{len(self._started)}", "wb") as log:
            process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT)
        self._started.append(process)
        return process

    def log(self) -> str:
        return (self._directory / f"log-{len(self._started) - 1}").read_text()

    def results(self) -> list[tuple[int, int]]:
        return CollectingSink(str(self.output)).results()

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def wait_for_epochs(terminal: Terminal, process: subprocess.Popen[bytes], say: Say, more: int = 2) -> dict[str, Any]:
    """What `headwater list` tells about the one job, when it has completed so many epochs more than now."""
    seen: list[dict[str, Any]] = []

    def gone_on() -> bool:
        assert process.poll() is None, terminal.log()
        jobs = json.loads(say("list", "--json"))
        seen.extend(job for job in jobs if job["status"] == "RUNNING" and job["progress"]["epoch"] >= 0)
        return bool(seen) and seen[-1]["progress"]["epoch"] >= seen[0]["progress"]["epoch"] + more

    wait_until(gone_on, "the job to go on", seconds=180)
    return seen[-1]


def assert_counted_once(results: list[tuple[int, int]]) -> None:
    """Every key's counts are 1, 2, 3 and so on: nothing is lost, nothing comes twice."""
    counts = Counter(results)
    highest = {key: max(count for other, count in counts if other == key) for key in range(KEYS)}
    assert counts == Counter((key, count) for key in range(KEYS) for count in range(1, highest[key] + 1))


@pytest.mark.timeout(600)
def test_a_day_of_a_job(terminal: Terminal, say: Say, tmp_path: Path) -> None:
    first, second, savepoints = tmp_path / "first", tmp_path / "second", tmp_path / "savepoints"
    process = terminal.start("-p", 2, "-c", first)
    job = wait_for_epochs(terminal, process, say)
    assert (job["pid"], job["parallelism"], job["checkpoint_dir"]) == (process.pid, 2, str(first))
    assert "operated  RUNNING" in say("list")

    # What is wrong is said, and the job goes on.
    assert "no running job is 'operatde'; did you mean 'operated'?" in say("cancel", "operatde", code=1)
    assert "expected a parallelism from 1 to the max parallelism, 128" in say("rescale", first, "-p", 500, code=1)
    assert "execution.checkpointing.savepoint-dir" in say("stop", "operated", code=1)
    (tmp_path / "a file").write_text("")
    assert "cannot be written" in say("savepoint", "trigger", "operated", tmp_path / "a file", code=1)

    triggered = Path(say("savepoint", "trigger", "operated", savepoints).strip())
    assert (triggered / "SAVEPOINT").is_file() and triggered.parent == savepoints
    assert "parallelism 2 -> 3; it stood still for " in say("rescale", job["job_id"][:8], "-p", 3)
    after = wait_for_epochs(terminal, process, say)
    assert {slot["partition"] for slot in after["progress"]["slots"]} == {0, 1, 2}

    statistics = json.loads(say("checkpoints", "operated", "--json"))
    assert statistics[-1]["status"] == "completed" and len(statistics[-1]["parts"]) == 3
    assert "TRIGGERED (UTC)" in say("checkpoints", first)
    assert len(say("checkpoints", "operated", "--epoch", statistics[-1]["epoch"]).splitlines()) == 4

    told = say("stop", "operated", "--savepoint-dir", savepoints)
    assert told.endswith("job 'operated' stopped\n")
    stopped = told.splitlines()[-2].removeprefix("Savepoint completed. Path: ")
    assert process.wait(60) == 0, terminal.log()
    assert "no job runs" in say("list")
    assert "no job runs" in say("checkpoints", "operated", code=1)
    so_far = terminal.results()
    assert_counted_once(so_far)

    # Another version of the program, tried out from here, changes nothing that can be seen.
    newest = say("checkpoints", first).splitlines()[-1].split()[-1]
    limits = ("--epochs", 3, "--epoch-records", 1000)
    versions = (terminal.programs["old"], "-m", "local[2]", terminal.programs["new"], terminal.output)
    told = say("shadow", "--from", newest, *limits, "--against", *versions, code=1)
    read = int(told.partition("both read ")[2].split()[0].replace(",", ""))
    assert read in (1_000, 2_000, 3_000), "an epoch without a checkpoint cannot be compared"
    row = next(line for line in told.splitlines() if line.startswith("out "))
    assert row.split() == ["out", f"{read:,}", f"{read:,}", str(read // KEYS), str(read // KEYS), "different"]
    assert "- (7, " in told and "+ (7, -" in told and "(6, " not in told
    same = (terminal.programs["old"], "-m", "local[2]", terminal.programs["old"], terminal.output)
    assert "same" in say("shadow", "--from", stopped, *limits, "--against", *same)
    assert Counter(terminal.results()) == Counter(so_far)

    # From the savepoint, at another parallelism, in another directory.
    process = terminal.start("-p", 1, "-c", second, "-s", stopped, "--claim")
    wait_for_epochs(terminal, process, say)
    assert re.fullmatch(r"Cancelling job (\w+)\.\nCancelled job \1\.\n", say("cancel", second))
    assert process.wait(60) == 1
    assert terminal.log().endswith("headwater: the job was cancelled\n")
    assert not Path(stopped).exists(), "it was claimed"
    assert len(terminal.results()) > len(so_far)
    assert_counted_once(terminal.results())
    assert not list(Path(os.environ["XDG_STATE_HOME"], "headwater", "run").iterdir())


def test_a_killed_job_is_not_listed(terminal: Terminal, say: Say, tmp_path: Path) -> None:
    process = terminal.start("-c", tmp_path / "job")
    wait_for_epochs(terminal, process, say, more=0)
    process.kill()
    process.wait()
    assert "no job runs" in say("list")
    assert "no job runs here" in say("stop", "operated", code=1)
