"""The sockets on which slots answer queries: who is let in, who may answer, and who must wait."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.common.ids import Place
from headwater.common.machine.boot_clock import since_boot_ns
from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.slot_connections import SlotConnection, SlotConnections
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.slot import leases as leases_module
from headwater.runtime.slot.leases import Leases
from headwater.runtime.slot.protocol import (
    QUERY_MAGIC,
    Message,
    Receiver,
    authenticate_client,
    packed,
    query_secret,
    send,
)
from headwater.runtime.slot.query import answers as answers_module
from headwater.runtime.slot.query import server as server_module
from headwater.runtime.slot.query.answers import Session
from headwater.runtime.slot.query.server import Lease
from headwater.state.descriptors import ValueStateDescriptor
from tests.unit.runtime.served_slot import FOR_EVER, Served
from tests.unit.runtime.slot_servers import SECRET, slot_servers
from tests.waiting import wait_until


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
    served.lease.until_ns = since_boot_ns() - 1
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


def silent_listener(path: str) -> socket.socket:
    """Accepts connections, as a stopped process does, and says nothing."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    return listener


def test_a_slot_that_keeps_silent_is_tried_by_one_reader_at_a_time(served: Served, tmp_path: Path) -> None:
    connections, secret = SlotConnections(), query_secret(SECRET)
    stopped = replace(served.place, path=str(tmp_path / "stopped.sock"))
    with silent_listener(stopped.path):
        with pytest.raises(QueryError, match="timed out"):
            connections.ask(stopped, secret, get(1), 0.05)
        with pytest.raises(QueryError, match="another reader") as caught:
            connections.ask(stopped, secret, get(1), 30)
        assert caught.value.problem is QueryProblem.UNREACHABLE
        assert connections.ask(served.place, secret, get(1), 5)["epoch"] == 7  # others are asked
    os.unlink(stopped.path)
    os.link(served.place.path, stopped.path)  # it goes on

    def answers() -> bool:
        with contextlib.suppress(QueryError):
            return bool(connections.ask(stopped, secret, get(1), 0.05)["epoch"] == 7)
        return False

    wait_until(answers, "somebody to try it again")
    connections.close()


# --- what a reader can do to a slot


def raw_connection(served: Served) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(served.place.path)
    authenticate_client(sock, query_secret(SECRET), "one", QUERY_MAGIC)
    sock.settimeout(10)
    return sock


def test_a_value_without_a_form_in_json_fails_its_own_request_only(served: Served) -> None:
    served.slot.store(10**5000, "huge")
    connection = served.connect()
    for request in (get("huge"), SCAN | {"from": ["huge"]}):
        with pytest.raises(QueryError) as caught:
            connection.ask(request, 5)
        assert caught.value.problem is QueryProblem.FAILED
        assert connection.ask(get(1), 5)["values"] == [{"found": True, "value": 2}]


