"""A driver that is killed or stopped at a step of an epoch, or of the commit of its output, by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.runtime.epoch import fault
from headwater.runtime.local.engine import InProcessEngine
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
STOP = "stop@"
"""Begins the name of a step at which the driver is not killed, but stopped with SIGSTOP."""


class Hitter:
    """Counts how often a step was reached, and sends this process a signal."""

    def __init__(self, step: str, times: int) -> None:
        self._signal = signal.SIGSTOP if step.startswith(STOP) else signal.SIGKILL
        self._step = step.removeprefix(STOP)
        self._left = times

    def reached(self, step: str | None, epoch: int = 0) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)

    def watch(self, owner: Any, name: str, before: str | None, after: str | None) -> None:
        """Make steps of the calls of a method."""
        method = getattr(owner, name)

        def watched(*arguments: Any) -> Any:
            self.reached(before)
            answer = method(*arguments)
            self.reached(after)
            return answer

        setattr(owner, name, watched)

    def watch_epochs(self) -> None:
        """Make steps of those in `headwater.testing.STEPS`."""
        fault.hook = self.reached
        self.watch(InProcessEngine, "_run", "begin", "acked")


def outlive_a_zombie(
    command: list[str], checkpoints: Path, successor: Callable[[], None], check: Callable[[], None]
) -> None:
    """`command` runs a driver that stops in a commit. Its lock is taken away, as if its lease were over; the successor
    ends the job; then the first one goes on. `check` must hold before and after that."""
    zombie = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        status = Path(f"/proc/{zombie.pid}/stat")
        wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "the driver is stopped")
        (lock,) = checkpoints.rglob("LOCK")
        lock.unlink()  # what the stopped driver holds is a file without a name now
        successor()
        check()
        os.kill(zombie.pid, signal.SIGCONT)
        zombie.wait(60)
        check()
    finally:
        if zombie.poll() is None:
            zombie.kill()
        zombie.wait()
        assert zombie.stdout is not None
        print(zombie.stdout.read().decode()[-2000:])
        zombie.stdout.close()
