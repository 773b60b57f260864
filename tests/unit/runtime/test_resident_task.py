"""The two ends of the resident engine, over a socket pair and without Spark."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any

import pytest

from headwater.common.connector import Split
from headwater.runtime.epoch.engine import EngineLostError
from headwater.runtime.epoch.failure import AttemptFailedError, ConnectionLostError, FailureReason
from headwater.runtime.epoch.messages import Attempt, Base, EpochHeader, SourceTask, SplitAssignment
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.slot.protocol import Message, Receiver, send
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.resident.engine import NoCoreError, ResidentEngine, _RunningTask
from headwater.runtime.spark.resident.task import ResidentTask
from tests.unit.runtime.test_waiting import Piped

LAUNCH = SlotLaunch("job", "0123456789abcdef", b"s" * 32, b"no plan", (1,), b"", None, listen_tcp=False)
HEADER = EpochHeader(Attempt(1, 0, 0), Base(-1, "start", -1, "start"), 0, checkpointing=False, final=False)
MARKER = SourceTask(0, 1, 0, marker={})
READING = SourceTask(0, 1, 0, (SplitAssignment(Split("s", None), None, 1, b"", {}),))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def driver(pair: tuple[socket.socket, socket.socket]) -> _RunningTask:
    """The driver's end. The test plays the task."""
    nothing: Any = None
    task = _RunningTask(nothing, "job", LAUNCH, nothing)
    task._sock, task._receiver = pair[0], Receiver(pair[0])
    return task


@pytest.fixture
def wakeup() -> Iterator[Wakeup]:
    found = Wakeup()
    yield found
    found.close()


class Spark:
    """Stands for a Spark with so many cores. Its jobs end when the test says so."""

    def __init__(self, cores: int) -> None:
        self.defaultParallelism = cores
        self.applicationId = f"application-{id(self)}"
        self.asked, self.ending = threading.Semaphore(0), threading.Event()
        self._jsc = None

    def setJobGroup(self, *arguments: object) -> None:
        self.asked.release()

    def parallelize(self, *arguments: object) -> Spark:
        return self

    mapPartitions = parallelize

    def collect(self) -> None:
        self.ending.wait(10)


def start_of(spark: Any) -> type[BaseException] | None:
    task = _RunningTask(spark, "job", LAUNCH, None)
    try:
        task.start(lambda: False)
    except (NoCoreError, ConnectionLostError) as error:
        return type(error)
    finally:
        task.end()
    return None


def test_tasks_that_start_at_the_same_moment_leave_a_core_to_others() -> None:
    spark = Spark(cores=3)
    with ThreadPoolExecutor(6) as together:
        found = [together.submit(start_of, spark) for _ in range(6)]
        refused = [each.result() for each in islice(as_completed(found, 10), 4)]
        assert refused == [NoCoreError] * 4
        assert spark.asked.acquire(timeout=10) and spark.asked.acquire(timeout=10)
        spark.ending.set()
    assert not spark.asked.acquire(blocking=False)
    assert start_of(spark) is ConnectionLostError  # those that have ended gave their cores back


class KilledJvm:
    """Stands for a Spark context whose JVM was killed: py4j cannot connect."""

    @property
    def _jsc(self) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_jvm_that_was_killed_is_told_in_one_line() -> None:
    killed: Any = KilledJvm()
    with pytest.raises(EngineLostError, match=r"Spark's JVM is gone: .*refused"):
        ResidentEngine(killed, "job", LAUNCH, None).run(HEADER, [])


