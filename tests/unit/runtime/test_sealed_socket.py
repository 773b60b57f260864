"""Whoever sits between a relay and a slot on another host can cut their connection, and nothing else."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot.connection import connect
from headwater.runtime.slot.process import SlotConfig, SlotServer
from headwater.runtime.slot.protocol import (
    Message,
    Receiver,
    SealedSocket,
    authenticate_client,
    authenticate_server,
    send,
)
from headwater.runtime.slot.starter import local_host

SECRET = b"s" * 32
FRAMES = [b"the first", b"", b"x" * 100_000, b"the last"]
_HEAD, _CODE = 5, 16

Meddle = Callable[[list[bytes]], list[bytes]]


class Between:
    """Relays one TCP connection to `port`; what the client sends after the handshake goes through `meddle`."""

    def __init__(self, port: int, meddle: Meddle, frames: int) -> None:
        self._target, self._meddle, self._frames = port, meddle, frames
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[bytes] = []
        """The client's frames as they were."""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with (
            self._listener,
            self._listener.accept()[0] as client,
            socket.create_connection(("127.0.0.1", self._target), timeout=5) as server,
        ):
            client.settimeout(5)
            _pass_on(server, client, 64)
            _pass_on(client, server, 64)
            _pass_on(server, client, 32)
            for _ in range(self._frames):
                head = _read(client, _HEAD)
                self.seen.append(head + _read(client, int.from_bytes(head[:4], "little") + _CODE))
            with suppress(OSError):  # the slot may hang up
                for frame in self._meddle(list(self.seen)):
                    server.sendall(frame)
                server.shutdown(socket.SHUT_WR)
                while server.recv(1 << 16):
                    pass

    def end(self) -> None:
        self._thread.join()


def _read(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        assert part
        data += part
    return data


def _pass_on(source: socket.socket, target: socket.socket, count: int) -> None:
    target.sendall(_read(source, count))


def flip(frame: int, place: int, bit: int = 1) -> Meddle:
    def meddle(frames: list[bytes]) -> list[bytes]:
        changed = bytearray(frames[frame])
        changed[place] ^= bit
        frames[frame] = bytes(changed)
        return frames

    return meddle


def sent_through(meddle: Meddle) -> list[bytes]:
    """The bodies that reach the slot before it gives the connection up, or the client has sent all."""
    listener = socket.create_server(("127.0.0.1", 0))
    between = Between(listener.getsockname()[1], meddle, len(FRAMES))
    received: list[bytes] = []

    def slot() -> None:
        sock, _ = listener.accept()
        sock.settimeout(5)
        with listener, authenticate_server(sock, SECRET, "one") as sealed:
            receiver = Receiver(sealed)
            try:
                for _ in FRAMES:
                    received.append(receiver.receive()[1])
            except ConnectionLostError as error:
                received.append(str(error).encode())

    thread = threading.Thread(target=slot)
    thread.start()
    with authenticate_client(socket.create_connection(("127.0.0.1", between.port), timeout=5), SECRET, "one") as relay:
        for body in FRAMES:
            send(relay, Message.CHUNK, body)
        thread.join()
    between.end()
    return received


def test_what_nobody_touches_arrives() -> None:
    assert sent_through(lambda frames: frames) == FRAMES


@pytest.mark.parametrize(
    ("meddle", "whole"),
    [
        (flip(0, 4), 0),  # its kind
        (flip(2, 0), 2),  # its length
        (flip(2, 5), 2),
        (flip(2, 60_000, 128), 2),
        (flip(3, -1), 3),  # its code
        (lambda frames: frames[1:], 0),
        (lambda frames: [frames[0], *frames[2:]], 1),
        (lambda frames: [frames[0], frames[0], *frames[1:]], 1),
        (lambda frames: [frames[0], frames[2], frames[1], frames[3]], 1),
        (lambda frames: [*frames[:3], frames[3][:-_CODE] + frames[2][-_CODE:]], 3),
        (lambda frames: [frames[0], b"\5\0\0\0\2added" + bytes(_CODE), *frames[1:]], 1),
    ],
    ids=["kind", "length", "first byte", "in the middle", "code", "first lost", "lost", "again", "order",
         "other's code", "added"],
)  # fmt: skip
def test_what_is_meddled_with_is_found_before_it_is_read(meddle: Meddle, whole: int) -> None:
    *received, error = sent_through(meddle)
    assert received == FRAMES[:whole]
    assert b"was changed, lost or added" in error or b"closed by the other end" in error


def test_a_bit_anywhere_in_a_message_is_found() -> None:
    left, right = socket_pair()
    with left, right:
        send(left, Message.CHUNK, b"body")
        frame = right.recv(1 << 16)
    for place in range(len(frame)):
        if place < 4:
            continue  # a longer one is waited for, like one that is held back
        assert not accepted(flip(0, place)([frame])[0]), place


def accepted(frame: bytes) -> bool:
    left, right = socket_pair()
    with left, right:
        socket.socket.sendall(left, frame)
        try:
            Receiver(right).receive()
        except ConnectionLostError:
            return False
        return True


def test_a_message_is_good_for_one_connection_and_one_direction_only() -> None:
    left, right = socket_pair()
    with left, right:
        send(left, Message.CHUNK, b"body")
        frame = right.recv(1 << 16)
        assert not accepted(frame)  # another connection
        right.sendall(frame)  # back to whom it came from
        with pytest.raises(ConnectionLostError, match="changed, lost or added"):
            Receiver(left).receive()


def socket_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=5)
        server, _ = listener.accept()
    server.settimeout(5)
    ends: list[socket.socket] = []
    thread = threading.Thread(target=lambda: ends.append(authenticate_server(server, SECRET, "one")))
    thread.start()
    left = authenticate_client(client, SECRET, "one")
    thread.join()
    assert isinstance(left, SealedSocket) and left.gettimeout() == 5
    return left, ends[0]


