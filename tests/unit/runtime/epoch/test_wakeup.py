"""Waking the job's thread."""

from __future__ import annotations

import threading
import time

import pytest

from headwater.common.machine.descriptors import wait_any
from headwater.runtime.epoch.wakeup import Wakeup


@pytest.fixture
def wakeup() -> Wakeup:
    return Wakeup()


def test_it_stays_set_until_it_is_cleared(wakeup: Wakeup) -> None:
    assert not wakeup.wait(0)
    wakeup.set()
    wakeup.set()
    assert wakeup.wait(0) and wakeup.wait(0)
    wakeup.clear()
    assert not wakeup.wait(0)


def test_another_thread_ends_a_wait(wakeup: Wakeup) -> None:
    threading.Timer(0.05, wakeup.set).start()
    started = time.monotonic()
    assert wakeup.wait(30)
    assert time.monotonic() - started < 20


def test_it_can_be_selected_beside_sockets(wakeup: Wakeup) -> None:
    assert not wait_any([wakeup.fileno()], 0)
    wakeup.set()
    assert wait_any([wakeup.fileno()], 0) == {wakeup.fileno()}


def test_it_may_be_set_any_number_of_times_and_after_its_end(wakeup: Wakeup) -> None:
    for _ in range(100_000):
        wakeup.set()
    wakeup.clear()
    assert not wakeup.wait(0)
    wakeup.close()
    wakeup.set()
