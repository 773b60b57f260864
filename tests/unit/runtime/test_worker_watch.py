"""Who ends a Python worker that is stopped, and who leaves one alone that is only slow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.waiting import wait_until

SECONDS = 1

WORKER = """
import ctypes, os, re, signal, sys, time
from headwater.runtime.spark.worker_watch import watch_this_worker
watch_this_worker({seconds})
watch_this_worker({seconds})
print("ready", flush=True)
{work}
print("done", flush=True)
"""

Start = Callable[[str], subprocess.Popen[str]]


def children_named(name: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == name and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def watchers_of(pid: int) -> list[psutil.Process]:
    found = []
    for process in children_named("headwater-watch"):
        try:
            if str(pid) in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(work: str) -> subprocess.Popen[str]:
        code = WORKER.format(seconds=SECONDS, work=work)
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wait_until(lambda: len(watchers_of(process.pid)) == 1)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()
        wait_until(lambda process=process: not watchers_of(process.pid))  # type: ignore[misc]


def ending_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_worker_that_is_stopped_is_killed(start: Start) -> None:
    process = start("time.sleep(600)")
    os.kill(process.pid, signal.SIGSTOP)
    code, _, err = ending_of(process)
    assert code == -signal.SIGKILL
    assert f"Python worker {process.pid} gave no sign of life for 1 s (it is stopped)" in err


def test_a_worker_that_hangs_with_all_its_threads_is_killed(start: Start) -> None:
    """It holds Python's lock, and waits."""
    code, _, err = ending_of(start("ctypes.PyDLL(None).sleep(600)"))
    assert code == -signal.SIGKILL
    assert "(it hangs)" in err


@pytest.mark.parametrize(
    "work",
    [
        "time.sleep(3)",
        "end = time.monotonic() + 3\nwhile time.monotonic() < end: pass",
        "re.match('(a+)+b', 'a' * 26)",  # no other thread runs meanwhile
    ],
    ids=["waits", "computes", "computes with Python's lock"],
)
def test_a_worker_that_is_only_slow_is_left_alone(start: Start, work: str) -> None:
    assert ending_of(start(work)) == (0, "done\n", "")


def test_a_worker_that_is_stopped_for_a_moment_goes_on(start: Start) -> None:
    process = start("time.sleep(3)")
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(process.pid, signal.SIGCONT)
    assert ending_of(process) == (0, "done\n", "")


def test_the_watcher_is_in_nobodys_reach_and_ends_with_the_worker(start: Start) -> None:
    """What stops a worker's whole tree, or its group, does not stop it."""
    process = start("time.sleep(600)")
    (watcher,) = watchers_of(process.pid)
    assert watcher.pid not in [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    assert os.getpgid(watcher.pid) not in (os.getpgid(process.pid), os.getpgrp())
    process.kill()
    wait_until(lambda: not watcher.is_running() or watcher.status() == psutil.STATUS_ZOMBIE)
