"""The slot process. `fork_server` forks it when a relay asks for a slot (see `starter`).

The main thread processes epochs, one connection at a time. A control thread accepts connections, authenticates them,
answers pings and hands epochs to the main thread; a newer attempt cuts an older one's connection, so that a zombie
relay cannot keep the slot. The process ends with the executor's JVM.
"""

from __future__ import annotations

import contextlib
import logging
import marshal
import os
import pickle
import queue
import select
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.errors import LocalDiskError, SerializationError, StateError
from headwater.common.machine.processes import alive, name_this_process, open_pidfd
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError, FailureReason, failure_of
from headwater.runtime.epoch.messages import BeginEpoch, SlotAddress
from headwater.runtime.epoch.steps import Step
from headwater.runtime.main_module import load_plan
from headwater.runtime.slot.fence import AttemptFence
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_server, send
from headwater.runtime.slot.slot import Slot

log = logging.getLogger("headwater.slot")
_EDGE = struct.Struct("<q")
HANDSHAKE_SECONDS = 10
PROCESS_NAME = "headwater-slot"
"""The name that `ps` shows."""


@dataclass(frozen=True)
class SlotConfig:
    """What a slot needs to know to start."""

    address: SlotAddress  # with port 0 and pid 0: the slot fills them in
    listen_tcp: bool
    secret: bytes
    job_id: str
    plan: bytes
    main_classes: bytes
    layout: CheckpointLayout | None
    watch_pid: int
    log_level: str = "WARNING"
    checkpoint_seconds: float = 600.0


@dataclass
class _Epoch:
    sock: socket.socket
    receiver: Receiver
    begin: BeginEpoch


