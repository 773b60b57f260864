"""The relay's side of a slot: find it or start it, run one epoch attempt on it, tell it to end."""

from __future__ import annotations

import contextlib
import marshal
import os
import pickle
import socket
import struct
import threading
from collections.abc import Iterable, Iterator

from headwater.runtime.slot.launcher import SlotLaunch, launch_slot, local_host, slots_on_this_host
from headwater.runtime.slot.protocol import (
    BeginEpoch,
    ConnectionLostError,
    Message,
    Receiver,
    SlotAck,
    SlotAddress,
    SlotFailure,
    authenticate_client,
    send,
)
from headwater.runtime.stage_input import Step

_NUMBER = struct.Struct("<q")
CONNECT_SECONDS = 5


def connect(address: SlotAddress, secret: bytes) -> socket.socket:
    """An authenticated connection: by Unix socket on the same host, by TCP from another."""
    try:
        if os.path.exists(address.path) and address.host == local_host():
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(address.path)
        elif address.port:
            sock = socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            raise ConnectionLostError(f"slot {address.incarnation} has no socket that this host can reach")
        authenticate_client(sock, secret)
        sock.settimeout(None)
        return sock
    except OSError as error:
        raise ConnectionLostError(f"slot {address.incarnation} does not answer: {error}") from error


def find_or_start(launch: SlotLaunch, known: SlotAddress | None, stage: int, partition: int) -> socket.socket:
    """A connection to the partition's slot; a new slot, if there is none or it does not answer.

    A slot that an attempt started before it failed is in no address book, but its socket is there: it is used.
    """
    if known is not None:
        with contextlib.suppress(ConnectionLostError):
            return connect(known, launch.secret)
    for address in slots_on_this_host(launch.run_id):
        if (address.stage, address.partition) == (stage, partition):
            with contextlib.suppress(ConnectionLostError):
                return connect(address, launch.secret)
    return connect(launch_slot(launch, stage, partition, local_host()), launch.secret)


def run_epoch(
    sock: socket.socket, begin: BeginEpoch, steps: Iterable[Step]
) -> Iterator[tuple[int, bytes] | SlotAck | SlotFailure]:
    """Send the steps, yield the slot's output frames as they come, and end with its acknowledgement or failure.

    A thread sends while this one receives: a slot that is busy writing output does not read, so one thread alone could
    wait for itself.
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
            elif kind is Message.ACK or kind is Message.FAILED:
                verdict: SlotAck | SlotFailure = pickle.loads(body)
                yield verdict
                return
    finally:
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
        pass  # the receiving side notices and says so
    except BaseException:
        # Without END the slot would wait for ever: cut the connection, so that it rolls back.
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        raise


def shut_down(address: SlotAddress, secret: bytes) -> None:
    """Tell a slot that its job is over. A slot that does not answer is gone, or ends with its executor."""
    with contextlib.suppress(ConnectionLostError, OSError), connect(address, secret) as sock:
        send(sock, Message.SHUTDOWN)
        with contextlib.suppress(OSError):
            sock.settimeout(CONNECT_SECONDS)
            sock.recv(1)  # until the slot has closed its end
