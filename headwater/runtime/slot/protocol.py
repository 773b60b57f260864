"""How a relay and a slot talk: messages on a stream socket, after both have proved that they know the job's secret.

A message is ``[4-byte length][1-byte kind][body]``. No byte of a body is unpickled before `authenticate` returned.

On TCP a 16-byte code follows each message (`SealedSocket`): whoever sits between the two can cut the connection, but
not change, add, drop, repeat or reorder a message. A Unix socket has nobody in between, and pays nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from enum import IntEnum

from headwater.runtime.epoch.failure import ConnectionLostError

_HEAD = struct.Struct("<IB")
_NONCE = 32
_CODE = 16
_MAGIC = b"headwater-slot-3 py%d.%d" % sys.version_info[:2]
QUERY_MAGIC = b"headwater-query-1"
"""Queries are JSON: readers may have another version of Python."""
MAX_MESSAGE = 1 << 31
_READ = 1 << 18
_SMALL = 1 << 16


class Message(IntEnum):
    """The kind of a message: to a slot, from a slot, and between the driver and the resident task."""

    BEGIN = 1  # pickle(BeginEpoch)
    CHUNK = 2  # 8 bytes edge, then the payload of a DATA frame
    WATERMARK = 3  # marshal((head, watermark))
    IDLE = 4  # marshal((head, idle))
    END = 5  # no more input in this epoch
    PING = 6  # answered with PONG by the control thread
    SHUTDOWN = 7  # the job is over: close functions and exit
    COMPLETED = 8  # the token of a checkpoint that is durable, with its output committed
    OUTPUT = 10  # 8 bytes target, then a frame
    ACK = 11  # pickle(PartitionAck)
    FAILED = 12  # pickle(AttemptFailedError)
    PONG = 13  # pickle(dict)
    OUTPUT_ENDED = 14  # the epoch's last output was sent; its acknowledgement follows
    EPOCH = 20  # driver to resident task: pickle((EpochHeader, [SourceTask]))
    ACKS = 21  # its answer, or FAILED: pickle([Ack])
    WAIT = 22  # 8 bytes milliseconds: tell when a source has input, but not after that
    READABLE = 23  # a source may have input
    LEASE = 24  # 8 bytes: until so long after that PONG's clock the slot may answer queries
    QUERY = 30  # to a slot's query socket: JSON
    ANSWER = 31  # its answer: JSON, {"ok": ...} or {"error": {...}}


class SealedSocket(socket.socket):
    """A connection over a network, after the handshake: `send` and `Receiver` put a code behind each message.

    The code depends on a key that only this connection has, the direction, and the message's number in it.
    """

    def __init__(self, sock: socket.socket, send_key: bytes, receive_key: bytes) -> None:
        timeout = sock.gettimeout()
        super().__init__(fileno=sock.detach())
        self.settimeout(timeout)
        self.sending = _Seal(send_key)
        self.receiving = _Seal(receive_key)


class _Seal:
    """The codes of the messages in one direction. Used by one thread at a time."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod=hashlib.sha256)
        self._number = 0

    def code(self, *parts: bytes | memoryview) -> bytes:
        """The code of the next message."""
        digest = self._keyed.copy()
        digest.update(self._number.to_bytes(8, "little"))
        for part in parts:
            digest.update(part)
        self._number += 1
        return digest.digest()[:_CODE]


def packed(sock: socket.socket, kind: Message, *parts: bytes | memoryview) -> list[bytes | memoryview]:
    """One message as it goes over `sock`. Must be sent in the order of the calls."""
    message = [_HEAD.pack(sum(len(part) for part in parts), kind), *parts]
    if isinstance(sock, SealedSocket):
        message.append(sock.sending.code(*message))
    return message


def send(sock: socket.socket, kind: Message, *parts: bytes | memoryview) -> None:
    """Send one message made of `parts`. Large parts are not copied together first."""
    send_all(sock, packed(sock, kind, *parts))


def send_all(sock: socket.socket, parts: list[bytes | memoryview]) -> None:
    """Send what `packed` returned."""
    try:
        if sum(len(part) for part in parts) <= _SMALL:
            sock.sendall(b"".join(parts))
        else:
            for part in parts:
                sock.sendall(part)
    except OSError as error:
        raise ConnectionLostError(f"connection lost while sending: {error}") from error


