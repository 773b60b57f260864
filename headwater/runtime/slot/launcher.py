"""Starts a slot process on this host, for the relay that needs it."""

from __future__ import annotations

import os
import pickle
import secrets
import select
import socket
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from headwater.checkpoint.paths import CheckpointLayout
from headwater.runtime.slot.process import SlotConfig
from headwater.runtime.slot.protocol import ConnectionLostError, SlotAddress

START_SECONDS = 60
"""How long a slot may take until it listens; importing the user's modules is part of it."""


@dataclass(frozen=True)
class SlotLaunch:
    """All that is needed to start any slot of a job. Made by the driver, travels with the epochs."""

    job_id: str
    run_id: str
    """Names the slots of this very run: a job that resumes must not meet the slots of its former self."""
    secret: bytes
    plan: bytes
    main_classes: bytes
    layout: CheckpointLayout | None
    listen_tcp: bool
    log_level: str = "WARNING"
    health_seconds: float = 10.0
    """How often a slot at work is asked whether it lives, and how long it may take to answer."""


def launch_slot(launch: SlotLaunch, stage: int, partition: int, host: str) -> SlotAddress:
    """Start a slot beside this process and return its address once it listens.

    The slot gets a session of its own: it outlives the Python worker that started it and ends with the executor's JVM.
    """
    incarnation = secrets.token_hex(4)
    directory = socket_directory(launch.run_id)
    path = os.path.join(directory, f"{stage}-{partition}-{incarnation}.sock")
    config = SlotConfig(
        address=SlotAddress(stage, partition, host, 0, path, 0, incarnation),
        listen_tcp=launch.listen_tcp,
        secret=launch.secret,
        job_id=launch.job_id,
        plan=launch.plan,
        main_classes=launch.main_classes,
        layout=launch.layout,
        watch_pid=find_jvm(),
        log_level=launch.log_level,
    )
    ready, ready_write = os.pipe()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater.runtime.slot.process", str(ready_write)],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
            pass_fds=(ready_write,),
            env=environment,
        )
        os.close(ready_write)
        assert process.stdin is not None
        try:
            pickle.dump(config, process.stdin)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it died; the ready pipe tells
        return _await_ready(ready, stage, partition)
    finally:
        os.close(ready)


def _await_ready(ready: int, stage: int, partition: int) -> SlotAddress:
    readable, _, _ = select.select([ready], [], [], START_SECONDS)
    data = os.read(ready, 1 << 20) if readable else b""
    answer = pickle.loads(data) if data else f"no answer within {START_SECONDS} s, or it was killed"
    if isinstance(answer, SlotAddress):
        return answer
    raise ConnectionLostError(f"slot of stage {stage} partition {partition} did not start: {answer}")


def socket_directory(run_id: str) -> str:
    """A directory only this user can enter. Short, because a Unix socket's path has at most 107 bytes."""
    directory = os.path.join(tempfile.gettempdir(), f"headwater-{os.getuid()}", run_id[:12])
    parent = os.path.dirname(directory)
    for each in (parent, directory):
        os.makedirs(each, mode=0o700, exist_ok=True)
        status = os.lstat(each)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise ConnectionLostError(f"{each} must be a directory that only user {os.getuid()} can enter; remove it")
    return directory


def slots_on_this_host(run_id: str) -> list[SlotAddress]:
    """The slots of a run that were ever started on this host, as far as their sockets' names tell: some may be gone."""
    directory = socket_directory(run_id)
    found = []
    for name in sorted(os.listdir(directory)):
        stage, partition, incarnation = name.removesuffix(".sock").split("-")
        path = os.path.join(directory, name)
        found.append(SlotAddress(int(stage), int(partition), local_host(), 0, path, 0, incarnation))
    return found


def find_jvm() -> int:
    """The pid of the JVM above this Python worker: the executor, or with a local master the driver's own."""
    pid = os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() == "java":
                    return pid
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            break
    return os.getppid()


def local_host() -> str:
    """The name under which other executors reach this host."""
    return os.environ.get("SPARK_LOCAL_HOSTNAME") or socket.gethostbyname(socket.gethostname())
