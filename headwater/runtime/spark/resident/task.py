"""The resident task: a Python worker of Spark that serves the driver's epochs until it is told to go.

It reads the sources, runs stateless stages, and relays chunks to the slots of each stage in turn, over connections that
stay open. It owns nothing that counts: the driver may lose it at any time and run the epoch elsewhere.
"""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext

from headwater.runtime.epoch.failure import ConnectionLostError, failure_of
from headwater.runtime.epoch.messages import EpochHeader, SourceTask
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_client, send
from headwater.runtime.slot.relay import Relay
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.worker_job import WorkerJob
from headwater.runtime.spark.worker_watch import watch_this_worker
from headwater.runtime.stage.readers import KeptReaders
from headwater.runtime.stage.round import Round
from headwater.runtime.stage.waiting import can_wait, wait_for_input

CONNECT_SECONDS = 10


@dataclass(frozen=True)
class DriverAddress:
    """Where the driver waits for its resident task."""

    path: str
    """Of a Unix socket; empty: by TCP."""
    host: str
    port: int
    token: str
    """Names the task: the driver takes no other."""


def run_resident(address: DriverAddress, launch: Any, one: Iterable[int]) -> Iterator[bytes]:
    """The body of the Spark task. `launch` is the job's broadcast `SlotLaunch`."""
    for _ in one:  # read to the end: otherwise Spark cannot reuse the worker
        pass
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter(())  # Spark's own retry: the driver has given the first one up
    settings: SlotLaunch = launch.value
    watch_this_worker(settings.health_seconds)
    try:
        sock = authenticate_client(_connected(address), settings.secret, address.token)
        sock.settimeout(None)
        with sock:
            ResidentTask(sock, settings).serve()
    except (ConnectionLostError, OSError):
        pass  # the driver does not want it any more, or is gone
    return iter(())


def _connected(address: DriverAddress) -> socket.socket:
    if address.path:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(CONNECT_SECONDS)
        sock.connect(address.path)
        return sock
    sock = socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class ResidentTask:
    """Serves one driver."""

    def __init__(self, sock: socket.socket, launch: SlotLaunch) -> None:
        self._sock = sock
        self._receiver = Receiver(sock)
        self._launch = launch
        self._relay = Relay(launch)
        self._readers = KeptReaders()
        self._job: WorkerJob | None = None

    def serve(self) -> None:
        """Do what the driver says, until it says SHUTDOWN or is gone."""
        try:
            while True:
                kind, body = self._receiver.receive()
                if kind is Message.EPOCH:
                    self._run(*pickle.loads(body))
                elif kind is Message.WAIT:
                    self._wait(int.from_bytes(body, "little"))
                elif kind is Message.COMPLETED:
                    self._relay.tell(body.decode())
                elif kind is Message.SHUTDOWN:
                    return
                else:
                    raise ConnectionLostError(f"unexpected message {kind.name} from the driver")
        finally:
            self._close()

    def _run(self, header: EpochHeader, tasks: list[SourceTask]) -> None:
        try:
            job = self._job = WorkerJob.of(self._launch)
            acks = Round(job.plan, header, job.runners, self._readers, self._relay).run(tasks)
        except Exception as error:
            self._relay.abandon()
            send(self._sock, Message.FAILED, pickle.dumps(failure_of(error, "the resident task")))
        else:
            send(self._sock, Message.ACKS, pickle.dumps(acks, 5))

    def _wait(self, milliseconds: int) -> None:
        """Tell the driver when a source has input, unless something else comes from it first."""
        readers = [reader for reader in self._readers.kept() if can_wait(reader)]
        if not readers or self._receiver.has_message:
            return
        if wait_for_input(readers, time.monotonic() + milliseconds / 1000, self._sock.fileno()):
            send(self._sock, Message.READABLE)

    def _close(self) -> None:
        self._relay.close()
        self._readers.close()
        if self._job is not None:
            self._job.runners.close()
