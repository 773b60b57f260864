"""The relay of the resident task, against real slot servers: many slots in one thread, over connections that stay."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import HeadwaterError
from headwater.common.ids import Place
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError, FailureReason
from headwater.runtime.epoch.messages import EpochOutcome, PartitionAck, SlotAddress
from headwater.runtime.epoch.steps import Step
from headwater.runtime.slot import process as process_module
from headwater.runtime.slot import relay as relay_module
from headwater.runtime.slot.process import SlotServer
from headwater.runtime.slot.protocol import Message, Receiver, packed
from headwater.runtime.slot.relay import Relay
from headwater.runtime.stage.edges import Emit
from headwater.runtime.stage.round import Event, OutputEnded
from tests.unit.runtime.slot_servers import ScriptedSlot, SlotServers, begin, echo, slot_servers
from tests.waiting import wait_until

LEFT, RIGHT = Place(1, 0), Place(1, 1)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[SlotServers]:
    with slot_servers(tmp_path, LEFT, RIGHT) as found:
        yield found


@pytest.fixture
def relay(servers: SlotServers) -> Iterator[Relay]:
    found = Relay(servers.launch)
    yield found
    found.close()


def chunks(*payloads: bytes) -> Iterator[Step]:
    return (Step("chunk", number, payload) for number, payload in enumerate(payloads))


def call(relay: Relay, slot: ScriptedSlot, number: int, steps: Iterable[Step]) -> None:
    relay.call(slot.address, slot.address.place, begin(number), iter(steps))


def run(relay: Relay, servers: SlotServers, number: int) -> list[Event]:
    """One epoch through both slots."""
    for place, slot in servers.slots.items():
        call(relay, slot, number, chunks(f"{place.partition}-{number}".encode()))
    return list(relay.events())


def kinds(events: Iterable[Event], place: Place) -> list[str]:
    """What one slot said, in order. Frames are told apart by their text."""
    found = []
    for event in events:
        if isinstance(event, (OutputEnded, PartitionAck)):
            if event.place == place:
                found.append(type(event).__name__)
        elif event[1].startswith(f"{place.partition}-".encode()):
            found.append(event[1].decode())
    return found


def test_epochs_of_many_slots_over_connections_that_stay(relay: Relay, servers: SlotServers) -> None:
    for number in range(20):
        events = run(relay, servers, number)
        for place in (LEFT, RIGHT):
            assert kinds(events, place) == [f"{place.partition}-{number}", "OutputEnded", "PartitionAck"]
    assert servers.connections == 2


def test_two_relays_take_turns_over_connections_that_stay(relay: Relay, servers: SlotServers) -> None:
    """The slot's main thread reads from the connection of the last epoch, and gives it back for another's."""
    other = Relay(servers.launch)
    try:
        for number in range(12):
            assert len(run((relay, other)[number // 2 % 2], servers, number)) == 6
        assert servers.connections == 4
        run(relay, servers, 12)
        other.tell("told by the other")
        wait_until(lambda: all(slot.completed == ["told by the other"] for slot in servers.slots.values()))
    finally:
        other.close()
    assert len(run(relay, servers, 13)) == 6 and servers.connections == 4


def test_an_attempt_that_is_being_acknowledged_is_not_cut(
    relay: Relay, servers: SlotServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay has the acknowledgement, and the next attempt comes, before the slot's main thread goes on."""
    slot = servers.slots[LEFT]
    admits = SlotServer._admits
    come: list[int] = []

    def noted(server: SlotServer, epoch: Any) -> bool:
        come.append(epoch.begin.attempt.number)
        return admits(server, epoch)

    monkeypatch.setattr(SlotServer, "_admits", noted)
    monkeypatch.setattr(fault, "hook", lambda step, epoch: step != "acked" or wait_until(lambda: epoch + 1 in come))
    other = Relay(servers.launch)
    try:
        for number in range(6):
            if number == 5:
                monkeypatch.setattr(fault, "hook", None)
            found = (relay, other)[number % 2]
            found.call(slot.address, LEFT, begin(number, epoch=number), chunks(b"x"))
            assert len(list(found.events())) == 3
        assert servers.connections == 2
    finally:
        other.close()


