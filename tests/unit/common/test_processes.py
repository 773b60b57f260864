from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headwater.common.machine.processes import alive


def test_this_process_is_alive() -> None:
    assert alive(os.getpid())


def test_a_process_that_has_ended_is_not() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not alive(ended.pid)


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    assert alive(1)
