"""The sockets on which a slot answers queries, and the threads that do it beside the one that processes.

Nothing of a connection is parsed before it has proved that it knows the job's query secret, and nothing is ever
unpickled. One thread answers look-ups, another one what looks at all keys. Python runs one thread at a time, so both
together take a small share of the time while an epoch is under way; what they cannot do in it is refused, not queued.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import selectors
import socket
import threading
import time
from collections import deque
from typing import Any

from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.slot.protocol import (
    QUERY_MAGIC,
    Message,
    Receiver,
    authenticate_server,
    query_secret,
    send,
)
from headwater.runtime.slot.query.answers import Session, is_slow
from headwater.runtime.slot.query.requests import Json
from headwater.runtime.slot.slot import Slot

log = logging.getLogger("headwater.slot.query")

HANDSHAKE_SECONDS = 5.0
MAX_CONNECTIONS = 1024
MAX_WAITING = 256
"""Look-ups that wait at once; the next is refused."""
MAX_WAITING_SCANS = 4
MAX_REQUEST = 1 << 20
SHARE = 0.08
"""How much of one core queries may take while an epoch is under way."""
LONGEST_REST = 0.25
SEND_SECONDS = 2.0
"""A reader that does not take its answer in so long loses its connection."""


class Lease:
    """Until when this slot may answer queries: the driver extends it while the slot is the partition's only one."""

    until_ns = 0

    @property
    def holds(self) -> bool:
        return time.monotonic_ns() < self.until_ns