def test_an_acknowledgement_that_nobody_takes_does_not_keep_the_slot(
    relay: Relay, servers: SlotServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "ACKNOWLEDGE_SECONDS", 0.01)
    slot = servers.slots[LEFT]
    call(relay, slot, 0, chunks(b"x"))
    stopped, _ = relay._idle[LEFT]
    monkeypatch.setattr(
        fault, "hook", lambda step, epoch: step != "acked" or wait_until(lambda: relay_module._has_ended(stopped))
    )
    other = Relay(servers.launch)
    try:
        assert len(list(relay.events())) == 3
        call(other, slot, 1, chunks(b"x"))
        assert len(list(other.events())) == 3
    finally:
        other.close()


def test_a_relay_that_stops_in_mid_message_does_not_keep_the_slot(relay: Relay, servers: SlotServers) -> None:
    other = Relay(servers.launch)
    try:
        run(other, servers, 0)
        sock, _ = other._idle[LEFT]
        sock.settimeout(10)
        begins = b"".join(packed(sock, Message.BEGIN, pickle.dumps(begin(1))))
        sock.sendall(begins[:20])
        assert len(run(relay, servers, 2)) == 6
        sock.sendall(begins[20:] + b"".join(packed(sock, Message.END)))
        kind, body = Receiver(sock).receive()
        assert kind is Message.FAILED and "fenced" in str(pickle.loads(body)), "it comes too late"
    finally:
        other.close()


def test_what_is_sent_in_one_piece_is_done_in_its_order(relay: Relay, servers: SlotServers) -> None:
    run(relay, servers, 0)
    seen: list[list[str]] = []
    slot = servers.slots[LEFT]

    def look(emit: Emit, steps: Iterable[Step]) -> None:
        seen.append(list(slot.completed))
        list(steps)

    slot.script = look
    sock, _ = relay._idle[LEFT]
    told = b"".join(packed(sock, Message.COMPLETED, b"token"))
    epoch = [packed(sock, Message.BEGIN, pickle.dumps(begin(1))), packed(sock, Message.END)]
    sock.sendall(told + b"".join(part for message in epoch for part in message))
    wait_until(lambda: seen == [["token"]])


