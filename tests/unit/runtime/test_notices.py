"""Slots learn from the driver that a checkpoint is durable, whatever happens to some of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.common.ids import Place
from headwater.runtime.slot import notices as notices_module
from headwater.runtime.slot.notices import SlotNotices
from tests.unit.runtime.slot_servers import SECRET, SlotServers, slot_servers
from tests.waiting import wait_until

LEFT, RIGHT = Place(1, 0), Place(1, 1)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[SlotServers]:
    with slot_servers(tmp_path, LEFT, RIGHT) as found:
        yield found


@pytest.fixture
def notices() -> Iterator[SlotNotices]:
    found = SlotNotices(SECRET)
    yield found
    found.close()
    if found._thread is not None:
        found._thread.join(10)
        assert not found._thread.is_alive()


def test_all_slots_hear_of_each_checkpoint_over_one_connection_each(servers: SlotServers, notices: SlotNotices) -> None:
    addresses = [slot.address for slot in servers.slots.values()]
    for token in ("1", "2", "3"):
        notices.tell(token, addresses)
        wait_until(lambda token=token: all(slot.completed[-1:] == [token] for slot in servers.slots.values()))  # type: ignore[misc]
    assert servers.connections == 2


def test_a_slot_that_is_gone_does_not_keep_the_others_from_hearing(servers: SlotServers, notices: SlotNotices) -> None:
    left, right = (servers.slots[place] for place in (LEFT, RIGHT))
    gone = replace(left.address, path=left.address.path + "-gone", incarnation="gone")
    notices.tell("1", [gone, right.address])
    wait_until(lambda: right.completed == ["1"])
    assert left.completed == []


def test_a_slot_in_the_place_of_another_is_told_by_its_own_address(servers: SlotServers, notices: SlotNotices) -> None:
    old = servers.slots[LEFT]
    notices.tell("1", [old.address])
    wait_until(lambda: old.completed == ["1"])
    new = servers.start(LEFT, "two")
    notices.tell("2", [new.address])
    wait_until(lambda: new.completed == ["2"])
    assert old.completed == ["1"]


def test_a_host_that_does_not_answer_holds_the_driver_not_up(
    notices: SlotNotices, servers: SlotServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notices that came meanwhile are one: the newest includes the others."""
    connect, slept = notices_module.connect, []

    def slow(*arguments: object) -> object:
        slept.append(time.sleep(0.3))
        return connect(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(notices_module, "connect", slow)
    slot = servers.slots[LEFT]
    started = time.monotonic()
    notices.tell("0", [slot.address])
    wait_until(lambda: notices._notices.empty(), "the thread to take the first one")
    for number in range(1, 100):
        notices.tell(str(number), [slot.address])
    assert time.monotonic() - started < 0.3 and not slot.completed
    wait_until(lambda: slot.completed[-1:] == ["99"])
    assert slot.completed == ["0", "99"]


def test_closing_without_a_notice_is_fine() -> None:
    SlotNotices(SECRET).close()
