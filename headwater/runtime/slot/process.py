"""The slot process. `fork_server` forks it when a relay asks for a slot (see `starter`).

The main thread processes epochs, one at a time. A control thread accepts connections. Each connection has a thread that
authenticates it, reads its messages, answers pings and hands its first epoch to the main thread. From then on the main
thread reads from the connection itself, between epochs too, until another connection has an epoch: so the next epoch
over the same connection, which may be a millisecond away, wakes one thread and not three. A newer attempt cuts the
connection of an older one that is under way, so that a zombie relay cannot keep the slot. The process ends with the
executor's JVM.
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
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.errors import SerializationError
from headwater.common.machine.boot_clock import since_boot_ns
from headwater.common.machine.descriptors import wait_any
from headwater.common.machine.processes import alive, name_this_process, open_pidfd
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError, FailureReason, failure_of
from headwater.runtime.epoch.messages import BeginEpoch, SlotAddress
from headwater.runtime.epoch.steps import Step
from headwater.runtime.main_module import load_plan
from headwater.runtime.slot.fence import AttemptFence
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_server, packed, send, send_all
from headwater.runtime.slot.query.server import Lease, QueryServer
from headwater.runtime.slot.slot import Slot

log = logging.getLogger("headwater.slot")
_EDGE = struct.Struct("<q")
HANDSHAKE_SECONDS = 10
ORPHAN_SECONDS = 10
"""A slot that has acknowledged nothing ends after so long without a connection. Its driver does not know of it."""
ACCEPT_AGAIN_SECONDS = 0.5
QUIET_SECONDS = 3600
"""A slot that is in use looks up this often, although nothing has come."""
OUTBOX_BYTES = 1 << 16
ACKNOWLEDGE_SECONDS = 1.0
"""A new attempt waits so long for its predecessor's acknowledgement to be sent."""
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
    handed_back: threading.Event = field(default_factory=threading.Event)
    """The main thread no longer reads from the connection."""
    cut: bool = False
    """The connection is lost, or was taken away."""


@dataclass(frozen=True)
class _Completed:
    token: str


class _Work:
    """What waits for the main thread."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[_Epoch | _Completed | None] = queue.SimpleQueue()
        self._number = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)

    def put(self, item: _Epoch | _Completed | None) -> None:
        """Any thread may call this. None: the job is over."""
        self._items.put(item)
        os.eventfd_write(self._number, 1)

    def wait_for(self, other: socket.socket) -> bool:
        """Wait until there is work, or something to read from `other`. Return True if there is work."""
        poll = select.poll()
        poll.register(self._number, select.POLLIN)
        poll.register(other, select.POLLIN)
        return any(descriptor == self._number for descriptor, _ in poll.poll())

    def take(self) -> _Epoch | _Completed | None:
        """Wait for the next item."""
        os.eventfd_read(self._number)
        return self._items.get()


class _Outbox:
    """Sends an epoch's output. Small frames wait for each other, so that a small epoch is one system call."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._waiting: list[bytes | memoryview] = []
        self._bytes = 0

    def add(self, kind: Message, *parts: bytes) -> None:
        message = packed(self._sock, kind, *parts)
        self._waiting += message
        self._bytes += sum(map(len, message))
        if self._bytes >= OUTBOX_BYTES:
            self.flush()

    def flush(self) -> None:
        message, self._waiting, self._bytes = self._waiting, [], 0
        send_all(self._sock, message)


