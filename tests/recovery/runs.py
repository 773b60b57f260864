"""Runs of the job as processes of their own: faults are planned, processes found and killed, outputs compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.common.machine.processes import is_named
from headwater.runtime.epoch import fault
from headwater.runtime.slot.process import PROCESS_NAME
from tests.recovery import kills, sabotage
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
MARK = "RECOVERY_TEST_RUN"
"""Environment variable that all processes of a run inherit: how they are found after their parents died."""

RUN_SECONDS = 240
"""A whole run on a busy machine; an idle one needs a tenth of it."""

START_SECONDS = 180
"""The same for the start of Spark and a few epochs."""

KILLED = -9

ENGINE = "headwater.epoch.engine"
ENGINES = ("shuffle", "resident")
"""`test_switching` has `auto`: with epochs of one size it would keep to shuffles."""


@dataclass(frozen=True)
class Fault:
    """Kill `victim` when the first process reaches `step` of `epoch` (None: of any epoch)."""

    step: str
    epoch: int | None
    victim: str

    def __post_init__(self) -> None:
        assert self.step in fault.STEPS

    @property
    def file_name(self) -> str:
        return f"{self.step}@{kills.ANY if self.epoch is None else self.epoch}@{self.victim}"


@dataclass
class Run:
    """One job on one checkpoint directory, from its first start to its end, however many drivers that takes."""

    directory: Path
    records: int
    epoch_records: int
    conf: dict[str, Any] = field(default_factory=dict)
    module: str = "tests.recovery.driver"
    sabotaged: str | None = None

    def __post_init__(self) -> None:
        for path in (self.faults, self.logs):
            path.mkdir(parents=True)
        self._planned: list[Fault] = []
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def checkpoints(self) -> Path:
        return self.directory / "checkpoints"

    @property
    def output(self) -> Path:
        return self.directory / "output"

    @property
    def faults(self) -> Path:
        return self.directory / "faults"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    # --- faults

    def plan(self, faults: Iterable[Fault]) -> None:
        for each in faults:
            (self.faults / each.file_name).touch(exist_ok=False)
            self._planned.append(each)

    def fired(self) -> list[Fault]:
        return [each for each in self._planned if (self.faults / f"{each.file_name}.fired").exists()]

    def assert_all_fired_in_mid_run(self) -> None:
        missing = [each for each in self._planned if each not in self.fired()]
        assert not missing, f"these faults never fired, so nothing was proved: {missing}\n{self.log()}"
        end = self.latest()
        assert end is not None and end.finished
        late = [each for each in self._planned if each.epoch is not None and each.epoch >= end.epoch]
        assert not late, f"these faults came when the job was over: {late}"

    # --- processes

    def command(self) -> list[str]:
        """What runs a driver."""
        settings = {
            "checkpoints": str(self.checkpoints),
            "output": str(self.output),
            "records": self.records,
            "epoch_records": self.epoch_records,
            "conf": self.conf,
        }
        return [sys.executable, "-m", self.module, json.dumps(settings)]

    def start(self) -> subprocess.Popen[bytes]:
        """Start a driver, in a process group of its own. Its JVM and the JVM's children write to the same log."""
        environ = os.environ | {
            "PYTHONPATH": str(ROOT),
            MARK: str(self.directory),
            kills.VARIABLE: str(self.faults),
        }
        if self.sabotaged is not None:
            environ[sabotage.VARIABLE] = self.sabotaged
        number = len(self._started)
        with open(self.logs / f"{number}.out", "wb") as out, open(self.logs / f"{number}.err", "wb") as err:
            process = subprocess.Popen(
                self.command(),
                cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
        self._started.append(process)
        return process

    def finish(self, seconds: float = RUN_SECONDS) -> dict[str, Any]:
        """Start drivers until the job is finished, and return the last one's progress. Only faults may kill them.

        No driver may take longer than `seconds`.
        """
        while True:
            process = self.start()
            kills_before = self._driver_kills()
            code = process.wait(seconds)
            if code == KILLED and self._driver_kills() == kills_before + 1:
                continue
            assert code == 0, f"driver {len(self._started)} ended with {code}\n{self.log()}"
            return self.progress()

    def wait_for_end(self) -> None:
        """Wait for the driver that was started last."""
        code = self._started[-1].wait(RUN_SECONDS)
        assert code == 0, f"driver {len(self._started)} ended with {code}\n{self.log()}"

    def _driver_kills(self) -> int:
        return sum(each.victim == "driver" for each in self.fired())

    def progress(self) -> dict[str, Any]:
        """What the last driver printed at its end."""
        text = (self.logs / f"{len(self._started) - 1}.out").read_text()
        found: dict[str, Any] = json.loads(text.splitlines()[-1])
        return found

    def log(self) -> str:
        """The end of the last driver's log, for messages."""
        return (
            (self.logs / f"{len(self._started) - 1}.err").read_text(errors="replace")[-4_000:] if self._started else ""
        )

    def processes(self) -> list[psutil.Process]:
        """All living processes of all drivers of the run."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.directory):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def slots(self) -> list[int]:
        return [process.pid for process in self.processes() if is_named(process.pid, PROCESS_NAME)]

    def executors(self) -> list[int]:
        """The executors' JVMs, with a local-cluster master."""
        return [pid for pid, command in self._commands() if any("ExecutorBackend" in word for word in command)]

    def slots_by_executor(self) -> dict[int, set[int]]:
        """Which slots were started beneath which executor."""
        found: dict[int, set[int]] = {executor: set() for executor in self.executors()}
        for slot in self.slots():
            for parent in psutil.Process(slot).parents():
                if parent.pid in found:
                    found[parent.pid].add(slot)
        return found

    def _commands(self) -> list[tuple[int, list[str]]]:
        return [(process.pid, _command(process)) for process in self.processes()]

    def stop(self) -> None:
        """Leave nothing of the run behind, whatever the test thinks of it."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.Error:
                continue
        for started in self._started:
            started.wait(30)

    # --- facts

    def latest(self) -> Manifest | None:
        return ManifestStore(CheckpointLayout(self.checkpoints)).latest()

    def epoch(self) -> int:
        """The last epoch that has a manifest; -1 at first. Safe to ask while the job runs."""
        return max(ManifestStore(CheckpointLayout(self.checkpoints)).epochs(), default=-1)

    def wait_for_epoch(self, epoch: int) -> None:
        self.wait_until(lambda: self.epoch() >= epoch, f"epoch {epoch}")

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
        wait_until(condition, lambda: f"{what}; processes: {self.processes()}\n{self.log()}", seconds, 0.05)

    def lines(self) -> Counter[str]:
        """What a reader of the output sees: files whose names do not begin with a dot."""
        files = [path for path in self.output.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return Counter(line for path in files for line in path.read_text().splitlines())

    def pending_files(self) -> list[Path]:
        return [path for path in self.output.rglob(".*") if path.is_file()]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def lost_and_too_many(found: Counter[str], expected: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """The oracle: multisets, so that a line that comes twice is as wrong as one that never comes."""
    return expected - found, found - expected


def assert_same(found: Counter[str], expected: Counter[str]) -> None:
    assert expected.total() > 0
    lost, too_many = lost_and_too_many(found, expected)
    assert not lost and not too_many, (
        f"{lost.total()} lines lost, e.g. {list(lost)[:3]}; {too_many.total()} too many, e.g. {list(too_many)[:3]}"
    )
