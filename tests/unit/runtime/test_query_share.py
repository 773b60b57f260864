"""Queries of a slot that is always at work: all are answered, and they take no more than their share of its time."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.runtime.slot.query import share as share_module
from headwater.runtime.slot.query.countdown import Countdown
from headwater.runtime.slot.query.held_calls import receiving, send_at_once
from headwater.runtime.slot.query.share import BURST_SECONDS, LONGEST_REST, SHARE, Share
from tests.waiting import wait_until


class Slot:
    processing = True


def spin(seconds: float) -> None:
    """Use so much processor time of this thread."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.fixture
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    yield
    sys.setswitchinterval(before)


def test_a_thread_gets_its_share_of_a_busy_slot_and_no_more(switching: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_module, "LONGEST_REST", 3600.0)  # however busy the machine is
    done = threading.Event()
    worked: list[float] = []

    def queries() -> None:
        share, started = Share(Slot()), time.thread_time()
        share.begin()
        while not done.is_set():
            spin(0.0005)
            share.breathe()
        worked.append(time.thread_time() - started)

    thread = threading.Thread(target=queries)
    started = time.thread_time()
    thread.start()
    spin(0.5)  # this is the main thread: it processes
    done.set()
    thread.join()
    processed = time.thread_time() - started
    assert 0 < worked[0] <= (processed + BURST_SECONDS) * SHARE / (1 - SHARE) + 0.02  # its own sleeping costs a little


def test_what_was_saved_up_is_spent_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    share = Share(Slot())
    spin(BURST_SECONDS)  # processing
    share.begin()  # here one thread does both
    share.breathe()
    slept: list[float] = []
    monkeypatch.setattr(share_module, "time", SimpleNamespace(**{**vars(time), "sleep": slept.append}))
    monkeypatch.setattr(Share, "_main_time", lambda self: self._main_mark)  # nothing is processed any more
    spin(BURST_SECONDS * SHARE / 2)
    share.breathe()
    assert slept == []
    monkeypatch.setattr(Share, "_main_is_at_work", lambda self: not slept)
    spin(BURST_SECONDS * SHARE)
    share.breathe()
    assert slept  # until it saw that the other thread has nothing to do


def test_a_thread_that_gets_no_time_to_process_does_not_keep_queries_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a core that other processes have, too."""
    monkeypatch.setattr(Share, "_main_time", lambda self: 0.0)
    monkeypatch.setattr(Share, "_main_is_at_work", lambda self: True)
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    own_time = SimpleNamespace(**{**vars(time), "sleep": sleep, "monotonic": lambda: now})
    monkeypatch.setattr(share_module, "time", own_time)
    share = Share(Slot())
    share.begin()
    for number in range(1, 4):
        spin(0.02)
        share.breathe()
        assert 0 < now <= number * (LONGEST_REST + 0.015)  # and one sleep
    now = 100.0
    assert share.allows()  # so long after the last time
    share.bill(0.02)
    assert not share.allows()
    now += 1.01 * LONGEST_REST
    assert share.allows()


def test_all_threads_have_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_module, "LONGEST_REST", 3600.0)
    share = Share(Slot())
    monkeypatch.setattr(Share, "_main_time", lambda self: self._main_mark)
    assert share.allows()

    def queries() -> None:
        share.begin()
        spin(0.01)
        share._settle(time.thread_time() - share._own.mark)

    thread = threading.Thread(target=queries)
    thread.start()
    thread.join()
    assert not share.allows()


def test_between_epochs_queries_never_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    slot = Slot()
    slot.processing = False
    # Of this module only: the threads that other tests left may sleep.
    own_time = SimpleNamespace(**{**vars(time), "sleep": lambda seconds: pytest.fail("it rests")})
    monkeypatch.setattr(share_module, "time", own_time)
    share = Share(slot)
    share.begin()
    spin(BURST_SECONDS)
    share.breathe()


# --- waiting for the processing thread


def test_who_waits_for_the_end_of_a_countdown_does_not_even_wake_before() -> None:
    """Each time that it woke, it would take Python's lock from the thread that processes."""
    countdown = Countdown()
    countdown.wait()  # nobody has started it
    for _ in range(2):
        countdown.start(60.0)
        thread = threading.Thread(target=countdown.wait)
        thread.start()
        status = Path(f"/proc/self/task/{thread.native_id}/status")
        wait_until(lambda status=status: "sleeping" in status.read_text(), "the thread to wait")
        switches = context_switches(status)
        for _ in range(10):
            countdown.start(60.0)
            time.sleep(0.02)
        assert context_switches(status) <= switches + 1
        countdown.end()
        thread.join(30)
        assert not thread.is_alive()


def test_a_countdown_that_nobody_starts_again_ends() -> None:
    countdown = Countdown()
    began = time.monotonic()
    countdown.start(0.05)
    countdown.wait()
    assert time.monotonic() >= began + 0.05


def context_switches(status: Path) -> int:
    return sum(int(line.split()[1]) for line in status.read_text().splitlines() if "ctxt_switches" in line)


# --- socket calls that keep the lock


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.settimeout(5)
    right.settimeout(5)
    yield left, right
    left.close()
    right.close()


def test_what_is_sent_is_received(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    recv = receiving(right)
    for message in (b"x", b"\0" * 100, bytes(range(256)) * 100):
        send_at_once(left, message, 5)
        found = b""
        while len(found) < len(message):
            found += recv(1 << 18)
        assert found == message


def test_a_message_that_does_not_fit_is_sent_as_the_other_end_reads(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    message = bytes(range(256)) * (1 << 14)  # 4 MB: more than a socket's buffer
    sender = threading.Thread(target=send_at_once, args=(left, message, 5))
    sender.start()
    recv, found = receiving(right), bytearray()
    while len(found) < len(message):
        found += recv(1 << 18)
    sender.join()
    assert bytes(found) == message


def test_nothing_to_read_yet_is_waited_for(pair: tuple[socket.socket, socket.socket]) -> None:
    _, right = pair
    right.settimeout(0.01)
    with pytest.raises(TimeoutError):
        receiving(right)(10)


def test_a_closed_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    left, right = pair
    right.close()
    assert receiving(left)(10) == b""
    with pytest.raises(OSError):
        send_at_once(left, b"x", 5)
    left.close()
    with pytest.raises(OSError), contextlib.suppress(ConnectionError):
        receiving(left)(10)
