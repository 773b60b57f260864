"""The sockets on which slots answer queries: who is let in, who may answer, and who must wait."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.common.ids import Place
from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.locations import SlotPlace
from headwater.queryable_state.slot_connections import SlotConnection, SlotConnections
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.slot import leases as leases_module
from headwater.runtime.slot.leases import Leases
from headwater.runtime.slot.protocol import QUERY_MAGIC, Message, authenticate_client, query_secret, send
from headwater.runtime.slot.query import server as server_module
from headwater.runtime.slot.query.server import Lease, QueryServer
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ValueStateDescriptor
from tests.unit.runtime.slot_servers import SECRET, slot_servers
from tests.waiting import wait_until

FOR_EVER = 1 << 62


class OneOperator:
    """A slot's runner with one keyed backend in it, and the slot itself: what queries need of both."""

    def __init__(self) -> None:
        self.backend: Any = make_keyed_backend("heap", "op", 16, range(16))
        self.processing = False
        self.readable: Any = self
        state: Any = self.backend.get_state(ValueStateDescriptor("count"))
        self.backend.begin_epoch()
        for number in range(100):
            self.backend.current_key = number
            state.update(number * 2)
        self.backend.cut_epoch = 7
        self.backend.commit_epoch(cut=True)
        self.backend.checkpoint_completed()

    def backends(self) -> list[Any]:
        return [self.backend]


class Served:
    def __init__(self, directory: Path) -> None:
        self.slot = OneOperator()
        self.lease = Lease()
        self.lease.until_ns = FOR_EVER
        self.place = SlotPlace(1, 0, "here", 0, str(directory / "query.sock"), "one", True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.place.path)
        listener.listen(64)
        tcp = socket.create_server(("127.0.0.1", 0))
        self.over_tcp = replace(self.place, host="127.0.0.1", port=tcp.getsockname()[1], path="")
        QueryServer(self.slot, [listener, tcp], SECRET, "one", self.lease).start()  # type: ignore[arg-type]

    def connect(self) -> SlotConnection:
        return SlotConnection(self.place, query_secret(SECRET), 5)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


SCAN = {"op": "scan", "operator": "op", "state": "count"}


def get(*keys: Any) -> dict[str, Any]:
    return {"op": "get", "operator": "op", "state": "count", "keys": list(keys)}


def test_a_value_with_its_epoch(served: Served) -> None:
    found = served.connect().ask(get(3, 1000), 5)
    assert found == {"epoch": 7, "values": [{"found": True, "value": 6}, {"found": False}]}


def test_over_a_network_every_message_is_sealed(served: Served) -> None:
    connection = SlotConnection(served.over_tcp, query_secret(SECRET), 5)
    for number in range(5):
        assert connection.ask(get(number), 5)["values"] == [{"found": True, "value": number * 2}]
    raw = connection._sock.detach()  # who has taken the connection over does not know its keys
    with socket.socket(fileno=raw) as sock:
        sock.settimeout(5)
        send(sock, Message.QUERY, b'{"op": "list"}')
        sock.sendall(b"0" * 16)
        with contextlib.suppress(ConnectionError):
            assert sock.recv(1) == b""


@pytest.mark.parametrize("secret", [b"x" * 32, SECRET], ids=["a wrong secret", "the secret of the data sockets"])
def test_who_does_not_know_the_query_secret_is_not_let_in(served: Served, secret: bytes) -> None:
    with pytest.raises(QueryError, match="does not answer"):
        SlotConnection(served.place, secret, 5)


