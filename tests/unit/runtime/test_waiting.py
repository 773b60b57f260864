"""Waiting for input: woken at once by any reader, by the driver, or by the deadline; no thread is left behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.common.connector import SplitReader
from headwater.common.machine.descriptors import wait_any
from headwater.runtime.stage.waiting import can_wait, wait_for_input

LONG = 30.0


class Piped(SplitReader):
    """Has input once somebody writes into its pipe."""

    def __init__(self) -> None:
        self.readable, self.writable = os.pipe()
        self.in_use = False

    def read_batch(self, max_records: int) -> list[Any]:
        return []

    def position(self) -> int:
        return 0

    def wait_readable(self, deadline: float, wake: int) -> bool:
        self.in_use = True
        ready = wait_any([self.readable, wake], deadline - time.monotonic())
        self.in_use = False
        return self.readable in ready

    def give(self) -> None:
        os.write(self.writable, b".")

    def close(self) -> None:
        os.close(self.readable)
        os.close(self.writable)


class Deaf(Piped):
    wait_readable = SplitReader.wait_readable


@pytest.fixture
def readers() -> Iterator[list[Piped]]:
    found = [Piped(), Piped(), Piped()]
    yield found
    for reader in found:
        reader.close()


@pytest.fixture
def driver() -> Iterator[tuple[int, int]]:
    """Two ends of a pipe: when the first can be read, the driver wants something."""
    wake, write = os.pipe()
    yield wake, write
    os.close(wake)
    os.close(write)


def later(action: Any, *arguments: Any) -> None:
    timer = threading.Timer(0.05, action, arguments)
    timer.daemon = True
    timer.start()


def timed(readers: list[Piped], seconds: float, wake: int) -> tuple[bool, float]:
    threads = threading.active_count()
    started = time.monotonic()
    found = wait_for_input(readers, started + seconds, wake)
    took = time.monotonic() - started
    assert not any(reader.in_use for reader in readers)
    deadline = time.monotonic() + 10
    while threading.active_count() > threads:
        assert time.monotonic() < deadline, "a thread still waits"
    return found, took


@pytest.mark.parametrize("count", [1, 2, 3])
def test_input_of_any_reader_ends_it(count: int, readers: list[Piped], driver: tuple[int, int]) -> None:
    for each in range(count):
        later(readers[each].give)
        found, took = timed(readers[:count], LONG, driver[0])
        assert found and took < LONG / 2
        os.read(readers[each].readable, 1)


@pytest.mark.parametrize("count", [1, 2])
def test_the_driver_ends_it_and_keeps_its_message(count: int, readers: list[Piped], driver: tuple[int, int]) -> None:
    later(os.write, driver[1], b"x")
    found, took = timed(readers[:count], LONG, driver[0])
    assert not found and took < LONG / 2
    assert os.read(driver[0], 1) == b"x"


@pytest.mark.parametrize("count", [1, 2])
def test_the_deadline_ends_it(count: int, readers: list[Piped], driver: tuple[int, int]) -> None:
    found, took = timed(readers[:count], 0.1, driver[0])
    assert not found and 0.09 <= took < LONG / 2


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_there_already_is_seen(count: int, readers: list[Piped], driver: tuple[int, int]) -> None:
    readers[count - 1].give()
    assert timed(readers[:count], LONG, driver[0])[0]


def test_no_descriptor_is_left_open(readers: list[Piped], driver: tuple[int, int]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        wait_for_input(readers, time.monotonic() + 0.001, driver[0])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_process_with_many_open_files_can_wait(readers: list[Piped], driver: tuple[int, int]) -> None:
    """`select` takes no descriptor from 1,024 on."""
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1_100)]
    try:
        readers[1].give()
        high = os.dup(driver[0])
        assert high >= 1_024
        quick = [QuickReader(answer=False), QuickReader(answer=True)]
        assert wait_for_input(quick, time.monotonic() + LONG, high)
        os.close(high)
    finally:
        for file in files:
            os.close(file)


class QuickReader(Piped):
    """Answers without looking at a descriptor."""

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer

    def wait_readable(self, deadline: float, wake: int) -> bool:
        return self.answer


class Broken(QuickReader):
    def wait_readable(self, deadline: float, wake: int) -> bool:
        raise OSError("the queue is gone")


@pytest.mark.parametrize("count", [1, 2])
def test_a_reader_that_cannot_wait_is_asked(
    count: int, readers: list[Piped], driver: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    """Its error must not end the resident task, nor be lost with a thread: an epoch meets it, and reports it."""
    waiting = [Broken(answer=False), *readers[: count - 1]]
    assert wait_for_input(waiting, time.monotonic() + LONG, driver[0])
    assert "Broken cannot wait for input" in caplog.text and "the queue is gone" in caplog.text


def test_only_readers_that_say_so_can_wait() -> None:
    assert can_wait(Piped()) and not can_wait(Deaf())