def test_an_error_that_nobody_expects_ends_no_thread(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, others = served.connect(), served.connect()
    with monkeypatch.context() as patch:
        patch.setattr(server_module, "packed", lambda *arguments: 1 / 0)
        for request in (get(1), SCAN):
            with pytest.raises(QueryError):
                connection.ask(request, 5)
            connection = served.connect()
    assert others.ask(get(1), 5)["epoch"] == 7
    assert len(others.ask(SCAN, 5)["rows"]) == 100


def test_requests_of_one_connection_are_answered_one_after_the_other(served: Served) -> None:
    scan = json.dumps(SCAN | {"limit": 1}).encode()
    requests = [scan, scan, json.dumps(get(3)).encode(), scan, json.dumps(get(4)).encode()]
    with raw_connection(served) as sock:
        sock.sendall(b"".join(bytes(part) for body in requests for part in packed(sock, Message.QUERY, body)))
        receiver = Receiver(sock)
        answers = [json.loads(receiver.receive()[1])["ok"] for _ in requests]
    assert [each.get("rows", each.get("values"))[0]["value"] for each in answers] == [0, 0, 6, 0, 8]
    assert served.connect().ask(get(1), 5)["epoch"] == 7


def test_a_request_that_is_announced_as_too_large_is_not_read(served: Served) -> None:
    with raw_connection(served) as sock:
        sock.sendall(struct.pack("<IB", server_module.MAX_REQUEST + 1, Message.QUERY))
        with contextlib.suppress(ConnectionError):
            assert sock.recv(1) == b""  # although not one byte of it has come


def test_what_a_silent_reader_pinned_is_released_in_the_end(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "PIN_SECONDS", 0.05)
    with contextlib.closing(served.connect()) as connection:
        assert connection.ask({"op": "pin"}, 5) == {"epoch": 7}
        wait_until(lambda: not served.slot.backend._pins, "the pin to be released")
        assert connection.ask(get(1), 5)["epoch"] == 7


def test_what_looks_at_many_entries_does_not_hold_look_ups_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    windows: Any = served.slot.backend.get_namespaced_state(ValueStateDescriptor("windows"))
    monkeypatch.setattr(answers_module.Session, "_get", waiting_for(released, answers_module.Session._get))
    monkeypatch.setitem(answers_module._OPERATIONS, "get", answers_module.Session._get)
    in_windows = get(1) | {"state": "windows"}
    slow = [in_windows, get(*range(1000))]
    threads = [threading.Thread(target=served.connect().ask, args=(request, 30)) for request in slow]
    for thread in threads:
        thread.start()
    assert served.connect().ask({"op": "list"}, 5)["operators"]
    released.set()
    for thread in threads:
        thread.join()
    assert windows is not None


def waiting_for(released: threading.Event, method: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*arguments: Any) -> Any:
        assert released.wait(30)
        return method(*arguments)

    return wait


def test_the_windows_of_a_key(served: Served) -> None:
    backend = served.slot.backend
    state: Any = backend.get_namespaced_state(ValueStateDescriptor("windows"))
    backend.begin_epoch()
    for number in range(1000):
        backend.current_key, backend.current_namespace = number % 10, number
        state.update(number)
    backend.cut_epoch = 8
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    found = served.connect().ask(get(3, 4, "none") | {"state": "windows"}, 5)
    of_three, of_four, of_none = found["values"]
    assert [each["value"] for each in of_three["value"]] == list(range(3, 1000, 10))
    assert [each["namespace"] for each in of_four["value"]] == list(range(4, 1000, 10))
    assert of_none == {"found": False}


# --- the thread that processes


@contextlib.contextmanager
def processing(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """While another thread takes steps and polls between them. Yields the threads that answered."""
    monkeypatch.setattr(server_module, "_UNPOLLED_SECONDS", 3600.0)  # the threads of queries never take over
    answered: list[int] = []
    answer = server_module.Session.answer

    def noted(session: Any, request: Any) -> Any:
        answered.append(threading.get_ident())
        return answer(session, request)

    monkeypatch.setattr(server_module.Session, "answer", noted)
    done = threading.Event()

    def process() -> None:
        served.slot.processing = True
        while not done.is_set():
            served.queries.poll()
        served.slot.processing = False
        served.queries.epoch_ended()

    thread = threading.Thread(target=process)
    wait_until(lambda: not served.queries._newcomers, "all readers to be let in")
    thread.start()
    wait_until(lambda: served.queries._polled > 0, "the first poll")
    yield answered
    done.set()
    thread.join()
    answered[:] = [each for each in answered if each != thread.ident]


def test_look_ups_are_answered_between_two_steps(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = [served.connect() for _ in range(3)]
    with processing(served, monkeypatch) as answered_elsewhere:
        for number, connection in enumerate(connections * 20):
            assert connection.ask(get(number), 5)["values"] == [{"found": True, "value": number * 2}]
        assert served.connect().ask(get(1), 5)["epoch"] == 7  # a new one, too
    assert answered_elsewhere == []


def test_scans_are_never_answered_between_two_steps(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = served.connect()
    with processing(served, monkeypatch) as answered_elsewhere:
        assert len(connection.ask(SCAN, 5)["rows"]) == 100
        assert connection.ask(get(1), 5)["epoch"] == 7
    assert len(answered_elsewhere) == 1


def test_after_the_epoch_the_other_thread_answers(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = served.connect()
    with processing(served, monkeypatch):
        connection.ask(get(1), 5)
    assert connection.ask(get(2), 5)["values"] == [{"found": True, "value": 4}]


def test_while_a_checkpoint_is_encoded_look_ups_are_answered_between_its_parts(served: Served) -> None:
    backend = served.slot.backend
    seen = []

    def look_up() -> None:
        seen.append(Session(served.slot).answer(get(3))["values"][0]["value"])  # type: ignore[arg-type]

    backend.breathe = look_up
    backend.begin_epoch()
    for key in range(100):
        backend.current_key = key
        served.slot.state.update(-1)
    assert len(backend.delta_sections()) == 16
    assert seen == [6] * 16  # of the checkpoint before


def test_in_a_long_step_the_other_thread_answers(served: Served) -> None:
    connection = served.connect()
    connection.ask(get(1), 5)
    served.slot.processing = True
    served.queries.poll()  # and then no more
    assert connection.ask(get(2), 5)["values"] == [{"found": True, "value": 4}]


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(3)], ids=["error", "exit"])
def test_what_a_function_of_the_user_raises_for_a_query_does_not_reach_processing(
    served: Served, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    connection = served.connect()

    def failing(*arguments: Any) -> Any:
        raise error

    monkeypatch.setattr(served.slot.backend, "read", failing)
    with processing(served, monkeypatch):
        with pytest.raises(QueryError) as caught:
            connection.ask(get(1), 5)
        assert caught.value.problem is QueryProblem.FAILED


def test_a_reader_that_does_not_take_its_answer_holds_nobody_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.slot.store("x" * (4 << 20), "large")  # more than a socket's buffer
    other = served.connect()
    with raw_connection(served) as sock, processing(served, monkeypatch):
        for part in packed(sock, Message.QUERY, json.dumps(get("large")).encode()):
            sock.sendall(part)
        wait_until(lambda: bool(served.queries._sending), "the answer to wait")
        assert other.ask(get(1), 5)["values"] == [{"found": True, "value": 2}]
        _, body = Receiver(sock).receive()
        assert len(json.loads(body)["ok"]["values"][0]["value"]) == 4 << 20
        for part in packed(sock, Message.QUERY, json.dumps(get(2)).encode()):
            sock.sendall(part)
        assert json.loads(Receiver(sock).receive()[1])["ok"]["values"] == [{"found": True, "value": 4}]


def test_a_reader_that_never_takes_its_answer_loses_its_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "SEND_SECONDS", 0.05)
    served.slot.store("x" * (4 << 20), "large")
    with raw_connection(served) as sock:
        for part in packed(sock, Message.QUERY, json.dumps(get("large")).encode()):
            sock.sendall(part)
        wait_until(lambda: served.queries._connections == 0, "the connection to be closed")
    assert served.connect().ask(get(1), 5)["epoch"] == 7


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


def test_a_slot_that_does_not_answer_gets_none_and_holds_nobody_up(
    tmp_path: Path, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slot_servers(tmp_path, LEFT) as servers:
        right = Place(1, 1)
        path = str(tmp_path / "silent.sock")
        address = servers.slots[LEFT].address
        book = {LEFT: address, right: replace(address, partition=1, path=path, incarnation="silent")}
        with silent_listener(path):
            assert leases.renew(book) == {LEFT}
            monkeypatch.setattr(leases_module, "connect", lambda *arguments: pytest.fail("it is asked again"))
            assert leases.renew(book) == {LEFT}  # at once
        os.unlink(path)


def test_a_slot_that_did_not_answer_is_asked_again_in_the_background(tmp_path: Path, leases: Leases) -> None:
    with slot_servers(tmp_path, LEFT) as servers:
        address = servers.slots[LEFT].address
        leases._failed.add(address)
        assert leases.renew({LEFT: address}) == set()
        assert leases.renew({LEFT: address}, patient=True) == {LEFT}
        assert leases.renew({LEFT: address}) == {LEFT}


def test_while_one_thread_asks_a_slot_others_take_what_is_known(tmp_path: Path, leases: Leases) -> None:
    with slot_servers(tmp_path, LEFT) as servers:
        address = servers.slots[LEFT].address
        leases._asked.add(address)
        assert leases.renew({LEFT: address}) == set()
        leases._asked.clear()
        assert leases.renew({LEFT: address}) == {LEFT}
        leases._asked.add(address)
        assert leases.renew({LEFT: address}, fresh_seconds=0) == {LEFT}  # its lease holds


def test_a_grant_that_arrives_late_is_worth_nothing(tmp_path: Path) -> None:
    """The lease counts from the clock that the slot told, not from when the grant arrives."""
    lease = Lease()
    asked_ns = since_boot_ns() - int(leases_module.LEASE_SECONDS * 1e9) - 1
    lease.until_ns = asked_ns + int(leases_module.LEASE_SECONDS * 1e9)
    assert not lease.holds


def test_a_slot_that_wakes_with_its_host_has_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = Lease()
    lease.until_ns = since_boot_ns() + int(leases_module.LEASE_SECONDS * 1e9)
    assert lease.holds
    suspend_host(monkeypatch, leases_module.LEASE_SECONDS)
    assert not lease.holds


def test_a_lease_ends_for_the_driver_while_its_host_is_suspended(
    tmp_path: Path, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "is_named", lambda pid, name: True)
    with slot_servers(tmp_path, LEFT) as servers:
        assert leases.renew({LEFT: servers._servers[0].address}) == {LEFT}
        servers.start(LEFT, "two")
        assert leases.renew({LEFT: servers._servers[1].address}) == set()
        suspend_host(monkeypatch, leases_module.LEASE_SECONDS)
        assert leases.renew({LEFT: servers._servers[1].address}, patient=True) == {LEFT}


def suspend_host(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Of all clocks only that of Linux for this purpose goes on."""
    of_system = time.clock_gettime_ns

    def after(clock: int) -> int:
        return of_system(clock) + (int(seconds * 1e9) if clock == time.CLOCK_BOOTTIME else 0)

    monkeypatch.setattr(time, "clock_gettime_ns", after)
