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
from collections.abc import Mapping
from typing import NamedTuple

from headwater.common.ids import Place
from headwater.common.machine.boot_clock import since_boot_ns
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
    """Grants leases to the slots of one job. Any thread may call `renew`; none waits for a slot that another asks."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._lock = threading.Lock()
        self._grants: dict[Place, _Grant] = {}
        self._connections: dict[SlotAddress, tuple[socket.socket, Receiver]] = {}
        self._asked: set[SlotAddress] = set()
        """Slots that are being asked. The thread that does it owns the connection meanwhile."""
        self._failed: set[SlotAddress] = set()
        """Slots that did not answer when they were last asked."""

    def renew(
        self, book: Mapping[Place, SlotAddress], fresh_seconds: float = FRESH_SECONDS, *, patient: bool = False
    ) -> set[Place]:
        """Lease to the slots in `book`. Return the places whose slot has a lease now.

        A slot that is stopped takes long to ask. So only a `patient` caller extends leases that still hold, and asks
        slots again that did not answer.
        """
        with self._lock:
            self._failed &= set(book.values())
            for gone in self._connections.keys() - set(book.values()) - self._asked:
                self._forget(gone)
        return {place for place, address in book.items() if self._renew(place, address, fresh_seconds, patient)}

    def _renew(self, place: Place, address: SlotAddress, fresh_seconds: float, patient: bool) -> bool:
        with self._lock:
            grant, now = self._grants.get(place), _now()
            own = grant is not None and grant.address == address
            good_seconds = fresh_seconds if patient else LEASE_SECONDS - ANSWER_SECONDS
            if own and now - grant.since < good_seconds:  # type: ignore[union-attr]
                return True
            if address in self._failed and not patient:
                return False
            if address in self._asked:
                return own and now < grant.until  # type: ignore[union-attr]
            if not self._is_free(place, address):
                return False
            self._asked.add(address)
        try:
            granted = self._grant(place, address)
        except (ConnectionLostError, OSError):
            granted = False
        with self._lock:
            self._asked.discard(address)
            if granted:
                self._failed.discard(address)
            else:
                self._failed.add(address)
                self._forget(address)
        return granted

    def _is_free(self, place: Place, address: SlotAddress) -> bool:
        """Return True if no other slot may hold a lease of this place."""
        grant = self._grants.get(place)
        return grant is None or grant.address == address or _now() >= grant.until or _is_gone(grant.address)

    def _grant(self, place: Place, address: SlotAddress) -> bool:
        connection = self._connections.get(address)
        if connection is None:
            sock = connect(address, self._secret, ANSWER_SECONDS)
            sock.settimeout(ANSWER_SECONDS)
            connection = (sock, Receiver(sock))
            with self._lock:
                self._connections[address] = connection
        sock, receiver = connection
        send(sock, Message.PING)
        kind, body = receiver.receive()
        if kind is not Message.PONG:
            raise ConnectionLostError(f"a slot answered a ping with {kind.name}")
        clock_ns = pickle.loads(body)["clock_ns"]
        with self._lock:
            if not self._is_free(place, address):
                return False
            sent = _now()
            self._grants[place] = _Grant(address, sent, sent + LEASE_SECONDS)  # first: it may arrive, whatever happens
        send(sock, Message.LEASE, _NUMBER.pack(clock_ns + int(LEASE_SECONDS * 1e9)))
        return True

    def _forget(self, address: SlotAddress) -> None:
        found = self._connections.pop(address, None)
        if found is not None:
            with contextlib.suppress(OSError):
                found[0].close()

    def close(self) -> None:
        with self._lock:
            for address in list(self._connections):
                self._forget(address)


def _now() -> float:
    """Seconds by the clock that slots use for their leases, too."""
    return since_boot_ns() / 1e9


def _is_gone(address: SlotAddress) -> bool:
    """Return True only if the slot's process has surely ended."""
    return bool(address.pid) and address.host == local_host() and not is_named(address.pid, PROCESS_NAME)
