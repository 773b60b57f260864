"""Starts a slot process on this host, for the relay that needs it."""

from __future__ import annotations

import contextlib
import fcntl
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

import xxhash

from headwater.checkpoint.paths import CheckpointLayout
from headwater.runtime.slot.fork_server import SlotRequest, send_request
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
    answer = None
    try:
        for _ in range(2):  # a fork server that was just killed still takes a connection, and with it into its grave
            answer = _answer_to(SlotRequest(config, os.getcwd(), list(sys.path)))
            if answer is not None:
                break
    except OSError as error:
        answer = str(error)
    if isinstance(answer, SlotAddress):
        return answer
    raise ConnectionLostError(f"slot of stage {stage} partition {partition} did not start: {answer or 'it was killed'}")


def _answer_to(request: SlotRequest) -> SlotAddress | str | None:
    """What the slot says that is forked for `request`; None if it says nothing."""
    watched = request.config.watch_pid
    answer, answer_write = os.pipe()
    try:
        try:
            with _fork_server(watched) as server:
                send_request(server, request, answer_write, sys.stderr.fileno())
        except (BrokenPipeError, ConnectionResetError):
            return None
        finally:
            os.close(answer_write)
        readable, _, _ = select.select([answer], [], [], START_SECONDS)
        if not readable:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_fork_server_path(watched))  # it may hang: the next slot has one of its own
            return f"no answer within {START_SECONDS} s"
        data = os.read(answer, 1 << 20)
        return pickle.loads(data) if data else None
    finally:
        os.close(answer)


def _fork_server_path(watched: int) -> str:
    """Where the fork server of the process `watched` listens.

    What Python is told when it starts (how to hash, where to look for modules) is in the environment: only those share
    a fork server that have the same.
    """
    started_with = repr((sys.executable, sorted(os.environ.items()))).encode()
    return os.path.join(_own_directory(), f"fork-{watched}-{xxhash.xxh64_hexdigest(started_with)}.sock")


def _fork_server(watched: int) -> socket.socket:
    """A connection to the fork server of the process `watched`, which is started if there is none."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    path = _fork_server_path(watched)
    with contextlib.suppress(OSError):
        return _connected(path)
    with open(os.path.join(_own_directory(), "fork.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):  # somebody else has started it in the meantime
            return _connected(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listening, listening_write = os.pipe()
        try:
            subprocess.Popen(
                [sys.executable, "-m", "headwater.runtime.slot.fork_server", path, str(watched), str(listening_write)],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                start_new_session=True,
                pass_fds=(listening_write,),
                env=environment,
            )
            os.close(listening_write)
            readable, _, _ = select.select([listening], [], [], START_SECONDS)
            if not readable or not os.read(listening, 1):
                raise ConnectionLostError("the process that slots are forked from did not start; its output says why")
        finally:
            os.close(listening)
    return _connected(path)


def _connected(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def socket_directory(run_id: str) -> str:
    """The directory of a run's sockets. Short, because a Unix socket's path has at most 107 bytes."""
    return _private(os.path.join(_own_directory(), run_id[:12]))


def _own_directory() -> str:
    return _private(os.path.join(tempfile.gettempdir(), f"headwater-{os.getuid()}"))


def _private(directory: str) -> str:
    """`directory`, made if need be: only this user can enter it."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConnectionLostError(f"{directory} must be a directory that only user {os.getuid()} can enter; remove it")
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