class SlotServer:
    """Accepts relays and runs their epochs on the slot."""

    def __init__(self, config: SlotConfig) -> None:
        self._config = config
        self._epochs: queue.SimpleQueue[_Epoch | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._fence = AttemptFence()
        self._current: socket.socket | None = None
        self._listeners = [self._listen_unix(config.address.path)]
        port = 0
        if config.listen_tcp:
            listener = socket.create_server((config.address.host, 0))
            port = listener.getsockname()[1]
            self._listeners.append(listener)
        self.address = replace(config.address, port=port, pid=os.getpid())

    @staticmethod
    def _listen_unix(path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(16)
        return listener

    # --- control thread

    def accept_forever(self) -> None:
        """Accept connections until the watched JVM ends; then end this process."""
        watched = open_pidfd(self._config.watch_pid)
        descriptors: list[socket.socket | int] = [*self._listeners]
        if watched is not None:
            descriptors.append(watched)
        while True:
            timeout = None if watched is not None else 1.0
            ready, _, _ = select.select(descriptors, [], [], timeout)
            if watched in ready or (watched is None and not alive(self._config.watch_pid)):
                self._end()
            for listener in ready:
                if isinstance(listener, socket.socket):
                    sock, _ = listener.accept()
                    threading.Thread(target=self._greet, args=(sock,), daemon=True).start()

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.address.path)
            os.rmdir(os.path.dirname(self.address.path))  # succeeds for the last slot; the driver cannot clean up
        os._exit(0)

    def _greet(self, sock: socket.socket) -> None:
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            sock = authenticate_server(sock, self._config.secret, self._config.address.incarnation)
            sock.settimeout(None)
            receiver = Receiver(sock)
            kind, body = receiver.receive()
            if kind is Message.PING:
                send(sock, Message.PONG, pickle.dumps({"pid": os.getpid(), "newest": self._fence.newest}))
                sock.close()
            elif kind is Message.SHUTDOWN:
                self._epochs.put(None)
                sock.close()
            elif kind is Message.BEGIN:
                self._take(_Epoch(sock, receiver, pickle.loads(body)))
            else:
                raise ConnectionLostError(f"unexpected first message {kind.name}")
        except (ConnectionLostError, OSError) as error:
            log.debug("connection refused: %s", error)
            sock.close()

    def _take(self, epoch: _Epoch) -> None:
        attempt = epoch.begin.attempt
        with self._lock:
            if not self._fence.admits(attempt):
                text = f"attempt {attempt.id} is fenced: {self._fence.newest} was seen"
                failure = AttemptFailedError(text, FailureReason.PROCESS_LOST)
                with contextlib.suppress(ConnectionLostError):
                    send(epoch.sock, Message.FAILED, pickle.dumps(failure))
                epoch.sock.close()
                return
            if self._current is not None:
                with contextlib.suppress(OSError):
                    self._current.shutdown(socket.SHUT_RDWR)
            self._epochs.put(epoch)

    # --- main thread

    def serve(self, slot: Slot) -> None:
        """Run epochs until a SHUTDOWN message arrives."""
        while (epoch := self._epochs.get()) is not None:
            with self._lock:
                if not self._fence.is_newest(epoch.begin.attempt):
                    epoch.sock.close()
                    continue
                self._current = epoch.sock
            try:
                self._run(slot, epoch)
            except ConnectionLostError as error:
                log.info("epoch %s given up: %s", epoch.begin.attempt.id, error)
                slot.abort()
            finally:
                with self._lock:
                    self._current = None
                epoch.sock.close()

    def _run(self, slot: Slot, epoch: _Epoch) -> None:
        sock = epoch.sock

        def emit(target: int, frame: bytes) -> None:
            send(sock, Message.OUTPUT, _EDGE.pack(target), frame)

        try:
            ack = slot.run(epoch.begin, emit, _received_steps(epoch.receiver))
        except ConnectionLostError:
            raise
        except Exception as error:
            slot.abort()
            send(sock, Message.FAILED, pickle.dumps(_failure(error, slot.plan)))
            return
        send(sock, Message.ACK, pickle.dumps(ack))
        fault.reached("acked", epoch.begin.attempt.epoch)


def _received_steps(receiver: Receiver) -> Iterator[Step]:
    """The steps of one epoch, as the relay sends them."""
    while True:
        kind, body = receiver.receive()
        if kind is Message.CHUNK:
            (edge,) = _EDGE.unpack_from(body)
            yield Step("chunk", edge, memoryview(body)[8:])
        elif kind is Message.WATERMARK:
            yield Step("watermark", *marshal.loads(body))
        elif kind is Message.IDLE:
            yield Step("idle", *marshal.loads(body))
        elif kind is Message.END:
            return
        else:
            raise ConnectionLostError(f"unexpected message {kind.name} in an epoch")


def _failure(error: Exception, plan: JobPlan) -> AttemptFailedError:
    """What the relay is told. Errors name operators as the program does."""
    if isinstance(error, (StateError, SerializationError, LocalDiskError)):
        error.args = (plan.with_names(str(error)),)
    return failure_of(error, "a slot")


def run_slot(config: SlotConfig, answer: int) -> None:
    """Serve until shutdown, then exit the process.

    First write to the descriptor `answer`: the pickled `SlotAddress`, or a traceback if the slot cannot start.
    """
    name_this_process(PROCESS_NAME)
    logging.basicConfig(level=config.log_level, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    try:
        server = SlotServer(config)
        plan = load_plan(config.main_classes, config.plan, f"a slot on host {config.address.host}")
        slot = Slot(plan, config.job_id, server.address, config.layout, checkpoint_seconds=config.checkpoint_seconds)
    except SerializationError as error:
        os.write(answer, pickle.dumps(error))
        os._exit(1)
    except Exception:
        os.write(answer, pickle.dumps(traceback.format_exc()))
        os._exit(1)
    threading.Thread(target=server.accept_forever, name="control", daemon=True).start()
    os.write(answer, pickle.dumps(server.address))
    os.close(answer)
    server.serve(slot)
    slot.close()
    with contextlib.suppress(OSError):
        os.unlink(server.address.path)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
