"""Which slots may answer queries. The driver leases that to one slot per partition, for a few seconds at a time.

A slot that was stopped, or cut off, does not know that another one has taken its place. So it answers only while its
lease holds, and the driver leases to the new one only when the old one's process is gone or its lease is over. The
lease counts from the slot's own clock when it was asked, so a grant that arrives late is worth nothing.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from headwater.common.ids import Place
from headwater.common.machine.processes import is_named
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot.connection import connect
from headwater.runtime.slot.process import PROCESS_NAME
from headwater.runtime.slot.protocol import Message, Receiver, send
from headwater.runtime.slot.starter import local_host

LEASE_SECONDS = 3.0
ANSWER_SECONDS = 0.5
FRESH_SECONDS = 0.5
"""A lease that is so young is not renewed."""
_NUMBER = struct.Struct("<q")


class _Grant(NamedTuple):
    address: SlotAddress
    since: float
    until: float


class Leases:
    """Grants leases to the slots of one job. Any thread may call `renew`; one at a time does the work."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._lock = threading.Lock()
        self._grants: dict[Place, _Grant] = {}
        self._connections: dict[SlotAddress, tuple[socket.socket, Receiver]] = {}
        self._failed: dict[SlotAddress, float] = {}

    def renew(self, book: Mapping[Place, SlotAddress], fresh_seconds: float = FRESH_SECONDS) -> set[Place]:
        """Lease to the slots in `book`. Return the places whose slot has a lease now."""
        with self._lock:
            for gone in self._connections.keys() - set(book.values()):
                self._forget(gone)
            self._failed = {address: when for address, when in self._failed.items() if address in book.values()}
            return {place for place, address in book.items() if self._renew(place, address, fresh_seconds)}

    def _renew(self, place: Place, address: SlotAddress, fresh_seconds: float) -> bool:
        grant, now = self._grants.get(place), time.monotonic()
        if grant is not None:
            if grant.address == address and now - grant.since < fresh_seconds:
                return True
            if grant.address != address and now < grant.until and not _is_gone(grant.address):
                return False
        if now - self._failed.get(address, -1e9) < ANSWER_SECONDS:
            return False  # it has just kept everybody waiting
        try:
            self._grant(place, address)
        except (ConnectionLostError, OSError):
            self._forget(address)
            self._failed[address] = time.monotonic()
            return False
        return True

    def _grant(self, place: Place, address: SlotAddress) -> None:
        if address not in self._connections:
            sock = connect(address, self._secret, ANSWER_SECONDS)
            sock.settimeout(ANSWER_SECONDS)
            self._connections[address] = (sock, Receiver(sock))
        sock, receiver = self._connections[address]
        send(sock, Message.PING)
        kind, body = receiver.receive()
        if kind is not Message.PONG:
            raise ConnectionLostError(f"a slot answered a ping with {kind.name}")
        clock_ns = pickle.loads(body)["clock_ns"]
        sent = time.monotonic()
        self._grants[place] = _Grant(address, sent, sent + LEASE_SECONDS)  # first: it may arrive, whatever happens
        send(sock, Message.LEASE, _NUMBER.pack(clock_ns + int(LEASE_SECONDS * 1e9)))

    def _forget(self, address: SlotAddress) -> None:
        found = self._connections.pop(address, None)
        if found is not None:
            with contextlib.suppress(OSError):
                found[0].close()

    def close(self) -> None:
        with self._lock:
            for address in list(self._connections):
                self._forget(address)


def _is_gone(address: SlotAddress) -> bool:
    """Return True only if the slot's process has surely ended."""
    return bool(address.pid) and address.host == local_host() and not is_named(address.pid, PROCESS_NAME)
