"""The driver's end of the resident engine: starts the resident task, sends it epochs, and notices when it is gone."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from headwater.common.errors import HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.runtime.epoch.engine import EngineLostError
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError, FailureReason
from headwater.runtime.epoch.messages import Ack, EpochHeader, SourceTask
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.directories import own_directory
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_server, send
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.resident.task import CONNECT_SECONDS, DriverAddress, run_resident

log = logging.getLogger(__name__)

START_SECONDS = 10.0
"""How long Spark may take to give the task a core and a worker."""

END_SECONDS = 5.0

_running: Counter[str] = Counter()
"""{Spark application: how many resident tasks of this process have a core of it, or wait for one}"""
_running_lock = threading.Lock()


class NoCoreError(HeadwaterError):
    """Spark has no core for the resident task, or had none in time. The attempt has not begun."""


class ResidentEngine:
    """Runs epochs of one job in one long-running Spark task. The coordinator's thread uses it; `cancel` is for any."""

    def __init__(self, context: SparkContext, name: str, launch: SlotLaunch, broadcast: Any) -> None:
        self._context = context
        self._name = name
        self._launch = launch
        self._broadcast = broadcast
        self._task: _RunningTask | None = None
        self._untold: str | None = None
        """Token of a durable checkpoint of which the slots have not heard."""
        self._cancelled = False

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @property
    def watches(self) -> bool:
        """True: the task has readers of all splits that the last epoch read, and `wait` watches them."""
        return self._task is not None and self._task.has_read

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask]) -> list[Ack]:
        """Run one attempt; return the acknowledgements. Raises `AttemptFailedError` if it cannot complete.

        `NoCoreError`: Spark is too busy to run it here.
        """
        try:
            if self._task is None:
                self._check_spark()
                self._task = _RunningTask(self._context, self._name, self._launch, self._broadcast)
                self._task.start(lambda: self._cancelled)
            self._untold = None  # the header says it
            return self._task.run(header, tasks)
        except NoCoreError:
            self._give_up_task()
            raise
        except (ConnectionLostError, OSError) as error:
            reason = self._give_up_task() or str(error)
            self._check_spark()
            raise AttemptFailedError(f"the resident task is gone: {reason}", FailureReason.PROCESS_LOST) from None

    def _check_spark(self) -> None:
        """Raise `EngineLostError` if Spark is gone: no other attempt helps."""
        try:
            stopped = self._context._jsc is None or self._context._jsc.sc().isStopped()
        except (Py4JError, ConnectionError) as error:
            raise EngineLostError(f"Spark's JVM is gone: {error}") from None
        if stopped:
            raise EngineLostError("the Spark context was stopped")

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        """Wait for input, at most `seconds`. Return True if a source may have some; `wakeup` ends it early."""
        if self._task is None:
            wakeup.wait(seconds)
            return False
        try:
            self._tell_slots()
            return self._task.wait(seconds, wakeup)
        except (ConnectionLostError, OSError):
            self._give_up_task()  # the next epoch starts another one
            return False

    def checkpoint_completed(self, token: str) -> None:
        """Tell the slots as soon as the job waits. If it runs another epoch instead, that one tells them."""
        self._untold = token

    def _tell_slots(self) -> None:
        token, self._untold = self._untold, None
        if token is not None and self._task is not None:
            with contextlib.suppress(ConnectionLostError):  # the next epoch notices
                self._task.tell(token)

    def rest(self) -> None:
        """Give the task's core back to Spark. The next epoch starts another task; slots stay."""
        self._tell_slots()
        task, self._task = self._task, None
        if task is not None:
            task.end()

    def cancel(self) -> None:
        """Give the attempt under way up. Any thread may call this."""
        self._cancelled = True
        task = self._task
        if task is not None:
            task.cut()

    def close(self) -> None:
        self.rest()

    def _give_up_task(self) -> str:
        """Forget a task that is gone. Return what Spark says about it."""
        task, self._task = self._task, None
        return task.end() if task is not None else ""


