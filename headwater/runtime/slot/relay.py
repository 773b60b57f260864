"""The relay: hands epochs to slots and takes their output back, any number of slots at once, in one thread.

A connection may stay open over many epochs (the resident task), or serve one (a task of one partition).
"""

from __future__ import annotations

import contextlib
import marshal
import pickle
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator

from headwater.common.ids import Place
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError
from headwater.runtime.epoch.messages import BeginEpoch, PartitionAck, SlotAddress
from headwater.runtime.epoch.steps import Step
from headwater.runtime.slot.connection import connect, kill, lives
from headwater.runtime.slot.protocol import Message, Receiver, packed
from headwater.runtime.slot.starter import SlotLaunch, launch_slot, local_host, slots_on_this_host
from headwater.runtime.stage.round import Event, OutputEnded

_NUMBER = struct.Struct("<q")
_SEND_BYTES = 1 << 18
"""So much is taken from an epoch's input at a time."""


def find_or_start(launch: SlotLaunch, known: SlotAddress | None, place: Place) -> tuple[socket.socket, SlotAddress]:
    """Return a connection to the partition's slot, and its address. Start a new slot if none answers.

    `known` is the slot of the address book. A slot that a failed attempt started is not in the book: its socket in the
    run's directory leads to it.
    """
    if known is not None:
        try:
            return connect(known, launch.secret), known
        except ConnectionLostError:
            kill(known)  # it may hang, and nothing else would ever end it
    for address in slots_on_this_host(launch.run_id):
        if address.place == place and address != known:
            with contextlib.suppress(ConnectionLostError):
                return connect(address, launch.secret), address
    address = launch_slot(launch, place, local_host())
    return connect(address, launch.secret), address


class _Call:
    """One attempt on one slot: what is still to be sent to it, and when it was last heard of."""

    def __init__(self, sock: socket.socket, address: SlotAddress, begin: BeginEpoch, steps: Iterator[Step]) -> None:
        self.sock = sock
        self.address = address
        self.place = address.place
        self.heard = time.monotonic()
        self.waits_to_send = False
        self._receiver = Receiver(sock)
        self._messages = _messages(sock, begin, steps)
        self._unsent: deque[bytes | memoryview] = deque()

    def send(self) -> bool:
        """Send what the socket takes now. Return True if more is to be sent.

        If the other end has closed, the rest is dropped: whoever reads finds why, or the end of the connection.
        """
        try:
            while self._unsent or self._refill():
                part = self._unsent[0]
                sent = self.sock.send(part)
                if sent == len(part):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = memoryview(part)[sent:]
        except BlockingIOError:
            return True
        except OSError:
            self._messages = iter(())
            self._unsent.clear()
        return False

    def _refill(self) -> bool:
        """Take the next messages, together where they are small. Return False if there are none."""
        parts: list[bytes | memoryview] = []
        size = 0
        for message in self._messages:
            parts += message
            size += sum(map(len, message))
            if size >= _SEND_BYTES:
                break
        self._unsent.extend([b"".join(parts)] if 0 < size < 2 * _SEND_BYTES else parts)
        return bool(self._unsent)

    def events(self) -> Iterator[Event]:
        """What the slot has said, for a socket that has something to read. Raises what failed the slot."""
        for kind, body in self._receiver.arrived():
            if kind is Message.OUTPUT:
                yield _NUMBER.unpack_from(body)[0], body[_NUMBER.size :]
            elif kind is Message.OUTPUT_ENDED:
                yield OutputEnded(self.place)
            elif kind is Message.ACK:
                ack: PartitionAck = pickle.loads(body)
                yield ack
            elif kind is Message.FAILED:
                failure: AttemptFailedError = pickle.loads(body)
                raise failure


