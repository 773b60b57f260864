"""Connections to slots: how whoever needs a slot reaches it, asks whether it lives, and ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from headwater.common.machine.processes import is_named
from headwater.common.watchdog import facts_of
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot.process import PROCESS_NAME
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_client, send
from headwater.runtime.slot.starter import local_host

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


def lives(address: SlotAddress, secret: bytes, seconds: float) -> bool:
    """Ask a slot that has been silent for a while whether it lives. It has `seconds` to answer.

    A slot that is only busy answers, from another thread than the one that processes. If a function of the user keeps
    Python's lock, it does not, but uses processor time: that is a sign of life, too.
    """
    before = _ticks(address)
    return answers(address, secret, seconds) or before != _ticks(address)


def _ticks(address: SlotAddress) -> int | None:
    """Processor time of the slot; None where that cannot be seen."""
    facts = facts_of(address.pid) if address.host == local_host() else None
    return facts.ticks if facts is not None else None


def kill(address: SlotAddress) -> None:
    """Kill a slot that hangs, if it is on this host and its pid still belongs to a slot."""
    if address.pid and address.host == local_host() and is_named(address.pid, PROCESS_NAME):
        with contextlib.suppress(OSError):
            os.kill(address.pid, signal.SIGKILL)


def shut_down(address: SlotAddress, secret: bytes) -> None:
    """Tell a slot that its job is over. If the slot does not answer, it is gone or will end with its executor."""
    with contextlib.suppress(ConnectionLostError, OSError), connect(address, secret) as sock:
        send(sock, Message.SHUTDOWN)
        with contextlib.suppress(OSError):
            sock.settimeout(CONNECT_SECONDS)
            sock.recv(1)  # until the slot has closed its end
