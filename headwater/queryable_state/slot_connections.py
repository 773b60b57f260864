"""Connections from a reader to slots. Each serves one request at a time; idle ones are kept for the next."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from typing import Any

from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.locations import SlotPlace
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.slot.protocol import QUERY_MAGIC, Message, Receiver, authenticate_client, send

Json = dict[str, Any]

CONNECT_SECONDS = 2.0


class SlotConnection:
    """One authenticated connection. What a reader pins on it is released when it is closed."""

    def __init__(self, slot: SlotPlace, secret: bytes, seconds: float) -> None:
        try:
            if slot.path and os.path.exists(slot.path):
                sock = socket.socket(socket.AF_UNIX)
                sock.settimeout(min(seconds, CONNECT_SECONDS))
                sock.connect(slot.path)
            elif slot.port:
                sock = socket.create_connection((slot.host, slot.port), timeout=min(seconds, CONNECT_SECONDS))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            else:
                raise _lost(slot, "it has no socket that can be reached from here")
            self._sock = authenticate_client(sock, secret, slot.incarnation, QUERY_MAGIC)
        except (OSError, ConnectionLostError) as error:
            raise _lost(slot, str(error)) from None
        self._slot = slot
        self._receiver = Receiver(self._sock)

    def ask(self, request: Json, seconds: float) -> Json:
        """Return the answer. Raises `QueryError`; if that is UNREACHABLE, the connection cannot be used any more."""
        try:
            self._sock.settimeout(max(seconds, 0.001))
            send(self._sock, Message.QUERY, json.dumps(request, separators=(",", ":")).encode())
            kind, body = self._receiver.receive()
        except (OSError, ConnectionLostError) as error:
            self.close()
            raise _lost(self._slot, str(error)) from None
        if kind is not Message.ANSWER:
            self.close()
            raise _lost(self._slot, f"unexpected message {kind.name}")
        answer = json.loads(body)
        if "error" in answer:
            raise QueryError.from_json(answer["error"])
        found: Json = answer["ok"]
        return found

    def close(self) -> None:
        self._sock.close()


def _lost(slot: SlotPlace, why: str) -> QueryError:
    return QueryError(
        QueryProblem.UNREACHABLE, f"slot {slot.stage}/{slot.partition} on {slot.host} does not answer: {why}", 0.05
    )


class SlotConnections:
    """Idle connections by slot. Thread safe.

    A slot that has kept one reader waiting in vain may be stopped. Until it answers, one reader at a time tries it.
    """

    def __init__(self, most_idle: int = 128) -> None:
        self._lock = threading.Lock()
        self._idle: dict[SlotPlace, list[SlotConnection]] = {}
        self._most_idle = most_idle
        self._silent: dict[SlotPlace, float] = {}  # {slot: when to try it again}

    def ask(self, slot: SlotPlace, secret: bytes, request: Json, seconds: float) -> Json:
        with self._lock:
            if slot in self._silent:
                if time.monotonic() < self._silent[slot]:
                    raise _lost(slot, "it has not answered another reader")
                self._silent[slot] = time.monotonic() + seconds
            idle = self._idle.get(slot)
            connection = idle.pop() if idle else None
        started = time.monotonic()
        try:
            if connection is None:
                connection = SlotConnection(slot, secret, seconds)
            answer = connection.ask(request, seconds)
        except QueryError as error:
            if connection is not None and error.problem is not QueryProblem.UNREACHABLE:
                self._give_back(slot, connection)
            elif time.monotonic() - started >= seconds:
                with self._lock:
                    self._silent[slot] = time.monotonic() + seconds
            raise
        self._give_back(slot, connection)
        return answer

    def _give_back(self, slot: SlotPlace, connection: SlotConnection) -> None:
        with self._lock:
            self._silent.pop(slot, None)
            idle = self._idle.setdefault(slot, [])
            if len(idle) < self._most_idle:
                idle.append(connection)
                return
        connection.close()

    def forget(self, keep: set[SlotPlace]) -> None:
        """Close the connections to slots that are not known any more."""
        with self._lock:
            gone = [self._idle.pop(slot) for slot in list(self._idle) if slot not in keep]
            self._silent = {slot: until for slot, until in self._silent.items() if slot in keep}
        for connections in gone:
            for connection in connections:
                connection.close()

    def close(self) -> None:
        self.forget(set())
