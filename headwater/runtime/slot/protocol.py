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
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from headwater.common.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.runtime.stage.runner import EpochOutcome

_HEAD = struct.Struct("<IB")
_NONCE = 32
_CODE = 16
_MAGIC = b"headwater-slot-2 py%d.%d" % sys.version_info[:2]
MAX_MESSAGE = 1 << 31


class Message(IntEnum):
    """The kind of a message. The relay sends the first seven, the slot sends the others."""

    BEGIN = 1  # pickle(BeginEpoch)
    CHUNK = 2  # 8 bytes edge, then the payload of a DATA frame
    WATERMARK = 3  # marshal((head, watermark))
    IDLE = 4  # marshal((head, idle))
    END = 5  # no more input in this epoch
    PING = 6  # answered with PONG by the control thread
    SHUTDOWN = 7  # the job is over: close functions and exit
    OUTPUT = 10  # 8 bytes target, then a frame
    ACK = 11  # pickle(SlotAck)
    FAILED = 12  # pickle(SlotFailure)
    PONG = 13  # pickle(dict)


class ConnectionLostError(HeadwaterError):
    """The other end is gone, or failed to authenticate. The epoch is retried."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to run an epoch. Attempts are ordered: a slot refuses all but the newest that it has seen."""

    incarnation: int  # of the driver: grows by one with each start of the job on its directory
    epoch: int
    number: int
    run: str = "run"
    """Random, one per driver process. Makes `id` unique: no other attempt ever uses the same file names."""

    @property
    def id(self) -> str:
        return f"{self.run}-{self.incarnation}-{self.epoch}-{self.number}"

    def order(self) -> tuple[int, int, int]:
        return (self.incarnation, self.epoch, self.number)


@dataclass(frozen=True)
class SlotAddress:
    """Where a slot listens. One entry of the address book."""

    stage: int
    partition: int
    host: str
    port: int  # 0: Unix socket only
    path: str
    pid: int
    incarnation: str


@dataclass(frozen=True)
class Base:
    """The state that an epoch starts from, and the checkpoints behind it."""

    epoch: int
    """The last accepted epoch. -1: empty state."""
    token: str
    """Identifies the state. The epoch number does not: numbers are reused after the job went back to a checkpoint."""
    durable_epoch: int
    """The last epoch with a manifest: the only state that can be loaded. -1: there is none."""
    durable_token: str
    in_flight: str | None = None
    """Token of the checkpoint that is being completed. Any other cut, unless it is durable, has failed."""


@dataclass(frozen=True)
class SnapshotPart:
    """A partition's part of the checkpoint `token`: it is durable, or `error` says why not."""

    token: str
    ref: Any = None  # SnapshotRef | None: nothing had changed
    error: str | None = None
    whole: bool = False
    """The snapshot replaces all earlier ones of the partition."""
    sync_ms: float = 0.0
    """How long processing stood still to encode the part."""
    async_ms: float = 0.0
    """How long the background write took."""


@dataclass(frozen=True)
class BeginEpoch:
    """What a slot needs to know to run one epoch attempt."""

    attempt: Attempt
    base: Base
    now_ms: int
    watermarks: dict[str, int]
    snapshots: list[Any]
    """`SnapshotRef`s of the durable checkpoint, oldest first. The slot reads them only if it lost that state."""
    checkpointing: bool
    cut: bool = True
    """The epoch ends with a checkpoint."""
    wait: bool = False
    """Acknowledge only when the slot's part is durable, however long that takes."""
    restore: Any = None
    """A `PartitionRestore`, used instead of `snapshots` if a job of another shape made the checkpoint."""
    relay_pid: int = 0
    driver_pid: int = 0


@dataclass
class SlotAck:
    """The slot has applied the epoch. With checkpointing, it also reports which snapshots are durable."""

    stage: int
    partition: int
    address: SlotAddress
    outcome: EpochOutcome
    part: SnapshotPart | None = None
    """The slot's part of the checkpoint that ends here, or of an earlier one that has not settled."""
    full: Any = None  # SnapshotRef | None: replaces all snapshots up to its epoch
    writing: tuple[str, ...] = ()
    """Files of a full snapshot that is being written. They are not garbage."""
    restored: bool = False
    processing_ms: float = 0.0
    snapshot_ms: float = 0.0


@dataclass
class SlotFailure:
    """The slot could not run the epoch. If `error` is set, no retry helps (user code or user data failed, say)."""

    reason: str
    error: HeadwaterError | None = None
    details: dict[str, Any] = field(default_factory=dict)


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


def send(sock: socket.socket, kind: Message, *parts: bytes | memoryview) -> None:
    """Send one message made of `parts`. Large parts are not copied together first."""
    length = sum(len(part) for part in parts)
    message = [_HEAD.pack(length, kind), *parts]
    if isinstance(sock, SealedSocket):
        message.append(sock.sending.code(*message))
    try:
        if length <= 65536:
            sock.sendall(b"".join(message))
        else:
            for part in message:
                sock.sendall(part)
    except OSError as error:
        raise ConnectionLostError(f"connection lost while sending {kind.name}: {error}") from error


class Receiver:
    """Reads messages from a socket through one buffer."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rb", buffering=1 << 18)
        self._seal = sock.receiving if isinstance(sock, SealedSocket) else None

    def receive(self) -> tuple[Message, bytes]:
        """The next message; `ConnectionLostError` if the other end is gone, or the message is not what it sent."""
        head = self._read(_HEAD.size)
        length, kind = _HEAD.unpack(head)
        if length > MAX_MESSAGE:
            raise ConnectionLostError(f"message of {length} bytes announced; the stream is out of step")
        body = self._read(length)
        if self._seal is not None and not hmac.compare_digest(self._read(_CODE), self._seal.code(head, body)):
            raise ConnectionLostError("a message was changed, lost or added on its way; the connection is given up")
        return Message(kind), body

    def _read(self, count: int) -> bytes:
        try:
            data: bytes = self._file.read(count)
        except (OSError, ValueError) as error:
            raise ConnectionLostError(f"connection lost: {error}") from error
        if len(data) != count:
            raise ConnectionLostError("connection closed by the other end")
        return data


def authenticate_server(sock: socket.socket, secret: bytes, incarnation: str) -> socket.socket:
    """The slot's half: nothing else is read from the socket before this returned. Use the socket that it returns."""
    nonce = secrets.token_bytes(_NONCE)
    sock.sendall(_MAGIC.ljust(32, b" ") + nonce)
    answer = _read_exactly(sock, 32 + _NONCE)
    nonces = nonce + answer[32:]
    if not hmac.compare_digest(answer[:32], _derive(secret, b"relay", incarnation, nonces)):
        raise ConnectionLostError("a connection did not know the job's secret, or meant another slot, and was refused")
    sock.sendall(_derive(secret, b"slot", incarnation, nonces))
    return _sealed(sock, secret, incarnation, nonces, sends=b"from slot", receives=b"from relay")


def authenticate_client(sock: socket.socket, secret: bytes, incarnation: str) -> socket.socket:
    """The relay's half. Another slot than `incarnation`, which may have got its address since, does not do."""
    greeting = _read_exactly(sock, 32 + _NONCE)
    if greeting[:32] != _MAGIC.ljust(32, b" "):
        raise ConnectionLostError(
            f"the slot speaks {greeting[:32]!r}, expected {_MAGIC!r}; use one Python on all hosts"
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
