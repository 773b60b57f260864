"""The sockets on which a slot answers queries, and the threads that do it.

Nothing of a connection is parsed before it has proved that it knows the job's query secret, and nothing is ever
unpickled. Look-ups are answered by the thread that processes, between two steps, or by one beside it; what looks at
many entries by another one. All together take a small share of the time while an epoch is under way; what they cannot
do in it waits, and is refused if that becomes too much.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import queue
import secrets
import selectors
import socket
import threading
import time
from collections import deque

from headwater.common.machine.boot_clock import since_boot_ns
from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.slot.protocol import (
    QUERY_MAGIC,
    Handshake,
    Message,
    Receiver,
    packed,
    query_secret,
)
from headwater.runtime.slot.query.answers import Session
from headwater.runtime.slot.query.countdown import Countdown
from headwater.runtime.slot.query.held_calls import accepted, receiving, send_at_once, send_now
from headwater.runtime.slot.query.requests import Json
from headwater.runtime.slot.query.share import Share
from headwater.runtime.slot.slot import Slot

log = logging.getLogger("headwater.slot.query")

HANDSHAKE_SECONDS = 5.0
MAX_CONNECTIONS = 1024
MAX_WAITING = 256
"""Look-ups that wait at once; the next is refused."""
MAX_WAITING_SCANS = 4
MAX_REQUEST = 1 << 20
_TIDY_SECONDS = 1.0
_POLL_SECONDS = 0.005
"""How often the processing thread looks after look-ups, at most."""
_POLL_LIMIT_SECONDS = 0.002
"""So long it answers at a time."""
_UNPOLLED_SECONDS = 0.01
"""If it has not looked for so long, because a step takes long or it waits for input, the other thread answers."""
SEND_SECONDS = 2.0
"""A reader that does not take its answer in so long loses its connection."""


class Lease:
    """Until when this slot may answer queries: the driver extends it while the slot is the partition's only one."""

    until_ns = 0
    """By `since_boot_ns`: a lease must not outlast what happens elsewhere while this host is suspended."""

    @property
    def holds(self) -> bool:
        return since_boot_ns() < self.until_ns


class _Newcomer:
    """A connection whose other end has not yet proved that it knows the secret."""

    def __init__(self, sock: socket.socket, handshake: Handshake) -> None:
        self.sock = sock
        self.until = time.monotonic() + HANDSHAKE_SECONDS
        self._handshake = handshake
        self._recv = receiving(sock)
        self._answer = b""
        send_at_once(sock, handshake.greeting, SEND_SECONDS)

    def read(self) -> socket.socket | None:
        """Return the socket to go on with, or None if some of the answer is missing. Raises if it is wrong."""
        part = self._recv(Handshake.ANSWER_BYTES - len(self._answer))
        if not part:
            raise ConnectionLostError("connection closed by the other end")
        self._answer += part
        if len(self._answer) < Handshake.ANSWER_BYTES:
            return None
        send_at_once(self.sock, self._handshake.proof(self._answer), SEND_SECONDS)
        return self._handshake.sealed(self.sock)


