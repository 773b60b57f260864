"""How relay and slot talk, and that strangers are refused before a byte of theirs is unpickled."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import ConfigurationError
from headwater.common.ids import Place
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError, failure_of
from headwater.runtime.epoch.messages import Attempt, BeginEpoch, SlotAddress
from headwater.runtime.slot import protocol
from headwater.runtime.slot.connection import connect
from headwater.runtime.slot.directories import socket_directory
from headwater.runtime.slot.process import SlotConfig, SlotServer
from headwater.runtime.slot.protocol import Message, Receiver, authenticate_client, authenticate_server, send
from headwater.runtime.slot.starter import local_host

SECRET = b"s" * 32


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.settimeout(5)
    right.settimeout(5)
    with left, right:
        yield left, right


def in_thread(function: Any, *args: Any) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function(*args)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def test_both_sides_know_the_secret(pair: tuple[socket.socket, socket.socket]) -> None:
    thread, errors = in_thread(authenticate_server, pair[0], SECRET, "one")
    authenticate_client(pair[1], SECRET, "one")
    thread.join()
    assert errors == []


def test_a_client_with_another_secret_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    def server() -> None:
        try:
            authenticate_server(pair[0], SECRET, "one")
        finally:
            pair[0].close()

    thread, errors = in_thread(server)
    with pytest.raises(ConnectionLostError):
        authenticate_client(pair[1], b"x" * 32, "one")
    thread.join()
    assert len(errors) == 1 and "did not know the job's secret" in str(errors[0])


def test_a_server_with_another_secret_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    """A process that took the socket's place learns nothing, and gets no records."""

    def impostor() -> None:
        handshake = protocol.Handshake(b"x" * 32, "one")
        pair[0].sendall(handshake.greeting)
        pair[0].recv(handshake.ANSWER_BYTES)
        pair[0].sendall(b"p" * 32)

    thread, _ = in_thread(impostor)
    with pytest.raises(ConnectionLostError, match="the slot did not know the job's secret"):
        authenticate_client(pair[1], SECRET, "one")
    thread.join()


def test_a_proof_cannot_be_used_again(pair: tuple[socket.socket, socket.socket]) -> None:
    """What a relay said in one handshake does not open another: the slot's nonce differs."""
    recorded: list[bytes] = []
    for attempt in range(2):
        left, right = socket.socketpair()
        left.settimeout(5)
        right.settimeout(5)
        thread, errors = in_thread(authenticate_server, left, SECRET, "one")
        if attempt == 0:
            greeting = right.recv(64)
            nonce = b"n" * 32
            recorded.append(protocol._derive(SECRET, b"relay", "one", greeting[32:] + nonce) + nonce)
        else:
            right.recv(64)
        right.sendall(recorded[0])
        thread.join()
        assert bool(errors) is (attempt == 1)
        left.close()
        right.close()