def test_events_that_were_not_asked_for_yet_are_kept(
    servers: SlotServers, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot's last output, its end and its acknowledgement come in one segment; the caller leaves at the end."""
    ours, theirs = socket.socketpair()
    address = SlotAddress(*LEFT, "here", 0, "", 0, "one")
    monkeypatch.setattr(relay_module, "find_or_start", lambda launch, known, place: (ours, address))
    with theirs:
        relay.call(None, LEFT, begin(0), iter(()))
        ack = PartitionAck(LEFT, EpochOutcome(), address=address)
        parts = [
            *packed(theirs, Message.OUTPUT, (0).to_bytes(8, "little"), b"0-x"),
            *packed(theirs, Message.OUTPUT_ENDED),
            *packed(theirs, Message.ACK, pickle.dumps(ack)),
        ]
        theirs.sendall(b"".join(parts))
        first = []
        for event in relay.events():
            first.append(event)
            if isinstance(event, OutputEnded):
                break
        rest = list(relay.events())
    assert kinds(first, LEFT) == ["0-x", "OutputEnded"] and kinds(rest, LEFT) == ["PartitionAck"]


def test_neither_end_waits_for_the_other_with_full_buffers(relay: Relay, servers: SlotServers) -> None:
    """The slot sends as much as it gets, while it gets it; the sockets hold a fraction of that."""
    payloads = [f"{number}-".encode() * 20_000 for number in range(200)]
    for slot in servers.slots.values():
        call(relay, slot, 0, chunks(*payloads))
    frames = [event[1] for event in relay.events() if isinstance(event, tuple)]
    assert sorted(frames) == sorted(payloads * 2)


def test_a_slot_that_does_not_read_yet_holds_nobody_up(relay: Relay, servers: SlotServers) -> None:
    gate = threading.Event()

    def late(emit: Emit, steps: Iterable[Step]) -> None:
        assert gate.wait(30)
        for step in steps:
            emit(step.node, bytes(step.value))

    servers.slots[LEFT].script = late
    big = b"0-" * 2_000_000
    call(relay, servers.slots[LEFT], 0, chunks(big, b"0-end"))
    call(relay, servers.slots[RIGHT], 0, chunks(b"1-now"))
    events = relay.events()
    right = []
    while "PartitionAck" not in kinds(right, RIGHT):
        right.append(next(events))
    gate.set()
    frames = [event[1] for event in events if isinstance(event, tuple)]
    assert frames == [big, b"0-end"]


def test_the_error_of_a_slot_ends_the_attempt_of_all_and_the_next_one_runs(relay: Relay, servers: SlotServers) -> None:
    waiting = threading.Event()

    def fail(emit: Emit, steps: Iterable[Step]) -> None:
        assert waiting.wait(30)
        raise HeadwaterError("the user's mistake")

    def send_until_cut(emit: Emit, steps: Iterable[Step]) -> None:
        waiting.set()
        while True:
            emit(0, b"1-" * 10_000)

    servers.slots[LEFT].script, servers.slots[RIGHT].script = fail, send_until_cut
    with pytest.raises(AttemptFailedError, match="the user's mistake") as caught:
        run(relay, servers, 0)
    assert caught.value.reason is FailureReason.PROGRAM
    relay.abandon()
    wait_until(lambda: servers.slots[RIGHT].aborts == 1, "the other slot to undo")
    for slot in servers.slots.values():
        slot.script = echo
    assert len(run(relay, servers, 1)) == 6


def test_an_error_is_heard_although_the_slot_takes_no_more_input(relay: Relay, servers: SlotServers) -> None:
    """The slot has closed its end while the relay is still sending: why, it said before."""

    def fail_at_once(emit: Emit, steps: Iterable[Step]) -> None:
        next(iter(steps))
        raise HeadwaterError("the user's mistake")

    servers.slots[LEFT].script = fail_at_once
    call(relay, servers.slots[LEFT], 0, chunks(*[b"0-" * 100_000] * 100))
    with pytest.raises(AttemptFailedError, match="the user's mistake"):
        list(relay.events())


def test_a_connection_that_the_slot_closed_between_epochs_is_made_anew(relay: Relay, servers: SlotServers) -> None:
    run(relay, servers, 0)
    servers.close_connections(LEFT, RIGHT)
    assert len(run(relay, servers, 1)) == 6 and servers.connections == 4


def test_the_address_book_is_right_and_not_the_open_connection(relay: Relay, servers: SlotServers) -> None:
    """Another engine has replaced the slot meanwhile: the old one is a zombie."""
    run(relay, servers, 0)
    old = servers.slots[LEFT]
    old.script = lambda emit, steps: pytest.fail("a zombie was asked")
    servers.start(LEFT, "two")
    assert kinds(run(relay, servers, 1), LEFT) == ["0-1", "OutputEnded", "PartitionAck"]


def test_an_attempt_that_a_newer_one_has_overtaken_is_refused(relay: Relay, servers: SlotServers) -> None:
    run(relay, servers, 7)
    with pytest.raises(AttemptFailedError, match="fenced"):
        run(relay, servers, 6)
    relay.abandon()
    assert len(run(relay, servers, 8)) == 6


@pytest.mark.parametrize("error", [ConnectionLostError("gone"), ValueError("no such step")])
def test_an_attempt_that_could_not_begin_can_be_abandoned(error: Exception, relay: Relay, servers: SlotServers) -> None:
    def steps() -> Iterator[Step]:
        yield Step("chunk", 0, b"0-x")
        raise error

    call(relay, servers.slots[RIGHT], 0, chunks(b"1-x"))
    with pytest.raises(type(error), match=str(error)):
        call(relay, servers.slots[LEFT], 0, steps())
    relay.abandon()
    assert len(run(relay, servers, 1)) == 6


def test_a_slot_that_dies_in_mid_epoch_is_a_lost_connection(relay: Relay, servers: SlotServers) -> None:
    def die(emit: Emit, steps: Iterable[Step]) -> None:
        servers.close_connections(LEFT)
        list(steps)

    servers.slots[LEFT].script = die
    with pytest.raises(ConnectionLostError):
        run(relay, servers, 0)
    relay.abandon()
    servers.slots[LEFT].script = echo
    assert len(run(relay, servers, 1)) == 6


def test_all_slots_are_told_of_a_checkpoint_before_their_next_epoch(relay: Relay, servers: SlotServers) -> None:
    run(relay, servers, 0)
    relay.tell("first")
    run(relay, servers, 1)
    assert [slot.completed for slot in servers.slots.values()] == [["first"], ["first"]]
    relay.tell("second")
    wait_until(lambda: all(slot.completed == ["first", "second"] for slot in servers.slots.values()))


def test_a_slot_that_is_gone_is_not_told_and_nobody_minds(relay: Relay, servers: SlotServers) -> None:
    run(relay, servers, 0)
    servers.close_connections(LEFT, RIGHT)
    for _ in range(3):
        relay.tell("token")
    assert len(run(relay, servers, 1)) == 6
    relay.tell("next")
    wait_until(lambda: all(slot.completed == ["next"] for slot in servers.slots.values()))