class TestDriver:
    def test_input_ends_the_wait(
        self, driver: _RunningTask, pair: tuple[socket.socket, socket.socket], wakeup: Wakeup
    ) -> None:
        send(pair[1], Message.READABLE)
        assert driver.wait(30, wakeup)
        kind, body = Receiver(pair[1]).receive()
        assert kind is Message.WAIT and int.from_bytes(body, "little") == 30_000

    def test_whoever_asks_for_something_ends_the_wait(self, driver: _RunningTask, wakeup: Wakeup) -> None:
        wakeup.set()
        assert not driver.wait(30, wakeup)

    def test_a_task_whose_time_ends_first_is_asked_again(
        self, driver: _RunningTask, pair: tuple[socket.socket, socket.socket], wakeup: Wakeup
    ) -> None:
        """Woken early, the driver waits anew: longer than it had asked the task to watch."""
        receiver = Receiver(pair[1])
        wakeup.set()
        driver.wait(0.2, wakeup)
        assert receiver.receive() == (Message.WAIT, (200).to_bytes(8, "little"))
        wakeup.clear()
        driver.wait(0.3, wakeup)
        assert receiver.receive() == (Message.WAIT, (300).to_bytes(8, "little"))

    def test_a_task_that_is_gone_ends_the_wait(
        self, driver: _RunningTask, pair: tuple[socket.socket, socket.socket], wakeup: Wakeup
    ) -> None:
        pair[1].close()
        with pytest.raises(ConnectionLostError):
            driver.wait(30, wakeup)

    def test_a_late_report_of_input_is_no_answer_to_an_epoch(
        self, driver: _RunningTask, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        send(pair[1], Message.READABLE)
        send(pair[1], Message.ACKS, pickle.dumps([]))
        assert driver.run(HEADER, [MARKER]) == []

    def test_a_task_watches_from_its_first_epoch_that_reads(
        self, driver: _RunningTask, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        """One that has only run an epoch for a savepoint has no readers: sources must be asked."""
        failure = AttemptFailedError("no", FailureReason.PROCESS_LOST)
        for task, answer, watches in (
            (MARKER, (Message.ACKS, pickle.dumps([])), False),
            (READING, (Message.FAILED, pickle.dumps(failure)), False),
            (READING, (Message.ACKS, pickle.dumps([])), True),
            (MARKER, (Message.ACKS, pickle.dumps([])), True),
        ):
            send(pair[1], *answer)
            try:
                driver.run(HEADER, [task])
            except AttemptFailedError as error:
                assert str(error) == "no"
            assert driver.has_read is watches


class TestTask:
    @pytest.fixture
    def task(self, pair: tuple[socket.socket, socket.socket]) -> Iterator[ResidentTask]:
        """The task's end, served in a thread. It closes its readers at the end. The test plays the driver."""
        task = ResidentTask(pair[0], LAUNCH)

        def serve() -> None:
            with contextlib.suppress(ConnectionLostError):
                task.serve()

        thread = threading.Thread(target=serve)
        thread.start()
        yield task
        pair[1].close()
        thread.join(10)
        assert not thread.is_alive()

    def test_a_plan_that_cannot_be_loaded_is_a_failure_of_the_program(
        self, task: ResidentTask, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        receiver = Receiver(pair[1])
        for _ in range(2):
            send(pair[1], Message.EPOCH, pickle.dumps((HEADER, [MARKER])))
            kind, body = receiver.receive()
            failure = pickle.loads(body)
            assert kind is Message.FAILED and failure.reason is FailureReason.PROGRAM
            assert "cannot be loaded" in str(failure)

    def test_input_is_reported_once(self, task: ResidentTask, pair: tuple[socket.socket, socket.socket]) -> None:
        readers = [Piped(), Piped()]
        task._readers.kept = lambda: iter(readers)  # type: ignore[method-assign]
        send(pair[1], Message.WAIT, (30_000).to_bytes(8, "little"))
        readers[1].give()
        assert Receiver(pair[1]).receive()[0] is Message.READABLE
        pair[1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            pair[1].recv(1)

    def test_a_message_ends_its_waiting_at_once(
        self, task: ResidentTask, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        reader = Piped()
        task._readers.kept = lambda: iter([reader])  # type: ignore[method-assign]
        send(pair[1], Message.WAIT, (30_000).to_bytes(8, "little"))
        started = time.monotonic()
        send(pair[1], Message.EPOCH, pickle.dumps((HEADER, [MARKER])))
        assert Receiver(pair[1]).receive()[0] is Message.FAILED
        assert time.monotonic() - started < 15

    def test_it_ends_when_told(self, task: ResidentTask, pair: tuple[socket.socket, socket.socket]) -> None:
        send(pair[1], Message.SHUTDOWN)