@pytest.mark.parametrize("size", [0, 10, 65_536, 300_000])
def test_messages_arrive_whole_and_in_order(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    body = os.urandom(size)
    thread, errors = in_thread(lambda: [send(pair[0], Message.CHUNK, b"12345678", body), send(pair[0], Message.END)])
    receiver = Receiver(pair[1])
    assert receiver.receive() == (Message.CHUNK, b"12345678" + body)
    assert receiver.receive() == (Message.END, b"")
    thread.join()
    assert errors == []


def test_half_a_message_is_a_lost_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(b"\x10\x00\x00\x00\x02abc")
    pair[0].close()
    with pytest.raises(ConnectionLostError):
        Receiver(pair[1]).receive()


def test_an_absurd_length_is_a_lost_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(b"\xff\xff\xff\xff\x02")
    with pytest.raises(ConnectionLostError, match="out of step"):
        Receiver(pair[1]).receive()


def test_attempts_are_ordered_and_named_once() -> None:
    attempts = [Attempt(1, 5, 0), Attempt(1, 5, 1), Attempt(1, 6, 0), Attempt(2, 6, 0)]
    assert sorted(attempts, key=Attempt.order) == attempts
    assert len({attempt.id for attempt in attempts} | {Attempt(1, 5, 0, "another").id}) == 5


# --- the server, in this process


class Bomb:
    """Unpickled, it leaves a trace."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (Path(self.path),))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SlotServer]:
    path = str(tmp_path / "slot.sock")
    config = SlotConfig(SlotAddress(1, 0, local_host(), 0, path, 0, "one"), False, SECRET, "job", b"", b"", None, 1)
    server = SlotServer(config)
    stop = threading.Event()

    def read(sock: socket.socket) -> None:
        with contextlib.suppress(AttributeError):  # what a bomb leaves behind is no BeginEpoch
            server._read_from(sock)

    def accept() -> None:
        listener = server._listeners[0]
        listener.settimeout(0.05)
        while not stop.is_set():
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=read, args=(sock,), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    yield server
    stop.set()
    thread.join()
    server._listeners[0].close()


def begin(number: int) -> BeginEpoch:
    return BeginEpoch(Attempt(1, 0, number), -1, 0, {}, [], False, 0, 0)


def test_a_stranger_is_refused_before_a_byte_is_unpickled(server: SlotServer, tmp_path: Path) -> None:
    bomb = tmp_path / "exploded"
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(5)
    sock.connect(server.address.path)
    sock.recv(64)
    sock.sendall(b"w" * 64)  # a wrong proof, and at once what an accepted relay would send
    with contextlib.suppress(ConnectionLostError, OSError):  # it may have been cut already
        send(sock, Message.BEGIN, pickle.dumps(Bomb(str(bomb))))
    with contextlib.suppress(OSError):
        assert sock.recv(1) == b""
    sock.close()
    assert not bomb.exists()
    assert server._work._items.empty()
    # The same message from somebody who knows the secret is read: the bomb is a real one.
    with connect(server.address, SECRET) as friend:
        send(friend, Message.BEGIN, pickle.dumps(Bomb(str(bomb))))
        friend.settimeout(5)
        assert friend.recv(1) == b""
    assert bomb.exists()


def test_the_wrong_secret_gets_no_connection(server: SlotServer) -> None:
    with pytest.raises(ConnectionLostError):
        connect(server.address, b"x" * 32)


def test_ping_is_answered(server: SlotServer) -> None:
    with connect(server.address, SECRET) as sock:
        send(sock, Message.PING)
        kind, body = Receiver(sock).receive()
    assert kind is Message.PONG and pickle.loads(body)["pid"] == os.getpid()


def test_an_older_attempt_is_fenced_and_a_newer_one_cuts_the_current(server: SlotServer) -> None:
    current = connect(server.address, SECRET)
    send(current, Message.BEGIN, pickle.dumps(begin(5)))
    epoch = server._work._items.get(timeout=5)
    assert epoch is not None
    server._current = epoch.sock  # as if the main thread were at work on it

    with connect(server.address, SECRET) as zombie:
        send(zombie, Message.BEGIN, pickle.dumps(begin(4)))
        kind, body = Receiver(zombie).receive()
        failure: AttemptFailedError = pickle.loads(body)
        assert kind is Message.FAILED and "fenced" in str(failure) and failure.error is None

    with connect(server.address, SECRET) as newer:
        send(newer, Message.BEGIN, pickle.dumps(begin(6)))
        taken = server._work._items.get(timeout=5)
        assert taken is not None and taken.begin.attempt.number == 6
        current.settimeout(5)
        assert current.recv(1) == b"", "the older attempt's connection was not cut"
        taken.sock.close()
    current.close()
    epoch.sock.close()


def test_a_socket_directory_must_be_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    directory = Path(socket_directory("0123456789abcdef"))
    assert directory.stat().st_mode & 0o777 == 0o700 == directory.parent.stat().st_mode & 0o777
    directory.parent.chmod(0o755)
    with pytest.raises(ConfigurationError, match="only user"):
        socket_directory("0123456789abcdef")


def test_an_error_that_cannot_be_pickled_still_reaches_the_relay() -> None:
    from headwater.common.errors import HeadwaterError

    class Local(HeadwaterError):
        def __reduce__(self) -> Any:
            raise TypeError("no")

    failure = failure_of(Local("what happened"), Place(1, 0))
    assert str(pickle.loads(pickle.dumps(failure)).error) == "what happened"
