"""One job per directory, also when the first one is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.start.directory_lock import DirectoryLock
from headwater.common.errors import CheckpointError, JobInUseError

HOLDER = """
import sys
from headwater.checkpoint.start.directory_lock import DirectoryLock
from headwater.checkpoint.paths import CheckpointLayout
lock = DirectoryLock(CheckpointLayout(sys.argv[1]), "first job")
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""

HOLDER_WITH_CHILDREN = """
import os, subprocess, sys, time
from headwater.checkpoint.start.directory_lock import DirectoryLock
from headwater.checkpoint.paths import CheckpointLayout
lock = DirectoryLock(CheckpointLayout(sys.argv[1]), "first job")
lock.acquire()
child = subprocess.Popen(["sleep", "60"], close_fds=False)
forked = os.fork()
if forked == 0:
    time.sleep(60)
    os._exit(0)
print(child.pid, forked, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def layout(tmp_path: Path) -> CheckpointLayout:
    return CheckpointLayout(tmp_path / "job")


@pytest.fixture
def children() -> Iterator[list[int]]:
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def start(program: str, layout: CheckpointLayout) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(layout.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    return process, process.stdout.readline()


def test_a_second_job_is_refused_with_pid_and_host_and_goes_on_after_kill_9(layout: CheckpointLayout) -> None:
    process, line = start(HOLDER, layout)
    assert line == "held\n"
    with pytest.raises(JobInUseError) as refused:
        DirectoryLock(layout, "second job").acquire()
    for part in (f"pid {process.pid}", socket.gethostname(), "first job", "execution.checkpointing.dir"):
        assert part in str(refused.value)
    process.kill()
    process.communicate()
    with DirectoryLock(layout, "second job") as lock:
        assert lock.held


def test_children_of_a_killed_job_do_not_hold_its_directory(layout: CheckpointLayout, children: list[int]) -> None:
    process, line = start(HOLDER_WITH_CHILDREN, layout)
    children += map(int, line.split())
    assert len(children) == 2
    with pytest.raises(JobInUseError):
        DirectoryLock(layout, "second job").acquire()
    process.kill()
    process.wait()
    with DirectoryLock(layout, "second job") as lock:
        assert lock.held


def test_a_fork_does_not_unlock_its_parent(layout: CheckpointLayout) -> None:
    with DirectoryLock(layout, "job") as lock:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if not lock.held else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert lock.held
        with pytest.raises(JobInUseError):
            DirectoryLock(layout, "other").acquire()


def test_two_jobs_in_one_process_are_two_jobs(layout: CheckpointLayout) -> None:
    with DirectoryLock(layout, "one"), pytest.raises(JobInUseError, match=f"pid {os.getpid()}"):
        DirectoryLock(layout, "two").acquire()
    DirectoryLock(layout, "two").acquire()


def test_acquire_and_release_may_be_repeated(layout: CheckpointLayout) -> None:
    lock = DirectoryLock(layout, "job")
    lock.acquire()
    lock.acquire()
    lock.release()
    lock.release()
    assert not lock.held


def test_content_that_says_nothing_still_refuses(layout: CheckpointLayout) -> None:
    with DirectoryLock(layout, "one"):
        for content in ("", "{", '{"pid": 1}', "[]"):
            layout.lock.write_text(content)
            with pytest.raises(JobInUseError, match="just started"):
                DirectoryLock(layout, "two").acquire()


def test_what_cannot_be_locked_says_so(layout: CheckpointLayout) -> None:
    layout.create()
    layout.lock.mkdir()
    with pytest.raises(CheckpointError, match="cannot be opened"):
        DirectoryLock(layout, "job").acquire()
