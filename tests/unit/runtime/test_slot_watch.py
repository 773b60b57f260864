"""A slot that does not answer may be busy: what it does with the processor tells."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot import relay as client
from headwater.runtime.slot.relay import Watch
from headwater.runtime.slot.starter import local_host


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_that_computes_is_left_alone_until_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    answers = client.answers

    def ask(*arguments: object) -> bool:
        asked.append(answers(*arguments))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(client, "answers", ask)
    path = str(tmp_path / "s")
    left, right = socket.socketpair()
    with (
        socket.socket(socket.AF_UNIX) as listener,
        subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as busy,
        left, right,
    ):  # fmt: skip
        listener.bind(path)
        listener.listen(100)  # connections are made, and nobody answers
        address = SlotAddress(1, 0, local_host(), 0, path, busy.pid, "one")
        watch = Watch(left, address, b"s" * 32, 0.7)
        try:
            wait_until(lambda: len(asked) >= 3)
            assert not any(asked) and not watch.hangs
            os.kill(busy.pid, signal.SIGSTOP)
            wait_until(lambda: watch.hangs)
            assert right.recv(1) == b"", "whoever waits for the slot is told"
        finally:
            watch.end()
            busy.kill()