class Share:
    """Keeps one thread's work within a share of the time, while the slot processes. Used by that thread only.

    It counts processor time, its own and that of the thread that processes: on a busy machine the clock says nothing.
    """

    def __init__(self, slot: Slot, share: float = SHARE) -> None:
        self._slot = slot
        self._rest = 1 / share - 1
        self._mark = time.thread_time()
        main = threading.main_thread()
        self._main_clock = time.pthread_getcpuclockid(main.ident) if main.ident is not None else None
        self._main_stat = f"/proc/self/task/{main.native_id}/stat"

    def begin(self) -> None:
        self._mark = time.thread_time()

    def breathe(self) -> None:
        """Rest until the processing thread has had its part of the time since the last call, or does not need it."""
        now = time.thread_time()
        owed, self._mark = (now - self._mark) * self._rest, now
        if not self._slot.processing or owed <= 0:
            return
        until, goal = time.monotonic() + LONGEST_REST, self._main_time() + owed
        pause = min(max(owed, 0.0005), 0.01)
        while self._slot.processing and time.monotonic() < until:
            time.sleep(pause)
            if self._main_time() >= goal or not self._main_is_at_work():
                return

    def _main_time(self) -> float:
        return time.clock_gettime(self._main_clock) if self._main_clock is not None else time.monotonic()

    def _main_is_at_work(self) -> bool:
        """Return False if the thread sleeps: it waits for input, or for the disk."""
        try:
            with open(self._main_stat, "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] == b"R"
        except (OSError, IndexError):
            return True


class _Connection:
    def __init__(self, sock: socket.socket, slot: Slot, share: Share) -> None:
        self.sock = sock
        self.receiver = Receiver(sock)
        self.session = Session(slot, share.breathe)


class QueryServer:
    """Serves from `start` to the end of the process."""

    def __init__(
        self, slot: Slot, listeners: list[socket.socket], secret: bytes, incarnation: str, lease: Lease
    ) -> None:
        self._slot = slot
        self._listeners = listeners
        self._secret = query_secret(secret)
        self._incarnation = incarnation
        self._lease = lease
        self._selector = selectors.DefaultSelector()
        self._arrived: deque[_Connection] = deque()
        self._connections = 0
        self._scans: queue.Queue[tuple[_Connection, Json]] = queue.Queue(MAX_WAITING_SCANS)
        self._scan_share = Share(slot)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)

    def start(self) -> None:
        for target in (self._serve, self._serve_scans):
            threading.Thread(target=target, name="queries", daemon=True).start()

    # --- look-ups

    def _serve(self) -> None:
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        share = Share(self._slot)
        while True:
            ready = [key for key, _ in self._selector.select()]
            share.begin()
            requests: list[tuple[_Connection, Json]] = []
            for key in ready:
                if key.fileobj == self._wake_read:
                    self._take_arrived()
                elif key.data is None:
                    self._accept(key.fileobj)  # type: ignore[arg-type]
                else:
                    requests += self._read(key.data)
            for index, (connection, request) in enumerate(requests):
                if index >= MAX_WAITING:
                    self._refuse(connection, QueryError(QueryProblem.TOO_MANY_READERS, _TOO_MANY, 0.1))
                elif is_slow(request):
                    self._begin_scan(connection, request)
                else:
                    self._answer(connection, request)
            share.breathe()

    def _accept(self, listener: socket.socket) -> None:
        sock, _ = listener.accept()
        if self._connections >= MAX_CONNECTIONS:
            sock.close()
            return
        self._connections += 1
        threading.Thread(target=self._authenticate, args=(sock,), name="query-handshake", daemon=True).start()

    def _authenticate(self, sock: socket.socket) -> None:
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            sock = authenticate_server(sock, self._secret, self._incarnation, QUERY_MAGIC)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(SEND_SECONDS)
        except (ConnectionLostError, OSError) as error:
            log.debug("a reader was refused: %s", error)
            sock.close()
            self._connections -= 1
            return
        self._hand_over(_Connection(sock, self._slot, self._scan_share))

    def _hand_over(self, connection: _Connection) -> None:
        """Let the look-up thread read from the connection."""
        self._arrived.append(connection)
        os.write(self._wake_write, b"x")

    def _take_arrived(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)
        while self._arrived:
            connection = self._arrived.popleft()
            self._selector.register(connection.sock, selectors.EVENT_READ, connection)

    def _read(self, connection: _Connection) -> list[tuple[_Connection, Json]]:
        try:
            found = []
            for kind, body in connection.receiver.arrived():
                request = json.loads(body) if kind is Message.QUERY and len(body) <= MAX_REQUEST else None
                if not isinstance(request, dict):
                    raise ConnectionLostError("not a query")
                found.append((connection, request))
        except (ConnectionLostError, OSError, ValueError, RecursionError) as error:
            log.debug("a reader's connection ended: %s", error)
            self._drop(connection)
            return []
        return found

    def _drop(self, connection: _Connection) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.sock)
        connection.session.close()
        connection.sock.close()
        self._connections -= 1

    def _answer(self, connection: _Connection, request: Json) -> bool:
        """Answer one request. Return False if the connection is gone."""
        try:
            if not self._lease.holds:
                raise QueryError(QueryProblem.NOT_SURE, "the slot may have been replaced: ask the job server again", 0)
            answer: dict[str, Any] = {"ok": connection.session.answer(request)}
            if not self._lease.holds:  # it was stopped meanwhile: another slot may have taken its place
                raise QueryError(QueryProblem.NOT_SURE, "the slot may have been replaced: ask the job server again", 0)
        except QueryError as error:
            answer = {"error": error.to_json()}
        except Exception as error:
            log.debug("a query failed", exc_info=True)
            text = f"the query failed: {type(error).__name__}: {error}"
            answer = {"error": QueryError(QueryProblem.FAILED, text).to_json()}
        return self._send(connection, answer)

    def _refuse(self, connection: _Connection, error: QueryError) -> None:
        self._send(connection, {"error": error.to_json()})

    def _send(self, connection: _Connection, answer: dict[str, Any]) -> bool:
        try:
            send(connection.sock, Message.ANSWER, json.dumps(answer, separators=(",", ":")).encode())
        except (ConnectionLostError, OSError):
            self._drop(connection)
            return False
        return True

    # --- what looks at all keys

    def _begin_scan(self, connection: _Connection, request: Json) -> None:
        """Hand the request to the other thread. Nobody else reads from the connection until it is answered."""
        self._selector.unregister(connection.sock)
        try:
            self._scans.put_nowait((connection, request))
        except queue.Full:
            self._selector.register(connection.sock, selectors.EVENT_READ, connection)
            self._refuse(connection, QueryError(QueryProblem.TOO_MANY_READERS, _TOO_MANY, 0.5))

    def _serve_scans(self) -> None:
        while True:
            connection, request = self._scans.get()
            self._scan_share.begin()
            if self._answer(connection, request):
                self._hand_over(connection)
            self._scan_share.breathe()


_TOO_MANY = "too many readers ask this slot at once; processing goes first: ask again later"
