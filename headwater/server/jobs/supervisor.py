"""The leader's hands: starts drivers, notices their end, starts them again, and closes jobs that are over.

It holds no truth: records, processes and the decision (decisions.py) say what to do, so a server that starts, or takes
over, goes on where another one was. Drivers are sessions of their own, and do not end with the server.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from headwater.common.errors import CheckpointError, HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.common.machine.processes import open_pidfd, start_time
from headwater.runtime.epoch.restart_policy import ExponentialDelay, RestartPolicy
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import RunDirectory
from headwater.server.jobs.decisions import Close, JobFacts, Life, NoteDeath, OrderStart, Revoke, decide
from headwater.server.jobs.history import closed, forget_oldest
from headwater.server.jobs.job_folder import JobFolder, Start, job_ids
from headwater.server.jobs.leadership import BEAT_SECONDS, Leadership, NotLeaderError
from headwater.server.jobs.records import DriverDeath, DriverRecord, Order
from headwater.server.now import now_ms

log = logging.getLogger(__name__)

DRIVER_MODULE = "headwater.cli.job_driver"
REMOTE_SECONDS = 30.0
"""After so long without a sign of life, a driver on another host counts as gone."""
CANCEL_SECONDS = 10.0
"""How long a cancelled driver that has not begun its job may go on."""


def restart_policy(restarts: int) -> RestartPolicy:
    """When to start a driver again that died."""
    return ExponentialDelay(attempts=restarts)


class Supervisor:
    """Two threads: one gives signs of life or waits to lead, the other tends the jobs while this server leads."""

    def __init__(self, storage: Path, leadership: Leadership, policy: RestartPolicy, history_size: int) -> None:
        self._storage = storage
        self._leadership = leadership
        self._policy = policy
        self._history_size = history_size
        self._children: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._beats: dict[str, tuple[int, float]] = {}  # {job id: (what the sign of life was, since when)}
        self._cancelling: dict[str, float] = {}
        self._problems: dict[str, str] = {}
        self._ended: set[str] = set()
        self._wakeup = Wakeup()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._lead, name="leadership", daemon=True),
            threading.Thread(target=self._tend_forever, name="supervisor", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let another server lead. The jobs go on."""
        self._stopping.set()
        self._wakeup.set()
        for thread in self._threads:
            thread.join()
        self._leadership.lay_down()

    def wake(self) -> None:
        """There is something to do."""
        self._wakeup.set()

    def problem(self, job_id: str) -> str:
        """Why a job cannot be tended; empty if it can."""
        return self._problems.get(job_id, "")

    # --- leading

    def _lead(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS / 2):
            led = self._leadership.leads
            try:
                if self._leadership.step() and not led:
                    self._wakeup.set()
            except (OSError, CheckpointError) as error:
                log.warning("nobody can tell who leads: %s", error)

    def _tend_forever(self) -> None:
        while not self._stopping.is_set():
            self._wakeup.clear()
            self._wait(self.tend() if self._leadership.leads else [])

    def _wait(self, pids: list[int]) -> None:
        """Wait a second, or until a driver ends, or somebody calls."""
        watched = [fd for pid in pids if (fd := open_pidfd(pid)) is not None]
        try:
            wait_any([self._wakeup.fileno(), *watched], BEAT_SECONDS)
        finally:
            for descriptor in watched:
                os.close(descriptor)

    # --- tending

    def tend(self) -> list[int]:
        """Do what there is to do for each job. Return the drivers of this host to watch."""
        watched: list[int] = []
        for job_id in job_ids(self._storage):
            if job_id in self._ended:
                continue
            try:
                self._leadership.check()
                pid = self._tend_job(JobFolder(self._storage, job_id))
                self._problems.pop(job_id, None)
                if pid is not None:
                    watched.append(pid)
            except NotLeaderError:
                return watched
            except (HeadwaterError, OSError) as error:
                if self._problems.get(job_id) != str(error):
                    log.warning("job %s cannot be tended: %s", job_id, error)
                self._problems[job_id] = str(error)
        for key, child in list(self._children.items()):
            if child.poll() is not None and key[0] in self._ended:
                del self._children[key]
        return watched

    def _tend_job(self, folder: JobFolder) -> int | None:
        if folder.has_ended:
            self._ended.add(folder.job_id)
            forget_oldest(self._storage, self._history_size)
            return None
        if folder.submission() is None:
            return None  # it is just being submitted, or its server died then
        starts = folder.starts()
        last = starts[-1] if starts else None
        here = last is None or last.driver is None or last.driver.host == socket.gethostname()
        life = self._life(folder, last)
        resumable = any(start.job is not None and start.job.description.get("checkpoint_dir") for start in starts)
        decision = decide(JobFacts(starts, life, folder.is_cancelled, resumable, here), self._policy)
        if isinstance(decision, OrderStart):
            if now_ms() >= decision.at_ms:
                return self._order(folder, decision.number)
        elif isinstance(decision, Revoke):
            self._revoke(folder, decision.number)
        elif isinstance(decision, NoteDeath):
            self._note_death(folder, decision.number)
        elif isinstance(decision, Close):
            self._close(folder, starts, decision)
        elif last is not None and last.driver is not None:
            if folder.is_cancelled:
                self._cancel(folder, last)
            return last.driver.pid if here else None
        return None

    def _life(self, folder: JobFolder, last: Start | None) -> Life:
        if last is None:
            return Life.NOBODY
        if last.driver is None:
            child = self._children.get((folder.job_id, last.number))
            return Life.COMING if child is not None and child.poll() is None else Life.NOBODY
        child = self._children.get((folder.job_id, last.number))
        if child is not None:
            child.poll()  # or it stays a zombie
        if last.driver.host == socket.gethostname():
            return Life.ALIVE if start_time(last.driver.pid) == last.driver.start_time else Life.GONE
        return self._life_elsewhere(folder)

    def _life_elsewhere(self, folder: JobFolder) -> Life:
        try:
            sign = folder.beat.stat().st_mtime_ns
        except OSError:
            sign = 0
        seen, since = self._beats.get(folder.job_id, (-1, 0.0))
        if sign != seen:
            self._beats[folder.job_id] = sign, time.monotonic()
            return Life.ALIVE
        return Life.ALIVE if time.monotonic() - since < REMOTE_SECONDS else Life.GONE

    # --- doing

    def _order(self, folder: JobFolder, number: int) -> int | None:
        """Start a driver. Of two servers that want to, one gets the order written."""
        try:
            folder.order(number, Order(self._leadership.name, now_ms()))
        except FileExistsError:
            return None
        self._leadership.check()
        child = self._children[folder.job_id, number] = self._spawn(folder, number)
        return child.pid

    def _spawn(self, folder: JobFolder, number: int) -> subprocess.Popen[bytes]:
        with open(folder.log, "ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", DRIVER_MODULE, str(self._storage), folder.job_id, str(number)],
                cwd=folder.files,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _revoke(self, folder: JobFolder, number: int) -> None:
        """Take an order back, unless its driver comes first."""
        child = self._children.get((folder.job_id, number))
        with contextlib.suppress(FileExistsError):
            folder.take(number, DriverRecord(0, "", socket.gethostname(), now_ms(), revoked_by=self._leadership.name))
            if child is not None:  # its process ended before it began: the next one may do the same
                folder.died(number, DriverDeath(now_ms(), f"its driver did not start ({_how(child)}); see its log"))
        self._wakeup.set()

    def _note_death(self, folder: JobFolder, number: int) -> None:
        start = folder.start(number)  # again: what it wrote before its end is there by now
        if start.end is None and start.driver is not None:
            child = self._children.get((folder.job_id, number))
            how = f" ({_how(child)})" if child is not None else ""
            problem = f"its driver, pid {start.driver.pid} on host {start.driver.host}, died{how}"
            log.warning("job %s: %s", folder.job_id, problem)
            folder.died(number, DriverDeath(now_ms(), problem))
        self._wakeup.set()

    def _close(self, folder: JobFolder, starts: list[Start], decision: Close) -> None:
        with contextlib.suppress(FileExistsError):
            folder.close(closed(folder, starts, decision.status, decision.problem))
        self._wakeup.set()

    def _cancel(self, folder: JobFolder, last: Start) -> None:
        """Somebody wants the job to end. If it cannot be asked to, because it has not begun, its process is ended."""
        assert last.driver is not None
        since = self._cancelling.setdefault(folder.job_id, time.monotonic())
        with contextlib.suppress(HeadwaterError):
            if _ask_to_cancel(last):
                return
        here = last.driver.host == socket.gethostname()
        if here and time.monotonic() - since > CANCEL_SECONDS and self._life(folder, last) is Life.ALIVE:
            os.kill(last.driver.pid, signal.SIGKILL)


def _ask_to_cancel(start: Start) -> bool:
    """Return False if the driver of `start` runs no job that could be asked."""
    if start.driver is None or start.job is None or not start.job.state_dir:
        return False
    directory = RunDirectory(start.job.state_dir)
    found = [card for card in directory.cards() if (card.pid, card.host) == (start.driver.pid, start.driver.host)]
    for card in found[-1:]:  # of several jobs of a program, the one that runs now
        ask(directory, card, "cancel", within_seconds=1)
    return bool(found)


def _how(child: subprocess.Popen[bytes]) -> str:
    code = child.poll()
    if code is None:
        return "it still runs"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