class Receiver:
    """Reads messages from a socket through one buffer. Used by one thread at a time."""

    def __init__(
        self, sock: socket.socket, recv: Callable[[int], bytes] | None = None, max_message: int = MAX_MESSAGE
    ) -> None:
        """`recv` is used in place of `sock.recv`. Of a message with more than `max_message` bytes none is kept."""
        self._max_message = max_message
        self._recv = recv if recv is not None else sock.recv
        self._seal = sock.receiving if isinstance(sock, SealedSocket) else None
        self._buffer = bytearray()
        self._messages: deque[tuple[Message, bytes]] = deque()
        self._broken: ConnectionLostError | None = None

    @property
    def has_message(self) -> bool:
        """True if `receive` need not read from the socket."""
        return bool(self._messages)

    def receive(self) -> tuple[Message, bytes]:
        """The next message; `ConnectionLostError` if the other end is gone, or the message is not what it sent."""
        while not self._messages:
            self.read_once()
        return self._messages.popleft()

    def arrived(self) -> deque[tuple[Message, bytes]]:
        """Read once, and return the messages that are complete now. For a socket that has something to read."""
        self.read_once()
        messages, self._messages = self._messages, deque()
        return messages

    def read_once(self) -> None:
        """Read what has arrived, even if it is half a message; wait if nothing has."""
        if self._broken is not None:
            raise self._broken
        try:
            data = self._recv(_READ)
        except (OSError, ValueError) as error:
            raise ConnectionLostError(f"connection lost: {error}") from error
        if not data:
            raise ConnectionLostError("connection closed by the other end")
        self._buffer += data
        try:
            self._take_messages()
        except ConnectionLostError as error:
            self._broken = error  # what came before it is whole
            if not self._messages:
                raise

    def _take_messages(self) -> None:
        """Move the complete messages out of the buffer."""
        start, tail = 0, 0 if self._seal is None else _CODE
        size = len(self._buffer)
        with memoryview(self._buffer) as view:
            while size - start >= _HEAD.size:
                length, kind = _HEAD.unpack_from(view, start)
                if length > self._max_message:
                    raise ConnectionLostError(
                        f"message of {length} bytes announced, at most {self._max_message} expected; "
                        "the stream is out of step"
                    )
                end = start + _HEAD.size + length
                if size < end + tail:
                    break
                head, body = bytes(view[start : start + _HEAD.size]), bytes(view[start + _HEAD.size : end])
                code = bytes(view[end : end + tail])
                if self._seal is not None and not hmac.compare_digest(code, self._seal.code(head, body)):
                    raise ConnectionLostError(
                        "a message was changed, lost or added on its way; the connection is given up"
                    )
                self._messages.append((Message(kind), body))
                start = end + tail
        del self._buffer[:start]


def query_secret(secret: bytes) -> bytes:
    """What a reader of state must know. It opens the query sockets only, on which nothing is unpickled."""
    return hmac.new(secret, b"queries of state", hashlib.sha256).digest()


class Handshake:
    """The slot's half of a handshake, without waiting.

    Send `greeting`, read `ANSWER_BYTES`, send the `proof`, then use the `sealed` socket. Nothing else is read before.
    """

    ANSWER_BYTES = 32 + _NONCE

    NONCE_BYTES = _NONCE

    def __init__(self, secret: bytes, incarnation: str, magic: bytes = _MAGIC, nonce: bytes | None = None) -> None:
        """`nonce`: random bytes that are used once."""
        self._secret, self._incarnation = secret, incarnation
        self._nonces = secrets.token_bytes(_NONCE) if nonce is None else nonce
        self.greeting = magic.ljust(32, b" ") + self._nonces

    def proof(self, answer: bytes) -> bytes:
        """Raises ConnectionLostError if the other end does not know the secret."""
        self._nonces += answer[32:]
        if not hmac.compare_digest(answer[:32], _derive(self._secret, b"relay", self._incarnation, self._nonces)):
            raise ConnectionLostError(
                "a connection did not know the job's secret, or meant another slot, and was refused"
            )
        return _derive(self._secret, b"slot", self._incarnation, self._nonces)

    def sealed(self, sock: socket.socket) -> socket.socket:
        own, others = b"from slot", b"from relay"
        return _sealed(sock, self._secret, self._incarnation, self._nonces, sends=own, receives=others)


def authenticate_server(sock: socket.socket, secret: bytes, incarnation: str, magic: bytes = _MAGIC) -> socket.socket:
    """The slot's half: nothing else is read from the socket before this returned. Use the socket that it returns."""
    handshake = Handshake(secret, incarnation, magic)
    sock.sendall(handshake.greeting)
    sock.sendall(handshake.proof(_read_exactly(sock, Handshake.ANSWER_BYTES)))
    return handshake.sealed(sock)


def authenticate_client(sock: socket.socket, secret: bytes, incarnation: str, magic: bytes = _MAGIC) -> socket.socket:
    """The relay's half. Refuses every slot but `incarnation`: another one may have its address by now."""
    greeting = _read_exactly(sock, 32 + _NONCE)
    if greeting[:32] != magic.ljust(32, b" "):
        raise ConnectionLostError(
            f"the slot speaks {greeting[:32]!r}, expected {magic!r}; use one version on all hosts"
        )
    nonce = secrets.token_bytes(_NONCE)
    nonces = greeting[32:] + nonce
    sock.sendall(_derive(secret, b"relay", incarnation, nonces) + nonce)
    if not hmac.compare_digest(_read_exactly(sock, 32), _derive(secret, b"slot", incarnation, nonces)):
        raise ConnectionLostError("the slot did not know the job's secret")
    return _sealed(sock, secret, incarnation, nonces, sends=b"from relay", receives=b"from slot")


def _sealed(
    sock: socket.socket, secret: bytes, incarnation: str, nonces: bytes, *, sends: bytes, receives: bytes
) -> socket.socket:
    if sock.family == socket.AF_UNIX:
        return sock
    keys = (_derive(secret, purpose, incarnation, nonces) for purpose in (sends, receives))
    return SealedSocket(sock, *keys)


def _derive(secret: bytes, purpose: bytes, incarnation: str, nonces: bytes) -> bytes:
    """A proof or a key that serves one purpose in one connection. The nonces come last: they have a fixed length."""
    return hmac.new(secret, b"%s of %s " % (purpose, incarnation.encode()) + nonces, hashlib.sha256).digest()


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        try:
            part = sock.recv(count - len(data))
        except OSError as error:
            raise ConnectionLostError(f"connection lost: {error}") from error
        if not part:
            raise ConnectionLostError("connection closed by the other end")
        data += part
    return data
