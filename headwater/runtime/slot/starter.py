"""Starts a slot process on this host. Called by the relay of its partition."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from dataclasses import dataclass

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.errors import SerializationError
from headwater.common.ids import Place
from headwater.common.machine.processes import is_named
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot.directories import query_directory, socket_directory
from headwater.runtime.slot.fork_client import answer_to
from headwater.runtime.slot.fork_server import SlotRequest
from headwater.runtime.slot.process import SlotConfig


@dataclass(frozen=True)
class SlotLaunch:
    """What a relay needs to start any slot of a job. The driver makes it and sends it with each epoch."""

    job_id: str
    run_id: str
    """Names the slots of this run. A job that resumes must not meet slots of an earlier run."""
    secret: bytes
    plan: bytes
    parallelisms: tuple[int, ...]
    """Of the plan's stages: known where the plan cannot be loaded, too."""
    main_classes: bytes
    layout: CheckpointLayout | None
    listen_tcp: bool
    log_level: str = "WARNING"
    health_seconds: float = 10.0
    """How often a slot at work is asked whether it lives, and how long it may take to answer."""
    checkpoint_seconds: float = 600.0
    """How long a slot may take to write what a checkpoint needs."""


def launch_slot(launch: SlotLaunch, place: Place, host: str) -> SlotAddress:
    """Start a slot beside this process and return its address once it listens.

    ConnectionLostError: it did not start, and may the next time. SerializationError: it cannot load the plan.
    The slot gets a session of its own: it outlives the Python worker that started it and ends with the executor's JVM.
    """
    stage, partition = place
    incarnation = secrets.token_hex(4)
    directory = socket_directory(launch.run_id)
    path = os.path.join(directory, f"{stage}-{partition}-{incarnation}.sock")
    query_path = os.path.join(query_directory(launch.run_id), f"{incarnation}.sock")
    config = SlotConfig(
        address=SlotAddress(stage, partition, host, 0, path, 0, incarnation, query_path=query_path),
        listen_tcp=launch.listen_tcp,
        secret=launch.secret,
        job_id=launch.job_id,
        plan=launch.plan,
        main_classes=launch.main_classes,
        layout=launch.layout,
        watch_pid=find_jvm(),
        log_level=launch.log_level,
        checkpoint_seconds=launch.checkpoint_seconds,
    )
    answer = None
    try:
        for _ in range(2):  # a dying fork server may accept and drop one connection: retry once
            answer = answer_to(SlotRequest(config, os.getcwd(), list(sys.path)))
            if answer is not None:
                break
    except OSError as error:
        answer = str(error)
    if isinstance(answer, SlotAddress):
        return answer
    if isinstance(answer, SerializationError):
        raise answer
    raise ConnectionLostError(f"slot of stage {stage} partition {partition} did not start: {answer or 'it was killed'}")


def slots_on_this_host(run_id: str) -> list[SlotAddress]:
    """Return the slots of a run that were started on this host, by the names of their sockets. Some may be gone."""
    directory = socket_directory(run_id)
    found = []
    for name in sorted(os.listdir(directory)):
        stage, partition, incarnation = name.removesuffix(".sock").split("-")
        path = os.path.join(directory, name)
        found.append(SlotAddress(int(stage), int(partition), local_host(), 0, path, 0, incarnation))
    return found


def find_jvm() -> int:
    """Return the pid of the JVM above this Python worker: the executor's, or with a local master the driver's."""
    pid = os.getpid()
    while pid > 1:
        try:
            if is_named(pid, "java"):
                return pid
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            break
    return os.getppid()


def local_host() -> str:
    """Return the name under which other executors reach this host."""
    return os.environ.get("SPARK_LOCAL_HOSTNAME") or socket.gethostbyname(socket.gethostname())