class _RunningTask:
    """One resident task, from its Spark job to its connection."""

    def __init__(self, context: SparkContext, name: str, launch: SlotLaunch, broadcast: Any) -> None:
        self._context = context
        self._name = name
        self._launch = launch
        self._broadcast = broadcast
        self._application: str
        self._group = f"{launch.run_id}-resident-{secrets.token_hex(4)}"
        self._sock: socket.socket | None = None
        self._receiver: Receiver
        self._waits_until = 0.0
        """Until then the task watches the sources, unless it gets a message."""
        self.has_read = False
        """It has run an epoch that read. Before that, it has no readers that could wait."""
        self._failure = ""
        self._thread = threading.Thread(target=self._run_spark_job, name="resident", daemon=True)

    # --- the Spark job

    def start(self, is_cancelled: Any) -> None:
        """Start the task and wait until it has connected. `NoCoreError`: no core can be had, or not in time."""
        token = secrets.token_hex(8)
        listener, self._address = self._listen(token)
        try:
            self._reserve_core()
            self._thread.start()
            deadline = time.monotonic() + START_SECONDS
            while not wait_any([listener.fileno()], 0.05):
                if not self._thread.is_alive() or is_cancelled():
                    raise ConnectionLostError(self._failure or "it did not start")
                if time.monotonic() > deadline:
                    raise NoCoreError(f"Spark had no core for the resident task within {START_SECONDS:g} s")
            sock, _ = listener.accept()
        finally:
            listener.close()
            if self._address.path:
                with contextlib.suppress(OSError):
                    os.unlink(self._address.path)
        sock.settimeout(CONNECT_SECONDS)
        if not self._address.path:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._sock = authenticate_server(sock, self._launch.secret, token)
        self._sock.settimeout(None)
        self._receiver = Receiver(self._sock)

    def _reserve_core(self) -> None:
        """Take a core for the task, which keeps it. One must be left for everything else."""
        cores: int = self._context.defaultParallelism
        self._application = self._context.applicationId
        with _running_lock:
            if _running[self._application] >= cores - 1:
                raise NoCoreError("resident tasks have all cores of Spark's but one")
            _running[self._application] += 1

    def _listen(self, token: str) -> tuple[socket.socket, DriverAddress]:
        if self._launch.listen_tcp:
            host = self._context.getConf().get("spark.driver.host") or "localhost"
            listener = socket.create_server((host, 0))
            return listener, DriverAddress("", host, listener.getsockname()[1], token)
        path = os.path.join(own_directory(), f"resident-{token}.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        return listener, DriverAddress(path, "", 0, token)

    def _run_spark_job(self) -> None:
        try:
            self._context.setJobGroup(self._group, f"{self._name}: resident", False)
            body = partial(run_resident, self._address, self._broadcast)
            self._context.parallelize([0], 1).mapPartitions(body).collect()
        except Exception as error:
            self._failure = str(error).split("Driver stacktrace")[0].split("\n\tat ")[0].strip()[:4000]
        finally:
            with _running_lock:
                _running[self._application] -= 1
            self.cut()  # whoever waits for an answer learns that none will come

    # --- the connection

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask]) -> list[Ack]:
        assert self._sock is not None
        self._waits_until = 0.0
        send(self._sock, Message.EPOCH, pickle.dumps((header, list(tasks)), 5))
        while True:
            kind, body = self._receiver.receive()
            if kind is Message.ACKS:
                acks: list[Ack] = pickle.loads(body)
                self.has_read = self.has_read or any(task.splits for task in tasks)
                return acks
            if kind is Message.FAILED:
                failure: AttemptFailedError = pickle.loads(body)
                raise failure

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        assert self._sock is not None
        until = time.monotonic() + seconds
        if self._waits_until < until:
            send(self._sock, Message.WAIT, int(seconds * 1000).to_bytes(8, "little"))
            self._waits_until = until
        if self._sock.fileno() not in wait_any([self._sock.fileno(), wakeup.fileno()], seconds):
            return False
        self._waits_until = 0.0
        return any(kind is Message.READABLE for kind, _ in self._receiver.arrived())

    def tell(self, token: str) -> None:
        assert self._sock is not None
        self._waits_until = 0.0
        send(self._sock, Message.COMPLETED, token.encode())

    def cut(self) -> None:
        """End the connection. Whoever reads from it notices."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)

    def end(self) -> str:
        """End the task, and return what Spark says about it."""
        if self._sock is not None:
            with contextlib.suppress(ConnectionLostError):
                send(self._sock, Message.SHUTDOWN)
            self.cut()
        if self._thread.ident is not None:  # else it was not started
            self._thread.join(END_SECONDS)
        if self._thread.is_alive() and self._context._jsc is not None:
            with contextlib.suppress(Exception):
                self._context.cancelJobGroup(self._group)
        if self._sock is not None:
            self._sock.close()
        return self._failure
