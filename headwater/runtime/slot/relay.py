"""The relay's side of a slot: find or start the slot, run one epoch attempt on it, shut it down."""

from __future__ import annotations

import contextlib
import marshal
import os
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Iterable, Iterator

from headwater.common.ids import Place
from headwater.common.machine.processes import is_named
from headwater.common.watchdog import facts_of
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError
from headwater.runtime.epoch.messages import BeginEpoch, PartitionAck, SlotAddress
from headwater.runtime.epoch.steps import Step
from headwater.runtime.slot.process import PROCESS_NAME
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_client, send
from headwater.runtime.slot.starter import SlotLaunch, launch_slot, local_host, slots_on_this_host

_NUMBER = struct.Struct("<q")
CONNECT_SECONDS = 5


def connect(address: SlotAddress, secret: bytes, timeout_seconds: float = CONNECT_SECONDS) -> socket.socket:
    """Return an authenticated connection: by Unix socket on the same host, by TCP from another."""
    try:
        if os.path.exists(address.path) and address.host == local_host():
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout_seconds)
            sock.connect(address.path)
        elif address.port:
            sock = socket.create_connection((address.host, address.port), timeout=timeout_seconds)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            raise ConnectionLostError(f"slot {address.incarnation} has no socket that this host can reach")
        sock = authenticate_client(sock, secret, address.incarnation)
        sock.settimeout(None)
        return sock
    except OSError as error:
        raise ConnectionLostError(f"slot {address.incarnation} does not answer: {error}") from error


def find_or_start(launch: SlotLaunch, known: SlotAddress | None, place: Place) -> tuple[socket.socket, SlotAddress]:
    """Return a connection to the partition's slot, and its address. Start a new slot if none answers.

    `known` is the slot of the address book. A slot that a failed attempt started is not in the book: its socket in the
    run's directory leads to it.
    """
    if known is not None:
        try:
            return connect(known, launch.secret), known
        except ConnectionLostError:
            _kill(known)  # it may hang, and nothing else would ever end it
    for address in slots_on_this_host(launch.run_id):
        if address.place == place and address != known:
            with contextlib.suppress(ConnectionLostError):
                return connect(address, launch.secret), address
    address = launch_slot(launch, place, local_host())
    return connect(address, launch.secret), address


class Watch:
    """Pings a slot while an epoch runs. Kills a slot that does not answer, and ends the connection to it.

    A slot that is only busy still answers pings, from another thread than the one that processes. If a function of the
    user keeps Python's lock, it does not, but uses processor time: that is a sign of life, too.
    """

    def __init__(self, sock: socket.socket, address: SlotAddress, secret: bytes, every_seconds: float) -> None:
        self._sock = sock
        self._address = address
        self._secret = secret
        self._every_seconds = every_seconds
        self._ended = threading.Event()
        self.hangs = False
        self._thread = threading.Thread(target=self._run, name="slot-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._every_seconds):
            before = self._ticks()
            if not answers(self._address, self._secret, self._every_seconds):
                if before != self._ticks():
                    continue
                self.hangs = not self._ended.is_set()
                if self.hangs:
                    _kill(self._address)
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
                return

    def _ticks(self) -> int | None:
        """Processor time of the slot; None where that cannot be seen."""
        facts = facts_of(self._address.pid) if self._address.host == local_host() else None
        return facts.ticks if facts is not None else None

    def end(self) -> None:
        self._ended.set()


def _kill(address: SlotAddress) -> None:
    """Kill a slot that hangs, if it is on this host and its pid still belongs to a slot."""
    if address.pid and address.host == local_host() and is_named(address.pid, PROCESS_NAME):
        with contextlib.suppress(OSError):
            os.kill(address.pid, signal.SIGKILL)


def answers(address: SlotAddress, secret: bytes, timeout_seconds: float) -> bool:
    """Return True if the slot answers a ping in time."""
    try:
        with connect(address, secret, timeout_seconds) as sock:
            sock.settimeout(timeout_seconds)
            send(sock, Message.PING)
            kind, _ = Receiver(sock).receive()
            return kind is Message.PONG
    except (ConnectionLostError, OSError):
        return False


def run_epoch(
    sock: socket.socket, begin: BeginEpoch, steps: Iterable[Step], watch: Watch
) -> Iterator[tuple[int, bytes] | PartitionAck]:
    """Send the steps, yield the slot's output frames as they come, and end with its acknowledgement.

    Raises the slot's `AttemptFailedError`, or `ConnectionLostError`.

    A second thread sends while this one receives. One thread alone could deadlock: a slot that writes output does not
    read input meanwhile.
    """
    send(sock, Message.BEGIN, pickle.dumps(begin))
    sender = threading.Thread(target=_send_steps, args=(sock, steps), daemon=True)
    sender.start()
    receiver = Receiver(sock)
    try:
        while True:
            kind, body = receiver.receive()
            if kind is Message.OUTPUT:
                (target,) = _NUMBER.unpack_from(body)
                yield target, body[8:]
            elif kind is Message.ACK:
                ack: PartitionAck = pickle.loads(body)
                yield ack
                return
            elif kind is Message.FAILED:
                failure: AttemptFailedError = pickle.loads(body)
                raise failure
    except ConnectionLostError as error:
        if watch.hangs:
            raise ConnectionLostError("the slot hangs: it does not answer pings; it is replaced") from error
        raise
    finally:
        watch.end()
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sender.join()
        sock.close()


def _send_steps(sock: socket.socket, steps: Iterable[Step]) -> None:
    try:
        for step in steps:
            if step.kind == "chunk":
                send(sock, Message.CHUNK, _NUMBER.pack(step.node), step.value)
            elif step.kind == "watermark":
                send(sock, Message.WATERMARK, marshal.dumps((step.node, step.value)))
            else:
                send(sock, Message.IDLE, marshal.dumps((step.node, step.value)))
        send(sock, Message.END)
    except ConnectionLostError:
        pass  # the receiving thread notices it too, and raises
    except BaseException:
        # Without END the slot would wait for ever. Cut the connection, so that the slot rolls back.
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        raise


def shut_down(address: SlotAddress, secret: bytes) -> None:
    """Tell a slot that its job is over. If the slot does not answer, it is gone or will end with its executor."""
    with contextlib.suppress(ConnectionLostError, OSError), connect(address, secret) as sock:
        send(sock, Message.SHUTDOWN)
        with contextlib.suppress(OSError):
            sock.settimeout(CONNECT_SECONDS)
            sock.recv(1)  # until the slot has closed its end