class _Connection:
    def __init__(self, sock: socket.socket, slot: Slot, share: Share) -> None:
        self.sock = sock
        self.receiver = Receiver(sock, receiving(sock), MAX_REQUEST)
        self.session = Session(slot, share.breathe)
        self.is_scanning = False
        """Another thread answers its request, and has the session."""
        self.is_lost = False
        self.unsent = b""
        """What the reader has not taken yet of its answer; by `until` it must have done so."""
        self.until = 0.0

    def packed(self, body: bytes) -> bytes:
        return b"".join(packed(self.sock, Message.ANSWER, body))


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
        self._asking: dict[_Connection, None] = {}
        """Connections from which a request has been read that nobody has looked at yet."""
        self._pinning: set[_Connection] = set()
        self._arrived: deque[_Connection] = deque()
        self._connections = 0
        self._newcomers: set[_Newcomer] = set()
        self._random = b""
        self._scans: queue.Queue[tuple[_Connection, Json]] = queue.Queue(MAX_WAITING_SCANS)
        self._share = Share(slot)
        self._serving = threading.Lock()
        """Held by the thread that reads from the connections and answers look-ups."""
        self._polled = -math.inf
        """When the processing thread last looked after look-ups itself, in this epoch."""
        self._unpolled = Countdown()
        """At its end the other thread may answer."""
        self._sending: set[_Connection] = set()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)

    def start(self) -> None:
        for listener in self._listeners:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        for target, name in ((self._serve, "queries"), (self._serve_scans, "scans")):
            threading.Thread(target=target, name=name, daemon=True).start()

    def poll(self) -> None:
        """Answer the look-ups that have arrived. Called by the processing thread between two steps; never waits."""
        now = time.monotonic()
        if now < self._polled + _POLL_SECONDS or not self._connections:
            return
        self._polled = now
        self._unpolled.start(_UNPOLLED_SECONDS)
        if not self._share.allows() or not self._serving.acquire(blocking=False):
            return
        began = time.thread_time()
        try:
            self._serve_once(now + _POLL_LIMIT_SECONDS)
        finally:
            self._serving.release()
            self._share.bill(time.thread_time() - began)

    def epoch_ended(self) -> None:
        """Called by the processing thread: it will not poll for a while."""
        if self._polled > 0:
            self._polled = -math.inf
            self._unpolled.end()

    # --- look-ups

    def _serve(self) -> None:
        self._share.begin()
        while True:
            waits = self._newcomers or self._pinning or self._sending
            self._selector.select(0 if self._asking else _TIDY_SECONDS if waits else None)
            self._unpolled.wait()
            with self._serving:
                self._serve_once()
            self._share.breathe()

    def _serve_once(self, until: float = math.inf) -> None:
        try:
            self._turn(until)
        except Exception:  # no reader may end a thread, least of all the one that processes
            log.warning("answering queries failed", exc_info=True)

    def _turn(self, until: float = math.inf) -> None:
        """Answer one request of each connection that has one, but begin none after `until`. Holds `_serving`."""
        asking, self._asking = self._asking, {}
        for key, _ in self._selector.select(0):
            if key.fileobj == self._wake_read:
                self._take_arrived()
            elif key.data is None:
                self._accept(key.fileobj)  # type: ignore[arg-type]
            elif isinstance(key.data, _Newcomer):
                self._admit(key.data)
            elif key.data.unsent:
                self._send_rest(key.data)
            elif key.data not in asking:
                self._read(key.data)
        self._tidy()
        self._asking, asking = {}, asking | self._asking
        for index, connection in enumerate(asking):
            refuse = index >= MAX_WAITING
            if not refuse and time.monotonic() > until:
                self._asking[connection] = None
                continue
            try:
                self._do_next(connection, refuse=refuse)
            except (ConnectionLostError, OSError, ValueError, RecursionError) as error:
                log.debug("a reader's connection ended: %s", error)
                self._drop(connection)
            except Exception:  # whatever one reader asks for, others are served
                log.warning("a reader's connection is given up", exc_info=True)
                self._drop(connection)

    def _do_next(self, connection: _Connection, *, refuse: bool) -> None:
        """Serve the connection's first unanswered request."""
        kind, body = connection.receiver.receive()
        request = json.loads(body) if kind is Message.QUERY else None
        if not isinstance(request, dict):
            raise ConnectionLostError("not a query")
        if refuse:
            self._send(connection, _refusal(0.1))
        elif connection.session.is_slow(request):
            self._begin_scan(connection, request)
            return
        else:
            self._send(connection, self._answer(connection.session, request))
            if connection.session.has_pins:
                self._pinning.add(connection)
        self._ask_again(connection)

    def _ask_again(self, connection: _Connection) -> None:
        """An answer was given: take the next request, if it is here already."""
        if connection.receiver.has_message and not connection.unsent:
            self._asking[connection] = None

    def _accept(self, listener: socket.socket) -> None:
        for sock in accepted(listener):
            if self._connections >= MAX_CONNECTIONS:
                sock.close()
                continue
            handshake = Handshake(self._secret, self._incarnation, QUERY_MAGIC, self._nonce())
            try:
                newcomer = _Newcomer(sock, handshake)
            except OSError:
                sock.close()
                continue
            self._connections += 1
            self._newcomers.add(newcomer)
            self._selector.register(sock, selectors.EVENT_READ, newcomer)

    def _nonce(self) -> bytes:
        """Random bytes that nobody else gets. Drawn in advance: that lets Python's lock go."""
        size = Handshake.NONCE_BYTES
        if not self._random:
            self._random = secrets.token_bytes(64 * size)
        nonce, self._random = self._random[:size], self._random[size:]
        return nonce

    def _admit(self, newcomer: _Newcomer) -> None:
        """Read what a newcomer says. If that is its whole proof, it may ask."""
        try:
            sock = newcomer.read()
        except (ConnectionLostError, OSError) as error:
            log.debug("a reader was refused: %s", error)
            self._refuse_newcomer(newcomer)
            return
        if sock is not None:
            self._newcomers.discard(newcomer)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(sock, self._slot, self._share)
            self._selector.modify(sock, selectors.EVENT_READ, connection)  # only its data changes: no system call

    def _tidy(self) -> None:
        """Close connections whose readers send nothing, or do not read; release what was pinned for too long."""
        if self._newcomers:
            now = time.monotonic()
            for newcomer in [each for each in self._newcomers if each.until < now]:
                self._refuse_newcomer(newcomer)
        for connection in [each for each in self._pinning if not each.is_scanning]:
            connection.session.expire_pins()
            if not connection.session.has_pins:
                self._pinning.discard(connection)
        if self._sending:
            now = time.monotonic()
            for connection in [each for each in self._sending if each.until < now]:
                self._drop(connection)

    def _refuse_newcomer(self, newcomer: _Newcomer) -> None:
        self._newcomers.discard(newcomer)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(newcomer.sock)
        newcomer.sock.close()
        self._connections -= 1

    def _take_arrived(self) -> None:
        """Read again from the connections whose scans are answered."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)
        while self._arrived:
            connection = self._arrived.popleft()
            connection.is_scanning = False
            if connection.is_lost:
                self._drop(connection)
                continue
            self._selector.register(connection.sock, selectors.EVENT_READ, connection)
            self._ask_again(connection)

    def _read(self, connection: _Connection) -> None:
        try:
            connection.receiver.read_once()
        except (ConnectionLostError, OSError, ValueError) as error:
            log.debug("a reader's connection ended: %s", error)
            self._drop(connection)
            return
        self._ask_again(connection)

    def _drop(self, connection: _Connection) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.sock)
        self._pinning.discard(connection)
        self._sending.discard(connection)
        connection.session.close()
        connection.sock.close()
        self._connections -= 1

    def _answer(self, session: Session, request: Json) -> bytes:
        """Return the answer to one request. Any thread may call this."""
        try:
            self._check_lease()
            body = _encoded({"ok": session.answer(request)})
            self._check_lease()  # it was stopped meanwhile: another slot may have taken its place
            return body
        except QueryError as error:
            return _encoded({"error": error.to_json()})
        except (Exception, SystemExit) as error:  # also of functions of the user
            log.debug("a query failed", exc_info=True)
            text = f"the query failed: {type(error).__name__}: {error}"
            return _encoded({"error": QueryError(QueryProblem.FAILED, text).to_json()})

    def _check_lease(self) -> None:
        if not self._lease.holds:
            raise QueryError(QueryProblem.NOT_SURE, "the slot may have been replaced: ask the job server again", 0)

    def _send(self, connection: _Connection, body: bytes) -> None:
        """Send an answer without waiting: the rest of it goes when the reader has taken the beginning."""
        connection.unsent = send_now(connection.sock, connection.packed(body))
        if connection.unsent:
            connection.until = time.monotonic() + SEND_SECONDS
            self._sending.add(connection)
            self._selector.modify(connection.sock, selectors.EVENT_WRITE, connection)

    def _send_rest(self, connection: _Connection) -> None:
        try:
            connection.unsent = send_now(connection.sock, connection.unsent)
        except OSError as error:
            log.debug("a reader's connection ended: %s", error)
            self._drop(connection)
            return
        if not connection.unsent:
            self._sending.discard(connection)
            self._selector.modify(connection.sock, selectors.EVENT_READ, connection)
            self._ask_again(connection)

    # --- what looks at many entries

    def _begin_scan(self, connection: _Connection, request: Json) -> None:
        """Hand the request to the other thread. Nobody else reads from the connection until it is answered."""
        try:
            self._scans.put_nowait((connection, request))
        except queue.Full:
            self._send(connection, _refusal(0.5))
            self._ask_again(connection)
            return
        connection.is_scanning = True
        self._selector.unregister(connection.sock)

    def _serve_scans(self) -> None:
        self._share.begin()
        while True:
            connection, request = self._scans.get()
            try:
                body = self._answer(connection.session, request)
                send_at_once(connection.sock, connection.packed(body), SEND_SECONDS)
            except Exception as error:
                log.debug("a reader's connection ended: %s", error)
                connection.is_lost = True
            self._arrived.append(connection)
            os.write(self._wake_write, b"x")
            self._share.breathe()


def _encoded(answer: Json) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


def _refusal(retry_after_seconds: float) -> bytes:
    text = "too many readers ask this slot at once; processing goes first: ask again later"
    return _encoded({"error": QueryError(QueryProblem.TOO_MANY_READERS, text, retry_after_seconds).to_json()})