def test_nothing_is_parsed_before_the_handshake(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    monkeypatch.setattr(server_module.json, "loads", lambda body: parsed.append(body))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(served.place.path)
        sock.recv(64)
        sock.sendall(b"\x00" * 64 + b'{"op": "list"}' * 100)
        sock.settimeout(5)
        with contextlib.suppress(ConnectionError):
            assert sock.recv(1) == b""
    assert parsed == []


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"[" * 100_000, b"\xff\xfe", b" " * (1 << 21)])
def test_a_reader_that_sends_nonsense_loses_its_connection_only(served: Served, body: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(served.place.path)
        authenticate_client(sock, query_secret(SECRET), "one", QUERY_MAGIC)
        with contextlib.suppress(ConnectionLostError):
            send(sock, Message.QUERY, body)
        sock.settimeout(5)
        with contextlib.suppress(ConnectionError):
            assert sock.recv(1) == b""
    assert served.connect().ask(get(1), 5)["epoch"] == 7


@pytest.mark.parametrize(
    "request_",
    [
        {}, {"op": []}, {"op": "get"}, {"op": "get", "operator": 1, "state": 2, "keys": 3}, get({"a": 1}),
        get(*range(10_001)), SCAN | {"limit": "x"}, SCAN | {"op": "batch"}, SCAN | {"from": 3}, {"op": "unpin"},
        get(1) | {"epoch": "x"}, get(1) | {"epoch": 3}, SCAN | {"prefix": 1}, SCAN | {"limit": -1},
        SCAN | {"from": [{"$opaque": 3}]}, {"op": "no such"}, SCAN | {"operator": "po"}, SCAN | {"state": "cuont"},
    ],
)  # fmt: skip
def test_a_bad_request_gets_an_answer_and_the_connection_stays(served: Served, request_: dict[str, Any]) -> None:
    connection = served.connect()
    with pytest.raises(QueryError) as caught:
        connection.ask(request_, 5)
    assert caught.value.problem.status in (400, 404, 410), caught.value.problem
    assert connection.ask(get(1), 5)["epoch"] == 7


def test_a_slot_without_a_lease_does_not_answer(served: Served) -> None:
    connection = served.connect()
    served.lease.until_ns = time.monotonic_ns() - 1
    with pytest.raises(QueryError) as caught:
        connection.ask(get(1), 5)
    assert caught.value.problem is QueryProblem.NOT_SURE
    served.lease.until_ns = FOR_EVER
    assert connection.ask(get(1), 5)["epoch"] == 7


def test_a_slot_whose_lease_ends_while_it_reads_does_not_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = served.slot.backend.read

    def stopped_meanwhile(*arguments: Any) -> Any:
        served.lease.until_ns = 0
        return read(*arguments)

    monkeypatch.setattr(served.slot.backend, "read", stopped_meanwhile)
    with pytest.raises(QueryError) as caught:
        served.connect().ask(get(1), 5)
    assert caught.value.problem is QueryProblem.NOT_SURE


def test_a_slot_that_loads_a_checkpoint_says_so(served: Served) -> None:
    served.slot.readable = None
    with pytest.raises(QueryError) as caught:
        served.connect().ask(get(1), 5)
    assert caught.value.problem is QueryProblem.RESTORING


def test_more_scans_than_may_wait_are_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    candidates = served.slot.backend.candidates

    def slow(*arguments: Any) -> Any:
        released.wait(30)
        return candidates(*arguments)

    monkeypatch.setattr(served.slot.backend, "candidates", slow)
    scan = SCAN | {"limit": 3}
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(len(served.connect().ask(scan, 30)["rows"]))
        except QueryError as error:
            answers.append(error.problem)

    threads = [threading.Thread(target=ask) for _ in range(server_module.MAX_WAITING_SCANS + 5)]
    for thread in threads:
        thread.start()
    wait_until(lambda: QueryProblem.TOO_MANY_READERS in answers, "a refusal")
    assert served.connect().ask(get(1), 5)["epoch"] == 7  # look-ups go on
    released.set()
    for thread in threads:
        thread.join()
    assert answers.count(3) >= server_module.MAX_WAITING_SCANS


def test_what_a_reader_pinned_is_released_with_its_connection(served: Served) -> None:
    connection = served.connect()
    assert connection.ask({"op": "pin"}, 5) == {"epoch": 7}
    assert served.slot.backend._pins == {7: 1}
    connection.close()
    wait_until(lambda: not served.slot.backend._pins, "the pin to be released")


def test_connections_are_kept_and_used_again(served: Served) -> None:
    connections = SlotConnections()
    for _ in range(50):
        connections.ask(served.place, query_secret(SECRET), get(1), 5)
    assert [len(idle) for idle in connections._idle.values()] == [1]
    connections.close()


# --- leases

LEFT = Place(1, 0)


@pytest.fixture
def leases() -> Iterator[Leases]:
    found = Leases(SECRET)
    yield found
    found.close()


def test_the_slot_of_a_partition_gets_a_lease(tmp_path: Path, leases: Leases) -> None:
    with slot_servers(tmp_path, LEFT) as servers:
        address = servers.slots[LEFT].address
        assert not servers._servers[0].lease.holds
        assert leases.renew({LEFT: address}) == {LEFT}
        wait_until(lambda: servers._servers[0].lease.holds, "the lease")


def test_a_slot_in_the_place_of_another_waits_until_that_ones_lease_is_over(
    tmp_path: Path, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(leases_module, "is_named", lambda pid, name: True)  # it lives, and may answer
    with slot_servers(tmp_path, LEFT) as servers:
        old = servers._servers[0]
        assert leases.renew({LEFT: old.address}) == {LEFT}
        wait_until(lambda: old.lease.holds, "the lease")
        servers.start(LEFT, "two")
        new = servers._servers[1]
        while not leases.renew({LEFT: new.address}):
            assert not new.lease.holds
            time.sleep(0.01)
        assert not old.lease.holds  # never two at once
        wait_until(lambda: new.lease.holds, "the new one's lease")


def test_a_slot_in_the_place_of_a_dead_one_need_not_wait(
    tmp_path: Path, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "is_named", lambda pid, name: False)
    with slot_servers(tmp_path, LEFT) as servers:
        assert leases.renew({LEFT: servers._servers[0].address}) == {LEFT}
        servers.start(LEFT, "two")
        assert leases.renew({LEFT: servers._servers[1].address}) == {LEFT}


def test_a_slot_that_does_not_answer_gets_none_and_holds_nobody_up(tmp_path: Path, leases: Leases) -> None:
    with slot_servers(tmp_path, LEFT) as servers:
        right = Place(1, 1)
        silent = socket.socket(socket.AF_UNIX)  # accepts connections, as a stopped process does, and says nothing
        path = str(tmp_path / "silent.sock")
        silent.bind(path)
        silent.listen(8)
        address = servers.slots[LEFT].address
        book = {LEFT: address, right: replace(address, partition=1, path=path, incarnation="silent")}
        assert leases.renew(book) == {LEFT}
        silent.close()
        os.unlink(path)


def test_a_grant_that_arrives_late_is_worth_nothing(tmp_path: Path) -> None:
    """The lease counts from the clock that the slot told, not from when the grant arrives."""
    lease = Lease()
    asked_ns = time.monotonic_ns() - int(leases_module.LEASE_SECONDS * 1e9) - 1
    lease.until_ns = asked_ns + int(leases_module.LEASE_SECONDS * 1e9)
    assert not lease.holds