def test_unix_sockets_pay_nothing() -> None:
    left, right = socket.socketpair()
    with left, right:
        thread = threading.Thread(target=authenticate_server, args=(right, SECRET, "one"))
        thread.start()
        assert authenticate_client(left, SECRET, "one") is left
        thread.join()
        send(left, Message.CHUNK, b"body")
        assert right.recv(100) == b"\4\0\0\0\2body"


# --- a slot's server


class Bomb:
    """Unpickled, it leaves a trace."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@contextmanager
def slot_on_tcp(tmp_path: Path) -> Iterator[SlotServer]:
    address = SlotAddress(1, 0, local_host(), 0, str(tmp_path / "slot.sock"), 0, "one")
    server = SlotServer(SlotConfig(address, True, SECRET, "job", b"", b"", None, os.getpid()))

    def accept() -> None:
        sock, _ = server._listeners[1].accept()
        server._read_from(sock)

    thread = threading.Thread(target=accept)
    thread.start()
    yield server
    thread.join()
    for listener in server._listeners:
        listener.close()


def test_a_slot_unpickles_nothing_that_was_put_into_the_stream(tmp_path: Path) -> None:
    bomb = tmp_path / "exploded"
    payload = pickle.dumps(Bomb(bomb))

    def exchange(frames: list[bytes]) -> list[bytes]:
        return [frames[0][:_HEAD] + payload.ljust(1000, b"\0") + frames[0][-_CODE:]]

    with slot_on_tcp(tmp_path) as server:
        between = Between(server.address.port, exchange, 1)
        elsewhere = replace(server.address, host="127.0.0.1", port=between.port, path="/nowhere")
        with connect(elsewhere, SECRET) as relay:
            send(relay, Message.BEGIN, b"x" * 1000)
            between.end()
    assert not bomb.exists()
    assert server._work._items.empty()


def test_a_slot_refuses_a_relay_that_means_another_one(tmp_path: Path) -> None:
    """A port is used again, and a network may lead elsewhere: records of one partition never go to another's slot."""
    with slot_on_tcp(tmp_path) as server:
        other = replace(server.address, path="/nowhere", incarnation="two")
        with pytest.raises(ConnectionLostError):
            connect(other, SECRET)
