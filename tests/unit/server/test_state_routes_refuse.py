"""Look-ups over HTTP that the server or a slot cannot answer now: the status, the code, and when to come back."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.common.job_status import JobStatus
from headwater.runtime.job.control import ControlServer
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from headwater.runtime.slot.protocol import query_secret
from headwater.runtime.slot.query import server as query_server
from headwater.server import state_readers
from tests.unit.runtime.fake_job import FakeJob
from tests.unit.runtime.served_slot import Served
from tests.unit.runtime.slot_servers import SECRET
from tests.unit.server.rest_server import Answer, Rest, serving
from tests.waiting import wait_until

JOB = "a" * 32
READERS = 8


class JobOfOneSlot(FakeJob):
    """A driver whose only slot is `served`."""

    def __init__(self, served: Served) -> None:
        super().__init__()
        self._served = served

    def locate_state(self) -> dict[str, Any]:
        return {
            "job_id": JOB,
            "max_parallelism": 16,
            "secret": query_secret(SECRET).hex(),
            "operators": [{"uid": "op", "name": "op", "stage": 1, "parallelism": 1}],
            "slots": [vars(self._served.place)],
        }


class Setting(NamedTuple):
    rest: Rest
    served: Served

    def get(self, key: int) -> Answer:
        return self.rest.ask("GET", f"/jobs/{JOB}/state/op/count/{key}")


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    monkeypatch.setattr(state_readers, "SECONDS", 30.0)  # a busy machine must not look like a slot that is away
    served = Served(tmp_path)
    directory = RunDirectory(str(tmp_path / "state"))
    card = JobCard(JOB, "numbers", os.getpid(), socket.gethostname(), 1, "")
    control = ControlServer(directory, card, JobOfOneSlot(served), lambda: 1)
    control.start()
    with serving(tmp_path) as rest:
        yield Setting(rest, served)
    control.close(JobStatus.FINISHED)


class Gate:
    """Holds up what reads the slot's state, until it is opened."""

    def __init__(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self._opened = threading.Event(), threading.Event()
        read = served.slot.backend.read

        def held(*arguments: Any) -> Any:
            self.entered.set()
            self._opened.wait(30)
            return read(*arguments)

        monkeypatch.setattr(served.slot.backend, "read", held)

    def open(self) -> None:
        self._opened.set()


def refused(answer: Answer, status: int, code: str) -> bool:
    if answer.status != status:
        return False
    assert answer.json["code"] == code and answer.errors
    assert int(answer.headers["retry-after"]) >= 1
    return True


def test_more_queries_than_the_server_has_threads_for(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_readers, "MOST_AT_ONCE", 1)
    gate = Gate(setting.served, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(setting.get, 3)
        assert gate.entered.wait(30)
        second = setting.get(4)
        gate.open()
    assert refused(second, 429, "TOO_MANY_READERS"), second
    assert first.result().json["value"] == 6 and setting.get(4).json["value"] == 8


def test_more_look_ups_than_may_wait_at_a_slot(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_server, "MAX_WAITING", 2)
    answers: list[Answer] = []

    def some_are_refused() -> bool:
        """One look-up is held up until the others are on their way; then they arrive together, more or less."""
        with pytest.MonkeyPatch.context() as held, ThreadPoolExecutor(READERS) as pool:
            gate = Gate(setting.served, held)
            asked: list[Future[Answer]] = [pool.submit(setting.get, key) for key in range(READERS)]
            assert gate.entered.wait(30)
            threading.Event().wait(0.1)
            gate.open()
            answers.extend(each.result() for each in asked)
        return any(refused(each, 429, "TOO_MANY_READERS") for each in answers)

    wait_until(some_are_refused, "a refusal", 60)
    assert {each.status for each in answers} == {200, 429}
    assert all(each.json["value"] == 2 * each.json["key"] for each in answers if each.status == 200)
    assert setting.get(5).json["value"] == 10


def test_while_a_slot_loads_a_checkpoint(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_readers, "SECONDS", 0.5)  # less, and a busy machine looks like a slot that is away
    runner, setting.served.slot.readable = setting.served.slot.readable, None
    base = f"/jobs/{JOB}/state"
    for path in ("", "/op/count/3", "/op/count", "/op/count?keys=1,2"):
        assert refused(setting.rest.ask("GET", base + path), 503, "RESTORING"), path
    setting.served.slot.readable = runner
    wait_until(lambda: setting.get(3).status == 200, "the slot to answer again")


def test_while_a_slot_is_replaced(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_readers, "SECONDS", 0.5)  # less, and a busy machine looks like a slot that is away
    setting.served.lease.until_ns = 0
    assert refused(setting.get(3), 503, "NOT_SURE")
