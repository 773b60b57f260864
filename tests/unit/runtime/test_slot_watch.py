"""A slot that does not answer may be busy: what it does with the processor tells."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.common.ids import Place
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import Attempt, Base, BeginEpoch, SlotAddress
from headwater.runtime.slot import connection, relay
from headwater.runtime.slot.relay import Relay
from headwater.runtime.slot.starter import SlotLaunch, local_host
from tests.waiting import wait_until

BEGIN = BeginEpoch(Attempt(1, 0, 0), Base(-1, "start", -1, "start"), 0, {}, [], checkpointing=False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What slots answered to pings."""
    found: list[bool] = []
    answers = connection.answers

    def ask(*arguments: object) -> bool:
        found.append(answers(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(connection, "answers", ask)
    return found


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_one_that_computes_is_left_alone_until_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[bool], busy: subprocess.Popen[bytes]
) -> None:
    path = str(tmp_path / "s")
    ours, theirs = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as listener, theirs:
        listener.bind(path)
        listener.listen(100)  # connections are made, and nobody answers
        address = SlotAddress(1, 0, local_host(), 0, path, busy.pid, "one")
        monkeypatch.setattr(relay, "find_or_start", lambda launch, known, place: (ours, address))
        launch = SlotLaunch("job", "run", b"s" * 32, b"", (1, 1), b"", None, listen_tcp=False, health_seconds=0.7)
        errors: list[Exception] = []

        def run() -> None:
            under_test = Relay(launch)
            try:
                under_test.call(None, Place(1, 0), BEGIN, iter(()))
                list(under_test.events())
            except ConnectionLostError as error:
                errors.append(error)
            finally:
                under_test.close()

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: len(asked) >= 3)
        assert not any(asked) and not errors
        os.kill(busy.pid, signal.SIGSTOP)
        thread.join(30)
        assert "hangs" in str(errors[0])
        theirs.settimeout(5)
        while theirs.recv(1 << 16):
            pass  # the attempt's beginning, and then the end of the connection
