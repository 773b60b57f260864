"""Tells slots from the driver that a checkpoint is durable, beside the epochs. Nothing depends on these notices."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterable

from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot.connection import connect
from headwater.runtime.slot.protocol import Message, send

_Notice = tuple[str, tuple[SlotAddress, ...]]


class SlotNotices:
    """Connections to slots, used by a thread of its own: a host that cannot be reached holds nothing up."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._notices: queue.SimpleQueue[_Notice | None] = queue.SimpleQueue()
        self._connections: dict[SlotAddress, socket.socket | None] = {}  # None: it cannot be reached
        self._thread: threading.Thread | None = None

    def tell(self, token: str, slots: Iterable[SlotAddress]) -> None:
        """The checkpoint with `token` is durable. Returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
            self._thread.start()
        self._notices.put((token, tuple(slots)))

    def close(self) -> None:
        self._notices.put(None)

    def _run(self) -> None:
        while (notice := self._newest()) is not None:
            token, slots = notice
            for gone in self._connections.keys() - set(slots):
                self._forget(gone)
            for address in slots:
                self._tell_one(address, token)
        for address in list(self._connections):
            self._forget(address)

    def _newest(self) -> _Notice | None:
        """The last notice that was given: it includes those before it."""
        notice = self._notices.get()
        while notice is not None and not self._notices.empty():
            notice = self._notices.get()
        return notice

    def _tell_one(self, address: SlotAddress, token: str) -> None:
        try:
            if address not in self._connections:
                self._connections[address] = None
                self._connections[address] = connect(address, self._secret)
            sock = self._connections[address]
            if sock is not None:
                send(sock, Message.COMPLETED, token.encode())
        except (ConnectionLostError, OSError):
            self._forget(address)
            self._connections[address] = None

    def _forget(self, address: SlotAddress) -> None:
        sock = self._connections.pop(address, None)
        if sock is not None:
            sock.close()
