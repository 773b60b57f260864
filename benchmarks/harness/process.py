"""Runs one program to its end, watches its memory if asked to, and hands back what it reported."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import BENCH_DIR, PROJECT, PROJECT_ENVIRONMENT, Environment
from benchmarks.harness.memory import SlotMemory

TAIL_LINES = 15


@dataclass(frozen=True)
class Program:
    """One module to run with `python -m`, and its arguments. It gets `--stamps DIR` in addition."""

    module: str
    arguments: Mapping[str, str | int | float] = field(default_factory=dict)
    environment: Environment = PROJECT_ENVIRONMENT
    timeout_s: float = 600.0
    watch_slots: bool = False
    """Sample the memory of the processes that leave a `slot` stamp."""


@dataclass(frozen=True)
class Outcome:
    """What came of one run. `facts` is what the program reported last, also if it was stopped after that."""

    facts: dict[str, Any]
    error: str | None = None
    timed_out: bool = False

    @property
    def measured(self) -> bool:
        return bool(self.facts)


def run(program: Program) -> Outcome:
    """Run `program` in its own process group and wait for it. Leaves no process of that group behind."""
    BENCH_DIR.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=BENCH_DIR))
    try:
        return _run_in(program, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_in(program: Program, scratch: Path) -> Outcome:
    stamps = scratch / "stamps"
    stamps.mkdir()
    command = [str(program.environment.python), "-m", program.module, "--stamps", str(stamps)]
    for name, value in program.arguments.items():
        command += [f"--{name}", str(value)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "PYTHONUNBUFFERED": "1",
        # Peers find their own Python and Spark; nothing of the calling shell may leak in.
        "PYSPARK_PYTHON": str(program.environment.python),
        "PYSPARK_DRIVER_PYTHON": str(program.environment.python),
    }
    for leak in ("VIRTUAL_ENV", "SPARK_HOME", "FLINK_HOME", "HEADWATER_HOME"):
        environment.pop(leak, None)
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=scratch,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    reader = _OutputReader(process, started)
    memory = SlotMemory(stamps) if program.watch_slots else None
    timed_out = False
    try:
        reader.start()
        if memory:
            memory.start()
        process.wait(timeout=program.timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        _end_group(process)
        reader.join(timeout=10)
        if memory:
            memory.stop()
    facts = reader.facts
    if facts:
        facts["wall_s"] = round(reader.last_line_s, 3)
        if memory:
            facts.update(memory.facts())
    error = None
    if timed_out:
        error = f"stopped after {program.timeout_s:.0f} s"
    elif process.returncode != 0:
        error = f"exit code {process.returncode}"
    if error and not facts:
        error += "\n" + "".join(reader.tail)
    return Outcome(facts, error, timed_out)


class _OutputReader(threading.Thread):
    """Reads a program's output line by line: its reports, the time of its last line, and the tail for an error."""

    def __init__(self, process: subprocess.Popen[str], started_at: float) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._started_at = started_at
        self.facts: dict[str, Any] = {}
        self.last_line_s = 0.0
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    def run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.last_line_s = time.monotonic() - self._started_at
            self.tail.append(line)
            if line.startswith("RESULT "):
                self.facts = json.loads(line.removeprefix("RESULT "))


def _end_group(process: subprocess.Popen[str]) -> None:
    """End what is left of the program's process group: a JVM that outlives its driver would slow the next run."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
        time.sleep(0.5)