class SlotServer:
    """Accepts relays and runs their epochs on the slot."""

    def __init__(self, config: SlotConfig) -> None:
        self._config = config
        self._work = _Work()
        self._lock = threading.Condition()
        self._fence = AttemptFence()
        self._current: socket.socket | None = None
        """The connection of the attempt that is under way."""
        self._acknowledging = False
        """The attempt is over, but for its acknowledgement."""
        self._has_acknowledged = False
        """It has state that only it may have: it waits for its driver, however long."""
        self._connections = 0
        self._listeners = [self._listen_unix(config.address.path)]
        self.query_listeners = [self._listen_unix(config.address.query_path)] if config.address.query_path else []
        self.lease = Lease()
        ports = [0, 0]
        if config.listen_tcp:
            for index, listeners in enumerate((self._listeners, self.query_listeners)):
                listener = socket.create_server((config.address.host, 0))
                ports[index] = listener.getsockname()[1]
                listeners.append(listener)
        self.address = replace(config.address, port=ports[0], query_port=ports[1], pid=os.getpid())

    @staticmethod
    def _listen_unix(path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(256)
        return listener

    # --- control thread

    def accept_forever(self) -> None:
        """Accept connections until the watched JVM ends; then end this process.

        A slot that has acknowledged nothing also ends when nobody comes: a driver learns of its slots by their
        acknowledgements, so a job that ended before has told it nothing. Another slot can load what it has loaded.
        """
        watched = open_pidfd(self._config.watch_pid)
        orphaned_at = time.monotonic() + ORPHAN_SECONDS
        listeners = {listener.fileno(): listener for listener in self._listeners}
        descriptors = [*listeners] if watched is None else [*listeners, watched]
        while True:
            ready = wait_any(descriptors, QUIET_SECONDS if watched is not None and self._has_acknowledged else 1.0)
            if watched in ready or (watched is None and not alive(self._config.watch_pid)):
                self._end()
            if ready or self._connections or self._has_acknowledged:
                orphaned_at = time.monotonic() + ORPHAN_SECONDS
            elif time.monotonic() > orphaned_at:
                self._end()
            for listener in (listeners[each] for each in ready if each in listeners):
                try:
                    sock, _ = listener.accept()
                except OSError as error:  # too many open files: other threads may close some
                    log.warning("the slot cannot take a connection: %s", error)
                    time.sleep(ACCEPT_AGAIN_SECONDS)
                    continue
                with self._lock:
                    self._connections += 1
                threading.Thread(target=self._read_from, args=(sock,), daemon=True).start()

    def _end(self) -> None:
        for path in filter(None, (self.address.path, self.address.query_path)):
            with contextlib.suppress(OSError):
                os.unlink(path)
                os.rmdir(os.path.dirname(path))  # succeeds for the last slot; the driver cannot clean up
        os._exit(0)

    def _read_from(self, sock: socket.socket) -> None:
        """The thread of one connection: read its messages unless the main thread does, until it is lost."""
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            sock = authenticate_server(sock, self._config.secret, self._config.address.incarnation)
            sock.settimeout(None)
            receiver = Receiver(sock)
            while self._handle(sock, receiver, *receiver.receive()):
                pass
        except (ConnectionLostError, OSError) as error:
            log.debug("connection ended: %s", error)
        finally:
            sock.close()
            with self._lock:
                self._connections -= 1

    def _handle(self, sock: socket.socket, receiver: Receiver, kind: Message, body: bytes) -> bool:
        """Do what one message says. Return False if the connection has served its purpose."""
        if kind is Message.BEGIN:
            epoch = _Epoch(sock, receiver, pickle.loads(body))
            if self._admits(epoch):
                self._work.put(epoch)
                epoch.handed_back.wait()
            return not epoch.cut
        if kind is Message.COMPLETED:
            self._work.put(_Completed(body.decode()))
        elif kind is Message.PING:
            pong = {"pid": os.getpid(), "newest": self._fence.newest, "clock_ns": since_boot_ns()}
            send(sock, Message.PONG, pickle.dumps(pong))
        elif kind is Message.LEASE:
            self.lease.until_ns = _EDGE.unpack(body)[0]
        elif kind is Message.SHUTDOWN:
            self._work.put(None)
            return False
        else:
            raise ConnectionLostError(f"unexpected message {kind.name} between epochs")
        return True

    def _admits(self, epoch: _Epoch) -> bool:
        """Whether the attempt is no older than any before. If so, it cuts the one that is under way."""
        attempt = epoch.begin.attempt
        with self._lock:
            if not self._fence.admits(attempt):
                text = f"attempt {attempt.id} is fenced: {self._fence.newest} was seen"
                failure = AttemptFailedError(text, FailureReason.PROCESS_LOST)
                with contextlib.suppress(ConnectionLostError):
                    send(epoch.sock, Message.FAILED, pickle.dumps(failure))
                epoch.cut = True
                return False
            if self._current is not None and not (self._acknowledging and self._wait_until_idle()):
                with contextlib.suppress(OSError):
                    self._current.shutdown(socket.SHUT_RDWR)
            return True

    def _wait_until_idle(self) -> bool:
        """Let an acknowledgement pass. Return False if nobody takes it: its relay may have been stopped."""
        return self._lock.wait_for(lambda: self._current is None, ACKNOWLEDGE_SECONDS)

    # --- main thread

    def serve(self, slot: Slot) -> None:
        """Run epochs until a SHUTDOWN message arrives."""
        kept: _Epoch | None = None  # the last epoch, whose connection is read here
        while True:
            if kept is not None and (kept.receiver.has_message or not self._work.wait_for(kept.sock)):
                self._read_next(slot, kept)
            else:
                work = self._work.take()
                if work is None:
                    return
                if isinstance(work, _Completed):
                    slot.checkpoint_completed(work.token)
                    continue
                if kept is not None:
                    kept.handed_back.set()
                kept = work
                self._run_newest(slot, kept)
            if kept.cut:
                kept.handed_back.set()
                kept = None

    def _read_next(self, slot: Slot, kept: _Epoch) -> None:
        """Do what the next message on the connection of the last epoch says, if all of it has arrived.

        Never waits for the rest: whoever sends it may have been stopped, and another relay must get the slot then.
        """
        try:
            if not kept.receiver.has_message:
                kept.receiver.read_once()
                if not kept.receiver.has_message:
                    return
            kind, body = kept.receiver.receive()
            if kind is Message.BEGIN:
                kept.begin = pickle.loads(body)
                if self._admits(kept):
                    self._run_newest(slot, kept)
            elif kind is Message.COMPLETED:
                slot.checkpoint_completed(body.decode())  # before the epoch that may follow it
            elif not self._handle(kept.sock, kept.receiver, kind, body):
                kept.cut = True
        except (ConnectionLostError, OSError) as error:
            log.debug("connection ended: %s", error)
            kept.cut = True

    def _run_newest(self, slot: Slot, epoch: _Epoch) -> None:
        try:
            with self._lock:
                if not self._fence.is_newest(epoch.begin.attempt):
                    epoch.cut = True
                    return
                self._current = epoch.sock
            self._run(slot, epoch)
        except ConnectionLostError as error:
            log.info("epoch %s given up: %s", epoch.begin.attempt.id, error)
            slot.abort()
            epoch.cut = True
        finally:
            with self._lock:
                self._current = None
                self._acknowledging = False
                self._lock.notify_all()

    def _run(self, slot: Slot, epoch: _Epoch) -> None:
        outbox = _Outbox(epoch.sock)

        def emit(target: int, frame: bytes) -> None:
            outbox.add(Message.OUTPUT, _EDGE.pack(target), frame)

        def output_ended() -> None:
            outbox.add(Message.OUTPUT_ENDED)
            outbox.flush()

        try:
            ack = slot.run(epoch.begin, emit, _received_steps(epoch.receiver), output_ended)
        except ConnectionLostError:
            raise
        except Exception as error:
            slot.abort()
            send(epoch.sock, Message.FAILED, pickle.dumps(failure_of(error, self.address.place)))
            epoch.cut = True  # its input may not have been read to the end
            return
        self._has_acknowledged = True
        self._acknowledging = True  # whoever receives it may send the next attempt at once, over another connection
        send(epoch.sock, Message.ACK, pickle.dumps(ack))
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
    if server.query_listeners:
        incarnation = config.address.incarnation
        slot.queries = queries = QueryServer(slot, server.query_listeners, config.secret, incarnation, server.lease)
        queries.start()
    threading.Thread(target=server.accept_forever, name="control", daemon=True).start()
    os.write(answer, pickle.dumps(server.address))
    os.close(answer)
    server.serve(slot)
    slot.close()
    for path in filter(None, (server.address.path, server.address.query_path)):
        with contextlib.suppress(OSError):
            os.unlink(path)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