class Relay:
    """The slots of a job, in other processes (`stage.round.Slots`). Not thread safe.

    After an error every attempt under way is lost: `abandon` cuts the connections of those that have not acknowledged.
    """

    def __init__(self, launch: SlotLaunch) -> None:
        self._launch = launch
        self._idle: dict[Place, tuple[socket.socket, SlotAddress]] = {}
        self._calls: dict[Place, _Call] = {}
        self._events: deque[Event] = deque()
        """What has arrived, and was not asked for yet."""
        self._selector = selectors.DefaultSelector()

    # --- one attempt

    def call(self, known: SlotAddress | None, place: Place, begin: BeginEpoch, steps: Iterator[Step]) -> None:
        """Begin the attempt on the slot of `place`, which the address book knows as `known`."""
        sock, address = self._connection(known, place)
        sock.setblocking(False)
        call = self._calls[place] = _Call(sock, address, begin, steps)
        self._selector.register(sock, selectors.EVENT_READ, call)
        self._send(call)

    def events(self) -> Iterator[Event]:
        """What the slots say, in the order in which it arrives, until all have acknowledged.

        The caller may stop in between and ask again. Raises a slot's `AttemptFailedError`, or `ConnectionLostError`.
        """
        while self._calls or self._events:
            while self._events:
                yield self._events.popleft()
            for key, ready in self._selector.select(self._launch.health_seconds) if self._calls else ():
                self._serve(key.data, ready)
            self._look_after_silent()

    def _serve(self, call: _Call, ready: int) -> None:
        call.heard = time.monotonic()
        if ready & selectors.EVENT_WRITE:
            self._send(call)
        if ready & selectors.EVENT_READ:
            for event in call.events():
                if isinstance(event, PartitionAck):
                    self._end(call)
                self._events.append(event)

    def _send(self, call: _Call) -> None:
        waits_to_send = call.send()
        if waits_to_send != call.waits_to_send:
            call.waits_to_send = waits_to_send
            interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if waits_to_send else 0)
            self._selector.modify(call.sock, interest, call)

    def abandon(self) -> None:
        """Give the attempt up. Slots that are at work notice that their connection is gone, and undo."""
        self._events.clear()
        for call in list(self._calls.values()):
            self._end(call)
            self._drop(call.place)

    def _end(self, call: _Call) -> None:
        self._selector.unregister(call.sock)
        del self._calls[call.place]

    def _look_after_silent(self) -> None:
        seconds = self._launch.health_seconds
        for call in list(self._calls.values()):
            if time.monotonic() - call.heard < seconds:
                continue
            if not lives(call.address, self._launch.secret, seconds):
                kill(call.address)
                raise ConnectionLostError("the slot hangs: it does not answer pings; it is replaced")
            call.heard = time.monotonic()

    # --- connections

    def _connection(self, known: SlotAddress | None, place: Place) -> tuple[socket.socket, SlotAddress]:
        found = self._idle.get(place)
        if found is not None and (known is None or found[1] == known) and not _has_ended(found[0]):
            return found
        self._drop(place)
        found = self._idle[place] = find_or_start(self._launch, known, place)
        return found

    def tell(self, token: str) -> None:
        """Tell all slots that the checkpoint with `token` is durable. Those that do not hear it learn it later."""
        for place, (sock, _) in list(self._idle.items()):
            message = b"".join(packed(sock, Message.COMPLETED, token.encode()))
            try:
                heard = sock.send(message) == len(message)
            except OSError:
                heard = False
            if not heard:
                self._drop(place)

    def _drop(self, place: Place) -> None:
        found = self._idle.pop(place, None)
        if found is not None:
            with contextlib.suppress(OSError):
                found[0].shutdown(socket.SHUT_RDWR)
            found[0].close()

    def close(self) -> None:
        """Close all connections. The slots stay."""
        self.abandon()
        for place in list(self._idle):
            self._drop(place)
        self._selector.close()


def _has_ended(sock: socket.socket) -> bool:
    """Whether the other end of an idle connection has closed it. A slot says nothing between epochs."""
    try:
        sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _messages(sock: socket.socket, begin: BeginEpoch, steps: Iterator[Step]) -> Iterator[list[bytes | memoryview]]:
    yield packed(sock, Message.BEGIN, pickle.dumps(begin))
    for step in steps:
        if step.kind == "chunk":
            yield packed(sock, Message.CHUNK, _NUMBER.pack(step.node), step.value)
        elif step.kind == "watermark":
            yield packed(sock, Message.WATERMARK, marshal.dumps((step.node, step.value)))
        else:
            yield packed(sock, Message.IDLE, marshal.dumps((step.node, step.value)))
    yield packed(sock, Message.END)
